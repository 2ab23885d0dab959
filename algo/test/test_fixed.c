/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* fixed.h against exact arithmetic: I1-I4, the range of the code, the 0.1 % of every limit. */
#include "vectors.h"

#include <penstock/fixed.h>
#include <penstock/rng.h>

#include "ref_fixed.h"

static const uint32_t lengths[] = { 0, 1, 46, 64, 65, 127, 576, 999, 1500, 1514, 4096, 9000, 65535, 131071 };
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static ref_int distance(ref_int a, ref_int b)
{
	return a > b ? a - b : b - a;
}

static uint64_t draw(uint64_t *rng)
{
	return (uint64_t)pst_rng_next(rng) << 32 | pst_rng_next(rng);
}

/* Evenly over orders of magnitude, the ends included. */
static uint64_t draw_rate_Bps(uint64_t *rng)
{
	uint64_t rate_Bps = draw(rng) >> (27 + draw(rng) % 31);

	if (rate_Bps < PST_RATE_MIN_BPS)
		return PST_RATE_MIN_BPS;
	return rate_Bps < PST_RATE_MAX_BPS ? rate_Bps : PST_RATE_MAX_BPS;
}

static void test_mul_high_is_128_bits(void **state)
{
	static const uint64_t corners[] = { 0, 1, UINT32_MAX, UINT64_C(1) << 32, UINT64_C(1) << 63, UINT64_MAX };
	uint64_t rng = pst_rng_seed(1);
	size_t i, j;

	(void)state;
	for (i = 0; i < 6; i++) {
		for (j = 0; j < 6; j++) {
			assert_int_equal(pst_mul_high(corners[i], corners[j]),
					 (uint64_t)(((unsigned __int128)corners[i] * corners[j]) >> 64));
		}
	}
	for (i = 0; i < 1000000; i++) {
		uint64_t a = draw(&rng), b = draw(&rng) >> (draw(&rng) % 64);

		assert_int_equal(pst_mul_high(a, b), (uint64_t)(((unsigned __int128)a * b) >> 64));
	}
}

static void test_comparisons(void **state)
{
	const uint64_t most = UINT64_MAX >> 1, words[] = { 0, 1, 2, 47, UINT64_C(1) << 52, most - 1, most };
	size_t i, k, count = sizeof(words) / sizeof(*words);

	(void)state;
	for (i = 0; i < count; i++) {
		for (k = 0; k < count; k++) {
			assert_int_equal(pst_is_above(words[i], words[k]), i > k);
			assert_int_equal(pst_is_same(words[i], words[k]), i == k);
			assert_int_equal(pst_select_u64(1, words[i], words[k]), words[i]);
			assert_int_equal(pst_select_u64(0, words[i], words[k]), words[k]);
		}
	}
}

static void test_bit_length(void **state)
{
	uint64_t rng = pst_rng_seed(2);
	uint32_t i;

	(void)state;
	assert_int_equal(pst_bit_length(0), 0);
	for (i = 0; i < 64; i++) {
		uint64_t value = (UINT64_C(1) << i) | (draw(&rng) & ((UINT64_C(1) << i) - 1));

		assert_int_equal(pst_bit_length(UINT64_C(1) << i), i + 1);
		assert_int_equal(pst_bit_length(value), i + 1);
	}
}

static void test_scale_stays_below_the_range(void **state)
{
	(void)state;
	assert_int_equal(pst_scale_u32(UINT32_MAX, 10), 9);
	assert_int_equal(pst_scale_u32(0, 10), 0);
	assert_int_equal(pst_scale_u32(UINT32_C(1) << 31, 10), 5);
	assert_int_equal(pst_scale_u32(UINT32_MAX, UINT32_MAX), UINT32_MAX - 1);
	assert_int_equal(pst_scale_u32(UINT32_MAX, 0), 0);
}

static void test_codes_equal_the_reference(void **state)
{
	uint64_t rng = pst_rng_seed(3);
	int i;

	(void)state;
	for (i = 0; i < 300000; i++) {
		uint64_t rate_Bps = draw_rate_Bps(&rng), ticks = draw(&rng) >> (11 + draw(&rng) % 53);
		uint32_t bytes = pst_rng_next(&rng) >> (2 + pst_rng_next(&rng) % 30);
		uint32_t rate = pst_rate_encode(rate_Bps);

		assert_int_equal(rate, ref_rate_code(rate_Bps));
		assert_in_range(pst_rate_mantissa(rate), 1U << 26, (1U << 27) - 1);
		assert_int_equal(pst_rate_cost(rate, bytes), (uint64_t)ref_rate_cost(rate, bytes));
		assert_int_equal(pst_rate_bytes_q8(rate, ticks), (uint64_t)ref_rate_bytes_q8(rate, ticks));
	}
	assert_int_equal(pst_rate_cost(0, 1500), 0);
	assert_int_equal(pst_rate_bytes_q8(0, 1500), 0);
}

