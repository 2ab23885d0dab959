/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "vectors.h"

#include <penstock/limiter.h>
#include <penstock/logical_meter.h>
#include <penstock/rng.h>

#include "ref_logical_meter.h"
#include "saturation.h"

#define BILLION UINT64_C(1000000000)

static const uint64_t rates_Bps[] = { 7500, 125000, 12500000, 1250000000, 12500000000 }; /* 60 kbit/s .. 100 Gbit/s */

static struct pst_logical_meter_profile compile(uint64_t rate_Bps, uint32_t yellow_bytes, uint32_t red_bytes,
						enum pst_congestion congestion, uint8_t tcam_bits)
{
	struct pst_logical_meter_params params = { rate_Bps, yellow_bytes, red_bytes, 1500, UINT32_MAX / 2,
						   (uint8_t)congestion, tcam_bits };
	struct pst_logical_meter_profile profile;

	pst_logical_meter_compile(&profile, &params);
	return profile;
}

/* The exact or, when `tcam`, the faithful form, with the congestion manager behind it. */
static struct pst_logical_meter_result take(const struct pst_logical_meter_profile *profile, bool tcam,
					    struct pst_logical_meter_state *state, uint64_t now_ns, uint32_t bytes,
					    bool is_ect, uint32_t random)
{
	struct pst_logical_meter_result result = tcam ? pst_logical_meter_try_tcam(profile, *state, now_ns, bytes) :
							pst_logical_meter_try(profile, *state, now_ns, bytes);

	pst_logical_meter_settle(profile, state, &result, is_ect, random);
	return result;
}

/* 4.1: "the number of bytes that would have been drained ... (LM = LM + PktLen - DrainB)", "DrainB = R * dT". */
static void queue_is_length_minus_drain(void **unused)
{
	struct pst_logical_meter_profile profile = compile(1000000, 16000, 400000, PST_CONGESTION_POLICE, 4);
	struct pst_logical_meter_state state = pst_logical_meter_idle(0);

	(void)unused;
	take(&profile, false, &state, 0, 1500, false, 0);
	take(&profile, false, &state, 1000000, 1500, false, 0); /* 1 ms at 1 MB/s: 1000 bytes */
	assert_int_equal(state.queue_nB, 2000 * BILLION);
	/* Erratum N1: a long gap empties the queue, it does not make it negative; then the packet is added whole. */
	take(&profile, false, &state, 3600 * BILLION, 700, false, 0);
	assert_int_equal(state.queue_nB, 700 * BILLION);
}

/* 4.1: the length "is added to the register unless the packet will be dropped". I3. */
static void dropped_packets_are_not_counted(void **unused)
{
	struct pst_logical_meter_profile profile = compile(1000000, 3000, 6000, PST_CONGESTION_DCTCP, 4);
	struct pst_logical_meter_state state = pst_logical_meter_idle(0);
	struct pst_logical_meter_result result;
	int i;

	(void)unused;
	for (i = 0; i < 3; i++)
		take(&profile, false, &state, 0, 1500, false, UINT32_MAX);
	result = take(&profile, false, &state, 0, 1500, false, 0); /* depth = red: yellow, with the largest probability */
	assert_int_equal(result.color, PST_COLOR_YELLOW);
	assert_int_equal(result.reason, PST_REASON_EARLY_DROP);
	assert_int_equal(state.queue_nB, 4500 * BILLION);
	result = take(&profile, false, &state, 0, 1501, true, 0);
	assert_int_equal(result.color, PST_COLOR_RED);
	assert_int_equal(state.queue_nB, 4500 * BILLION);
}

/*
 * 4.1, congestion manager: "ECN marks all yellow packets" (DCTCP), "RED to probabilistically mark" (DCQCN), "RED to
 * drop yellow packets" (no ECN), "all red packets are dropped by default". Police is the plain meter of 3.1.1.
 */
