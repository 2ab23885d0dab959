/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "vectors.h"

#include <penstock/approx.h>
#include <penstock/rng.h>

#include "ref_approx.h"

#define ROOM 400

/* "x, y in [1, 10000] and r = 0.02" (SwitchRL section 6). */
static const struct pst_approx_params paper = { 1, 10000, 2, 100 };

struct tables {
	uint32_t starts[ROOM];
	uint64_t quotients[ROOM * ROOM];
	uint64_t products[ROOM * ROOM];
	struct pst_approx_table adt;
	struct pst_approx_table amt;
};
static struct tables tables;

static void build(const struct pst_approx_params *params)
{
	struct pst_approx_axis axis;

	assert_true(pst_approx_axis_build(&axis, params, tables.starts, ROOM));
	tables.adt.x = tables.adt.y = tables.amt.x = tables.amt.y = axis;
	pst_adt_build(&tables.adt, tables.quotients);
	pst_amt_build(&tables.amt, tables.products);
}

/* SwitchRL section 6: "V1 = 87025". I2. Erratum S6: the printed formula, ceil(log_1.02(10000)), is 466 an axis. */
static void paper_table_has_295_intervals_an_axis(void **state)
{
	__int128 power = (__int128)1 << 60; /* 1.02^n in Q60, rounded down */
	int n = 0;

	(void)state;
	build(&paper);
	assert_int_equal(tables.adt.x.count, 295);
	assert_int_equal(tables.adt.x.count * tables.adt.y.count, 87025);
	for (; power < (__int128)10000 << 60; n++)
		power = power * 102 / 100;
	assert_int_equal(n, 466);
	/* "V1/V2 = 0.00087" */
	assert_int_equal(87025 * UINT64_C(100000) / (10000 * 10000), 87);
}

/* Equation 1: the intervals cover [X_L, X_H] and are disjoint. I1, and the index of every value. */
static void intervals_partition_the_range(void **state)
{
	static const struct pst_approx_params cuts[] = { { 1, 10000, 2, 100 }, { 7, 9999, 1, 3 }, { 1, 1, 1, 2 },
							 { 500, 100000, 999, 10000 } };
	unsigned cut;

	(void)state;
	for (cut = 0; cut < 4; cut++) {
		const struct pst_approx_params *params = &cuts[cut];
		struct ref_cut ref = { params->low, params->high, params->r_numerator, params->r_denominator };
		struct pst_approx_axis axis;
		uint32_t value;

		assert_true(pst_approx_axis_build(&axis, params, tables.starts, ROOM));
		assert_int_equal(axis.count, ref_approx_count(ref));
		assert_int_equal(axis.starts[0], params->low);
		assert_true(axis.starts[axis.count] > params->high);
		for (value = params->low; value <= params->high; value += 1 + value / 1000) {
			struct ref_interval interval = ref_approx_interval(ref, value);
			uint32_t index = pst_approx_axis_index(&axis, value);

			assert_int_equal(axis.starts[index], interval.first);
			assert_int_equal(axis.starts[index + 1] - 1, interval.last);
			assert_true(interval.first <= value && value <= interval.last);
		}
	}
}

/* |exact / entry - 1| in parts of 10^9, rounded up. */
static uint64_t error_ppb(unsigned __int128 exact, unsigned __int128 entry)
{
	unsigned __int128 distance = exact > entry ? exact - entry : entry - exact;

	return (uint64_t)((distance * 1000000000 + entry - 1) / entry);
}

/*
 * "ADT would have error = 0.0198": ((1+r)^2 - 1) / ((1+r)^2 + 1) = 0.0404 / 2.0404. In a pair of intervals the worst
 * operands are its corners, so all 4 * 87,025 corners are all operands. I3.
 */
static void worst_errors_are_within_the_bound(void **state)
{
	const uint64_t bound_ppb = UINT64_C(404) * 1000000000 / 20404;
	uint64_t adt_ppb = 0, amt_ppb = 0;
	uint32_t i, j;
	int corner;

	(void)state;
	build(&paper);
	for (i = 0; i < tables.adt.x.count; i++) {
		for (j = 0; j < tables.adt.y.count; j++) {
			for (corner = 0; corner < 4; corner++) {
				uint64_t x = corner & 1 ? tables.starts[i + 1] - 1 : tables.starts[i];
				uint64_t y = corner & 2 ? tables.starts[j + 1] - 1 : tables.starts[j];
				uint64_t entry = pst_approx_entry(&tables.adt, i, j);
				uint64_t ppb = error_ppb((unsigned __int128)x << 64, (unsigned __int128)entry * y << 32);

				adt_ppb = ppb > adt_ppb ? ppb : adt_ppb;
				ppb = error_ppb((unsigned __int128)2 * x * y, pst_approx_entry(&tables.amt, i, j));
				amt_ppb = ppb > amt_ppb ? ppb : amt_ppb;
			}
		}
	}
	print_message("ADT worst error %" PRIu64 " ppb, AMT %" PRIu64 " ppb, bound %" PRIu64 " ppb\n", adt_ppb, amt_ppb,
		      bound_ppb);
	/* An ADT entry's own rounding, 1.5 * 2^-32, is at most 3500 ppb of the smallest quotient, 1/10000. */
	assert_in_range(adt_ppb, 19000000, bound_ppb + 3500);
	assert_in_range(amt_ppb, 19000000, bound_ppb + 1);
}

