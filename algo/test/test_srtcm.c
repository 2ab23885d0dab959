/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* srtcm.h: RFC 2697 sentence by sentence, accuracy, properties, golden vectors. Also meter.h's pre-colour. */
#include <penstock/meter.h>

#include "rfc_meter.h"

#define START_NS PST_NSEC_PER_SEC

/* 1 MB/s, so that a token comes every microsecond; depths as asked, for the MTU is 0. */
static struct rfc_meter meter_of(uint32_t cbs_bytes, uint32_t ebs_bytes, bool color_aware)
{
	struct pst_profile written;
	struct rfc_meter meter;

	memset(&written, 0, sizeof(written));
	written.meter = PST_METER_RFC2697;
	written.burst_bytes = cbs_bytes;
	written.excess_bytes = ebs_bytes;
	written.flags = color_aware ? PST_PROFILE_COLOR_AWARE : 0;
	rfc_meter_init(&meter, &written, 1000000, 0, START_NS);
	return meter;
}

static uint8_t take(struct rfc_meter *meter, uint64_t after_usec, uint32_t bytes, uint8_t color_in)
{
	return rfc_meter_take(meter, START_NS + 1000 * after_usec, bytes, color_in);
}

/* --- paper tests: RFC 2697 section 3 --- */

/* "The token buckets C and E are initially (at time 0) full", CBS and EBS; "green if it doesn't exceed the CBS". */
static void test_3_starts_full(void **state)
{
	struct rfc_meter meter = meter_of(3000, 2000, false);

	(void)state;
	assert_int_equal(take(&meter, 0, 3000, 0), PST_COLOR_GREEN);
	assert_int_equal(take(&meter, 0, 2000, 0), PST_COLOR_YELLOW);
	assert_int_equal(take(&meter, 0, 1, 0), PST_COLOR_RED);
}

/* "If Tc is less than CBS, Tc is incremented by one, else if Te is less than EBS, Te is ..., else neither." */
static void test_3_c_fills_before_e(void **state)
{
	struct rfc_meter meter = meter_of(3000, 2000, false);

	(void)state;
	take(&meter, 0, 3000, 0);
	take(&meter, 0, 2000, 0);
	/* After 3000 us C is full and E still empty; 500 us later E has 500. */
	assert_int_equal(take(&meter, 3500, 501, 0), PST_COLOR_GREEN);
	assert_int_equal(take(&meter, 3500, 2499, 0), PST_COLOR_GREEN);
	assert_int_equal(take(&meter, 3500, 501, 0), PST_COLOR_RED);
	assert_int_equal(take(&meter, 3500, 500, 0), PST_COLOR_YELLOW);
	/* "Else neither": after an hour there is no more than CBS and EBS. */
	assert_int_equal(take(&meter, UINT64_C(3600000000), 3000, 0), PST_COLOR_GREEN);
	assert_int_equal(take(&meter, UINT64_C(3600000000), 2001, 0), PST_COLOR_RED);
	assert_int_equal(take(&meter, UINT64_C(3600000000), 2000, 0), PST_COLOR_YELLOW);
}

/* Colour-blind: "if Tc(t)-B >= 0 green; else if Te(t)-B >= 0 yellow; else red and neither Tc nor Te is decremented." */
static void test_3_color_blind(void **state)
{
	struct rfc_meter meter = meter_of(3000, 2000, false);

	(void)state;
	assert_int_equal(take(&meter, 0, 2999, PST_COLOR_RED), PST_COLOR_GREEN);
	assert_int_equal(take(&meter, 0, 2, PST_COLOR_RED), PST_COLOR_YELLOW); /* E pays for it whole */
	assert_int_equal(take(&meter, 0, 1, PST_COLOR_RED), PST_COLOR_GREEN);
	assert_int_equal(take(&meter, 0, 1999, PST_COLOR_RED), PST_COLOR_RED);
	assert_int_equal(take(&meter, 0, 1998, PST_COLOR_RED), PST_COLOR_YELLOW);
}

/* Colour-aware: "precolored as green and Tc(t)-B >= 0"; "precolored as green or yellow and Te(t)-B >= 0"; else red. */
static void test_3_color_aware(void **state)
{
	struct rfc_meter meter = meter_of(3000, 2000, true);

	(void)state;
	assert_int_equal(take(&meter, 0, 1000, PST_COLOR_YELLOW), PST_COLOR_YELLOW);
	assert_int_equal(take(&meter, 0, 1, PST_COLOR_RED), PST_COLOR_RED);
	assert_int_equal(take(&meter, 0, 1001, PST_COLOR_YELLOW), PST_COLOR_RED); /* C's 3000 are not for it */
	assert_int_equal(take(&meter, 0, 3000, PST_COLOR_GREEN), PST_COLOR_GREEN);
	assert_int_equal(take(&meter, 0, 1000, PST_COLOR_GREEN), PST_COLOR_YELLOW);
	assert_int_equal(take(&meter, 0, 1, PST_COLOR_GREEN), PST_COLOR_RED);
}