static void congestion_manager_does_what_each_class_asks(void **unused)
{
	/* congestion, ect, random is small: verdict of a yellow packet */
	static const uint8_t table[][4] = {
		{ PST_CONGESTION_POLICE, 0, 1, PST_VERDICT_PASS }, { PST_CONGESTION_POLICE, 1, 1, PST_VERDICT_PASS },
		{ PST_CONGESTION_DCTCP, 1, 0, PST_VERDICT_MARK },  { PST_CONGESTION_DCTCP, 1, 1, PST_VERDICT_MARK },
		{ PST_CONGESTION_DCTCP, 0, 0, PST_VERDICT_PASS },  { PST_CONGESTION_DCTCP, 0, 1, PST_VERDICT_DROP },
		{ PST_CONGESTION_DCQCN, 1, 0, PST_VERDICT_PASS },  { PST_CONGESTION_DCQCN, 1, 1, PST_VERDICT_MARK },
		{ PST_CONGESTION_DCQCN, 0, 0, PST_VERDICT_PASS },  { PST_CONGESTION_DCQCN, 0, 1, PST_VERDICT_DROP },
	};
	unsigned i;

	(void)unused;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct pst_logical_meter_profile profile =
			compile(1000000, PST_LOGICAL_METER_YELLOW_BYTES, PST_LOGICAL_METER_PORT_BYTES,
				(enum pst_congestion)table[i][0], 4);
		struct pst_logical_meter_state state = { 200000 * BILLION, 5 };
		struct pst_logical_meter_result result;

		result = take(&profile, false, &state, 5, 1500, table[i][1], table[i][2] ? 0 : UINT32_MAX);
		assert_int_equal(result.color, PST_COLOR_YELLOW);
		assert_int_equal(result.verdict, table[i][3]);
		state.queue_nB = PST_LOGICAL_METER_PORT_BYTES * BILLION;
		result = take(&profile, false, &state, 5, 1500, table[i][1], UINT32_MAX);
		assert_int_equal(result.color, PST_COLOR_RED);
		assert_int_equal(result.verdict, PST_VERDICT_DROP);
		assert_int_equal(result.reason, PST_REASON_OVER_RATE);
		state.queue_nB = 0;
		result = take(&profile, false, &state, 5, 1500, table[i][1], 0);
		assert_int_equal(result.color, PST_COLOR_GREEN);
		assert_int_equal(result.verdict, PST_VERDICT_PASS);
	}
}

/* One saturated meter, for saturation.h: green is what passed, red what was dropped, early or late. */
struct saturated {
	struct pst_logical_meter_profile profile;
	struct pst_logical_meter_state state;
	uint64_t rng;
	bool tcam;
};

static uint8_t passes(void *meter, uint64_t now_ns, uint32_t bytes)
{
	struct saturated *it = (struct saturated *)meter;
	struct pst_logical_meter_result result =
		take(&it->profile, it->tcam, &it->state, now_ns, bytes, false, pst_rng_next(&it->rng));

	return result.verdict == PST_VERDICT_DROP ? PST_COLOR_RED : PST_COLOR_GREEN;
}

/* Parts per million off the rate, of `bytes` packets at `percent` of it, with a full queue at the start. */
static int64_t saturated_error_ppm(const struct pst_logical_meter_profile *profile, bool tcam, uint32_t bytes,
				   uint32_t percent)
{
	const uint64_t start_ns = UINT64_MAX - 12345; /* wraps at once */
	struct saturated it = { *profile, { profile->flow.full_nB, start_ns }, pst_rng_seed(bytes), tcam };
	struct saturation run = { passes, &it, start_ns, profile->flow.rate_Bps * percent / 100, bytes, PST_COLOR_GREEN };
	struct saturation_result result = saturation_run(&run);

	return saturation_error_ppm(&run, &result, result.packets[PST_COLOR_GREEN], profile->flow.rate_Bps);
}

/*
 * Any limit of the matrix of saturation.h: within 0.1 %. I2. RED is on where the load covers it: at 101 % and 10 %
 * dropped there is nothing to saturate with.
 */