/* cost = exact * (1 +- 2^-27) +- 1/2, everything multiplied by 2^28 * rate to stay whole. */
static void test_i1_cost_is_within_its_bound(void **state)
{
	uint64_t rng = pst_rng_seed(4);
	size_t i, j;

	(void)state;
	for (i = 0; i < 100000; i++) {
		uint64_t rate_Bps = draw_rate_Bps(&rng);

		for (j = 0; j < LENGTHS; j++) {
			ref_int cost = pst_rate_cost(pst_rate_encode(rate_Bps), lengths[j]);
			ref_int exact_by_rate = REF_TICKS_PER_SEC * lengths[j];
			ref_int error_by_rate = distance(cost * rate_Bps, exact_by_rate);

			assert_true((error_by_rate << 28) <= 2 * exact_by_rate + ((ref_int)rate_Bps << 27));
		}
	}
}

static void test_i2_cost_is_monotone(void **state)
{
	uint64_t rng = pst_rng_seed(5);
	uint32_t i, bytes;

	(void)state;
	for (i = 0; i < 50; i++) {
		uint32_t rate = pst_rate_encode(draw_rate_Bps(&rng));

		for (bytes = 0; bytes < 20000; bytes++)
			assert_true(pst_rate_cost(rate, bytes) <= pst_rate_cost(rate, bytes + 1));
	}
}

static void test_i3_faster_is_never_dearer(void **state)
{
	uint64_t rng = pst_rng_seed(6);
	int i;

	(void)state;
	for (i = 0; i < 300000; i++) {
		uint64_t rate_Bps = draw_rate_Bps(&rng);
		uint64_t faster_Bps = rate_Bps + (i % 2 ? 1 : rate_Bps >> (draw(&rng) % 40));

		assert_true(ref_rate_units_per_byte(pst_rate_encode(rate_Bps)) >=
			    ref_rate_units_per_byte(pst_rate_encode(faster_Bps)));
	}
}

/* In 1/256 byte: bytes_q8(cost(n)) = 256 n +- 1, and as much as one tick drains. */
static void test_i4_bytes_invert_cost(void **state)
{
	uint64_t rng = pst_rng_seed(7);
	int i;

	(void)state;
	for (i = 0; i < 300000; i++) {
		uint64_t rate_Bps = draw_rate_Bps(&rng);
		uint32_t bytes = pst_rng_next(&rng) % 65536, rate;
		ref_int back, tick_q8;

		if (rate_Bps > UINT64_C(50000000000))
			rate_Bps = UINT64_C(50000000000);
		rate = pst_rate_encode(rate_Bps);
		back = pst_rate_bytes_q8(rate, pst_rate_cost(rate, bytes));
		tick_q8 = ref_divide_down(256 * (ref_int)rate_Bps, REF_TICKS_PER_SEC) + 1;
		assert_true(distance(back, (ref_int)256 * bytes) <= 1 + tick_q8);
	}
}

/* As many bytes as there are: no queue is too long to be converted, and what would not fit ends above all of them. */
static void test_convert_keeps_all_bytes(void **state)
{
	uint64_t rng = pst_rng_seed(8), long_ones = 0, cut = 0;
	int i;

	(void)state;
	for (i = 0; i < 300000; i++) {
		uint32_t before = pst_rate_encode(draw_rate_Bps(&rng)), after = pst_rate_encode(draw_rate_Bps(&rng));
		uint64_t ticks = draw(&rng) >> (7 + draw(&rng) % 57), converted = pst_rate_convert(before, after, ticks);
		ref_int bytes_q8 = ref_rate_bytes_q8(before, ticks);
		ref_int wanted = ref_rate_cost(after, (uint64_t)(bytes_q8 / 256)) +
				 ref_rate_cost(after, (uint64_t)(bytes_q8 % 256)) / 256;

		if (wanted < (ref_int)PST_CONVERT_MAX_TICKS)
			assert_int_equal(converted, (uint64_t)wanted);
		else
			assert_true(converted >= PST_CONVERT_MAX_TICKS && converted < 2 * PST_CONVERT_MAX_TICKS);
		long_ones += bytes_q8 / 256 >= PST_COST_BYTES_MAX && wanted < (ref_int)PST_CONVERT_MAX_TICKS;
		cut += wanted >= (ref_int)PST_CONVERT_MAX_TICKS;
	}
	assert_true(long_ones > 10000 && cut > 1000);
	assert_int_equal(pst_rate_convert(0, pst_rate_encode(1000), 1500), 0);
	assert_int_equal(pst_rate_convert(pst_rate_encode(1000), 0, 1500), 0);
}

