/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* limiter.h: what the papers promise, the accuracy of every limit, the golden vectors. */
#include "saturation.h"

#include <penstock/limiter.h>

#include "ref_limiter.h"

#define SEC_NS PST_NSEC_PER_SEC

struct window_meter {
	struct pst_limiter_profile profile;
	uint64_t vft_ticks;
};

static uint8_t window_take(void *meter, uint64_t now_ns, uint32_t bytes)
{
	struct window_meter *window = meter;

	return pst_limiter_take(&window->profile, &window->vft_ticks, now_ns, bytes);
}

static struct pst_profile policing(uint64_t burst_ticks, uint64_t excess_ticks, uint32_t mtu_bytes)
{
	struct pst_profile profile;

	memset(&profile, 0, sizeof(profile));
	profile.burst_ticks = burst_ticks;
	profile.excess_ticks = excess_ticks;
	profile.mtu_bytes = mtu_bytes;
	profile.red_action = PST_ACTION_DROP;
	return profile;
}

static struct window_meter meter_of(struct pst_profile profile, uint64_t rate_Bps, uint64_t now_ns)
{
	struct window_meter meter;

	pst_limiter_resolve(&meter.profile, &profile, pst_rate_encode(rate_Bps));
	meter.vft_ticks = pst_limiter_idle(now_ns);
	return meter;
}

static struct window_meter usual_meter(uint64_t rate_Bps, uint64_t now_ns)
{
	return meter_of(policing(35 * MSEC_TICKS / 2, 25 * MSEC_TICKS, 1500), rate_Bps, now_ns);
}

/* --- paper tests: SwitchRL section 5, "Eliminate State Variables" --- */

/* "Budget accumulates naturally with time elapse": what has drained may be sent again, to the tick. */
static void test_switchrl_5_budget_accumulates_with_time(void **state)
{
	struct window_meter meter = usual_meter(1000000, 0); /* 1 B a microsecond */
	uint64_t now_ns = SEC_NS;

	(void)state;
	while (window_take(&meter, now_ns, 500) != PST_COLOR_RED)
		;
	assert_int_equal(window_take(&meter, now_ns + 499999, 500), PST_COLOR_RED);
	assert_int_equal(window_take(&meter, now_ns + 500000, 500), PST_COLOR_YELLOW);
	assert_int_equal(window_take(&meter, now_ns + 999999, 500), PST_COLOR_RED);
}

/* "Budget is consumed by successful packet sending, each packet consumes packet_size/CIR"; a refused one nothing. */
static void test_switchrl_5_only_sending_consumes(void **state)
{
	struct window_meter meter = usual_meter(1000000, 0);
	uint64_t before;

	(void)state;
	window_take(&meter, SEC_NS, 1000);
	before = meter.vft_ticks;
	assert_int_equal(window_take(&meter, SEC_NS, 1500), PST_COLOR_GREEN);
	assert_int_equal(meter.vft_ticks - before, UINT64_C(1500) * 1000 * PST_TICKS_PER_NSEC);
	before = meter.vft_ticks;
	assert_int_equal(window_take(&meter, SEC_NS, 65000), PST_COLOR_RED);
	assert_int_equal(meter.vft_ticks, before);
}

/* "Once the budget accumulation exceeds the consumption by CBS/CIR, the consumption is forced to be accumulated." */
static void test_switchrl_5_budget_is_bounded(void **state)
{
	static const uint64_t idle_ns[] = { 42500000, 42500001, SEC_NS, 3600 * SEC_NS, 86400 * 100 * SEC_NS };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(idle_ns) / sizeof(idle_ns[0]); i++) {
		struct window_meter meter = usual_meter(1000000, 0);
		unsigned int packets = 0;

		meter.vft_ticks = pst_clock_ticks(SEC_NS);
		while (window_take(&meter, SEC_NS + idle_ns[i], 500) != PST_COLOR_RED)
			packets++;
		assert_int_equal(packets, 85); /* 42.5 ms at 1 B a microsecond */
	}
}