static void exact_form_is_accurate(void **unused)
{
	int64_t least_ppm = INT64_MAX, most_ppm = INT64_MIN;
	size_t i;

	(void)unused;
	for (i = 0; i < 7 * 5 * 2 * 5; i++) {
		const uint64_t *windows_ticks = saturation_windows_ticks[i / 35 % 2];
		uint32_t bytes = saturation_bytes[i / 7 % 5], load = saturation_loads_percent[i / 70];
		uint64_t rate_Bps = saturation_rates_Bps[i % 7];
		uint64_t yellow_bytes = (uint64_t)((unsigned __int128)windows_ticks[0] * rate_Bps / PST_TICKS_PER_SEC);
		uint64_t excess_bytes = (uint64_t)((unsigned __int128)windows_ticks[1] * rate_Bps / PST_TICKS_PER_SEC);
		struct pst_logical_meter_params params = { rate_Bps, (uint32_t)yellow_bytes,
							   (uint32_t)(yellow_bytes + excess_bytes), bytes,
							   PST_RED_MAX_DEFAULT_Q32, PST_CONGESTION_DCTCP, 4 };
		struct pst_logical_meter_profile profile;
		int64_t error_ppm;

		if (load <= 101)
			params.congestion = PST_CONGESTION_POLICE;
		pst_logical_meter_compile(&profile, &params);
		error_ppm = saturated_error_ppm(&profile, false, bytes, load);
		least_ppm = error_ppm < least_ppm ? error_ppm : least_ppm;
		most_ppm = error_ppm > most_ppm ? error_ppm : most_ppm;
	}
	print_message("saturated, exact: %" PRId64 " .. %" PRId64 " ppm off the rate\n", least_ppm, most_ppm);
	assert_true(least_ppm >= -1000 && most_ppm <= 1000);
}

/* Early drop on a queue of two packets empties it now and then, and credit is lost: three are the least (Ranges). */
static void early_drop_needs_three_packets(void **unused)
{
	uint32_t packets;

	(void)unused;
	for (packets = 2; packets <= 3; packets++) {
		struct pst_logical_meter_profile profile = compile(7500, 1500, 4500, PST_CONGESTION_DCTCP, 4);
		int64_t error_ppm;

		assert_int_equal(profile.flow.full_nB, 4500 * BILLION);
		pst_flow_compile(&profile.flow, 7500, packets * 1500);
		profile.red_max_q32 = PST_RED_MAX_DEFAULT_Q32;
		error_ppm = saturated_error_ppm(&profile, false, 1500, 130);
		print_message("early drop, queue of %" PRIu32 " packets: %" PRId64 " ppm off the rate\n", packets, error_ppm);
		if (packets == 2)
			assert_true(error_ppm < -5000);
		else
			assert_true(error_ppm > -1000 && error_ppm < 1000);
	}
}

/* I8: the faithful form is within 2^-b. Constant gaps are the worst case: each is read with the same error. */
static void tcam_form_is_within_two_to_the_minus_b(void **unused)
{
	static const uint8_t bits[] = { 4, 5, 15, 20 };
	unsigned b, rate, percent;

	(void)unused;
	for (b = 0; b < 4; b++) {
		int64_t bound_ppm = (INT64_C(1000000) >> bits[b]) + 1000, least_ppm = INT64_MAX, most_ppm = INT64_MIN;

		for (rate = 0; rate < 7; rate++) {
			for (percent = 130; percent <= 310; percent += 20) {
				struct pst_logical_meter_profile profile =
					compile(saturation_rates_Bps[rate], PST_LOGICAL_METER_YELLOW_BYTES,
						PST_LOGICAL_METER_PORT_BYTES, PST_CONGESTION_POLICE, bits[b]);
				int64_t error_ppm = saturated_error_ppm(&profile, true, 1500, percent);

				least_ppm = error_ppm < least_ppm ? error_ppm : least_ppm;
				most_ppm = error_ppm > most_ppm ? error_ppm : most_ppm;
			}
		}
		print_message("saturated, TCAM b = %d: %" PRId64 " .. %" PRId64 " ppm off the rate\n", bits[b], least_ppm,
			      most_ppm);
		assert_true(least_ppm >= -bound_ppm && most_ppm <= bound_ppm);
	}
}

