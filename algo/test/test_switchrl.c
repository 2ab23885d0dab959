/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "vectors.h"

#include <penstock/rng.h>

#include "ref_switchrl.h"
#include "saturation.h"
#include "switchrl_subject.h"

static const uint64_t rates_Bps[] = { 7500, 125000, 12500000, 1250000000, 12500000000 }; /* 60 kbit/s .. 100 Gbit/s */

/*
 * Any limit of the matrix of saturation.h, with the burst behind it: exact forms within 0.1 %, the ADT within 1.98 %
 * more. I2, I6. Random drop is on where the load covers it: at 101 % and 10 % dropped there is nothing to saturate
 * with.
 */
static void every_kind_is_accurate(void **unused)
{
	enum kind kind;
	size_t i;

	(void)unused;
	for (kind = PACKETRL; kind < KINDS; kind++) {
		int64_t least_ppm = INT64_MAX, most_ppm = INT64_MIN, bound_ppm = kind == SWITCHRL_ADT ? 20800 : 1000;

		for (i = 0; i < 7 * 5 * 2 * 5; i++) {
			const uint64_t *windows_ticks = saturation_windows_ticks[i / 35 % 2];
			uint32_t bytes = saturation_bytes[i / 7 % 5], load = saturation_loads_percent[i / 70];
			uint64_t rate_Bps = saturation_rates_Bps[i % 7];
			struct pst_switchrl_params params = { 0, windows_ticks[0] >> PST_TICK_BITS,
							      windows_ticks[1] >> PST_TICK_BITS, bytes,
							      load > 101 ? PST_RED_MAX_DEFAULT_Q32 : 0 };
			struct subject subject;
			struct saturation run = { subject_passes, &subject, UINT64_MAX - 12345, rate_Bps * load / 100, bytes,
						  PST_COLOR_GREEN };
			struct saturation_result result;
			int64_t error_ppm;

			if (kind == SWITCHRL_ADT && (rate_Bps < 125000 || rate_Bps > 1250000000))
				continue; /* the paper's table ends at 1 and 10,000 Mbit/s */
			subject = subject_start(kind, rate_Bps, params, run.start_ns);
			subject_exhaust(&subject, run.start_ns);
			result = saturation_run(&run);
			error_ppm = saturation_error_ppm(&run, &result, result.packets[PST_COLOR_GREEN], rate_Bps);
			least_ppm = error_ppm < least_ppm ? error_ppm : least_ppm;
			most_ppm = error_ppm > most_ppm ? error_ppm : most_ppm;
		}
		print_message("saturated, %s: %" PRId64 " .. %" PRId64 " ppm off the rate\n", kind_names[kind], least_ppm,
			      most_ppm);
		assert_true(least_ppm >= -bound_ppm && most_ppm <= bound_ppm);
	}
}

/* MeterRL, whose steps are an interval's refill: over a whole number of intervals, to within one packet. */
static void meterrl_is_accurate_over_whole_intervals(void **unused)
{
	unsigned rate, length;

	(void)unused;
	for (rate = 0; rate < 5; rate++) {
		for (length = 0; length < 5; length++) {
			struct pst_switchrl_params params = { .ctw_ns = 1000000, .mtu_bytes = saturation_bytes[length] };
			struct subject subject = subject_start(METERRL, rates_Bps[rate], params, 0);
			uint64_t interval_bytes = rates_Bps[rate] * 4 / 1000, passed = 0, arrived = 0, n;
			/* At least 2000 packets: what is left in the bucket is less than one. */
			uint64_t intervals = 2 + 2000 * (uint64_t)saturation_bytes[length] / interval_bytes;

			subject.state[0] = 0;
			for (n = 1; n <= intervals; n++) {
				subject_refill(&subject);
				for (; arrived < n * interval_bytes * 2; arrived += saturation_bytes[length]) {
					if (subject_take(&subject, 0, saturation_bytes[length], 0).verdict == PST_VERDICT_PASS)
						passed += saturation_bytes[length];
				}
			}
			assert_true(passed <= intervals * interval_bytes);
			assert_true(passed * 1000 >= intervals * interval_bytes * 999);
		}
	}
}

