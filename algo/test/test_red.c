/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "vectors.h"

#include <penstock/red.h>
#include <penstock/rng.h>

#include "ref_red.h"

static uint64_t draw_wide(uint64_t *rng, uint64_t range)
{
	uint64_t high = pst_rng_next(rng);

	return (high << 32 | pst_rng_next(rng)) % range;
}

/* Erratum S4: "rise linearly with the depth into ETW, maximum a parameter (default 10 %)". */
static void rises_linearly_from_green_to_window(void **state)
{
	const uint64_t green = 17920000, excess = 25600000;
	int percent;

	(void)state;
	assert_int_equal(pst_red_probability_q32(green, green, green + excess, PST_RED_MAX_DEFAULT_Q32), 0);
	for (percent = 1; percent < 100; percent++) {
		uint32_t p = pst_red_probability_q32(green + excess / 100 * (unsigned)percent, green, green + excess,
						     PST_RED_MAX_DEFAULT_Q32);

		assert_int_equal(p, (uint64_t)PST_RED_MAX_DEFAULT_Q32 * (unsigned)percent / 100);
	}
	assert_int_equal(pst_red_probability_q32(green + excess, green, green + excess, PST_RED_MAX_DEFAULT_Q32),
			 PST_RED_MAX_DEFAULT_Q32);
	/* 10 % of 2^32, to the nearest. */
	assert_int_equal(PST_RED_MAX_DEFAULT_Q32, ((UINT64_C(1) << 32) + 5) / 10);
}

/* Nimble 4.1: "To support DCTCP and TCP with ECN support, this module ECN marks all yellow packets." */
static void dctcp_marks_every_yellow_packet(void **state)
{
	(void)state;
	assert_true(pst_red_marks(PST_RED_MARK_ALL, 0, 0));
	assert_true(pst_red_marks(PST_RED_MARK_ALL, 0, UINT32_MAX));
}

/* Nimble 4.1: "Because DCQCN requires that switches perform probabilistic marking, this module uses RED". */
static void dcqcn_marks_with_reds_probability(void **state)
{
	uint64_t rng = pst_rng_seed(1);
	int i, marked = 0;

	(void)state;
	for (i = 0; i < 100000; i++)
		marked += pst_red_marks(PST_RED_MARK_RANDOM, UINT32_C(1) << 30, pst_rng_next(&rng));
	/* A quarter of 100,000: 137 is the standard deviation. */
	assert_in_range(marked, 25000 - 600, 25000 + 600);
}

/* Bit-equal to ref/, I1, I2 and I3, on windows of every size. */
static void equals_reference_and_keeps_invariants(void **state)
{
	uint64_t rng = pst_rng_seed(2);
	int i;

	(void)state;
	for (i = 0; i < 200000; i++) {
		uint64_t window = draw_wide(&rng, UINT64_MAX >> pst_rng_next(&rng) % 63) + 1;
		uint64_t green = draw_wide(&rng, window);
		uint64_t depth = draw_wide(&rng, 2) ? green + draw_wide(&rng, window - green + 1) : draw_wide(&rng, UINT64_MAX);
		uint32_t max = pst_rng_next(&rng) >> pst_rng_next(&rng) % 32;
		uint32_t p = pst_red_probability_q32(depth, green, window, max);

		assert_int_equal(p, ref_red_probability_q32(depth, green, window, max));
		assert_true(p <= max);
		if (depth <= green)
			assert_int_equal(p, 0);
		if (depth >= window)
			assert_int_equal(p, max);
		if (depth < UINT64_MAX)
			assert_true(pst_red_probability_q32(depth + 1, green, window, max) >= p);
		if (depth > green && depth < window) {
			__int128 error_q64 = ((__int128)p << 32) - (__int128)ref_red_exact_q64(depth, green, window, max);

			assert_true(error_q64 < (__int128)3 << 32 && error_q64 > -((__int128)3 << 32));
		}
	}
}

/* I4, at the ends of the range. */
static void draw_is_a_strict_comparison(void **state)
{
	(void)state;
	assert_false(pst_red_drops(0, 0));
	assert_true(pst_red_drops(1, 0));
	assert_false(pst_red_drops(1, 1));
	assert_true(pst_red_drops(UINT32_MAX, UINT32_MAX - 1));
	assert_false(pst_red_drops(UINT32_MAX, UINT32_MAX));
}

static void reproduces_golden_vectors(void **state)
{
	struct vectors v;

	(void)state;
	vectors_open(&v, "vectors/red.txt");
	while (vectors_next(&v)) {
		if (vectors_is(&v, "probability")) {
			uint32_t p = pst_red_probability_q32(vectors_in(&v, "depth"), vectors_in(&v, "green"),
							     vectors_in(&v, "window"), (uint32_t)vectors_in(&v, "max"));

			assert_int_equal(p, vectors_out(&v, "p"));
		} else {
			assert_true(vectors_is(&v, "drops"));
			assert_int_equal(pst_red_drops((uint32_t)vectors_in(&v, "p"), (uint32_t)vectors_in(&v, "random")),
					 vectors_out(&v, "drops"));
		}
	}
	assert_true(v.directives > 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rises_linearly_from_green_to_window),
		cmocka_unit_test(dctcp_marks_every_yellow_packet),
		cmocka_unit_test(dcqcn_marks_with_reds_probability),
		cmocka_unit_test(equals_reference_and_keeps_invariants),
		cmocka_unit_test(draw_is_a_strict_comparison),
		cmocka_unit_test(reproduces_golden_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