/* Section 7: "once CBS tokens are exhausted, EBS tokens would be consumed": 17.5 ms are green, 25 ms more yellow. */
static void test_switchrl_7_green_then_yellow_then_red(void **state)
{
	struct window_meter meter = usual_meter(1000000, 0);
	unsigned int packets[3] = { 0, 0, 0 };
	int i;

	(void)state;
	for (i = 0; i < 100; i++)
		packets[window_take(&meter, SEC_NS, 500)]++;
	assert_int_equal(packets[PST_COLOR_GREEN], 35);
	assert_int_equal(packets[PST_COLOR_YELLOW], 50);
	assert_int_equal(packets[PST_COLOR_RED], 15);
}

/* --- errata --- */

/* Algorithm 2 as printed takes a packet's interval twice after a drop; here a drop leaves no trace at all. */
static void test_s1_a_drop_credits_nothing(void **state)
{
	struct window_meter quiet = usual_meter(1000000, 0), flooded = quiet;
	uint64_t now_ns;

	(void)state;
	while (window_take(&quiet, SEC_NS, 500) != PST_COLOR_RED)
		;
	flooded.vft_ticks = quiet.vft_ticks;
	for (now_ns = SEC_NS; now_ns < SEC_NS + 500000; now_ns += 1000)
		assert_int_equal(window_take(&flooded, now_ns, 500), PST_COLOR_RED);
	assert_int_equal(flooded.vft_ticks, quiet.vft_ticks);
}

/* Algorithm 4's lines 12 and 18 as printed, with exact division: the test is made on the unclamped variable. */
struct printed_meter {
	int64_t accu_ns, cons_ns;
};

static uint8_t printed_take(void *meter, uint64_t now_ns, uint32_t bytes)
{
	struct printed_meter *printed = meter;
	int64_t curr_ns = (int64_t)now_ns, floor_ns = curr_ns - 42500000;

	(void)bytes;
	if (printed->accu_ns + printed->cons_ns > curr_ns)
		return PST_COLOR_RED;
	printed->accu_ns = (printed->accu_ns > floor_ns ? printed->accu_ns : floor_ns) + printed->cons_ns;
	return PST_COLOR_GREEN;
}

static void test_s2_a_slow_limit_gets_its_rate(void **state)
{
	/* 60 kbit/s: 1500 B take 200 ms, the window is 42.5 ms. */
	struct window_meter meter = usual_meter(7500, SEC_NS);
	struct printed_meter printed = { 0, 200000000 };
	struct saturation run = { window_take, &meter, SEC_NS, 750000, 1500, PST_COLOR_YELLOW };
	struct saturation_result result = saturation_run(&run);

	(void)state;
	saturation_check(&run, &result, "S2", result.packets[0] + result.packets[1], 7500);
	run.take = printed_take;
	run.meter = &printed;
	run.rare = PST_COLOR_GREEN;
	result = saturation_run(&run);
	/* 200 / (400 - 42.5) = 56 % */
	assert_in_range(1000000 + saturation_error_ppm(&run, &result, result.packets[0], 7500), 555000, 565000);
}

/* With one packet's window a source at 1.7 times the rate gets 85 %: why resolve makes it two. */
static void test_s2_one_packet_of_window_is_too_little(void **state)
{
	struct window_meter meter = usual_meter(7500, SEC_NS);
	struct saturation run = { window_take, &meter, SEC_NS, 7500 * 17 / 10, 1500, PST_COLOR_GREEN };
	struct saturation_result result;

	(void)state;
	meter.profile.green_ticks = meter.profile.window_ticks = pst_rate_cost(meter.profile.rate, 1500);
	result = saturation_run(&run);
	assert_in_range(1000000 + saturation_error_ppm(&run, &result, result.packets[0], 7500), 849000, 851000);
}

