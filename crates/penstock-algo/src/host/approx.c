/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* approx.h for Rust, which owns the memory of starts, values and tables. */
#include <penstock/approx.h>

#include <stddef.h>

uint32_t pst_host_approx_starts_max(void);
uint32_t pst_host_approx_cut(uint32_t low, uint32_t high, uint32_t r_numerator, uint32_t r_denominator,
			     uint32_t *starts);
uint32_t pst_host_approx_index(const uint32_t *starts, uint32_t count, uint32_t value);
size_t pst_host_approx_table_bytes(void);
void pst_host_approx_table(struct pst_approx_table *out, const uint32_t *x_starts, uint32_t x_count,
			   const uint32_t *y_starts, uint32_t y_count);
void pst_host_adt_build(struct pst_approx_table *table, uint64_t *values);
void pst_host_amt_build(struct pst_approx_table *table, uint64_t *values);
uint64_t pst_host_adt_divide_q32(const struct pst_approx_table *table, uint32_t x, uint32_t y);
uint64_t pst_host_amt_multiply_x2(const struct pst_approx_table *table, uint32_t x, uint32_t y);
uint32_t pst_host_tcam_bits_max(void);
uint32_t pst_host_tcam_entries(uint32_t operand_bits, uint32_t b);
uint64_t pst_host_tcam_multiply(uint64_t factor, uint64_t operand, uint32_t b);

/* Room that every axis fits in: its intervals, and where the next one would start. */
uint32_t pst_host_approx_starts_max(void)
{
	return PST_APPROX_INTERVALS_MAX + 1;
}

/* Returns the number of intervals, 0 for bad parameters. `starts` has room for pst_host_approx_starts_max(). */
uint32_t pst_host_approx_cut(uint32_t low, uint32_t high, uint32_t r_numerator, uint32_t r_denominator,
			     uint32_t *starts)
{
	const struct pst_approx_params params = { low, high, r_numerator, r_denominator };
	struct pst_approx_axis axis;

	return pst_approx_axis_build(&axis, &params, starts, pst_host_approx_starts_max()) ? axis.count : 0;
}

uint32_t pst_host_approx_index(const uint32_t *starts, uint32_t count, uint32_t value)
{
	const struct pst_approx_axis axis = { starts, count };

	return pst_approx_axis_index(&axis, value);
}

size_t pst_host_approx_table_bytes(void)
{
	return sizeof(struct pst_approx_table);
}

/* A table without values. */
void pst_host_approx_table(struct pst_approx_table *out, const uint32_t *x_starts, uint32_t x_count,
			   const uint32_t *y_starts, uint32_t y_count)
{
	const struct pst_approx_axis x = { x_starts, x_count }, y = { y_starts, y_count };

	out->x = x;
	out->y = y;
	out->values = NULL;
}

void pst_host_adt_build(struct pst_approx_table *table, uint64_t *values)
{
	pst_adt_build(table, values);
}

void pst_host_amt_build(struct pst_approx_table *table, uint64_t *values)
{
	pst_amt_build(table, values);
}

uint64_t pst_host_adt_divide_q32(const struct pst_approx_table *table, uint32_t x, uint32_t y)
{
	return pst_adt_divide_q32(table, x, y);
}

uint64_t pst_host_amt_multiply_x2(const struct pst_approx_table *table, uint32_t x, uint32_t y)
{
	return pst_amt_multiply_x2(table, x, y);
}

uint32_t pst_host_tcam_bits_max(void)
{
	return PST_TCAM_BITS_MAX;
}

uint32_t pst_host_tcam_entries(uint32_t operand_bits, uint32_t b)
{
	return pst_tcam_entries(operand_bits, b);
}

uint64_t pst_host_tcam_multiply(uint64_t factor, uint64_t operand, uint32_t b)
{
	return pst_tcam_multiply(factor, operand, b);
}
