/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* circulation.h: packets leave at the same times as in a list that is searched from end to end; and what must hold of any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <penstock/circulation.h>

#include "ref_circulation.h"
#include "schedule.h"
#include "vectors.h"

#define RUNS 300
#define ARRIVALS 300
#define FLOWS 8
#define GBIT_BPS UINT64_C(125000000)

static struct pst_circulation_packet packets[REF_CIRCULATING_MAX];
static struct pst_circulation circulation;
static struct pst_circulation_profile profile;
static struct ref_circulation ref;

static uint64_t ns(ref_int time)
{
	return (uint64_t)time;
}

/* 100 Gbit/s a pipeline, a loop of 1 us, and a buffer of 5 MB each. */
static struct pst_circulation_params paper(void)
{
	return (struct pst_circulation_params){
		.control = {
			.capacity_Bps = { 100 * GBIT_BPS, 100 * GBIT_BPS, 100 * GBIT_BPS, 100 * GBIT_BPS },
			.monitor_ns = PST_WF2Q_SLIDE_NSEC,
			.slide_ns = PST_WF2Q_SLIDE_NSEC,
			.h_ns = PST_WF2Q_H_NSEC,
			.variance_q16 = PST_WF2Q_VARIANCE_Q16,
			.alpha_ns = PST_WF2Q_ALPHA_NSEC,
			.delta_q16 = PST_WF2Q_DELTA_Q16,
			.redistributes = true,
			.schedules = true,
		},
		.loop_ns = 1000,
		.room_bytes = { 5000000, 5000000, 5000000, 5000000 },
	};
}

static void start(const struct pst_circulation_params *params, uint32_t packets_max, ref_int now)
{
	struct ref_control *control = &ref.control;
	int i;

	pst_circulation_compile(&profile, params);
	pst_circulation_start(&profile, &circulation, packets, packets_max, ns(now));
	control->monitor_ns = (ref_int)params->control.monitor_ns;
	control->h_ns = (ref_int)params->control.h_ns;
	control->alpha_ns = params->control.alpha_ns;
	control->delta_q16 = params->control.delta_q16;
	control->variance_q16 = params->control.variance_q16;
	control->redistributes = params->control.redistributes;
	control->schedules = params->control.schedules;
	ref.loop_ns = (ref_int)params->loop_ns;
	ref.packets_max = (int)packets_max;
	for (i = 0; i < PST_WF2Q_GROUPS; i++) {
		control->capacity_Bps[i] = (ref_int)params->control.capacity_Bps[i];
		ref.room_bytes[i] = params->room_bytes[i];
	}
	ref_control_start(control, (ref_int)params->control.slide_ns, now);
	ref_circulation_start(&ref, now);
}

static bool put(uint64_t now_ns, uint64_t vst_ns, uint64_t vft_ns, uint32_t bytes, uint32_t tag)
{
	const struct pst_circulation_packet packet = { .vst_ns = vst_ns, .vft_ns = vft_ns, .bytes = bytes, .tag = tag };

	return pst_circulation_put(&profile, &circulation, &packet, now_ns) == PST_WF2Q_RECIRCULATE;
}

