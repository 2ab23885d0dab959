/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * approx.h: multiplication and division by table, as a switch does them.
 *
 * What         ADT, AMT: each operand's range [low, high] is cut into intervals [x_i, floor(x_i (1 + r))], with
 *                  x_0 = low,  x_{i+1} = floor(x_i (1 + r)) + 1                                       (erratum S6)
 *              and the table holds, for each pair of intervals, the mean of the smallest and the largest result:
 *                  ADT (x_i / yEnd_j + xEnd_i / y_j) / 2        AMT (x_i y_j + xEnd_i yEnd_j) / 2
 *              TCAM multiply: an operand is known by its `b` most significant bits; the values that share them form a
 *              group, and the product is taken at the group's mean. Values below 2^b are groups of one.
 *              Prefix divide: x / y for x <= y, where j is the `b` most significant bits of y, i the bits of x at the same places,
 *                  x / y = (i + 1/2) / (j + 1/2)
 * Source       SwitchRL section 6 (equation 1, ADT) and appendix A (AMT); Nimble section 4.1, Algorithm 1, repaired:
 *              as printed its loop neither ends nor adds the shifted entry (docs/algorithms/nimble.md). AHAB section V-A, equation 6.
 * Units        none of its own. ADT values are Q32. AMT values and means are doubled (they are half-integers): _x2.
 *              Quotients of the prefix divide are Q12 (AHAB figure 7).
 * Ranges       operands 1 .. PST_APPROX_HIGH_MAX, r = numerator / denominator in (0, 1); lookups take all of u32.
 *              TCAM: 1 <= b <= PST_TCAM_BITS_MAX, operands below 2^63.
 * Invariants   I1  the intervals are disjoint and cover [low, high].
 *              I2  r = 2/100 over [1, 10000]: 295 intervals, 295^2 = 87,025 entries.
 *              I3  |exact / entry - 1| <= ((1+r)^2 - 1) / ((1+r)^2 + 1), 0.0198 at r = 0.02; an ADT entry's own
 *                  rounding adds at most 1.5 * 2^-32 of absolute error.
 *              I4  a lookup is total: an operand outside [low, high] reads as the nearest interval.
 *              I5  i-bit operands and b bits give (i - b + 2) * 2^(b-1) entries: (32, 4) 240, (32, 5) 464. Every
 *                  operand matches exactly one of them.
 *              I6  |mean / operand - 1| < 2^-b.
 *              I7  prefix divide: 2^(b-1) (3 * 2^(b-1) + 1) / 2 entries: 392 for b = 5, 1552 for b = 6. A quotient lies in (0, 1], and is off
 *                  by less than 2^-b (1 + x / y) and half a unit. Relative to x / y the error has no bound: on average, over all x up to
 *                  each of eleven y from 1 to 100,001, it is 20.0 % and 9.7 %. AHAB's 8.2 % and 4.6 % come out where the entries of i = 0 are
 *                  read as nothing; then whoever sends at 2^b T would get nothing too.
 * Overflow     ADT: x < 2^31, so x << 32 < 2^63 and the sum of two is below 2^64. AMT: two products below 2^62.
 *              TCAM: twice a mean is below 2^64, and 63 * 2^23 entries count in 32 bits; the caller sees to
 *              factor * twice the mean < 2^64. Prefix divide: (2i + 1) << 12 < 2^25.
 * Concurrency  tables are written once, before use, into memory of the caller.
 */
#ifndef PENSTOCK_APPROX_H
#define PENSTOCK_APPROX_H

#include "fixed.h"

#define PST_APPROX_HIGH_MAX ((UINT32_C(1) << 30) - 1)
#define PST_APPROX_INTERVALS_MAX (UINT32_C(1) << 16)
#define PST_TCAM_BITS_MAX 24
#define PST_PREFIX_BITS_MAX 12
#define PST_PREFIX_ONE_Q12 UINT32_C(4096)

struct pst_approx_params {
	uint32_t low;
	uint32_t high;
	uint32_t r_numerator;
	uint32_t r_denominator;
};

/* The intervals of one operand. `starts` has count + 1 elements: the last is where the next interval would start. */
struct pst_approx_axis {
	const uint32_t *starts;
	uint32_t count;
};

/* values[x interval * y.count + y interval]: Q32 in an ADT, doubled in an AMT. */
struct pst_approx_table {
	struct pst_approx_axis x;
	struct pst_approx_axis y;
	const uint64_t *values;
};

/* Cuts [low, high] into intervals. `room` counts the elements of `starts`. False: bad parameters, or no room. */
PST_INLINE bool pst_approx_axis_build(struct pst_approx_axis *out, const struct pst_approx_params *params,
				      uint32_t *starts, uint32_t room)
{
	uint32_t start = params->low;
	uint32_t count = 0;

	if (params->low == 0 || params->low > params->high || params->high > PST_APPROX_HIGH_MAX)
		return false;
	if (params->r_numerator == 0 || params->r_numerator >= params->r_denominator)
		return false;
	while (start <= params->high) {
		if (count + 1 >= room || count >= PST_APPROX_INTERVALS_MAX)
			return false;
		starts[count++] = start;
		start += (uint32_t)((uint64_t)start * params->r_numerator / params->r_denominator) + 1;
	}
	starts[count] = start;
	out->starts = starts;
	out->count = count;
	return true;
}

