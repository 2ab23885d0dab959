/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What each erratum of SwitchRL does (docs/algorithms/switchrl.md): the printed form stands in ref/ only. */
#include "vectors.h"

#include <penstock/rng.h>

#include "ref_switchrl.h"
#include "saturation.h"
#include "switchrl_subject.h"

/* A saturated run on a limiter of ref/, with or without an erratum. */
static uint8_t ref_passes(void *meter, uint64_t now_ns, uint32_t bytes)
{
	static uint64_t rng = 1;
	struct ref_switchrl *limiter = (struct ref_switchrl *)meter;
	struct ref_switchrl_result result = ref_switchrl_take(limiter, now_ns, bytes, pst_rng_next(&rng));

	return result.verdict == PST_VERDICT_DROP ? PST_COLOR_RED : PST_COLOR_GREEN;
}

static uint8_t ref_packetrl_passes(void *meter, uint64_t now_ns, uint32_t bytes)
{
	return ref_packetrl_take((struct ref_packetrl *)meter, now_ns, bytes) ? PST_COLOR_GREEN : PST_COLOR_RED;
}

/* Passed of 1500-byte packets, in parts per million of the rate, when `percent` of it is offered. */
static uint64_t share_ppm(uint8_t (*take)(void *, uint64_t, uint32_t), void *meter, uint64_t rate_Bps, uint32_t percent)
{
	struct saturation run = { take, meter, 0, rate_Bps * percent / 100, 1500, PST_COLOR_GREEN };
	struct saturation_result result = saturation_run(&run);

	return (uint64_t)(1000000 + saturation_error_ppm(&run, &result, result.packets[PST_COLOR_GREEN], rate_Bps));
}

/* S1: as printed, a drop's interval is credited again at the next packet. */
static void erratum_s1_credits_intervals_twice(void **unused)
{
	unsigned printed;

	(void)unused;
	for (printed = 0; printed <= REF_PRINTED_S1; printed++) {
		struct ref_packetrl limiter = { 12500000, 10000, 1500, printed, 0, 0 };
		uint64_t ppm;

		ref_packetrl_start(&limiter, 0);
		limiter.tokens_nB = 0;
		ppm = share_ppm(ref_packetrl_passes, &limiter, limiter.rate_Bps, 400);
		print_message("S1 %s: a source at 400 %% gets %" PRIu64 " ppm of its rate\n", printed ? "as printed" : "corrected",
			      ppm);
		if (printed)
			assert_true(ppm > 1300000);
		else
			assert_in_range(ppm, 999000, 1001000);
	}
}

/* S2: "a saturated flow gets only 56 % of a 60 kbit/s CIR" with 1500 B packets and the paper's windows. */
static void erratum_s2_starves_slow_limits(void **unused)
{
	struct ref_switchrl limiter = { .rate_Bps = 7500, .ctw_ns = PST_SWITCHRL_CTW_NSEC, .etw_ns = PST_SWITCHRL_ETW_NSEC,
					.mtu_bytes = 1500, .printed = REF_PRINTED_S2 };
	struct pst_switchrl_params params = { 0, PST_SWITCHRL_CTW_NSEC, PST_SWITCHRL_ETW_NSEC, 1500, PST_RED_MAX_DEFAULT_Q32 };
	struct subject subject = subject_start(SWITCHRL, 7500, params, 0);
	uint64_t printed_ppm, corrected_ppm;

	(void)unused;
	ref_switchrl_start(&limiter, 0);
	limiter.accu_ticks = 0;
	subject_exhaust(&subject, 0);
	printed_ppm = share_ppm(ref_passes, &limiter, 7500, 2000);
	corrected_ppm = share_ppm(subject_passes, &subject, 7500, 2000);
	print_message("S2 at 60 kbit/s: as printed %" PRIu64 " ppm, corrected %" PRIu64 " ppm\n", printed_ppm, corrected_ppm);
	/* One packet per 200 ms of cost plus 157.5 ms that the clamp takes away: 200 / 357.5 = 0.559. */
	assert_in_range(printed_ppm, 555000, 564000);
	assert_in_range(corrected_ppm, 999000, 1001000);
}

/* S3: as printed the bucket starts empty, and the first burst is lost. */
static void erratum_s3_starts_empty(void **unused)
{
	unsigned printed;

	(void)unused;
	for (printed = 0; printed <= REF_PRINTED_S3; printed += REF_PRINTED_S3) {
		struct ref_switchrl limiter = { .rate_Bps = 1000000, .ctw_ns = 10000000, .etw_ns = 20000000, .mtu_bytes = 1500,
						.printed = printed };
		int passed = 0;

		ref_switchrl_start(&limiter, 0);
		while (ref_switchrl_take(&limiter, 0, 1000, 0).verdict == PST_VERDICT_PASS)
			passed++;
		assert_int_equal(passed, printed ? 0 : 30);
	}
}

/* S4: as printed a packet dropped at random is charged, so a saturated flow pays for what it does not get. */
static void erratum_s4_charges_what_it_drops(void **unused)
{
	struct ref_switchrl limiter = { .rate_Bps = 12500000, .ctw_ns = PST_SWITCHRL_CTW_NSEC, .etw_ns = PST_SWITCHRL_ETW_NSEC,
					.mtu_bytes = 1500, .drop_max_q32 = PST_RED_MAX_DEFAULT_Q32 };
	unsigned printed;

	(void)unused;
	for (printed = 0; printed <= REF_PRINTED_S4; printed += REF_PRINTED_S4) {
		uint64_t ppm;

		limiter.printed = printed;
		ref_switchrl_start(&limiter, 0);
		limiter.accu_ticks = 0;
		ppm = share_ppm(ref_passes, &limiter, limiter.rate_Bps, 1000);
		print_message("S4 %s, 10 %% drop: a source at 1000 %% gets %" PRIu64 " ppm of its rate\n",
			      printed ? "as printed" : "corrected", ppm);
		if (printed)
			assert_in_range(ppm, 880000, 930000);
		else
			assert_in_range(ppm, 999000, 1001000);
	}
}

/*
 * S5: one variable refills the excess zone first, so a saturated flow stays yellow where RFC 2697 marks CIR-worth
 * green.
 */
static void erratum_s5_saturated_flow_is_never_green(void **unused)
{
	struct pst_switchrl_params params = { 0, PST_SWITCHRL_CTW_NSEC, PST_SWITCHRL_ETW_NSEC, 1500, 0 };
	struct subject subject = subject_start(SWITCHRL, 12500000, params, 0);
	uint64_t k, colors[3] = { 0 };

	(void)unused;
	subject.state[0] = 0;
	for (k = 0; k < 40000; k++)
		colors[subject_take(&subject, k * 60000, 1500, 0).color]++;
	assert_int_equal(colors[PST_COLOR_GREEN], 0);
	assert_true(colors[PST_COLOR_YELLOW] > 19000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(erratum_s1_credits_intervals_twice),
		cmocka_unit_test(erratum_s2_starves_slow_limits),
		cmocka_unit_test(erratum_s3_starts_empty),
		cmocka_unit_test(erratum_s4_charges_what_it_drops),
		cmocka_unit_test(erratum_s5_saturated_flow_is_never_green),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