/* I4, and equality with ref/ on random operands, outside the range as well. */
static void lookups_equal_reference_and_are_total(void **state)
{
	static const struct pst_approx_params other = { 3, 20000, 1, 7 };
	const struct pst_approx_params *cuts[] = { &paper, &other };
	uint64_t rng = pst_rng_seed(4);
	int cut, i;

	(void)state;
	for (cut = 0; cut < 2; cut++) {
		struct ref_cut ref = { cuts[cut]->low, cuts[cut]->high, cuts[cut]->r_numerator, cuts[cut]->r_denominator };

		build(cuts[cut]);
		for (i = 0; i < 5000; i++) {
			uint32_t x = pst_rng_next(&rng) >> pst_rng_next(&rng) % 32;
			uint32_t y = pst_rng_next(&rng) >> pst_rng_next(&rng) % 32;

			assert_int_equal(pst_adt_divide_q32(&tables.adt, x, y), ref_adt_divide_q32(ref, x, y));
			assert_int_equal(pst_amt_multiply_x2(&tables.amt, x, y), ref_amt_multiply_x2(ref, x, y));
		}
		assert_int_equal(pst_approx_axis_index(&tables.adt.x, 0), 0);
		assert_int_equal(pst_approx_axis_index(&tables.adt.x, UINT32_MAX), tables.adt.x.count - 1);
	}
}

static void bad_parameters_and_small_memory_are_refused(void **state)
{
	static const struct pst_approx_params bad[] = { { 0, 10, 1, 2 }, { 11, 10, 1, 2 }, { 1, 10, 0, 2 }, { 1, 10, 2, 2 },
							{ 1, PST_APPROX_HIGH_MAX + 1, 1, 2 } };
	struct pst_approx_axis axis;
	unsigned i;

	(void)state;
	for (i = 0; i < 5; i++)
		assert_false(pst_approx_axis_build(&axis, &bad[i], tables.starts, ROOM));
	assert_false(pst_approx_axis_build(&axis, &paper, tables.starts, 295));
	assert_true(pst_approx_axis_build(&axis, &paper, tables.starts, 296));
	/* The largest operands: the last interval ends below 2^31 and entries do not overflow. */
	build(&(struct pst_approx_params){ PST_APPROX_HIGH_MAX - 1, PST_APPROX_HIGH_MAX, 99, 100 });
	assert_int_equal(tables.adt.x.count, 1);
	assert_int_equal(tables.quotients[0],
			 ref_adt_divide_q32((struct ref_cut){ PST_APPROX_HIGH_MAX - 1, PST_APPROX_HIGH_MAX, 99, 100 }, 1, 1));
}

/* Nimble 4.1: "this algorithm generates e_i = (i - b_i + 2) 2^(b_i - 1) entries". I5. */
static void tcam_has_the_papers_number_of_entries(void **state)
{
	struct ref_group none;
	uint32_t bits, b;

	(void)state;
	assert_int_equal(pst_tcam_entries(32, 4), 240);
	assert_int_equal(pst_tcam_entries(32, 5), 464);
	for (bits = 16; bits <= 40; bits += 4) {
		for (b = 1; b <= 12; b++)
			assert_int_equal(pst_tcam_entries(bits, b), ref_tcam_groups(&none, 0, bits, b));
	}
}

/* "matching only on the b most significant bits": every operand matches one entry, the one that its index names. I5. */
static void tcam_operand_matches_exactly_one_entry(void **state)
{
	uint64_t rng = pst_rng_seed(5);
	uint32_t b, i, entry;

	(void)state;
	for (b = 1; b <= 6; b++) {
		for (i = 0; i < 2000; i++) {
			uint64_t operand = i < 300 ? i : pst_rng_next(&rng) >> pst_rng_next(&rng) % 32;
			uint32_t matches = 0;

			for (entry = 0; entry < pst_tcam_entries(32, b); entry++) {
				struct pst_tcam_entry it = pst_tcam_entry_at(b, entry);

				if ((operand & it.mask) != it.value)
					continue;
				matches++;
				assert_int_equal(entry, pst_tcam_index(operand, b));
			}
			assert_int_equal(matches, 1);
		}
	}
}