/* The interval of a value: a TCAM's range match, here a binary search of PST_APPROX_INTERVALS_MAX at most. */
PST_INLINE uint32_t pst_approx_axis_index(const struct pst_approx_axis *axis, uint32_t value)
{
	uint32_t index = 0, step;

	for (step = PST_APPROX_INTERVALS_MAX / 2; step > 0; step >>= 1) {
		if (index + step < axis->count && axis->starts[index + step] <= value)
			index += step;
	}
	return index;
}

/* Fills `values` (x.count * y.count elements) for division, and makes it the table's. */
PST_INLINE void pst_adt_build(struct pst_approx_table *table, uint64_t *values)
{
	uint32_t i, j;

	for (i = 0; i < table->x.count; i++) {
		for (j = 0; j < table->y.count; j++) {
			uint64_t lower = ((uint64_t)table->x.starts[i] << 32) / (table->y.starts[j + 1] - 1);
			uint64_t upper = ((uint64_t)(table->x.starts[i + 1] - 1) << 32) / table->y.starts[j];

			values[(uint64_t)i * table->y.count + j] = lower + (upper - lower + 1) / 2;
		}
	}
	table->values = values;
}

/* The same for multiplication. */
PST_INLINE void pst_amt_build(struct pst_approx_table *table, uint64_t *values)
{
	uint32_t i, j;

	for (i = 0; i < table->x.count; i++) {
		for (j = 0; j < table->y.count; j++) {
			uint64_t lower = (uint64_t)table->x.starts[i] * table->y.starts[j];
			uint64_t upper = (uint64_t)(table->x.starts[i + 1] - 1) * (table->y.starts[j + 1] - 1);

			values[(uint64_t)i * table->y.count + j] = lower + upper;
		}
	}
	table->values = values;
}

PST_INLINE uint64_t pst_approx_entry(const struct pst_approx_table *table, uint32_t x_index, uint32_t y_index)
{
	return table->values[(uint64_t)x_index * table->y.count + y_index];
}

/* x / y in Q32. */
PST_INLINE uint64_t pst_adt_divide_q32(const struct pst_approx_table *table, uint32_t x, uint32_t y)
{
	return pst_approx_entry(table, pst_approx_axis_index(&table->x, x), pst_approx_axis_index(&table->y, y));
}

/* Twice x * y. */
PST_INLINE uint64_t pst_amt_multiply_x2(const struct pst_approx_table *table, uint32_t x, uint32_t y)
{
	return pst_approx_entry(table, pst_approx_axis_index(&table->x, x), pst_approx_axis_index(&table->y, y));
}

/* One ternary entry: it matches an operand when (operand & mask) == value. */
struct pst_tcam_entry {
	uint64_t value;
	uint64_t mask;
	uint64_t mean_x2;
};

PST_INLINE uint32_t pst_tcam_entries(uint32_t operand_bits, uint32_t b)
{
	return (operand_bits - b + 2) << (b - 1);
}

/* Entry `index` of the table: first the 2^b values matched whole, then 2^(b-1) groups for each longer length. */
PST_INLINE struct pst_tcam_entry pst_tcam_entry_at(uint32_t b, uint32_t index)
{
	uint32_t half = UINT32_C(1) << (b - 1);
	uint32_t shift = index >= half ? (index >> (b - 1)) - 1 : 0;
	struct pst_tcam_entry entry;

	entry.value = (uint64_t)(index - shift * half) << shift;
	entry.mask = ~((UINT64_C(1) << shift) - 1);
	entry.mean_x2 = 2 * entry.value + (UINT64_C(1) << shift) - 1;
	return entry;
}

/* The entry that matches, by arithmetic. */
PST_INLINE uint32_t pst_tcam_index(uint64_t operand, uint32_t b)
{
	uint32_t length = pst_bit_length(operand);
	uint32_t shift = length > b ? length - b : 0;

	return (uint32_t)(operand >> shift) + (shift << (b - 1));
}

/* factor * operand, the operand known by its b most significant bits. */
PST_INLINE uint64_t pst_tcam_multiply(uint64_t factor, uint64_t operand, uint32_t b)
{
	return factor * pst_tcam_entry_at(b, pst_tcam_index(operand, b)).mean_x2 / 2;
}

PST_INLINE uint32_t pst_prefix_entries(uint32_t b)
{
	uint32_t half = UINT32_C(1) << (b - 1);

	return half * (3 * half + 1) / 2;
}

/* The entry of i and j, to the nearest. */
PST_INLINE uint32_t pst_prefix_entry_q12(uint32_t i, uint32_t j)
{
	return ((2 * i + 1) * PST_PREFIX_ONE_Q12 + j) / (2 * j + 1);
}

/* x / y, each known by b bits; 1 where x is not below y. b is cut to 1 .. PST_PREFIX_BITS_MAX. */
PST_INLINE uint32_t pst_prefix_divide_q12(uint32_t x, uint32_t y, uint32_t b)
{
	uint32_t length = pst_bit_length(y), bits = b < PST_PREFIX_BITS_MAX ? b : PST_PREFIX_BITS_MAX;

	if (x >= y)
		return PST_PREFIX_ONE_Q12;
	bits = bits ? bits : 1;
	if (length < bits)
		return pst_prefix_entry_q12(x << (bits - length), y << (bits - length));
	return pst_prefix_entry_q12(x >> (length - bits), y >> (length - bits));
}

/* The quotient times 2^shift, by a shift (AHAB, equation 11): to the right too, or small steps are lost (erratum A3). */
PST_INLINE uint32_t pst_prefix_times(uint32_t quotient_q12, uint32_t shift)
{
	return shift >= 12 ? quotient_q12 << ((shift - 12) & 31) : quotient_q12 >> (12 - shift);
}

#endif /* PENSTOCK_APPROX_H */