static void test_s2_resolve_widens_what_polices_only(void **state)
{
	struct pst_profile profile = policing(MSEC_TICKS, 0, 1500);
	struct pst_limiter_profile resolved;
	uint32_t slow = pst_rate_encode(7500), fast = pst_rate_encode(125000000);

	(void)state;
	pst_limiter_resolve(&resolved, &profile, slow);
	assert_int_equal(resolved.green_ticks, pst_rate_cost(slow, 1500));
	assert_int_equal(resolved.window_ticks, 2 * pst_rate_cost(slow, 1500));
	pst_limiter_resolve(&resolved, &profile, fast);
	assert_int_equal(resolved.green_ticks, MSEC_TICKS);
	assert_int_equal(resolved.window_ticks, MSEC_TICKS);
	profile.red_action = PST_ACTION_HOLD;
	pst_limiter_resolve(&resolved, &profile, slow);
	assert_int_equal(resolved.green_ticks, MSEC_TICKS);
	assert_int_equal(resolved.window_ticks, MSEC_TICKS);
}

static void test_s3_starts_full(void **state)
{
	static const uint64_t starts_ns[] = { 0, 1, SEC_NS, UINT64_C(1) << 54, UINT64_MAX };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(starts_ns) / sizeof(starts_ns[0]); i++) {
		struct window_meter meter = usual_meter(1000000, starts_ns[i]);
		unsigned int packets = 0;

		while (window_take(&meter, starts_ns[i], 500) != PST_COLOR_RED)
			packets++;
		assert_int_equal(packets, 85);
	}
}

/* --- shaping: DragonKing's vst = max(lft, now), with a burst --- */

static void test_held_packets_leave_at_the_rate(void **state)
{
	struct pst_profile profile = policing(0, 0, 1500);
	struct window_meter meter;
	int i;

	(void)state;
	profile.red_action = PST_ACTION_HOLD;
	profile.burst_bytes = 3000;
	meter = meter_of(profile, 1000000, SEC_NS);
	for (i = 0; i < 10; i++) {
		struct pst_limiter_result result = pst_limiter_try(&meter.profile, meter.vft_ticks, SEC_NS, 1500);

		meter.vft_ticks = result.vft_ticks;
		assert_int_equal(result.color, i < 2 ? PST_COLOR_GREEN : PST_COLOR_RED);
		/* The third packet's turn is at once: two packets' worth of burst is taken, nothing waits before it. */
		assert_int_equal(result.wait_ticks, i < 2 ? 0 : (uint64_t)(i - 2) * 1500 * 1000 * PST_TICKS_PER_NSEC);
	}
}

/* --- accuracy --- */

static void check_saturated(uint64_t rate_Bps, uint32_t bytes, const uint64_t windows_ticks[2])
{
	struct pst_profile profile = policing(windows_ticks[0], windows_ticks[1], bytes);
	size_t load;

	for (load = 0; load < 5; load++) {
		uint64_t offered_Bps = rate_Bps * saturation_loads_percent[load] / 100;
		struct window_meter meter = meter_of(profile, rate_Bps, SEC_NS);
		struct saturation run = { window_take, &meter, SEC_NS, offered_Bps, bytes, PST_COLOR_YELLOW };
		struct saturation_result result;

		meter.vft_ticks = pst_clock_ticks(SEC_NS);
		result = saturation_run(&run);
		saturation_check(&run, &result, "window", result.packets[0] + result.packets[1], rate_Bps);
	}
}

static void test_saturated_accuracy(void **state)
{
	size_t rate, size, window;

	(void)state;
	for (rate = 0; rate < 7; rate++) {
		for (size = 0; size < 5; size++) {
			for (window = 0; window < 2; window++) {
				check_saturated(saturation_rates_Bps[rate], saturation_bytes[size],
						saturation_windows_ticks[window]);
			}
		}
	}
}

/* --- golden vectors --- */

static void vector_profile(struct vectors *v, struct pst_profile *profile)
{
	assert_string_equal(vectors_in_text(v, "meter"), "window");
	memset(profile, 0, sizeof(*profile));
	profile->burst_ticks = vectors_in_or(v, "burst_ticks", 0);
	profile->excess_ticks = vectors_in_or(v, "excess_ticks", 0);
	profile->burst_bytes = (uint32_t)vectors_in_or(v, "burst_bytes", 0);
	profile->excess_bytes = (uint32_t)vectors_in_or(v, "excess_bytes", 0);
	profile->mtu_bytes = (uint32_t)vectors_in_or(v, "mtu_bytes", 0);
	profile->red_action = vectors_in_or(v, "shapes", 0) ? PST_ACTION_HOLD : PST_ACTION_DROP;
}

