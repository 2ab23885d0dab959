/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "vectors.h"

#include <penstock/nanobytes.h>
#include <penstock/rng.h>

/* I1 and I2: the flow of a gap is the same whole or cut, up to full; never more than full. */
static void flow_is_exact_and_bounded(void **state)
{
	uint64_t rng = pst_rng_seed(3);
	int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		struct pst_flow_profile profile;
		uint64_t rate_Bps = (uint64_t)pst_rng_next(&rng) << pst_rng_next(&rng) % 7;
		uint32_t full_bytes = pst_rng_next(&rng) >> pst_rng_next(&rng) % 32;
		uint64_t whole_ns, part_ns, whole_nB;
		__int128 exact;

		pst_flow_compile(&profile, rate_Bps, full_bytes);
		assert_in_range(profile.rate_Bps, PST_RATE_MIN_BPS, PST_RATE_MAX_BPS);
		whole_ns = (((uint64_t)pst_rng_next(&rng) << 32) | pst_rng_next(&rng)) % (2 * profile.fill_ns + 1);
		part_ns = pst_rng_next(&rng) % (whole_ns + 1);
		whole_nB = pst_flow_nB(&profile, whole_ns);
		exact = (__int128)profile.rate_Bps * whole_ns;
		assert_true(whole_nB == (exact < profile.full_nB ? exact : profile.full_nB));
		if (whole_nB < profile.full_nB)
			assert_int_equal(pst_flow_nB(&profile, part_ns) + pst_flow_nB(&profile, whole_ns - part_ns), whole_nB);
		assert_int_equal(pst_flow_nB(&profile, UINT64_MAX), profile.full_nB);
	}
}

/* I3 and I4: steps back, wraps, and last times that nothing can explain. */
static void elapsed_time_is_total(void **state)
{
	(void)state;
	assert_int_equal(pst_flow_elapsed_ns(1000, 400), 600);
	assert_int_equal(pst_flow_elapsed_ns(99, UINT64_MAX), 100);
	assert_int_equal(pst_flow_elapsed_ns(400, 1000), 0);
	assert_int_equal(pst_flow_elapsed_ns(5, 5 + PST_AHEAD_MAX_NSEC), 0);
	assert_int_equal(pst_flow_elapsed_ns(5, 6 + PST_AHEAD_MAX_NSEC), UINT64_MAX);
}

/* From a rate of 0 and no bytes to the largest of both, nothing overflows and nothing divides by zero. */
static void extremes_compile(void **state)
{
	struct pst_flow_profile profile;

	(void)state;
	pst_flow_compile(&profile, 0, 0);
	assert_int_equal(profile.rate_Bps, PST_RATE_MIN_BPS);
	assert_int_equal(pst_flow_nB(&profile, 12345), 0);
	pst_flow_compile(&profile, UINT64_MAX, UINT32_MAX);
	assert_int_equal(profile.rate_Bps, PST_RATE_MAX_BPS);
	assert_int_equal(profile.full_nB, UINT64_C(4294967295000000000));
	assert_int_equal(pst_flow_nB(&profile, profile.fill_ns - 1), PST_RATE_MAX_BPS * (profile.fill_ns - 1));
	assert_int_equal(pst_flow_nB(&profile, profile.fill_ns), profile.full_nB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flow_is_exact_and_bounded),
		cmocka_unit_test(elapsed_time_is_total),
		cmocka_unit_test(extremes_compile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
