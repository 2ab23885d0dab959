/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* wf2q_control.h: the same groups as the reference, after any readings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <penstock/wf2q_control.h>

#include "ref_wf2q_control.h"
#include "schedule.h"
#include "vectors.h"

#define RUNS 3000
#define TICKS 40
#define GBIT_BPS UINT64_C(125000000)

static struct ref_control ref;

static uint64_t ns(ref_int time)
{
	return (uint64_t)time;
}

/* The paper's own, on pipelines of 100 Gbit/s. */
static struct pst_wf2q_control_params paper(void)
{
	return (struct pst_wf2q_control_params){
		.capacity_Bps = { 100 * GBIT_BPS, 100 * GBIT_BPS, 100 * GBIT_BPS, 100 * GBIT_BPS },
		.monitor_ns = PST_WF2Q_SLIDE_NSEC,
		.slide_ns = PST_WF2Q_SLIDE_NSEC,
		.h_ns = PST_WF2Q_H_NSEC,
		.variance_q16 = PST_WF2Q_VARIANCE_Q16,
		.alpha_ns = PST_WF2Q_ALPHA_NSEC,
		.delta_q16 = PST_WF2Q_DELTA_Q16,
		.redistributes = true,
		.schedules = true,
	};
}

static void start(struct pst_wf2q_control_profile *profile, struct pst_wf2q_control_state *state,
		  const struct pst_wf2q_control_params *params, ref_int now)
{
	int i;

	pst_wf2q_control_compile(profile, params);
	pst_wf2q_control_start(profile, state, ns(now));
	ref.monitor_ns = (ref_int)params->monitor_ns;
	ref.h_ns = (ref_int)params->h_ns;
	ref.alpha_ns = params->alpha_ns;
	ref.delta_q16 = params->delta_q16;
	ref.variance_q16 = params->variance_q16;
	ref.redistributes = params->redistributes;
	ref.schedules = params->schedules;
	for (i = 0; i < PST_WF2Q_GROUPS; i++)
		ref.capacity_Bps[i] = (ref_int)params->capacity_Bps[i];
	ref_control_start(&ref, (ref_int)params->slide_ns, now);
}

/* III-C, Fig. 8: one busy pipeline gets a shorter window when T_b is over; nothing happens before. */
static void test_iii_c_a_busy_pipeline_gets_less(void **state)
{
	struct pst_wf2q_control_params params = paper();
	struct pst_wf2q_control_profile profile;
	struct pst_wf2q_control_state control;
	struct pst_wf2q_reading reading = { 0 };

	(void)state;
	start(&profile, &control, &params, 0);
	reading.bytes[2] = 31250; /* half of what it could: 62,500 bytes in 5 us */
	assert_false(pst_wf2q_control_tick(&profile, &control, &reading, 4999));
	assert_int_equal(reading.bytes[2], 31250); /* I4 */
	assert_int_equal(control.groups.window_ns[2], 5000);
	assert_true(pst_wf2q_control_tick(&profile, &control, &reading, 5000));
	assert_int_equal(reading.bytes[2], 0);
	assert_int_equal(control.redistributions, 1);
	assert_int_equal(control.groups.window_ns[1], 6000); /* 15 us * 1 / 2.5 */
	assert_int_equal(control.groups.window_ns[2], 3000);
	assert_int_equal(control.groups.window_ns[3], 6000);
	assert_int_equal(control.groups.begin_ns, 5000);
	assert_int_equal(control.groups.end_ns[0], 10000);
	assert_int_equal(pst_wf2q_control_next_ns(&control), 10000);
}

/* Erratum D7: with T from T_beg on, a limit of 60 kbit/s, whose packets finish 200 ms from now, is reached by the front. */
static void test_d7_the_front_reaches_slow_limits(void **state)
{
	const uint64_t packet_ns = 200000000;
	struct pst_wf2q_control_params params = paper();
	struct pst_wf2q_control_profile profile;
	struct pst_wf2q_control_state control;
	uint64_t now = 0;

	(void)state;
	start(&profile, &control, &params, 0);
	while (now < 200 * PST_NSEC_PER_SEC / 1000 && pst_wf2q_gate(&control.groups, packet_ns) != 0) {
		struct pst_wf2q_reading reading = { 0 };

		pst_wf2q_reading_see(&reading, packet_ns);
		pst_wf2q_reading_pass(&reading, 3, 0, 1500);
		now = pst_wf2q_control_next_ns(&control);
		pst_wf2q_control_tick(&profile, &control, &reading, now);
	}
	assert_true(now < packet_ns / 10); /* long before its finish time */
}

/* IV: the entries' last finish times are aged a few at a time; all of them are reached. */
static void test_iv_limiter_control_ages_all(void **state)
{
	struct pst_compact_entry entries[10];
	uint64_t now = UINT64_C(1) << 40;
	uint32_t from = 0, calls = 0, i;

	(void)state;
	for (i = 0; i < 10; i++)
		entries[i] = (struct pst_compact_entry){ .rate_code = pst_compact_rate(7500), .lft = pst_compact_now(now) - 5 + i };
	do {
		from = pst_wf2q_control_age(entries, 10, from, 3, now);
		calls++;
	} while (from);
	assert_int_equal(calls, 4);
	for (i = 0; i < 10; i++)
		assert_int_equal(entries[i].lft, pst_compact_now(now) + (i > 5 ? i - 5 : 0));
}