/* "The average of the numbers in a group is used for the output of the table to minimize error." */
static void tcam_entries_equal_reference_groups(void **state)
{
	static struct ref_group groups[4096];
	uint32_t b, i;

	(void)state;
	for (b = 1; b <= 8; b++) {
		uint32_t count = ref_tcam_groups(groups, 4096, 32, b);

		for (i = 0; i < count; i++) {
			struct pst_tcam_entry entry = pst_tcam_entry_at(b, i);

			assert_int_equal(entry.value, groups[i].first);
			assert_int_equal(~entry.mask, groups[i].size - 1);
			assert_int_equal(entry.mean_x2, groups[i].first + (groups[i].first + groups[i].size - 1));
		}
	}
}

/*
 * "entries that cover ranges all with the same expected percent error": I6, and it is reached to within a group's
 * width.
 */
static void tcam_worst_error_is_two_to_the_minus_b(void **state)
{
	uint32_t b, i;

	(void)state;
	for (b = 2; b <= 16; b++) {
		uint64_t worst_ppb = 0, bound_ppb = UINT64_C(1000000000) >> b;

		for (i = UINT32_C(1) << b; i < pst_tcam_entries(32, b); i++) {
			struct pst_tcam_entry entry = pst_tcam_entry_at(b, i);
			uint64_t ppb = (entry.mean_x2 - 2 * entry.value) * 1000000000 / (2 * entry.value);

			worst_ppb = ppb > worst_ppb ? ppb : worst_ppb;
		}
		assert_in_range(worst_ppb, bound_ppb - bound_ppb / 1000, bound_ppb);
		if (b == 4 || b == 5)
			print_message("TCAM multiply (32, %" PRIu32 "): worst error %" PRIu64 " ppb\n", b, worst_ppb);
	}
}

static void tcam_multiply_equals_reference(void **state)
{
	uint64_t rng = pst_rng_seed(6);
	int i;

	(void)state;
	for (i = 0; i < 200000; i++) {
		uint32_t b = 1 + pst_rng_next(&rng) % PST_TCAM_BITS_MAX;
		uint32_t shift = pst_rng_next(&rng) % 62;
		uint64_t operand = (((uint64_t)pst_rng_next(&rng) << 30) | pst_rng_next(&rng) >> 2) >> shift;
		uint64_t factor = (uint64_t)pst_rng_next(&rng) >> 2;

		factor = shift < 30 ? factor >> (30 - shift) : factor;
		assert_int_equal(pst_tcam_multiply(factor, operand, b), ref_tcam_multiply(factor, operand, b));
	}
	assert_int_equal(pst_tcam_multiply(1, (UINT64_C(1) << 63) - 1, 1), ref_tcam_multiply(1, (UINT64_C(1) << 63) - 1, 1));
}

static void reproduces_golden_vectors(void **state)
{
	struct vectors v;

	(void)state;
	vectors_open(&v, "vectors/approx.txt");
	while (vectors_next(&v)) {
		if (vectors_is(&v, "profile")) {
			build(&(struct pst_approx_params){ (uint32_t)vectors_in(&v, "low"), (uint32_t)vectors_in(&v, "high"),
							   (uint32_t)vectors_in(&v, "r_numerator"),
							   (uint32_t)vectors_in(&v, "r_denominator") });
			assert_int_equal(tables.adt.x.count, vectors_out(&v, "intervals"));
		} else if (vectors_is(&v, "interval")) {
			uint32_t index = pst_approx_axis_index(&tables.adt.x, (uint32_t)vectors_in(&v, "value"));

			assert_int_equal(tables.starts[index], vectors_out(&v, "first"));
			assert_int_equal(tables.starts[index + 1] - 1, vectors_out(&v, "last"));
		} else if (vectors_is(&v, "divide")) {
			assert_int_equal(pst_adt_divide_q32(&tables.adt, (uint32_t)vectors_in(&v, "x"),
							    (uint32_t)vectors_in(&v, "y")), vectors_out(&v, "q32"));
		} else if (vectors_is(&v, "multiply")) {
			assert_int_equal(pst_amt_multiply_x2(&tables.amt, (uint32_t)vectors_in(&v, "x"),
							     (uint32_t)vectors_in(&v, "y")), vectors_out(&v, "product_x2"));
		} else if (vectors_is(&v, "tcam")) {
			assert_int_equal(pst_tcam_multiply(vectors_in(&v, "factor"), vectors_in(&v, "operand"),
							   (uint32_t)vectors_in(&v, "b")), vectors_out(&v, "product"));
		} else {
			assert_true(vectors_is(&v, "entries"));
			assert_int_equal(pst_tcam_entries((uint32_t)vectors_in(&v, "operand_bits"),
							  (uint32_t)vectors_in(&v, "b")), vectors_out(&v, "count"));
		}
	}
	assert_true(v.directives > 800);
}

