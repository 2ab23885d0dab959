/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* clock.h: order and distance of moments, across the wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <penstock/clock.h>
#include <penstock/rng.h>

#define DAY_NS (UINT64_C(86400) * PST_NSEC_PER_SEC)

static uint64_t draw(uint64_t *rng)
{
	return (uint64_t)pst_rng_next(rng) << 32 | pst_rng_next(rng);
}

static void test_i1_one_of_two_is_before(void **state)
{
	uint64_t rng = pst_rng_seed(1);
	int i;

	(void)state;
	for (i = 0; i < 1000000; i++) {
		uint64_t a = draw(&rng), b = i % 2 ? a + (draw(&rng) >> (draw(&rng) % 64)) : draw(&rng);

		if (a == b || a - b == UINT64_C(1) << 63)
			continue;
		assert_true(pst_clock_before(a, b) == !pst_clock_before(b, a));
	}
	assert_false(pst_clock_before(5, 5));
}

static void test_i2_distance_across_the_wrap(void **state)
{
	uint64_t rng = pst_rng_seed(2);
	int i;

	(void)state;
	for (i = 0; i < 1000000; i++) {
		uint64_t a = draw(&rng);
		int64_t distance = (int64_t)(draw(&rng) >> (1 + draw(&rng) % 63)) * (i % 2 ? 1 : -1);

		assert_int_equal(pst_clock_since(a + (uint64_t)distance, a), distance);
		assert_true(pst_clock_before(a, a + (uint64_t)distance) == (distance > 0));
	}
}

static void test_ticks_of_a_host_clock(void **state)
{
	uint64_t wrap_ns = UINT64_C(1) << 54;

	(void)state;
	assert_int_equal(pst_clock_ticks(1), 1024);
	/* "208 days", "+-104 days" */
	assert_true(wrap_ns > 208 * DAY_NS && wrap_ns < 209 * DAY_NS);
	assert_int_equal(pst_clock_since(pst_clock_ticks(wrap_ns + 7), pst_clock_ticks(wrap_ns - 3)), 10 * 1024);
	assert_int_equal(pst_clock_since(pst_clock_ticks(6), pst_clock_ticks(UINT64_MAX - 3)), 10 * 1024);
	assert_true(pst_clock_before(pst_clock_ticks(wrap_ns), pst_clock_ticks(wrap_ns + 104 * DAY_NS)));
	assert_true(pst_clock_before(pst_clock_ticks(wrap_ns + 105 * DAY_NS), pst_clock_ticks(wrap_ns)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_i1_one_of_two_is_before),
		cmocka_unit_test(test_i2_distance_across_the_wrap),
		cmocka_unit_test(test_ticks_of_a_host_clock),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