/* Section 5: "the two state variables Tc and prev can be reduced to be one". */
static void optimised_state_is_one_variable(void **unused)
{
	(void)unused;
	assert_int_equal(sizeof(struct pst_packetrl_state), 2 * sizeof(uint64_t));
	assert_int_equal(sizeof(struct pst_switchrl_state), sizeof(uint64_t));
}

/* Algorithm 1: "Tc = min(CBS, CIR * Interval + Tc)"; sends what is "<= Tc". */
static void meterrl_refills_by_the_interval(void **unused)
{
	struct pst_meterrl_params params = { 1000000, 4000000, 20000, 1500 };
	struct pst_meterrl_profile profile;
	struct pst_meterrl_state state;

	(void)unused;
	pst_meterrl_compile(&profile, &params);
	state = pst_meterrl_full(&profile);
	assert_int_equal(pst_meterrl_take(&state, 20000), PST_COLOR_GREEN);
	assert_int_equal(pst_meterrl_take(&state, 1), PST_COLOR_RED);
	pst_meterrl_refill(&profile, &state);
	assert_int_equal(state.tokens_nB, 4000 * BILLION); /* 4 ms at 1 MB/s */
	assert_int_equal(pst_meterrl_take(&state, 4001), PST_COLOR_RED);
	assert_int_equal(state.tokens_nB, 4000 * BILLION);
	pst_meterrl_refill(&profile, &state);
	pst_meterrl_refill(&profile, &state);
	pst_meterrl_refill(&profile, &state);
	pst_meterrl_refill(&profile, &state);
	pst_meterrl_refill(&profile, &state);
	assert_int_equal(state.tokens_nB, 20000 * BILLION);
}

/*
 * Section 5: "once the budget accumulation exceeds the consumption by CBS/CIR, the consumption is forced to be
 * accumulated".
 */
static void idle_hours_give_one_window_and_no_more(void **unused)
{
	enum kind kind;

	(void)unused;
	for (kind = PACKETRL; kind < SWITCHRL_ADT; kind++) {
		struct pst_switchrl_params params = { .ctw_ns = 10000000, .etw_ns = 20000000, .mtu_bytes = 1500 };
		struct subject subject = subject_start(kind, 1000000, params, 0);
		uint64_t now_ns = 3600 * BILLION;
		int passed = 0;

		while (subject_take(&subject, now_ns, 1000, UINT32_MAX).verdict == PST_VERDICT_PASS)
			passed++;
		assert_int_equal(passed, 30); /* 30 ms at 1 MB/s */
	}
}

/*
 * Section 7: GREEN up to eTime, "once CBS tokens are exhausted, EBS tokens would be consumed", "otherwise ...
 * dropped".
 */
static void switchrl_spends_ctw_then_etw(void **unused)
{
	struct pst_switchrl_params params = { .ctw_ns = 10000000, .etw_ns = 20000000, .mtu_bytes = 1500 };
	struct subject subject = subject_start(SWITCHRL, 1000000, params, 0);
	int i;

	(void)unused;
	for (i = 0; i < 40; i++) {
		uint8_t color = subject_take(&subject, 5 * BILLION, 1000, 0).color;

		/* The test comes before the packet: the 11th starts at exactly eTime and is still green. */
		assert_int_equal(color, i <= 10 ? PST_COLOR_GREEN : i < 30 ? PST_COLOR_YELLOW : PST_COLOR_RED);
	}
}

static void gap(uint64_t *rng, __int128 *now_ns, uint64_t rate_Bps)
{
	uint32_t kind = pst_rng_next(rng) % 64;

	*now_ns += (__int128)(pst_rng_next(rng) % (1000 * BILLION / rate_Bps + 1));
	if (kind == 0)
		*now_ns += (__int128)1000 * 1500 * BILLION / rate_Bps;
	if (kind == 1)
		*now_ns += (__int128)3600 * BILLION * (pst_rng_next(rng) % 2400); /* up to 100 days: half a wrap of ticks */
	if (kind == 2)
		*now_ns -= pst_rng_next(rng) % 100000;
	if (kind == 3 && pst_rng_next(rng) % 8 == 0)
		*now_ns -= 300 * BILLION;
}