/*
 * AHAB section V-A: "b = 5 .. 392" entries, "8.2% on average. With b = 6, the lookup table grows to 1552 entries and .. 4.6%". I7: the
 * errors are those of a table that takes i = 0 for nothing, though the 392 and 1552 entries have a row for it.
 */
static void prefix_divide_has_the_papers_entries_and_errors(void **state)
{
	static const struct {
		uint32_t b, entries;
		double error, without_row_0;
	} paper_says[] = { { 5, 392, 0.2004, 0.0823 }, { 6, 1552, 0.0969, 0.0457 } };
	unsigned k;

	(void)state;
	for (k = 0; k < 2; k++) {
		double sum = 0, sum_without = 0;
		uint32_t x, y, count = 0;

		assert_int_equal(pst_prefix_entries(paper_says[k].b), paper_says[k].entries);
		for (y = 1; y <= 100001; y += 10000) {
			for (x = 1; x <= y; x++, count++) {
				double quotient = pst_prefix_divide_q12(x, y, paper_says[k].b) / 4096.0 * y / x;
				double error = quotient < 1 ? 1 - quotient : quotient - 1;

				sum += error;
				sum_without += x >> (pst_bit_length(y) < 5 ? 0 : pst_bit_length(y) - paper_says[k].b) ? error : 1;
			}
		}
		assert_true(sum / count > paper_says[k].error - 0.0003 && sum / count < paper_says[k].error + 0.0003);
		assert_true(sum_without / count > paper_says[k].without_row_0 - 0.0003);
		assert_true(sum_without / count < paper_says[k].without_row_0 + 0.0003);
	}
}

/* AHAB section V-A's own example: 0b0001111110100 over 0b0011010011010. And any operands, in any number of bits. */
static void prefix_divide_equals_reference(void **state)
{
	uint64_t rng = pst_rng_seed(9);
	int i;

	(void)state;
	assert_int_equal(pst_prefix_divide_q12(0x3f4, 0x69a, 5), 2396); /* 15.5 / 26.5; "0.576" is 15/26 without the halves */
	for (i = 0; i < 300000; i++) {
		uint32_t b = 1 + pst_rng_next(&rng) % PST_PREFIX_BITS_MAX, y = pst_rng_next(&rng) >> pst_rng_next(&rng) % 32;
		uint32_t x = pst_rng_next(&rng) >> pst_rng_next(&rng) % 32, q12 = pst_prefix_divide_q12(x, y, b);

		assert_int_equal(q12, y == 0 ? 4096 : ref_prefix_divide_q12(x, y, b));
		assert_in_range(q12, 1, 4096);
		if (x < y) {
			double ratio = (double)x / y, error = q12 / 4096.0 - ratio;

			assert_true((error < 0 ? -error : error) <= (1 + ratio) / (1 << b) + 0.5 / 4096);
		}
	}
	assert_int_equal(pst_prefix_divide_q12(7, 9, 0), pst_prefix_divide_q12(7, 9, 1));
	assert_int_equal(pst_prefix_divide_q12(7, 9, UINT32_MAX), pst_prefix_divide_q12(7, 9, PST_PREFIX_BITS_MAX));
}

/* AHAB figure 7 and equation 11: 2396 / 2^12 times 2^14; and A3: a product below 2^12 is a shift to the right, and not nothing. */
static void prefix_product_is_figure_7(void **state)
{
	(void)state;
	assert_int_equal(pst_prefix_divide_q12(1012, 1690, 5), 2396);
	assert_int_equal(pst_prefix_times(2396, 14), 9584);
	assert_int_equal(pst_prefix_times(2396, 12), 2396);
	assert_int_equal(pst_prefix_times(2396, 10), 599);
	assert_int_equal(pst_prefix_times(64, 11), 32); /* 1/64: below a quarter */
	assert_int_equal(pst_prefix_times(4096, 0), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paper_table_has_295_intervals_an_axis),
		cmocka_unit_test(intervals_partition_the_range),
		cmocka_unit_test(worst_errors_are_within_the_bound),
		cmocka_unit_test(lookups_equal_reference_and_are_total),
		cmocka_unit_test(bad_parameters_and_small_memory_are_refused),
		cmocka_unit_test(tcam_has_the_papers_number_of_entries),
		cmocka_unit_test(tcam_operand_matches_exactly_one_entry),
		cmocka_unit_test(tcam_entries_equal_reference_groups),
		cmocka_unit_test(tcam_worst_error_is_two_to_the_minus_b),
		cmocka_unit_test(tcam_multiply_equals_reference),
		cmocka_unit_test(reproduces_golden_vectors),
		cmocka_unit_test(prefix_divide_has_the_papers_entries_and_errors),
		cmocka_unit_test(prefix_divide_equals_reference),
		cmocka_unit_test(prefix_product_is_figure_7),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