static struct pst_wf2q_control_params draw_params(uint64_t *rng)
{
	struct pst_wf2q_control_params params = paper();
	int i;

	params.monitor_ns = 1 + below(rng, 1 + (1U << below(rng, 24)));
	params.slide_ns = 1 + below(rng, 20000);
	params.h_ns = below(rng, 100000);
	params.alpha_ns = below(rng, 3000);
	params.delta_q16 = (int32_t)below(rng, 8000) - 6000;
	params.redistributes = below(rng, 4) != 0;
	params.schedules = below(rng, 4) != 0;
	for (i = 0; i < PST_WF2Q_GROUPS; i++)
		params.capacity_Bps[i] = draw_rate_Bps(rng);
	return params;
}

/* Packets that come, pass, enter the front and leave it, in both readings. */
static void draw_reading(uint64_t *rng, struct pst_wf2q_reading *reading, ref_int now)
{
	uint32_t packets = below(rng, 4) ? below(rng, 30) : 0;

	for (; packets > 0; packets--) {
		int pipeline = (int)below(rng, 5) - 1;
		ref_int vst = now + (ref_int)below(rng, 2000000) - 1000000, vft = vst + (ref_int)(draw(rng) >> (35 + below(rng, 25)));
		uint32_t bytes = draw_bytes(rng);

		pst_wf2q_reading_see(reading, ns(vft));
		if (pipeline >= 0)
			pst_wf2q_reading_pass(reading, (uint32_t)pipeline, ns(vst), bytes);
		ref_control_see(&ref, (struct ref_seen){ pipeline, vst, vft, bytes });
		if (below(rng, 2)) {
			reading->front_in++;
			ref.front_in++;
		}
		if (below(rng, 2)) {
			reading->front_out++;
			ref.front_out++;
		}
	}
}

static void assert_windows(const struct pst_wf2q_control_params *params, const struct pst_wf2q *groups)
{
	uint64_t sum_ns = 0;
	int i;

	assert_in_range(groups->window_ns[0], 1, groups->total_ns - 3 + (params->schedules ? 0 : 3)); /* I2 */
	for (i = 0; i < PST_WF2Q_GROUPS; i++) {
		assert_int_equal(groups->window_ns[i], ns(ref.groups.window_ns[i]));
		assert_int_equal(groups->end_ns[i], ns(ref_wf2q_end_ns(&ref.groups, i)));
		sum_ns += groups->window_ns[i];
	}
	if (!params->redistributes) {
		assert_in_range(sum_ns, groups->total_ns - 3, groups->total_ns + 3);
		assert_in_range(groups->window_ns[1], groups->window_ns[3] - 1, groups->window_ns[3] + 1); /* I3 */
	}
}

static void test_i1_to_i5_as_the_reference(void **state)
{
	uint64_t rng = pst_rng_seed(61);
	int run, tick;

	(void)state;
	for (run = 0; run < RUNS; run++) {
		struct pst_wf2q_control_params params = draw_params(&rng);
		struct pst_wf2q_control_profile profile;
		struct pst_wf2q_control_state control;
		struct pst_wf2q_reading reading = { 0 };
		ref_int now = draw_start_ns(&rng);

		start(&profile, &control, &params, now);
		for (tick = 0; tick < TICKS; tick++) {
			bool was_used;

			draw_reading(&rng, &reading, now);
			/* On time, late, or before any timer. */
			now += below(&rng, 4) ? (ref_int)(pst_wf2q_control_next_ns(&control) - ns(now)) : (ref_int)below(&rng, 30000);
			was_used = pst_wf2q_control_tick(&profile, &control, &reading, ns(now));
			assert_int_equal(was_used, ref_control_tick(&ref, now)); /* I1 */
			assert_int_equal(control.groups.begin_ns, ns(ref.groups.begin_ns));
			assert_int_equal(control.groups.total_ns, ns(ref.groups.total_ns));
			assert_int_equal(control.redistributions, ns(ref.redistributions));
			if (was_used) {
				assert_false(reading.has_any || reading.has_back || reading.front_in || reading.bytes[1]); /* I4 */
				assert_windows(&params, &control.groups);
			}
			assert_true((int64_t)(pst_wf2q_control_next_ns(&control) - ns(now)) > 0);
		}
	}
}

/* ---- golden vectors ---- */

static void check_numbers(struct vectors *v, const char *key, const uint64_t *found)
{
	unsigned int i;

	for (i = 0; i < PST_WF2Q_GROUPS; i++)
		assert_int_equal(found[i], vectors_number(v, vectors_out_text(v, key), i));
}