/* Bit-equal to ref/, colour, verdict, reason and state, across wraps and steps back. I3, I4. */
static void equals_reference_on_random_schedules(void **unused)
{
	uint64_t rng = pst_rng_seed(10);
	int run, i;

	(void)unused;
	for (run = 0; run < 1000; run++) {
		enum kind kind = (enum kind)(run % KINDS);
		uint64_t mbps = 1 + pst_rng_next(&rng) % 10000;
		uint64_t rate_Bps = kind == SWITCHRL_ADT ? mbps * 125000 : rates_Bps[pst_rng_next(&rng) % 5] + mbps;
		uint64_t packet_ns = 1500 * BILLION / rate_Bps;
		struct pst_switchrl_params params = { 0, packet_ns * (pst_rng_next(&rng) % 8),
						      packet_ns * (pst_rng_next(&rng) % 8), 1500, pst_rng_next(&rng) };
		uint32_t burst_bytes = (uint32_t)((unsigned __int128)rate_Bps * (params.ctw_ns + params.etw_ns) / BILLION);
		__int128 now_ns = ((__int128)1 << 64) - pst_rng_next(&rng);
		struct subject subject = subject_start(kind, rate_Bps, params, (uint64_t)now_ns);
		struct ref_meterrl meterrl = { rate_Bps, 4000000, burst_bytes, 1500, 0 };
		struct ref_packetrl packetrl = { rate_Bps, burst_bytes, 1500, 0, 0, 0 };
		struct ref_switchrl switchrl = { .is_algorithm_3 = kind == OPTPACKETRL, .rate_Bps = rate_Bps,
						 .rate_Mbps = kind == SWITCHRL_ADT ? mbps : 0, .ctw_ns = params.ctw_ns,
						 .etw_ns = params.etw_ns, .mtu_bytes = 1500,
						 .drop_max_q32 = params.drop_max_q32 };

		ref_meterrl_start(&meterrl);
		ref_packetrl_start(&packetrl, now_ns);
		ref_switchrl_start(&switchrl, now_ns);
		for (i = 0; i < 300; i++) {
			uint32_t bytes = pst_rng_next(&rng) % 1501, random = pst_rng_next(&rng);
			struct ref_switchrl_result expected = { PST_COLOR_GREEN, PST_VERDICT_PASS, PST_REASON_NONE };
			struct pst_switchrl_result result;

			gap(&rng, &now_ns, rate_Bps);
			if (kind == METERRL && i % 8 == 0) {
				subject_refill(&subject);
				ref_meterrl_refill(&meterrl);
			}
			result = subject_take(&subject, (uint64_t)now_ns, bytes, random);
			if (kind >= OPTPACKETRL) {
				expected = ref_switchrl_take(&switchrl, now_ns, bytes, random);
				assert_true(subject.state[0] == (uint64_t)switchrl.accu_ticks);
			} else if (!(kind == METERRL ? ref_meterrl_take(&meterrl, bytes) :
						       ref_packetrl_take(&packetrl, now_ns, bytes))) {
				expected.color = PST_COLOR_RED;
				expected.verdict = PST_VERDICT_DROP;
				expected.reason = PST_REASON_OVER_RATE;
			}
			if (kind == METERRL)
				assert_true(subject.state[0] == meterrl.tokens_nB);
			if (kind == PACKETRL)
				assert_true(subject.state[0] == packetrl.tokens_nB && subject.state[1] == (uint64_t)packetrl.prev_ns);
			assert_int_equal(result.color, expected.color);
			assert_int_equal(result.verdict, expected.verdict);
			assert_int_equal(result.reason, expected.reason);
		}
	}
}