/* A gap of a schedule: mostly overload, now and then a pause, a long pause, a step back, a big step back. */
static int64_t draw_gap_ns(uint64_t *rng, uint64_t packet_ns)
{
	uint32_t kind = pst_rng_next(rng) % 64;

	if (kind == 0)
		return (int64_t)(packet_ns * (pst_rng_next(rng) % 100));
	if (kind == 1)
		return (int64_t)(3600 * BILLION);
	if (kind == 2)
		return -(int64_t)(pst_rng_next(rng) % 100000);
	if (kind == 3 && pst_rng_next(rng) % 8 == 0)
		return -(int64_t)(300 * BILLION);
	return (int64_t)(pst_rng_next(rng) % (packet_ns + 1));
}

/* Bit-equal to ref/ in colour, verdict, reason and state; I4 (wraps), I5; changes of rate in between (I6). */
static void equals_reference_on_random_schedules(void **unused)
{
	uint64_t rng = pst_rng_seed(7);
	int run, i;

	(void)unused;
	for (run = 0; run < 400; run++) {
		bool tcam = run & 1;
		uint64_t rate_Bps = rates_Bps[run % 5] + pst_rng_next(&rng) % 1000;
		uint32_t yellow_bytes = pst_rng_next(&rng) % 30000, red_bytes = pst_rng_next(&rng) % 60000;
		uint8_t b = (uint8_t)(1 + pst_rng_next(&rng) % PST_TCAM_BITS_MAX);
		struct pst_logical_meter_profile profile =
			compile(rate_Bps, yellow_bytes, red_bytes, (enum pst_congestion)(run % 3), b);
		struct ref_logical_meter ref = { .rate_Bps = rate_Bps, .yellow_bytes = yellow_bytes, .red_bytes = red_bytes,
						 .mtu_bytes = 1500, .red_max_q32 = UINT32_MAX / 2,
						 .congestion = (enum ref_congestion)(run % 3), .tcam_bits = tcam ? b : 0 };
		__int128 now_ns = ((__int128)1 << 64) - pst_rng_next(&rng);
		struct pst_logical_meter_state state = pst_logical_meter_idle((uint64_t)now_ns);

		ref_logical_meter_start(&ref, now_ns);
		for (i = 0; i < 500; i++) {
			uint32_t bytes = pst_rng_next(&rng) % 1501, random = pst_rng_next(&rng);
			bool is_ect = pst_rng_next(&rng) & 1;
			struct pst_logical_meter_result result;
			struct ref_logical_meter_result expected;

			now_ns += draw_gap_ns(&rng, 1000 * BILLION / ref.rate_Bps);
			result = take(&profile, tcam, &state, (uint64_t)now_ns, bytes, is_ect, random);
			expected = ref_logical_meter_take(&ref, now_ns, bytes, is_ect, random);
			assert_int_equal(result.color, expected.color);
			assert_int_equal(result.verdict, expected.verdict);
			assert_int_equal(result.reason, expected.reason);
			assert_true(state.queue_nB == ref.queue_nB && state.last_ns == (uint64_t)ref.last_ns);
			assert_true(state.queue_nB <= profile.flow.full_nB);
			if (i % 100 == 99) {
				uint64_t after_Bps = rates_Bps[pst_rng_next(&rng) % 5];
				struct pst_logical_meter_profile after =
					compile(after_Bps, yellow_bytes, red_bytes + 1000, (enum pst_congestion)(run % 3), b);
				uint64_t drained_nB = pst_logical_meter_try(&profile, state, (uint64_t)now_ns, 0).depth_nB;

				state = pst_logical_meter_convert(&profile, &after, state, (uint64_t)now_ns);
				ref_logical_meter_change(&ref, now_ns, after_Bps, after.yellow_nB / BILLION,
							 after.flow.full_nB / BILLION);
				assert_true(state.queue_nB == drained_nB || state.queue_nB == after.flow.full_nB);
				assert_true(state.queue_nB == ref.queue_nB);
				profile = after;
			}
		}
	}
}

