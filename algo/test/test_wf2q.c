/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* wf2q.h: what DragonKing's sections III and IV say, and the same groups and entries as the reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <penstock/wf2q.h>

#include "ref_wf2q.h"
#include "schedule.h"
#include "vectors.h"

#define RUNS 20000

static uint64_t ns(ref_int time)
{
	return (uint64_t)time;
}

/* ---- the paper's sentences ---- */

/* III-C: "Initially, T is set to 4 x 5 us, with each pipeline assigned a 5 us time window". */
static void test_iii_c_windows_at_the_start(void **state)
{
	struct pst_wf2q groups;

	(void)state;
	pst_wf2q_start(&groups, PST_WF2Q_SLIDE_NSEC, 1000);
	assert_int_equal(groups.total_ns, 20000);
	assert_int_equal(groups.end_ns[0], 6000);
	assert_int_equal(groups.end_ns[3], 21000);
	assert_int_equal(pst_wf2q_gate(&groups, 5999), 0);
	assert_int_equal(pst_wf2q_gate(&groups, 6000), 1);
	assert_int_equal(pst_wf2q_gate(&groups, 15999), 2);
	assert_int_equal(pst_wf2q_gate(&groups, 16000), 3);
	assert_int_equal(pst_wf2q_gate(&groups, 1 << 30), 3); /* the last one is open */
}

/* II-E, Fig. 3: the head queue sends what has reached its start time, and keeps the rest. */
static void test_ii_e_who_is_sent(void **state)
{
	(void)state;
	assert_int_equal(pst_wf2q_schedule(0, 100, 100, true), PST_WF2Q_SEND);
	assert_int_equal(pst_wf2q_schedule(0, 100, 100, false), PST_WF2Q_SEND);
	assert_int_equal(pst_wf2q_schedule(0, 101, 100, true), PST_WF2Q_RECIRCULATE);
	assert_int_equal(pst_wf2q_schedule(0, 101, 100, false), PST_WF2Q_DROP);
	assert_int_equal(pst_wf2q_schedule(1, 100, 100, true), PST_WF2Q_RECIRCULATE);
	assert_int_equal(pst_wf2q_schedule(0, UINT64_MAX, 5, true), PST_WF2Q_SEND); /* across a wrap */
}

/* Equation 1 with one busy pipeline: 0.1 / 2.8 of T for it, 0.9 / 2.8 for each other. D1: one is enough. */
static void test_equation_1(void **state)
{
	static const uint32_t busy[] = { 58982, 6554, 6554, 6554 }, even[] = { 30000, 30100, 29900, 30000 };
	static const uint32_t full[] = { 65536, 70000, 65536, 99999 };
	struct pst_wf2q groups;

	(void)state;
	pst_wf2q_start(&groups, PST_WF2Q_SLIDE_NSEC, 0);
	groups.total_ns = 28000;
	assert_true(pst_wf2q_is_uneven(busy, PST_WF2Q_VARIANCE_Q16));
	assert_false(pst_wf2q_is_uneven(even, PST_WF2Q_VARIANCE_Q16));
	assert_false(pst_wf2q_is_uneven(full, PST_WF2Q_VARIANCE_Q16));
	pst_wf2q_redistribute(&groups, busy);
	assert_int_equal(groups.window_ns[0], 1000);
	assert_int_equal(groups.window_ns[1], 8999);
	pst_wf2q_redistribute(&groups, full);
	assert_int_equal(groups.window_ns[0], 7000);
	assert_int_equal(groups.window_ns[3], 7000);
}