/* I1: in every [s, t], bytes passed <= window * rate + rate * (t - s), plus what rounding a charge can lose. */
static void envelope_holds(void **unused)
{
	uint64_t rng = pst_rng_seed(11);
	int run, i;

	(void)unused;
	for (run = 0; run < 150; run++) {
		enum kind kind = (enum kind)(PACKETRL + run % 3);
		uint64_t rate_Bps = rates_Bps[run / 3 % 5];
		struct pst_switchrl_params params = { 0, 4000 * BILLION / rate_Bps, 6000 * BILLION / rate_Bps, 1500, 0 };
		struct subject subject = subject_start(kind, rate_Bps, params, 0);
		uint64_t window_ticks = subject.switchrl.switchrl.limiter.window_ticks;
		__int128 burst_nB = kind == PACKETRL ? (__int128)subject.packetrl.flow.full_nB :
						       (__int128)window_ticks * rate_Bps / 1024;
		__int128 now_ns = 0, passed_nB = 0, least_nB = 0, slack_nB = 0; /* least of passed - rate * now */

		for (i = 0; i < 2000; i++) {
			uint32_t bytes = pst_rng_next(&rng) % 1501;
			__int128 surplus_nB;

			now_ns += pst_rng_next(&rng) % (1000 * BILLION / rate_Bps + 1);
			surplus_nB = passed_nB - now_ns * rate_Bps;
			least_nB = surplus_nB < least_nB ? surplus_nB : least_nB;
			if (subject_take(&subject, (uint64_t)now_ns, bytes, 0).verdict == PST_VERDICT_PASS) {
				passed_nB += bytes * (__int128)BILLION;
				/* fixed.h I1: half a tick, and 2^-27 of the packet. */
				slack_nB += kind == PACKETRL ? 0 : rate_Bps / 2048 + (bytes * BILLION >> 27) + 2;
			}
			surplus_nB = passed_nB - now_ns * rate_Bps;
			assert_true(surplus_nB - least_nB <= burst_nB + slack_nB);
		}
	}
}

/* I5: without random drop, Algorithm 4 admits what the one-number limiter admits, to the bit. */
static void admits_what_the_one_number_limiter_admits(void **unused)
{
	uint64_t rng = pst_rng_seed(12);
	int run, i;

	(void)unused;
	for (run = 0; run < 200; run++) {
		uint64_t rate_Bps = rates_Bps[run % 5], packet_ns = 1500 * BILLION / rate_Bps;
		struct pst_switchrl_params params = { 0, packet_ns * 3, packet_ns * 4, 1500, 0 };
		__int128 now_ns = ((__int128)1 << 54) - pst_rng_next(&rng);
		struct subject subject = subject_start(SWITCHRL, rate_Bps, params, (uint64_t)now_ns);
		uint64_t vft = subject.state[0];

		for (i = 0; i < 500; i++) {
			uint32_t bytes = pst_rng_next(&rng) % 1501;
			uint8_t color, limiter_color;

			gap(&rng, &now_ns, rate_Bps);
			color = subject_take(&subject, (uint64_t)now_ns, bytes, 0).color;
			limiter_color = pst_limiter_take(&subject.switchrl.switchrl.limiter, &vft, (uint64_t)now_ns, bytes);
			assert_int_equal(color == PST_COLOR_RED, limiter_color == PST_COLOR_RED);
			assert_true(color <= limiter_color);
			assert_true(subject.state[0] == vft);
		}
	}
}

/* I6: the ADT's charge against size/CIR, for every whole Mbit/s and a spread of lengths. */
static void adt_charge_is_within_its_error(void **unused)
{
	uint64_t worst_ppm = 0;
	uint32_t mbps, bytes;

	(void)unused;
	for (mbps = 1; mbps <= 10000; mbps += 1 + mbps / 200) {
		struct pst_switchrl_params params = { .mtu_bytes = 1500 };
		struct pst_switchrl_adt_profile profile;

		pst_switchrl_adt_compile(&profile, &params, &adt, mbps);
		assert_true(profile.switchrl.limiter.window_ticks >= 2 * pst_switchrl_adt_ticks(&profile, 1500));
		for (bytes = 1; bytes <= 10000; bytes += 1 + bytes / 200) {
			/* size / CIR in 1/1024 ns is 8,192,000 * bytes / mbps; compared after multiplying by mbps. */
			uint64_t exact = UINT64_C(8192000) * bytes, charged = pst_switchrl_adt_ticks(&profile, bytes) * mbps;
			uint64_t distance = exact > charged ? exact - charged : charged - exact;

			worst_ppm = distance * 1000000 / charged > worst_ppm ? distance * 1000000 / charged : worst_ppm;
		}
	}
	print_message("ADT charge: worst error %" PRIu64 " ppm\n", worst_ppm);
	assert_in_range(worst_ppm, 19000, 19810);
}