/* II-E, Fig. 3: one packet is eligible and goes at once, after one pass; one of the front's group waits until its start time. */
static void test_ii_e_grouping_and_sliding(void **state)
{
	struct pst_circulation_params params = paper();
	struct pst_circulation_packet sent;

	(void)state;
	start(&params, 8, 0);
	assert_true(put(0, 0, 120, 1500, 1));
	assert_true(put(0, 3000, 3120, 1500, 2));
	assert_true(put(0, 12000, 12120, 1500, 3)); /* of group 2, and slides to the front */
	assert_int_equal(circulation.pipelines[0].held_bytes, 3000);
	assert_int_equal(circulation.pipelines[2].held_bytes, 1500);
	assert_true(pst_circulation_run(&profile, &circulation, 100000, &sent));
	assert_int_equal(sent.tag, 1);
	assert_int_equal(sent.pass_end_ns, 1120);
	assert_true(pst_circulation_run(&profile, &circulation, 100000, &sent));
	assert_int_equal(sent.tag, 2);
	assert_in_range(sent.pass_end_ns, 3000, 3000 + 1120);
	assert_true(pst_circulation_run(&profile, &circulation, 100000, &sent));
	assert_int_equal(sent.tag, 3);
	assert_in_range(sent.pass_end_ns, 12000, 12120 + 5000 + 2 * 1120); /* its window ends a slide later at most */
	assert_false(pst_circulation_run(&profile, &circulation, 100000, &sent));
	assert_int_equal(circulation.waiting, 0);
}

/* III-C: who finds no room is dropped, be it bytes or places. */
static void test_iii_c_overflow_drops(void **state)
{
	struct pst_circulation_params params = paper();
	struct pst_circulation_packet sent;

	(void)state;
	params.room_bytes[3] = 3000;
	start(&params, 4, 0);
	assert_true(put(0, 1000000, 1000120, 1500, 1));
	assert_true(put(0, 1000000, 1000120, 1500, 2));
	assert_false(put(0, 1000000, 1000120, 1, 3));
	assert_true(put(0, 0, 120, 1500, 4));
	assert_true(put(0, 0, 120, 1500, 5));
	assert_false(put(0, 0, 120, 1500, 6));
	assert_true(pst_circulation_run(&profile, &circulation, 2000, &sent));
	assert_true(put(2000, 0, 120, 1500, 7)); /* a place is free again */
}

/*
 * I4's limit, which the paper does not speak of: who is later than its finish time may be overtaken by its successor. Here the first waits in
 * a back pipeline behind many, the second comes when the front window is long.
 */
static void test_i4_who_is_too_late_is_overtaken(void **state)
{
	struct pst_circulation_params params = paper();
	struct pst_circulation_packet sent;
	uint32_t i;

	(void)state;
	params.control.monitor_ns = 1000000;
	start(&params, REF_CIRCULATING_MAX, 0);
	for (i = 0; i < 500; i++)
		assert_true(put(0, 60000, 60120, 1500, 0)); /* 60 us a round */
	assert_true(put(0, 30000, 35000, 1500, 1));
	while (pst_circulation_run(&profile, &circulation, 36000, &sent))
		;
	assert_true(put(36000, 35000, 40000, 1500, 2));
	assert_true(pst_circulation_run(&profile, &circulation, 100000, &sent));
	assert_int_equal(sent.tag, 2);
}

static struct pst_circulation_params draw_params(uint64_t *rng)
{
	struct pst_circulation_params params = paper();
	int i;

	params.control.monitor_ns = 1000 + below(rng, 1U << (10 + below(rng, 8)));
	params.control.slide_ns = 1000 + below(rng, 20000);
	params.control.delta_q16 = -(int32_t)below(rng, 8000);
	params.control.h_ns = below(rng, 50000);
	params.control.redistributes = below(rng, 4) != 0;
	params.control.schedules = below(rng, 4) != 0;
	params.loop_ns = 500 + below(rng, 2000);
	for (i = 0; i < PST_WF2Q_GROUPS; i++) {
		params.control.capacity_Bps[i] = 10 * GBIT_BPS + below(rng, 1000000000);
		params.room_bytes[i] = 9000 + below(rng, 1U << (10 + below(rng, 10)));
	}
	return params;
}

struct flow {
	uint64_t cost_ns; /* of a byte, in 1/256 */
	ref_int lft;
};

static struct flow flows[FLOWS];
static struct { int flow; ref_int vst; ref_int vft; bool is_inside; } arrivals[ARRIVALS];