/* Equations 3-6, and their signs: a front that waits longer gets shorter; a back that is late makes it longer. */
static void test_equations_3_to_6(void **state)
{
	struct pst_wf2q groups;

	(void)state;
	pst_wf2q_start(&groups, PST_WF2Q_SLIDE_NSEC, 0);
	groups.total_ns = 1000000;
	assert_int_equal(pst_wf2q_back_delay_ns(&groups, 100000, 100000), 5000);
	assert_int_equal(pst_wf2q_back_delay_ns(&groups, 200000, 100000), 0);
	pst_wf2q_front_window(&groups, 0, 40000, PST_WF2Q_DELTA_Q16, PST_WF2Q_H_NSEC);
	assert_int_equal(groups.window_ns[0], 5000); /* |beta| is h, not above */
	pst_wf2q_front_window(&groups, 0, 40001, PST_WF2Q_DELTA_Q16, PST_WF2Q_H_NSEC);
	assert_int_equal(groups.window_ns[0], 5999); /* 0.025 of 40 us: 1 us */
	pst_wf2q_front_window(&groups, 100000, 0, PST_WF2Q_DELTA_Q16, PST_WF2Q_H_NSEC);
	assert_int_equal(groups.window_ns[0], 3500);
	/* V-F: delta "may drive T0 into negative (i.e., invalid) values": not here (D4). */
	pst_wf2q_front_window(&groups, UINT64_MAX, 0, -65535, 0);
	assert_int_equal(groups.window_ns[0], 1);
	pst_wf2q_front_window(&groups, 0, UINT64_MAX, -65535, 0);
	assert_int_equal(groups.window_ns[0], 1000000 - 3);
}

/* Section IV: W0 = alpha rho / (1 - rho), alpha by least squares. Samples that follow the law give their alpha back. */
static void test_iv_alpha(void **state)
{
	struct pst_wf2q_fit fit = { 0, 0 };
	uint32_t in;

	(void)state;
	assert_int_equal(pst_wf2q_load_q16(50, 100), 65536);
	assert_int_equal(pst_wf2q_load_q16(0, 0), 0);
	assert_int_equal(pst_wf2q_load_q16(100, 100), 255 * 65536);
	assert_int_equal(pst_wf2q_load_q16(5, 0), 255 * 65536);
	assert_int_equal(pst_wf2q_fit_alpha_ns(&fit), 0);
	for (in = 1; in < 100; in++) {
		uint32_t load = pst_wf2q_load_q16(in, 100);

		pst_wf2q_fit_add(&fit, load, (uint32_t)pst_wf2q_front_delay_ns(12345, load));
	}
	assert_in_range(pst_wf2q_fit_alpha_ns(&fit), 12345 - 3, 12345 + 3);
	/* At a light load, too. */
	fit = (struct pst_wf2q_fit){ 0, 0 };
	pst_wf2q_fit_add(&fit, pst_wf2q_load_q16(1, 200), (uint32_t)pst_wf2q_front_delay_ns(1000000, pst_wf2q_load_q16(1, 200)));
	assert_in_range(pst_wf2q_fit_alpha_ns(&fit), 960000, 1040000);
}

/* Fig. 5: 13 bytes of key, 2 of rate, 4 of LFT. */
static void test_fig_5_entry(void **state)
{
	struct pst_compact_entry entries[2];

	(void)state;
	assert_int_equal((char *)&entries[1] - (char *)&entries[0], 13 + 2 + 4);
}

/* ---- against the reference ---- */

static void draw_groups(uint64_t *rng, struct pst_wf2q *groups, struct ref_wf2q *ref, ref_int now)
{
	int i;

	pst_wf2q_start(groups, 1 + below(rng, 100000), ns(now));
	groups->total_ns = 4 + (draw(rng) >> (18 + below(rng, 40)));
	for (i = 0; i < PST_WF2Q_GROUPS; i++)
		groups->window_ns[i] = 1 + below(rng, 1 << 20);
	pst_wf2q_lay(groups);
	*ref = (struct ref_wf2q){ now, groups->slide_ns, groups->total_ns, { 0 } };
	for (i = 0; i < PST_WF2Q_GROUPS; i++)
		ref->window_ns[i] = groups->window_ns[i];
}

static void assert_same(const struct pst_wf2q *groups, const struct ref_wf2q *ref)
{
	int i;

	assert_int_equal(groups->begin_ns, ns(ref->begin_ns));
	for (i = 0; i < PST_WF2Q_GROUPS; i++) {
		assert_int_equal(groups->window_ns[i], ns(ref->window_ns[i]));
		assert_int_equal(groups->end_ns[i], ns(ref_wf2q_end_ns(ref, i)));
	}
}

static uint32_t draw_bandwidth_q16(uint64_t *rng)
{
	return below(rng, 8) ? below(rng, 65537) : below(rng, 2) * 65536;
}