/* "The token count Tc is incremented by one CIR times per second": token by token, packets come between two tokens. */
static void test_3_token_by_token(void **state)
{
	struct rfc_meter meter = meter_of(4000, 6000, true);
	uint32_t tc = 4000, te = 6000, colors[3] = { 0, 0, 0 };
	uint64_t rng = pst_rng_seed(9), usec = 0;
	int i;

	(void)state;
	for (i = 0; i < 50000; i++) {
		uint32_t bytes = 1 + below(&rng, 3000), gap_usec = below(&rng, below(&rng, 100) ? 3000 : 30000);
		uint8_t in = draw_color(&rng), wanted = PST_COLOR_RED;

		for (; gap_usec > 0; gap_usec--) {
			usec++;
			if (tc < 4000)
				tc++;
			else if (te < 6000)
				te++;
		}
		if (in == PST_COLOR_GREEN && tc >= bytes) {
			wanted = PST_COLOR_GREEN;
			tc -= bytes;
		} else if (in != PST_COLOR_RED && te >= bytes) {
			wanted = PST_COLOR_YELLOW;
			te -= bytes;
		}
		assert_int_equal(take(&meter, usec, bytes, in), wanted);
		colors[wanted]++;
	}
	for (i = 0; i < 3; i++)
		assert_true(colors[i] > 2500);
}

/* --- RFC 2597 section 6: the recommended code points --- */

static void test_rfc2597_6_drop_precedence(void **state)
{
	static const uint8_t af[4][3] = { { 10, 12, 14 }, { 18, 20, 22 }, { 26, 28, 30 }, { 34, 36, 38 } };
	unsigned int dscp, colored = 0;
	int i, j;

	(void)state;
	for (i = 0; i < 4; i++) {
		for (j = 0; j < 3; j++)
			assert_int_equal(pst_color_from_dscp(af[i][j]), PST_COLOR_GREEN + j);
	}
	for (dscp = 0; dscp < 256; dscp++)
		colored += pst_color_from_dscp((uint8_t)dscp) != PST_COLOR_GREEN;
	assert_int_equal(colored, 8); /* nothing but AFx2 and AFx3: not CS, EF, or what is no code point */
}

/* --- section 2, and what is widened --- */

static void test_2_resolve(void **state)
{
	struct pst_profile written;
	struct pst_rfc2697_profile out;
	uint32_t rate = pst_rate_encode(1000000);
	uint64_t packet = pst_rate_cost(rate, 1500);

	(void)state;
	memset(&written, 0, sizeof(written));
	written.mtu_bytes = 1500;
	/* "The CBS and EBS must be configured so that at least one of them is larger than 0." */
	pst_rfc2697_resolve(&out, &written, rate);
	assert_int_equal(out.cbs_ticks, 2 * packet);
	assert_int_equal(out.ebs_ticks, 0);
	written.excess_bytes = 1;
	pst_rfc2697_resolve(&out, &written, rate);
	assert_int_equal(out.cbs_ticks, 0);
	assert_int_equal(out.ebs_ticks, 2 * packet);
	written.burst_bytes = 3001;
	written.excess_ticks = 2 * packet;
	pst_rfc2697_resolve(&out, &written, rate);
	assert_int_equal(out.cbs_ticks, pst_rate_cost(rate, 3001));
	assert_int_equal(out.ebs_ticks, 2 * packet + pst_rate_cost(rate, 1));
	assert_false(out.color_aware);
	written.flags = PST_PROFILE_COLOR_AWARE;
	pst_rfc2697_resolve(&out, &written, rate);
	assert_true(out.color_aware);
}

/* --- I5: accuracy --- */

static void check_saturated(size_t rate, size_t size, const uint64_t windows_ticks[2], uint8_t color_in)
{
	struct pst_profile written;
	size_t load;

	memset(&written, 0, sizeof(written));
	written.meter = PST_METER_RFC2697;
	written.flags = PST_PROFILE_COLOR_AWARE;
	written.mtu_bytes = saturation_bytes[size];
	written.burst_ticks = windows_ticks[0];
	written.excess_ticks = windows_ticks[1];
	for (load = 0; load < 5; load++) {
		uint64_t rate_Bps = saturation_rates_Bps[rate];
		struct rfc_meter meter;
		struct saturation run = {
			rfc_meter_saturate, &meter, START_NS, rate_Bps * saturation_loads_percent[load] / 100,
			saturation_bytes[size], color_in,
		};
		struct saturation_result result;

		rfc_meter_init(&meter, &written, rate_Bps, 0, START_NS);
		meter.color_in = color_in;
		rfc_meter_drain(&meter, START_NS);
		if (color_in == PST_COLOR_YELLOW) { /* C is full and stays so: E gets the rate */
			meter.state.committed_ticks -= meter.srtcm.cbs_ticks;
			meter.state.excess_ticks -= meter.srtcm.cbs_ticks;
		}
		result = saturation_run(&run);
		/* Green comes green, yellow comes yellow, all of it at CIR. */
		saturation_check(&run, &result, "rfc2697", result.packets[color_in], rate_Bps);
		assert_int_equal(result.packets[PST_COLOR_GREEN + PST_COLOR_YELLOW - color_in], 0);
	}
}

