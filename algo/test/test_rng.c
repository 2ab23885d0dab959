/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* rng.h: the sequences are the published ones, never stick at 0, and are even. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <penstock/fixed.h>
#include <penstock/rng.h>

static void test_i1_published_sequences(void **state)
{
	uint64_t one = 1, again = pst_rng_seed(7), same = pst_rng_seed(7), other = pst_rng_seed(8);
	int i, equal = 0;

	(void)state;
	/* splitmix64 from 0; xorshift64* from 1 gives 0x47e4ce4b896cdd1d, of which the upper half is drawn. */
	assert_true(pst_rng_seed(0) == UINT64_C(0xe220a8397b1dcdaf));
	assert_int_equal(pst_rng_next(&one), UINT32_C(0x47e4ce4b));
	for (i = 0; i < 1000; i++) {
		uint32_t drawn = pst_rng_next(&again);

		assert_int_equal(drawn, pst_rng_next(&same));
		equal += drawn == pst_rng_next(&other);
	}
	assert_true(equal < 3);
}

static void test_i2_the_state_is_never_zero(void **state)
{
	uint64_t seed;
	int i;

	(void)state;
	/* The one seed that splitmix64 turns into 0 is its increment's negative. */
	assert_int_equal(pst_rng_seed(UINT64_C(0) - UINT64_C(0x9e3779b97f4a7c15)), 1);
	for (i = 0; i < 64; i++) {
		uint64_t rng = UINT64_C(1) << i;
		int step;

		for (step = 0; step < 10000; step++) {
			pst_rng_next(&rng);
			assert_true(rng != 0);
		}
	}
	for (seed = 0; seed < 100000; seed++)
		assert_true(pst_rng_seed(seed) != 0);
}

/* 256 bins of 4096 draws expected: the variance of each is 4080, so chi-square is 255 +- 22.6; 5 sigma are allowed. */
static void test_draws_are_uniform(void **state)
{
	uint64_t rng = pst_rng_seed(3);
	int64_t bins[3][256] = { { 0 } };
	int lane, bin, i;

	(void)state;
	for (i = 0; i < 256 * 4096; i++) {
		uint32_t drawn = pst_rng_next(&rng);

		bins[0][drawn >> 24]++;
		bins[1][drawn & 255]++;
		bins[2][pst_scale_u32(drawn, 256)]++;
	}
	for (lane = 0; lane < 3; lane++) {
		int64_t square = 0;

		for (bin = 0; bin < 256; bin++)
			square += (bins[lane][bin] - 4096) * (bins[lane][bin] - 4096);
		assert_in_range(square / 4096, 255 - 113, 255 + 113);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_i1_published_sequences),
		cmocka_unit_test(test_i2_the_state_is_never_zero),
		cmocka_unit_test(test_draws_are_uniform),
	};

	return cmocka_run_group_tests_name("rng", tests, NULL, NULL);
}