static void vector_resolve(struct vectors *v, struct pst_limiter_profile *resolved, const struct pst_profile *profile)
{
	uint32_t rate = pst_rate_encode(vectors_in(v, "rate_Bps"));

	pst_limiter_resolve(resolved, profile, rate);
	assert_int_equal(rate, vectors_out(v, "rate"));
	assert_int_equal(resolved->green_ticks, vectors_out(v, "green_ticks"));
	assert_int_equal(resolved->window_ticks, vectors_out(v, "window_ticks"));
}

static void test_golden_vectors(void **state)
{
	struct pst_profile profile;
	struct window_meter meter;
	struct vectors v;

	(void)state;
	memset(&meter, 0, sizeof(meter));
	vectors_open(&v, "vectors/limiter.txt");
	while (vectors_next(&v)) {
		if (vectors_is(&v, "profile")) {
			vector_profile(&v, &profile);
			vector_resolve(&v, &meter.profile, &profile);
			meter.vft_ticks = vectors_in(&v, "state");
		} else if (vectors_is(&v, "take")) {
			uint64_t now_ns = vectors_in(&v, "now");
			uint32_t bytes = (uint32_t)vectors_in(&v, "bytes");
			struct pst_limiter_result result =
				pst_limiter_try(&meter.profile, meter.vft_ticks, now_ns, bytes);

			meter.vft_ticks = result.vft_ticks;
			assert_int_equal(result.color, vectors_color(&v, vectors_out_text(&v, "color")));
			assert_int_equal(result.vft_ticks, vectors_out(&v, "state"));
			assert_int_equal(result.depth_ticks, vectors_out(&v, "depth"));
			assert_int_equal(result.wait_ticks, vectors_out(&v, "wait"));
		} else if (vectors_is(&v, "rate")) {
			struct pst_limiter_profile before = meter.profile;
			uint64_t now_ns = vectors_in(&v, "now");

			vector_resolve(&v, &meter.profile, &profile);
			meter.vft_ticks = pst_limiter_convert(&before, &meter.profile, meter.vft_ticks, now_ns);
			assert_int_equal(meter.vft_ticks, vectors_out(&v, "state"));
		} else {
			fail_msg("%s:%u: unknown verb", v.path, v.line);
		}
	}
	assert_true(v.directives > 500);
}

/* The plain form polices: red is not charged, also where a profile would rather hold (S4). */
static void test_take_leaves_red_uncharged(void **state)
{
	const struct pst_profile profile = { .burst_bytes = 1500, .mtu_bytes = 1500, .red_action = PST_ACTION_HOLD };
	struct window_meter meter;
	uint64_t before;

	(void)state;
	pst_limiter_resolve(&meter.profile, &profile, pst_rate_encode(1000000));
	meter.vft_ticks = pst_clock_ticks(SEC_NS);
	before = meter.vft_ticks;
	assert_int_equal(window_take(&meter, SEC_NS, 1500), PST_COLOR_RED);
	assert_int_equal(meter.vft_ticks, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_switchrl_5_budget_accumulates_with_time),
		cmocka_unit_test(test_switchrl_5_only_sending_consumes),
		cmocka_unit_test(test_switchrl_5_budget_is_bounded),
		cmocka_unit_test(test_switchrl_7_green_then_yellow_then_red),
		cmocka_unit_test(test_s1_a_drop_credits_nothing),
		cmocka_unit_test(test_s2_a_slow_limit_gets_its_rate),
		cmocka_unit_test(test_s2_one_packet_of_window_is_too_little),
		cmocka_unit_test(test_s2_resolve_widens_what_polices_only),
		cmocka_unit_test(test_s3_starts_full),
		cmocka_unit_test(test_held_packets_leave_at_the_rate),
		cmocka_unit_test(test_saturated_accuracy),
		cmocka_unit_test(test_take_leaves_red_uncharged),
		cmocka_unit_test(test_golden_vectors),
	};

	return cmocka_run_group_tests_name("limiter", tests, NULL, NULL);
}
