/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* delay.h: when packets leave a line, which ones it loses, and whom it leaves alone. */
#include "single.h"

#include <penstock/delay.h>

#include "ref_delay.h"
#include "vectors.h"

#define MSEC UINT64_C(1000000)
#define LINES 3 /* nobody's, the class's, the link's */

static const struct pst_packet plain = { .length = 1000, .network_family = 4 };

struct wired {
	struct single one;
	struct pst_line lines[LINES];
};

/* A limit that nothing exceeds, and behind it a line for its class; packets without a class have another one. */
static void wire(struct wired *w, const struct pst_line *line, uint8_t red_action)
{
	const struct pst_profile profile = { .burst_bytes = 1000, .mtu_bytes = 1000, .red_action = red_action };

	memset(w, 0, sizeof(*w));
	single_init(&w->one, &profile, pst_rate_encode(125000));
	w->lines[1] = w->lines[2] = *line;
	w->lines[2].delay_ns += MSEC;
	w->lines[2].owner++;
	w->one.class.line = 1;
	w->one.link.line = 2;
	w->one.plane.lines = w->lines;
	w->one.plane.line_count = LINES;
}

static void assert_decided(const struct pst_decision *decision, uint8_t verdict, uint8_t reason, uint64_t wait_ns)
{
	assert_int_equal(decision->verdict, verdict);
	assert_int_equal(decision->reason, reason);
	assert_int_equal(decision->departure_ns, single_round_ns(0) + wait_ns);
}

static struct pst_line random_line(uint64_t *rng)
{
	struct pst_line line = { .seed = pst_rng_next(rng), .loss_q32 = pst_rng_next(rng), .owner = 9 };

	line.delay_ns = pst_rng_next(rng) >> pst_rng_next(rng) % 32;
	line.jitter_ns = line.delay_ns >> pst_rng_next(rng) % 32;
	if (line.jitter_ns > PST_DELAY_JITTER_MAX_NSEC)
		line.jitter_ns = PST_DELAY_JITTER_MAX_NSEC;
	return line;
}

/* I1, I2: within the jitter, in order, and what is defined. */
static void test_i1_i2_delays_wander(void **state)
{
	uint64_t rng = pst_rng_seed(1), turn_ns = 0, before_ns = 0;
	struct pst_line line = { 0 };
	int i;

	(void)state;
	for (i = 0; i < 300000; i++) {
		uint64_t delay_ns;

		if (i % 1000 == 0) {
			line = random_line(&rng);
			turn_ns = ((uint64_t)pst_rng_next(&rng) << 32 | pst_rng_next(&rng)) >> 1;
			before_ns = 0;
		}
		turn_ns += pst_rng_next(&rng) % (2 + line.jitter_ns / (1 + pst_rng_next(&rng) % 100));
		delay_ns = pst_delay_ns(&line, turn_ns);
		assert_in_range(delay_ns, line.delay_ns - line.jitter_ns, line.delay_ns + line.jitter_ns);
		assert_true(turn_ns + delay_ns >= before_ns);
		before_ns = turn_ns + delay_ns;
		assert_int_equal(delay_ns, (uint64_t)ref_delay_ns(&line, turn_ns));
	}
}

/* The whole range is used, around the delay; more jitter than delay is none. */
static void test_the_wander_is_even(void **state)
{
	struct pst_line line = { .seed = 7, .delay_ns = 10 * MSEC, .jitter_ns = 2 * MSEC };
	uint64_t least_ns = UINT64_MAX, most_ns = 0, sum_ns = 0, turn_ns;
	const uint64_t count = 100000;

	(void)state;
	for (turn_ns = 0; turn_ns < count * MSEC; turn_ns += MSEC) {
		uint64_t delay_ns = pst_delay_ns(&line, turn_ns);

		least_ns = delay_ns < least_ns ? delay_ns : least_ns;
		most_ns = delay_ns > most_ns ? delay_ns : most_ns;
		sum_ns += delay_ns;
	}
	assert_in_range(least_ns, 8 * MSEC, 8 * MSEC + MSEC / 100);
	assert_in_range(most_ns, 12 * MSEC - MSEC / 100, 12 * MSEC);
	assert_in_range(sum_ns / count, 10 * MSEC - MSEC / 20, 10 * MSEC + MSEC / 20);
	line.jitter_ns = UINT64_MAX;
	for (turn_ns = 0; turn_ns < 1000 * MSEC; turn_ns += MSEC)
		assert_in_range(pst_delay_ns(&line, turn_ns), 0, 20 * MSEC);
	line.delay_ns = 0;
	assert_int_equal(pst_delay_ns(&line, 5), 0);
}