static void check_groups(struct vectors *v, const struct pst_wf2q_control_state *control)
{
	assert_int_equal(control->groups.total_ns, vectors_out(v, "total"));
	check_numbers(v, "windows", control->groups.window_ns);
	check_numbers(v, "ends", control->groups.end_ns);
	assert_int_equal(pst_wf2q_control_next_ns(control), vectors_out(v, "next"));
}

static void read_profile(struct vectors *v, struct pst_wf2q_control_profile *profile, struct pst_wf2q_control_state *control)
{
	struct pst_wf2q_control_params params = {
		.monitor_ns = vectors_in(v, "monitor"),
		.slide_ns = vectors_in(v, "slide"),
		.h_ns = vectors_in(v, "h"),
		.variance_q16 = (uint32_t)vectors_in(v, "variance"),
		.alpha_ns = (uint32_t)vectors_in(v, "alpha"),
		.delta_q16 = (int32_t)(uint32_t)vectors_in(v, "delta"),
		.redistributes = vectors_in(v, "redistributes") != 0,
		.schedules = vectors_in(v, "schedules") != 0,
	};
	unsigned int i;

	for (i = 0; i < PST_WF2Q_GROUPS; i++)
		params.capacity_Bps[i] = vectors_number(v, vectors_in_text(v, "capacity_Bps"), i);
	pst_wf2q_control_compile(profile, &params);
	pst_wf2q_control_start(profile, control, vectors_in(v, "now"));
	check_groups(v, control);
}

/* False: no verb of the data plane's side. */
static bool check_reading(struct vectors *v, struct pst_wf2q_reading *reading)
{
	if (vectors_is(v, "see")) {
		pst_wf2q_reading_see(reading, vectors_in(v, "vft"));
	} else if (vectors_is(v, "pass")) {
		pst_wf2q_reading_see(reading, vectors_in(v, "vft"));
		pst_wf2q_reading_pass(reading, (uint32_t)vectors_in(v, "group"), vectors_in(v, "vst"), (uint32_t)vectors_in(v, "bytes"));
	} else if (vectors_is(v, "front")) {
		reading->front_in += (uint32_t)vectors_in(v, "in");
		reading->front_out += (uint32_t)vectors_in(v, "out");
	} else if (vectors_is(v, "reading")) {
		const uint64_t bytes[] = { reading->bytes[0], reading->bytes[1], reading->bytes[2], reading->bytes[3] };

		check_numbers(v, "bytes", bytes);
		assert_int_equal(reading->front_in, vectors_out(v, "in"));
		assert_int_equal(reading->front_out, vectors_out(v, "out"));
		if (reading->has_back)
			assert_int_equal(reading->least_vst_ns, vectors_out(v, "least_vst"));
		if (reading->has_any)
			assert_int_equal(reading->most_vft_ns, vectors_out(v, "most_vft"));
	} else {
		return false;
	}
	return true;
}

static void check_age(struct vectors *v)
{
	struct pst_compact_entry entries[10] = { { .rate_code = 0 } };
	uint32_t from;
	unsigned int i;

	assert_string_equal(v->verb, "age");
	for (i = 0; i < 10; i++)
		entries[i].lft = (uint32_t)vectors_number(v, vectors_in_text(v, "lft"), i);
	from = pst_wf2q_control_age(entries, 10, (uint32_t)vectors_in(v, "from"), (uint32_t)vectors_in(v, "count"), vectors_in(v, "now"));
	assert_int_equal(from, vectors_out(v, "from"));
	for (i = 0; i < 10; i++)
		assert_int_equal(entries[i].lft, vectors_number(v, vectors_out_text(v, "lft"), i));
}

static void test_golden_vectors(void **state)
{
	struct pst_wf2q_control_params params = paper();
	struct pst_wf2q_control_profile profile;
	struct pst_wf2q_control_state control;
	struct pst_wf2q_reading reading = { 0 };
	struct vectors v;

	(void)state;
	start(&profile, &control, &params, 0);
	vectors_open(&v, "vectors/wf2q_control.txt");
	while (vectors_next(&v)) {
		if (vectors_is(&v, "profile")) {
			memset(&reading, 0, sizeof(reading));
			read_profile(&v, &profile, &control);
		} else if (vectors_is(&v, "tick")) {
			bool was_used = pst_wf2q_control_tick(&profile, &control, &reading, vectors_in(&v, "now"));

			assert_int_equal(was_used, vectors_out(&v, "used"));
			assert_int_equal(control.redistributions, vectors_out(&v, "redistributions"));
			assert_int_equal(control.groups.begin_ns, vectors_out(&v, "begin"));
			check_groups(&v, &control);
		} else if (!check_reading(&v, &reading)) {
			check_age(&v);
		}
	}
	assert_true(v.directives > 600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_iii_c_a_busy_pipeline_gets_less),
		cmocka_unit_test(test_d7_the_front_reaches_slow_limits),
		cmocka_unit_test(test_iv_limiter_control_ages_all),
		cmocka_unit_test(test_i1_to_i5_as_the_reference),
		cmocka_unit_test(test_golden_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