/* Both run to a time; what leaves is compared, and held against I1, I2 and I4. Returns how many left. */
static uint32_t run_both(ref_int until)
{
	struct pst_circulation_packet sent;
	struct ref_circulating expected;
	uint32_t count = 0;
	int other;

	while (ref_circulation_run(&ref, until, &expected)) {
		assert_true(pst_circulation_run(&profile, &circulation, ns(until), &sent));
		assert_int_equal(sent.tag, expected.tag);
		assert_int_equal(sent.pass_end_ns, ns(expected.end_ns));
		assert_true(expected.end_ns >= arrivals[sent.tag].vst); /* I1 */
		assert_true(arrivals[sent.tag].is_inside);              /* I2 */
		arrivals[sent.tag].is_inside = false;
		for (other = 0; other < ARRIVALS; other++) { /* I4: whoever of its flow is before it and still inside is too late */
			if (arrivals[other].is_inside && arrivals[other].flow == arrivals[sent.tag].flow &&
			    arrivals[other].vst < arrivals[sent.tag].vst)
				assert_true(arrivals[other].vft <= expected.end_ns);
		}
		count++;
	}
	assert_false(pst_circulation_run(&profile, &circulation, ns(until), &sent));
	return count;
}

static void assert_held(const struct pst_circulation_params *params, ref_int now, ref_int started)
{
	int i;

	for (i = 0; i < PST_WF2Q_GROUPS; i++) { /* I3 */
		const struct pst_circulation_pipeline *pipeline = &circulation.pipelines[i];
		ref_int most = (ref_int)params->control.capacity_Bps[i] * (now - started + 1) / 1000000000;

		assert_int_equal(pipeline->held_bytes, ns(ref_circulation_held(&ref, i)));
		assert_true(pipeline->held_bytes <= params->room_bytes[i]);
		assert_int_equal(pipeline->passed_bytes, ns(ref.passed_bytes[i]));
		assert_true((ref_int)pipeline->passed_bytes <= most + MTU_BYTES);
		assert_int_equal(circulation.control.groups.window_ns[i], ns(ref.control.groups.window_ns[i]));
	}
	assert_int_equal(circulation.waiting, (uint32_t)ref.count);
}

static void one_run(uint64_t *rng)
{
	struct pst_circulation_params params = draw_params(rng);
	ref_int now = draw_start_ns(rng), started = now;
	uint32_t taken = 0, left = 0;
	int i;

	start(&params, 2 + below(rng, REF_CIRCULATING_MAX - 2), now);
	memset(flows, 0, sizeof(flows));
	memset(arrivals, 0, sizeof(arrivals));
	for (i = 0; i < FLOWS; i++) {
		flows[i].cost_ns = 1 + below(rng, 1U << below(rng, 16));
		flows[i].lft = now;
	}
	for (i = 0; i < ARRIVALS; i++) {
		int flow = (int)below(rng, FLOWS);
		uint32_t bytes = draw_bytes(rng);
		ref_int vst = flows[flow].lft > now ? flows[flow].lft : now;
		ref_int vft = vst + 1 + (ref_int)(bytes * flows[flow].cost_ns / 256);
		struct ref_circulating packet = { vst, vft, 0, bytes, 0, i };
		bool was_taken = put(ns(now), ns(vst), ns(vft), bytes, (uint32_t)i);

		assert_int_equal(was_taken, ref_circulation_put(&ref, packet, now));
		arrivals[i].flow = flow;
		arrivals[i].vst = vst;
		arrivals[i].vft = vft;
		arrivals[i].is_inside = was_taken;
		if (was_taken)
			flows[flow].lft = vft;
		taken += was_taken;
		now += below(rng, 3) ? (ref_int)below(rng, 3000) : 0;
		left += run_both(now);
		assert_held(&params, now, started);
		assert_int_equal(circulation.waiting, taken - left); /* I2 */
	}
}