static void test_rates_outside_the_range_are_clamped(void **state)
{
	(void)state;
	assert_int_equal(pst_rate_encode(0), pst_rate_encode(PST_RATE_MIN_BPS));
	assert_int_equal(pst_rate_encode(UINT64_MAX), pst_rate_encode(PST_RATE_MAX_BPS));
	assert_true(pst_rate_encode(PST_RATE_MIN_BPS) != pst_rate_encode(PST_RATE_MIN_BPS + 1));
	assert_true(pst_rate_encode(PST_RATE_MAX_BPS) != pst_rate_encode(PST_RATE_MAX_BPS - 10000));
	/* The slowest code times the longest packet: the range that limiter.h's overflow argument starts from. */
	assert_true(pst_rate_cost(pst_rate_encode(0), 1U << 17) < UINT64_C(1) << 52);
}

/* docs/adr/0002: rate error <= 0.1 % for every length 64..9000 and rate 8 kbit/s..400 Gbit/s. */
static void test_rate_error_is_below_a_thousandth(void **state)
{
	static const uint64_t rates_Bps[] = {
		1000, 7500, 8000, 12500, 125000, 1250000, 12345678, 125000000, 1250000000, 5000000000, 12500000000,
		49999999999, 50000000000,
	};
	uint32_t bytes;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rates_Bps) / sizeof(rates_Bps[0]); i++) {
		uint32_t rate = pst_rate_encode(rates_Bps[i]);

		for (bytes = 64; bytes <= 9000; bytes++) {
			ref_int exact_by_rate = REF_TICKS_PER_SEC * bytes;
			ref_int cost_by_rate = (ref_int)pst_rate_cost(rate, bytes) * rates_Bps[i];
			ref_int error_by_rate = distance(cost_by_rate, exact_by_rate);

			assert_true(1000 * error_by_rate <= exact_by_rate);
		}
	}
}

static void test_golden_vectors(void **state)
{
	struct vectors v;

	(void)state;
	vectors_open(&v, "vectors/fixed.txt");
	while (vectors_next(&v)) {
		if (vectors_is(&v, "encode")) {
			assert_int_equal(pst_rate_encode(vectors_in(&v, "rate_Bps")), vectors_out(&v, "rate"));
		} else if (vectors_is(&v, "cost")) {
			uint32_t rate = (uint32_t)vectors_in(&v, "rate"), bytes = (uint32_t)vectors_in(&v, "bytes");

			assert_int_equal(pst_rate_cost(rate, bytes), vectors_out(&v, "ticks"));
		} else if (vectors_is(&v, "bytes")) {
			assert_int_equal(pst_rate_bytes_q8((uint32_t)vectors_in(&v, "rate"), vectors_in(&v, "ticks")),
					 vectors_out(&v, "bytes_q8"));
		} else {
			fail_msg("%s:%u: unknown verb", v.path, v.line);
		}
	}
	assert_true(v.directives > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mul_high_is_128_bits),
		cmocka_unit_test(test_comparisons),
		cmocka_unit_test(test_bit_length),
		cmocka_unit_test(test_scale_stays_below_the_range),
		cmocka_unit_test(test_codes_equal_the_reference),
		cmocka_unit_test(test_i1_cost_is_within_its_bound),
		cmocka_unit_test(test_i2_cost_is_monotone),
		cmocka_unit_test(test_i3_faster_is_never_dearer),
		cmocka_unit_test(test_i4_bytes_invert_cost),
		cmocka_unit_test(test_convert_keeps_all_bytes),
		cmocka_unit_test(test_rates_outside_the_range_are_clamped),
		cmocka_unit_test(test_rate_error_is_below_a_thousandth),
		cmocka_unit_test(test_golden_vectors),
	};

	return cmocka_run_group_tests_name("fixed", tests, NULL, NULL);
}