static void test_i5_saturated_accuracy(void **state)
{
	size_t rate, size, window;

	(void)state;
	for (rate = 0; rate < 7; rate++) {
		for (size = 0; size < 5; size++) {
			for (window = 0; window < 2; window++) {
				check_saturated(rate, size, saturation_windows_ticks[window], PST_COLOR_GREEN);
				check_saturated(rate, size, saturation_windows_ticks[window], PST_COLOR_YELLOW);
			}
		}
	}
}

/* Lengths at random: never behind CIR by more than a packet and a gap; all of it green (erratum S5). */
static void test_i5_no_credit_is_lost(void **state)
{
	uint64_t rng = pst_rng_seed(8);
	int schedule, i;

	(void)state;
	for (schedule = 0; schedule < SCHEDULES; schedule++) {
		ref_int now_ns = draw_start_ns(&rng), most_ns, bound;
		struct envelope envelope = { 0, 0 };
		struct rfc_meter meter;

		rfc_meter_draw(&meter, &rng, PST_METER_RFC2697, now_ns);
		if (!meter.srtcm.cbs_ticks)
			continue;
		rfc_meter_drain(&meter, (uint64_t)now_ns);
		most_ns = (ref_int)(pst_rate_cost(meter.srtcm.rate, 64) / PST_TICKS_PER_NSEC) + 1;
		bound = packet_units(meter.rate_Bps, MTU_BYTES) + most_ns * REF_TICKS_PER_NSEC * REF_UNITS_PER_TICK;
		for (i = 0; i < 2 * PACKETS; i++) {
			uint32_t bytes = draw_bytes(&rng);
			ref_int gap_ns = (ref_int)(draw(&rng) % (uint64_t)(most_ns + 1));

			now_ns += gap_ns;
			envelope_advance(&envelope, gap_ns);
			assert_true(envelope.lack_units <= bound + rounding_units(bound));
			if (rfc_meter_take(&meter, (uint64_t)now_ns, bytes, PST_COLOR_GREEN) == PST_COLOR_GREEN)
				envelope_pass(&envelope, meter.rate_Bps, bytes);
		}
	}
}

/* A state that another meter left, with E's moment before C's, reads as E full: nothing is refused for ever. */
static void test_a_foreign_state_reads_as_full_excess(void **state)
{
	struct rfc_meter meter = meter_of(3000, 2000, false);

	(void)state;
	meter.state.committed_ticks = pst_clock_ticks(START_NS) + meter.srtcm.cbs_ticks;
	meter.state.excess_ticks = pst_clock_ticks(START_NS);
	assert_int_equal(take(&meter, 0, 2001, 0), PST_COLOR_RED);
	assert_int_equal(take(&meter, 0, 2000, 0), PST_COLOR_YELLOW);
	assert_int_equal(take(&meter, 0, 1, 0), PST_COLOR_RED);
}

/* --- the rest --- */

static void test_i2_equals_the_reference(void **state)
{
	(void)state;
	rfc_check_reference(PST_METER_RFC2697);
}

static void test_i1_envelopes(void **state)
{
	(void)state;
	rfc_check_envelopes(PST_METER_RFC2697);
}

static void test_i3_i4_i6_single_packets(void **state)
{
	(void)state;
	rfc_check_single_packets(PST_METER_RFC2697);
}

static void test_i4_idle_and_stale_states_are_full(void **state)
{
	(void)state;
	rfc_check_idle(PST_METER_RFC2697);
}

static void test_golden_vectors(void **state)
{
	(void)state;
	rfc_check_vectors("vectors/srtcm.txt");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_3_starts_full),
		cmocka_unit_test(test_3_c_fills_before_e),
		cmocka_unit_test(test_3_color_blind),
		cmocka_unit_test(test_3_color_aware),
		cmocka_unit_test(test_3_token_by_token),
		cmocka_unit_test(test_rfc2597_6_drop_precedence),
		cmocka_unit_test(test_2_resolve),
		cmocka_unit_test(test_i1_envelopes),
		cmocka_unit_test(test_i2_equals_the_reference),
		cmocka_unit_test(test_i3_i4_i6_single_packets),
		cmocka_unit_test(test_i4_idle_and_stale_states_are_full),
		cmocka_unit_test(test_i5_saturated_accuracy),
		cmocka_unit_test(test_i5_no_credit_is_lost),
		cmocka_unit_test(test_a_foreign_state_reads_as_full_excess),
		cmocka_unit_test(test_golden_vectors),
	};

	return cmocka_run_group_tests_name("srtcm", tests, NULL, NULL);
}