static void reproduces_golden_vectors(void **unused)
{
	static const char *const verdicts[] = { "pass", "mark", "drop" };
	struct subject subject = { .kind = KINDS };
	struct vectors v;

	(void)unused;
	vectors_open(&v, "vectors/switchrl.txt");
	while (vectors_next(&v)) {
		struct pst_switchrl_result result;
		const char *text;

		if (vectors_is(&v, "profile")) {
			uint32_t mtu_bytes = (uint32_t)vectors_in(&v, "mtu_bytes");
			uint64_t mbps = vectors_in_or(&v, "rate_Mbps", 0), exact_Bps = vectors_in(&v, "rate_Bps");
			uint64_t rate_Bps = mbps ? mbps * 125000 : exact_Bps;
			struct pst_switchrl_params params = { 0, vectors_in_or(&v, "ctw_ns", 0), vectors_in_or(&v, "etw_ns", 0),
							      mtu_bytes, (uint32_t)vectors_in_or(&v, "drop_max", 0) };
			enum kind kind = (enum kind)vectors_name(&v, vectors_in_text(&v, "algorithm"), kind_names, KINDS);

			subject = subject_start(kind, rate_Bps, params, vectors_in_or(&v, "now", 0));
			if (kind <= PACKETRL) {
				uint32_t burst_bytes = (uint32_t)vectors_in(&v, "burst_bytes");
				struct pst_meterrl_params meterrl = { rate_Bps, vectors_in_or(&v, "interval_ns", 0), burst_bytes,
								      mtu_bytes };
				struct pst_packetrl_params packetrl = { rate_Bps, burst_bytes, mtu_bytes };

				pst_meterrl_compile(&subject.meterrl, &meterrl);
				pst_packetrl_compile(&subject.packetrl, &packetrl);
				subject.state[0] = kind == METERRL ? subject.meterrl.burst_nB : subject.packetrl.flow.full_nB;
			}
			continue;
		}
		text = vectors_out_text(&v, "state");
		if (vectors_is(&v, "refill")) {
			subject_refill(&subject);
			assert_int_equal(subject.state[0], vectors_number(&v, text, 0));
			continue;
		}
		assert_true(vectors_is(&v, "take"));
		result = subject_take(&subject, vectors_in_or(&v, "now", 0), (uint32_t)vectors_in(&v, "bytes"),
				      (uint32_t)vectors_in_or(&v, "random", 0));
		assert_int_equal(result.color, vectors_color(&v, vectors_out_text(&v, "color")));
		if (subject.kind >= OPTPACKETRL) {
			assert_int_equal(result.verdict, vectors_name(&v, vectors_out_text(&v, "verdict"), verdicts, 3));
			assert_int_equal(result.reason, vectors_out(&v, "reason"));
		}
		assert_int_equal(subject.state[0], vectors_number(&v, text, 0));
		if (subject.kind == PACKETRL)
			assert_int_equal(subject.state[1], vectors_number(&v, text, 1));
	}
	assert_true(v.directives > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_accurate),
		cmocka_unit_test(meterrl_is_accurate_over_whole_intervals),
		cmocka_unit_test(optimised_state_is_one_variable),
		cmocka_unit_test(meterrl_refills_by_the_interval),
		cmocka_unit_test(idle_hours_give_one_window_and_no_more),
		cmocka_unit_test(switchrl_spends_ctw_then_etw),
		cmocka_unit_test(equals_reference_on_random_schedules),
		cmocka_unit_test(envelope_holds),
		cmocka_unit_test(admits_what_the_one_number_limiter_admits),
		cmocka_unit_test(adt_charge_is_within_its_error),
		cmocka_unit_test(reproduces_golden_vectors),
	};

	return cmocka_run_group_tests(tests, build_adt, NULL);
}