/* I1: in every [s, t] of a random schedule, bytes passed <= red + rate * (t - s). */
static void envelope_holds(void **unused)
{
	uint64_t rng = pst_rng_seed(8);
	int run, i;

	(void)unused;
	for (run = 0; run < 200; run++) {
		struct pst_logical_meter_profile profile =
			compile(rates_Bps[run % 5], 3000, 20000, (enum pst_congestion)(run % 3), 4);
		struct pst_logical_meter_state state = pst_logical_meter_idle(0);
		__int128 now_ns = 0, passed_nB = 0, least_nB = 0; /* of passed - rate * now, before each packet */

		for (i = 0; i < 2000; i++) {
			uint32_t bytes = pst_rng_next(&rng) % 1501;
			__int128 surplus_nB;

			now_ns += pst_rng_next(&rng) % (1000 * BILLION / rates_Bps[run % 5] + 1);
			surplus_nB = passed_nB - now_ns * rates_Bps[run % 5];
			least_nB = surplus_nB < least_nB ? surplus_nB : least_nB;
			if (take(&profile, false, &state, (uint64_t)now_ns, bytes, i & 1, pst_rng_next(&rng)).verdict !=
			    PST_VERDICT_DROP)
				passed_nB += bytes * (__int128)BILLION;
			surplus_nB = passed_nB - now_ns * rates_Bps[run % 5];
			assert_true(surplus_nB - least_nB <= profile.flow.full_nB);
		}
	}
}

/*
 * I7: the one-number limiter with green = yellow / rate, window = red / rate. A decision may differ only when the
 * depth is within the limiter's rounding of a threshold; then the limiter is set to what the meter decided.
 */
static void decides_as_the_one_number_limiter(void **unused)
{
	uint64_t rng = pst_rng_seed(9);
	uint64_t differing[2] = { 0, 0 };
	int run, i;

	(void)unused;
	for (run = 0; run < 500; run++) {
		/* Odd runs are bursts in steps of 500 bytes, whose depths fall on the thresholds. */
		uint32_t step = run & 1 ? 500 : 1;
		uint64_t rate_Bps = rates_Bps[run % 5] + pst_rng_next(&rng) % 1000;
		uint32_t yellow_bytes = 1500 + pst_rng_next(&rng) % 30000 / step * step;
		uint32_t red_bytes = yellow_bytes + 1500 + pst_rng_next(&rng) % 60000 / step * step;
		struct pst_logical_meter_profile meter = compile(rate_Bps, yellow_bytes, red_bytes, PST_CONGESTION_POLICE, 4);
		uint32_t rate = pst_rate_encode(rate_Bps);
		struct pst_limiter_profile limiter = { pst_rate_cost(rate, yellow_bytes), pst_rate_cost(rate, red_bytes), rate,
						       false };
		uint64_t now_ns = ((uint64_t)1 << 54) - pst_rng_next(&rng); /* the limiter's ticks wrap on the way */
		struct pst_logical_meter_state state = pst_logical_meter_idle(now_ns);
		uint64_t vft = pst_limiter_idle(now_ns), slack_ticks = 0;

		for (i = 0; i < 500; i++) {
			uint32_t bytes = pst_rng_next(&rng) % 1501 / step * step;
			struct pst_logical_meter_result theirs;
			struct pst_limiter_result ours;
			int64_t gap_ns = draw_gap_ns(&rng, 1000 * BILLION / rate_Bps);

			if (run & 1)
				gap_ns = i % 64 ? 0 : (int64_t)(100 * BILLION);
			now_ns += gap_ns > 0 ? (uint64_t)gap_ns : 0;
			theirs = take(&meter, false, &state, now_ns, bytes, false, 0);
			ours = pst_limiter_try(&limiter, vft, now_ns, bytes);
			vft = ours.vft_ticks;
			/* One rounding a charge, two for the thresholds: fixed.h I1. */
			slack_ticks += 2 + (limiter.window_ticks >> 26);
			if (theirs.color == ours.color)
				continue;
			differing[run & 1]++;
			assert_true((uint64_t)llabs((int64_t)(ours.depth_ticks - limiter.green_ticks)) <= slack_ticks ||
				    (uint64_t)llabs((int64_t)(ours.depth_ticks - limiter.window_ticks)) <= slack_ticks);
			if (theirs.color == PST_COLOR_RED)
				vft -= pst_rate_cost(rate, bytes);
			else if (ours.color == PST_COLOR_RED)
				vft = pst_clock_ticks(now_ns) - limiter.window_ticks + ours.depth_ticks;
		}
	}
	print_message("differ of 125000: %" PRIu64 " at random, %" PRIu64 " where depths fall on a threshold\n",
		      differing[0], differing[1]);
	assert_in_range(differing[0], 0, 10);
	assert_in_range(differing[1], 1, 125000 / 25);
}