static void test_i2_i3_i4_i6_as_the_reference(void **state)
{
	uint64_t rng = pst_rng_seed(51);
	int run, step, i;

	(void)state;
	for (run = 0; run < RUNS; run++) {
		ref_int now = draw_start_ns(&rng);
		struct pst_wf2q groups;
		struct ref_wf2q ref;

		draw_groups(&rng, &groups, &ref, now);
		for (step = 0; step < 8; step++) {
			uint32_t b[PST_WF2Q_GROUPS];
			ref_int vft = now + (ref_int)below(&rng, 1 << 23), sum = 0;
			uint64_t front = draw(&rng) >> below(&rng, 64), back = draw(&rng) >> below(&rng, 64);
			int32_t delta = (int32_t)below(&rng, 131071) - 65535;

			for (i = 0; i < PST_WF2Q_GROUPS; i++)
				b[i] = draw_bandwidth_q16(&rng);
			assert_int_equal(pst_wf2q_gate(&groups, ns(vft)), ref_wf2q_gate(&ref, vft));
			now += (ref_int)below(&rng, 3) * (ref_int)groups.slide_ns / 2;
			pst_wf2q_slide(&groups, ns(now));
			ref_wf2q_slide(&ref, now);
			assert_true(groups.begin_ns - ns(now) <= groups.slide_ns); /* I4 */
			assert_same(&groups, &ref);
			assert_int_equal(pst_wf2q_is_uneven(b, 6554), ref_wf2q_is_uneven(b, 6554));
			pst_wf2q_redistribute(&groups, b);
			ref_wf2q_redistribute(&ref, b);
			assert_same(&groups, &ref);
			for (i = 0; i < PST_WF2Q_GROUPS; i++)
				sum += groups.window_ns[i];
			assert_in_range(sum, ref.total_ns - 3, ref.total_ns + 3); /* I3 */
			pst_wf2q_front_window(&groups, front, back, delta, 40);
			ref_wf2q_front_window(&ref, front, back, delta, 40);
			assert_same(&groups, &ref);
		}
	}
}

/* ---- the entry of 19 bytes ---- */

static void test_d5_rate_codes(void **state)
{
	uint64_t rng = pst_rng_seed(52);
	uint32_t code;
	int i;

	(void)state;
	for (code = 0; code <= UINT16_MAX; code++) { /* a code's rate has that code: where a quarter byte is a whole one */
		uint64_t rate_q2 = pst_compact_rate_q2((uint16_t)code);

		if (rate_q2 % 4 == 0)
			assert_int_equal(pst_compact_rate(rate_q2 / 4), code);
	}
	for (i = 0; i < 300; i++) {
		uint64_t rate_Bps = 512 + (draw(&rng) >> (24 + below(&rng, 38)));
		uint16_t rate_code = pst_compact_rate(rate_Bps);
		ref_int rate_q2 = (ref_int)pst_compact_rate_q2(rate_code);

		assert_int_equal(rate_code, ref_compact_code(rate_Bps));
		assert_true(rate_q2 == ref_compact_rate_q2(rate_code));
		assert_true(rate_q2 * 4096 <= (ref_int)rate_Bps * 4 * 4097 && rate_q2 * 4096 >= (ref_int)rate_Bps * 4 * 4095);
	}
	assert_int_equal(pst_compact_rate(0), 0);
	assert_int_equal(pst_compact_rate(UINT64_MAX), UINT16_MAX);
}

/* I5 over a backlogged entry: neither more nor less than the rate. 60 kbit/s is the paper's limit. */
static void test_i5_the_rate_is_kept(void **state)
{
	uint64_t rng = pst_rng_seed(53);
	int run;

	(void)state;
	for (run = 0; run < 500; run++) {
		uint64_t rate_Bps = run ? 7500 + (draw(&rng) >> (30 + below(&rng, 20))) : 7500;
		ref_int start = draw_start_ns(&rng), now = start, bytes = 0, left, rate_q2;
		struct pst_compact_entry entry = { .rate_code = pst_compact_rate(rate_Bps) };
		int packets;

		rate_q2 = (ref_int)pst_compact_rate_q2(entry.rate_code);
		entry.lft = pst_compact_now(ns(now));
		for (packets = 0; packets < 400; packets++) {
			uint32_t length = draw_bytes(&rng);
			uint64_t wait_ns;

			assert_true(pst_compact_take(&entry, ns(now), length, &wait_ns));
			now += (ref_int)wait_ns; /* it goes, and the next one comes */
			/* What was sent before it fits: bytes <= rate * time, and a 64 ns a packet is lost at most. */
			left = (now - start + 64) * rate_q2 - bytes * 4 * (ref_int)PST_NSEC_PER_SEC;
			assert_true(left >= 0);
			assert_true(left <= (ref_int)(packets + 2) * 64 * rate_q2);
			bytes += length;
		}
	}
}