static void test_i1_to_i5_as_the_reference(void **state)
{
	uint64_t rng = pst_rng_seed(62);
	int run;

	(void)state;
	for (run = 0; run < RUNS; run++)
		one_run(&rng);
}

/* ---- golden vectors ---- */

static void read_profile(struct vectors *v)
{
	struct pst_circulation_params params = paper();
	uint32_t packets_max = (uint32_t)vectors_in(v, "packets");
	unsigned int i;

	params.control.monitor_ns = vectors_in(v, "monitor");
	params.control.slide_ns = vectors_in(v, "slide");
	params.control.h_ns = vectors_in(v, "h");
	params.control.variance_q16 = (uint32_t)vectors_in(v, "variance");
	params.control.alpha_ns = (uint32_t)vectors_in(v, "alpha");
	params.control.delta_q16 = (int32_t)(uint32_t)vectors_in(v, "delta");
	params.control.redistributes = vectors_in(v, "redistributes") != 0;
	params.control.schedules = vectors_in(v, "schedules") != 0;
	params.loop_ns = vectors_in(v, "loop");
	for (i = 0; i < PST_WF2Q_GROUPS; i++) {
		params.control.capacity_Bps[i] = vectors_number(v, vectors_in_text(v, "capacity_Bps"), i);
		params.room_bytes[i] = (uint32_t)vectors_number(v, vectors_in_text(v, "room_bytes"), i);
	}
	assert_in_range(packets_max, 1, REF_CIRCULATING_MAX);
	pst_circulation_compile(&profile, &params);
	pst_circulation_start(&profile, &circulation, packets, packets_max, vectors_in(v, "now"));
}

static void check_run(struct vectors *v)
{
	struct pst_circulation_packet sent;
	bool is_sent = pst_circulation_run(&profile, &circulation, vectors_in(v, "until"), &sent);

	assert_int_equal(is_sent, vectors_out(v, "sent"));
	if (!is_sent)
		return;
	assert_int_equal(sent.tag, vectors_out(v, "tag"));
	assert_int_equal(sent.pass_end_ns, vectors_out(v, "at"));
	assert_int_equal(sent.vst_ns, vectors_out(v, "vst"));
	assert_int_equal(sent.bytes, vectors_out(v, "bytes"));
}

static void check_state(struct vectors *v)
{
	unsigned int i;

	assert_int_equal(circulation.waiting, vectors_out(v, "waiting"));
	for (i = 0; i < PST_WF2Q_GROUPS; i++) {
		assert_int_equal(circulation.pipelines[i].passed_bytes, vectors_number(v, vectors_out_text(v, "passed"), i));
		assert_int_equal(circulation.control.groups.window_ns[i], vectors_number(v, vectors_out_text(v, "windows"), i));
	}
}

static void test_golden_vectors(void **state)
{
	struct pst_circulation_params params = paper();
	struct vectors v;

	(void)state;
	start(&params, 1, 0);
	vectors_open(&v, "vectors/circulation.txt");
	while (vectors_next(&v)) {
		if (vectors_is(&v, "profile")) {
			read_profile(&v);
		} else if (vectors_is(&v, "put")) {
			bool was_taken = put(vectors_in(&v, "now"), vectors_in(&v, "vst"), vectors_in(&v, "vft"),
					     (uint32_t)vectors_in(&v, "bytes"), (uint32_t)vectors_in(&v, "tag"));

			assert_int_equal(was_taken, vectors_out(&v, "put"));
		} else if (vectors_is(&v, "run")) {
			check_run(&v);
		} else {
			assert_string_equal(v.verb, "state");
			check_state(&v);
		}
	}
	assert_true(v.directives > 800);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ii_e_grouping_and_sliding),
		cmocka_unit_test(test_iii_c_overflow_drops),
		cmocka_unit_test(test_i4_who_is_too_late_is_overtaken),
		cmocka_unit_test(test_i1_to_i5_as_the_reference),
		cmocka_unit_test(test_golden_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