static void reproduces_golden_vectors(void **unused)
{
	static const char *const congestions[] = { "police", "dctcp", "dcqcn" };
	static const char *const verdicts[] = { "pass", "mark", "drop" };
	struct pst_logical_meter_profile profile = { 0 };
	struct pst_logical_meter_state state = { 0 };
	bool tcam = false;
	struct vectors v;

	(void)unused;
	vectors_open(&v, "vectors/logical_meter.txt");
	while (vectors_next(&v)) {
		if (vectors_is(&v, "profile")) {
			struct pst_logical_meter_params params = {
				vectors_in(&v, "rate_Bps"), (uint32_t)vectors_in(&v, "yellow_bytes"),
				(uint32_t)vectors_in(&v, "red_bytes"), (uint32_t)vectors_in(&v, "mtu_bytes"),
				(uint32_t)vectors_in(&v, "red_max"),
				vectors_name(&v, vectors_in_text(&v, "congestion"), congestions, 3),
				(uint8_t)vectors_in(&v, "tcam_bits") };

			tcam = params.tcam_bits > 0;
			pst_logical_meter_compile(&profile, &params);
			state = pst_logical_meter_idle(vectors_in(&v, "now"));
			continue;
		}
		if (vectors_is(&v, "take")) {
			struct pst_logical_meter_result result =
				take(&profile, tcam, &state, vectors_in(&v, "now"), (uint32_t)vectors_in(&v, "bytes"),
				     vectors_in(&v, "ect"), (uint32_t)vectors_in(&v, "random"));

			assert_int_equal(result.color, vectors_color(&v, vectors_out_text(&v, "color")));
			assert_int_equal(result.verdict, vectors_name(&v, vectors_out_text(&v, "verdict"), verdicts, 3));
			assert_int_equal(result.reason, vectors_out(&v, "reason"));
		} else {
			struct pst_logical_meter_profile after =
				compile(vectors_in(&v, "rate_Bps"), (uint32_t)vectors_in(&v, "yellow_bytes"),
					(uint32_t)vectors_in(&v, "red_bytes"), PST_CONGESTION_POLICE, 4);

			assert_true(vectors_is(&v, "change"));
			state = pst_logical_meter_convert(&profile, &after, state, vectors_in(&v, "now"));
		}
		assert_int_equal(state.queue_nB, vectors_number(&v, vectors_out_text(&v, "state"), 0));
		assert_int_equal(state.last_ns, vectors_number(&v, vectors_out_text(&v, "state"), 1));
	}
	assert_true(v.directives > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queue_is_length_minus_drain),
		cmocka_unit_test(dropped_packets_are_not_counted),
		cmocka_unit_test(congestion_manager_does_what_each_class_asks),
		cmocka_unit_test(exact_form_is_accurate),
		cmocka_unit_test(early_drop_needs_three_packets),
		cmocka_unit_test(tcam_form_is_within_two_to_the_minus_b),
		cmocka_unit_test(equals_reference_on_random_schedules),
		cmocka_unit_test(envelope_holds),
		cmocka_unit_test(decides_as_the_one_number_limiter),
		cmocka_unit_test(reproduces_golden_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