/* D5: a stale LFT would look like one in the future; an aged one is idle. Who would wait too long is not charged. */
static void test_d5_aging_and_the_end_of_the_range(void **state)
{
	struct pst_compact_entry entry = { .rate_code = pst_compact_rate(512) };
	uint64_t now = UINT64_C(1) << 40;
	uint64_t wait_ns;
	uint32_t taken = 0, lft;

	(void)state;
	entry.lft = pst_compact_now(now);
	while (pst_compact_take(&entry, now, 1500, &wait_ns)) {
		taken++;
		lft = entry.lft;
	}
	assert_int_equal(entry.lft, lft);
	assert_in_range(taken, 22, 25); /* 2.93 s each, up to 68.7 s */
	now += UINT64_C(200) * PST_NSEC_PER_SEC;
	pst_compact_age(&entry, now - UINT64_C(100) * PST_NSEC_PER_SEC);
	pst_compact_age(&entry, now);
	assert_true(pst_compact_take(&entry, now, 1500, &wait_ns));
	assert_int_equal(wait_ns, 0);
}

/* ---- golden vectors ---- */

static void read_bandwidth(struct vectors *v, uint32_t *b_q16)
{
	unsigned int i;

	for (i = 0; i < PST_WF2Q_GROUPS; i++)
		b_q16[i] = (uint32_t)vectors_number(v, vectors_in_text(v, "bandwidth"), i);
}

static void check_ends(struct vectors *v, const struct pst_wf2q *groups)
{
	unsigned int i;

	for (i = 0; i < PST_WF2Q_GROUPS; i++)
		assert_int_equal(groups->end_ns[i], vectors_number(v, vectors_out_text(v, "ends"), i));
}

static void check_windows(struct vectors *v, const struct pst_wf2q *groups)
{
	unsigned int i;

	for (i = 0; i < PST_WF2Q_GROUPS; i++)
		assert_int_equal(groups->window_ns[i], vectors_number(v, vectors_out_text(v, "windows"), i));
	check_ends(v, groups);
}

/* False: no verb of groups. */
static bool check_groups(struct vectors *v, struct pst_wf2q *groups)
{
	static const char *const verdicts[] = { "send", "recirculate", "drop" };
	uint32_t b_q16[PST_WF2Q_GROUPS];

	if (vectors_is(v, "start")) {
		pst_wf2q_start(groups, vectors_in(v, "slide"), vectors_in(v, "now"));
		assert_int_equal(groups->total_ns, vectors_out(v, "total"));
		check_windows(v, groups);
	} else if (vectors_is(v, "gate")) {
		assert_int_equal(pst_wf2q_gate(groups, vectors_in(v, "vft")), vectors_out(v, "group"));
	} else if (vectors_is(v, "schedule")) {
		assert_int_equal(pst_wf2q_schedule((uint32_t)vectors_in(v, "group"), vectors_in(v, "vst"), vectors_in(v, "now"),
						   vectors_in(v, "room") != 0),
				 vectors_name(v, vectors_out_text(v, "verdict"), verdicts, 3));
	} else if (vectors_is(v, "slide")) {
		pst_wf2q_slide(groups, vectors_in(v, "now"));
		assert_int_equal(groups->begin_ns, vectors_out(v, "begin"));
		check_ends(v, groups);
	} else if (vectors_is(v, "span")) {
		pst_wf2q_span(groups, vectors_in(v, "least"), vectors_in(v, "most"));
		assert_int_equal(groups->total_ns, vectors_out(v, "total"));
	} else if (vectors_is(v, "uneven")) {
		read_bandwidth(v, b_q16);
		assert_int_equal(pst_wf2q_is_uneven(b_q16, (uint32_t)vectors_in(v, "variance")), vectors_out(v, "uneven"));
	} else if (vectors_is(v, "redistribute")) {
		read_bandwidth(v, b_q16);
		pst_wf2q_redistribute(groups, b_q16);
		check_windows(v, groups);
	} else if (vectors_is(v, "back")) {
		assert_int_equal(pst_wf2q_back_delay_ns(groups, vectors_in(v, "least_vst"), vectors_in(v, "now")), vectors_out(v, "delay"));
	} else if (vectors_is(v, "front")) {
		pst_wf2q_front_window(groups, vectors_in(v, "front_delay"), vectors_in(v, "back_delay"),
				      (int32_t)(uint32_t)vectors_in(v, "delta"), vectors_in(v, "h"));
		check_windows(v, groups);
	} else {
		return false;
	}
	return true;
}