/* I3: as many as the probability says, the same ones with the same seed, none of a line that loses none. */
static void test_i3_losses(void **state)
{
	const uint32_t of_100[] = { 0, 1, 10, 50, 99 };
	struct pst_line one = { .seed = 1 }, other = { .seed = 2 };
	uint64_t number, same = 0;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(of_100) / sizeof(of_100[0]); i++) {
		uint64_t lost = 0, count = 100000;

		one.loss_q32 = UINT32_MAX / 100 * of_100[i];
		for (number = 0; number < count; number++)
			lost += pst_delay_loses(&one, number);
		assert_in_range(lost, of_100[i] * 1000 - (of_100[i] ? 500 : 0), of_100[i] * 1000 + (of_100[i] ? 500 : 0));
	}
	one.loss_q32 = other.loss_q32 = UINT32_MAX / 2;
	/* Nor are they the same sequence, begun elsewhere; and so with other lines of one seed. */
	for (i = 0; i < 6; i++) {
		other.seed = i < 3 ? 2 : 1;
		other.owner = i < 3 ? 0 : 1;
		for (same = 0, number = 0; number < 1000; number++)
			same += pst_delay_loses(&one, number + 1) == pst_delay_loses(&other, number + i % 3);
		assert_in_range(same, 400, 600);
	}
}

/* Behind its limit: at once or at its turn, and then on its way. */
static void test_packets_are_on_their_way(void **state)
{
	struct pst_line line = { .delay_ns = 5 * MSEC, .loss_q32 = 1, .owner = 77 };
	const uint64_t on_the_line = 1;
	struct pst_decision decision;
	struct wired w;

	(void)state;
	wire(&w, &line, PST_ACTION_DROP);
	decision = single_decide(&w.one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_HOLD, PST_REASON_DELAYED, 5 * MSEC);
	assert_int_equal(decision.owner, 77);
	assert_int_equal(decision.color, PST_COLOR_GREEN);
	single_decide(&w.one, &plain, 0);
	decision = single_decide(&w.one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_DROP, PST_REASON_OVER_RATE, 0); /* the limit's business, which comes first */
	assert_int_equal(w.lines[1].packets, 2);

	wire(&w, &line, PST_ACTION_HOLD);
	w.one.limit.owner = 5;
	single_decide(&w.one, &plain, 0);
	decision = single_decide(&w.one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_HOLD, PST_REASON_DELAYED, 5 * MSEC); /* its turn is now */
	w.one.limit.state = pst_limiter_idle(single_round_ns(0));
	w.one.plane.waiting = &on_the_line;
	decision = single_decide(&w.one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_HOLD, PST_REASON_DELAYED, 5 * MSEC);
	single_decide(&w.one, &plain, 0);
	decision = single_decide(&w.one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_HOLD, PST_REASON_HELD, 13 * MSEC); /* in 8 ms, and 5 on its way */
	assert_int_equal(decision.owner, 5); /* behind those of its limit */

	w.lines[1].delay_ns = 60 * PST_NSEC_PER_SEC; /* with its turn, more than a wheel reaches */
	w.one.limit.state += pst_clock_ticks(8 * PST_NSEC_PER_SEC);
	decision = single_decide(&w.one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_DROP, PST_REASON_HORIZON, 0);
	w.lines[1].loss_q32 = UINT32_MAX;
	decision = single_decide(&w.one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_DROP, PST_REASON_LOST, 0);
}

/* I4: a packet without a class takes the link's line; who is dropped, shadowed or not understood, none. */
static void test_i4_who_is_left_alone(void **state)
{
	const struct pst_packet broken = { .length = 1000, .reason = PST_REASON_SHORT_IPV4 };
	struct pst_line line = { .delay_ns = 5 * MSEC, .owner = 77 };
	struct pst_decision decision;
	struct wired w;

	(void)state;
	wire(&w, &line, PST_ACTION_PASS);
	w.one.link.unmatched_class = PST_NONE;
	decision = single_decide(&w.one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_HOLD, PST_REASON_DELAYED, 6 * MSEC);
	assert_int_equal(decision.owner, 78);
	decision = single_decide(&w.one, &broken, 0);
	assert_decided(&decision, PST_VERDICT_PASS, PST_REASON_SHORT_IPV4, 0);
	w.one.link.unmatched_action = PST_ACTION_DROP;
	decision = single_decide(&w.one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_DROP, PST_REASON_UNMATCHED, 0);
	w.one.link.line = LINES; /* there is no such line */
	w.one.link.unmatched_action = PST_ACTION_PASS;
	decision = single_decide(&w.one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_PASS, PST_REASON_NONE, 0);

	wire(&w, &line, PST_ACTION_DROP);
	w.one.profile.flags = PST_PROFILE_SHADOW;
	decision = single_decide(&w.one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_PASS, PST_REASON_NONE, 0);
	w.one.profile.flags = 0;
	w.one.class.line = 0;
	decision = single_decide(&w.one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_PASS, PST_REASON_NONE, 0);
	assert_int_equal(w.lines[1].packets + w.lines[2].packets, 0);
}