/* False: no verb of entries. */
static bool check_entry(struct vectors *v, struct pst_compact_entry *entry)
{
	uint64_t wait_ns;

	if (vectors_is(v, "rate")) {
		uint16_t rate_code = pst_compact_rate(vectors_in(v, "rate_Bps"));

		assert_int_equal(rate_code, vectors_out(v, "code"));
		assert_int_equal(pst_compact_rate_q2(rate_code), vectors_out(v, "rate_q2"));
	} else if (vectors_is(v, "entry")) {
		entry->rate_code = (uint16_t)vectors_in(v, "code");
		entry->lft = pst_compact_now(vectors_in(v, "now"));
		assert_int_equal(entry->lft, vectors_out(v, "lft"));
	} else if (vectors_is(v, "take")) {
		bool is_taken = pst_compact_take(entry, vectors_in(v, "now"), (uint32_t)vectors_in(v, "bytes"), &wait_ns);

		assert_int_equal(is_taken, vectors_out(v, "taken"));
		if (is_taken)
			assert_int_equal(wait_ns, vectors_out(v, "wait"));
		assert_int_equal(entry->lft, vectors_out(v, "lft"));
	} else if (vectors_is(v, "age")) {
		pst_compact_age(entry, vectors_in(v, "now"));
		assert_int_equal(entry->lft, vectors_out(v, "lft"));
	} else {
		return false;
	}
	return true;
}

static void check_front_delay(struct vectors *v, struct pst_wf2q_fit *fit)
{
	if (vectors_is(v, "load")) {
		uint32_t load_q16 = pst_wf2q_load_q16((uint32_t)vectors_in(v, "in"), (uint32_t)vectors_in(v, "out"));

		assert_int_equal(load_q16, vectors_out(v, "load"));
		assert_int_equal(pst_wf2q_front_delay_ns((uint32_t)vectors_in(v, "alpha"), load_q16), vectors_out(v, "delay"));
		return;
	}
	assert_string_equal(v->verb, "sample");
	if (vectors_in(v, "first"))
		*fit = (struct pst_wf2q_fit){ 0, 0 };
	pst_wf2q_fit_add(fit, (uint32_t)vectors_in(v, "load"), (uint32_t)vectors_in(v, "delay"));
	assert_int_equal(pst_wf2q_fit_alpha_ns(fit), vectors_out(v, "alpha"));
}

static void test_golden_vectors(void **state)
{
	struct pst_compact_entry entry = { .rate_code = 0 };
	struct pst_wf2q_fit fit = { 0, 0 };
	struct pst_wf2q groups;
	struct vectors v;

	(void)state;
	pst_wf2q_start(&groups, 1, 0);
	vectors_open(&v, "vectors/wf2q.txt");
	while (vectors_next(&v)) {
		if (!check_groups(&v, &groups) && !check_entry(&v, &entry))
			check_front_delay(&v, &fit);
	}
	assert_true(v.directives > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_iii_c_windows_at_the_start),   cmocka_unit_test(test_ii_e_who_is_sent),
		cmocka_unit_test(test_equation_1),                   cmocka_unit_test(test_equations_3_to_6),
		cmocka_unit_test(test_iv_alpha),                     cmocka_unit_test(test_fig_5_entry),
		cmocka_unit_test(test_i2_i3_i4_i6_as_the_reference), cmocka_unit_test(test_d5_rate_codes),
		cmocka_unit_test(test_i5_the_rate_is_kept),          cmocka_unit_test(test_d5_aging_and_the_end_of_the_range),
		cmocka_unit_test(test_golden_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