/* I5: marked, and on its way. */
static void test_i5_marks_stay(void **state)
{
	const struct pst_packet ect = { .length = 1000, .network_family = 4, .network_tos = 2 };
	struct pst_line line = { .delay_ns = 5 * MSEC };
	struct pst_decision decision;
	struct wired w;

	(void)state;
	wire(&w, &line, PST_ACTION_MARK);
	single_decide(&w.one, &ect, 0);
	single_decide(&w.one, &ect, 0);
	decision = single_decide(&w.one, &ect, 0);
	assert_decided(&decision, PST_VERDICT_HOLD, PST_REASON_CE_MARK, 5 * MSEC);
	wire(&w, &line, PST_ACTION_DSCP);
	w.one.profile.red_dscp = 10;
	single_decide(&w.one, &ect, 0);
	single_decide(&w.one, &ect, 0);
	decision = single_decide(&w.one, &ect, 0);
	assert_decided(&decision, PST_VERDICT_HOLD, PST_REASON_DSCP_MARK, 5 * MSEC);
	assert_int_equal(decision.dscp, 10);
	assert_int_equal(pst_reason_is_mark(PST_REASON_HELD_CE), 1);
	assert_int_equal(pst_reason_is_mark(PST_REASON_HELD) | pst_reason_is_mark(PST_REASON_DELAYED), 0);
	assert_int_equal(pst_reason_is_mark(PST_REASON_BAD_TUNNEL) | pst_reason_is_mark(255), 0);
}

/* Nobody there to hold it: it goes at once, but not past those who wait with one who is leaving. No memory: it is dropped. */
static void test_nobody_to_hold(void **state)
{
	struct pst_line line = { .delay_ns = 5 * MSEC, .owner = 1 };
	uint64_t waiting[2] = { 0, 3 };
	struct pst_decision decision;
	struct wired w;

	(void)state;
	wire(&w, &line, PST_ACTION_PASS);
	w.one.plane.room_chunks = 0;
	decision = single_decide(&w.one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_DROP, PST_REASON_NO_ROOM, 0);
	w.one.plane.is_holder_absent = true;
	decision = single_decide(&w.one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_PASS, PST_REASON_NONE, 0);
	w.one.plane.is_holder_leaving = true;
	w.one.plane.waiting = waiting;
	w.one.plane.waiting_mask = 1;
	decision = single_decide(&w.one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_DROP, PST_REASON_NO_SHAPER, 0);
	waiting[1] = 0;
	decision = single_decide(&w.one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_PASS, PST_REASON_NONE, 0);
}

static void test_golden_vectors(void **state)
{
	struct pst_line line = { 0 };
	struct vectors v;

	(void)state;
	vectors_open(&v, "vectors/delay.txt");
	while (vectors_next(&v)) {
		if (vectors_is(&v, "line")) {
			line = (struct pst_line){
				.seed = vectors_in(&v, "seed"), .owner = (uint32_t)vectors_in(&v, "owner"),
				.delay_ns = vectors_in(&v, "delay"), .jitter_ns = vectors_in(&v, "jitter"),
				.loss_q32 = (uint32_t)vectors_in(&v, "loss"),
			};
			assert_int_equal(pst_delay_seed(&line), vectors_out(&v, "seed"));
		} else if (vectors_is(&v, "draw")) {
			uint64_t seed = pst_delay_seed(&line), jitter_ns = vectors_in(&v, "jitter");

			assert_int_equal(pst_delay_draw_ns(seed, vectors_in(&v, "nth"), jitter_ns), vectors_out(&v, "ns"));
		} else if (vectors_is(&v, "send")) {
			assert_int_equal(pst_delay_ns(&line, vectors_in(&v, "turn")), vectors_out(&v, "delay"));
		} else {
			assert_string_equal(v.verb, "lose");
			assert_int_equal(pst_delay_loses(&line, vectors_in(&v, "number")), vectors_out(&v, "lost"));
		}
	}
	assert_true(v.directives > 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_i1_i2_delays_wander),
		cmocka_unit_test(test_the_wander_is_even),
		cmocka_unit_test(test_i3_losses),
		cmocka_unit_test(test_packets_are_on_their_way),
		cmocka_unit_test(test_i4_who_is_left_alone),
		cmocka_unit_test(test_i5_marks_stay),
		cmocka_unit_test(test_nobody_to_hold),
		cmocka_unit_test(test_golden_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
