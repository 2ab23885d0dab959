/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* hold.h: who goes, who waits, who finds no room; the pipeline's own tests compare whole planes with the reference. */
#include "single.h"

#include <penstock/hold.h>
#include <penstock/rng.h>

#define BYTES 1000U
#define RATE_BPS 125000 /* bytes a second: a packet takes 8 ms */
#define PACKET_NSEC UINT64_C(8000000)

static const struct pst_packet plain = { .length = BYTES, .network_family = 4 };
static const struct pst_packet ect = { .length = BYTES, .network_family = 4, .network_tos = 2 };

static void shape(struct single *one, uint32_t burst_bytes)
{
	const struct pst_profile profile = {
		.burst_bytes = burst_bytes, .mtu_bytes = BYTES, .red_action = PST_ACTION_HOLD,
	};

	single_init(one, &profile, pst_rate_encode(RATE_BPS));
}

static void assert_decided(const struct pst_decision *decision, uint8_t verdict, uint8_t reason, uint64_t wait_ns)
{
	assert_int_equal(decision->verdict, verdict);
	assert_int_equal(decision->reason, reason);
	assert_int_equal(decision->departure_ns, single_round_ns(0) + wait_ns);
}

/* I1, I2. DragonKing III-B: vst = max(lft, now), vft = vst + length / rate. Two packets fit the burst; each further one waits. */
static void test_i1_packets_leave_at_their_turns(void **state)
{
	uint64_t now = single_round_ns(0);
	struct pst_decision decision;
	struct single one;
	uint32_t i;

	(void)state;
	shape(&one, 2 * BYTES);
	for (i = 0; i < 10; i++) {
		decision = single_decide(&one, &plain, 0);
		assert_decided(&decision, i < 3 ? PST_VERDICT_PASS : PST_VERDICT_HOLD, i < 3 ? PST_REASON_NONE : PST_REASON_HELD,
			       i < 3 ? 0 : (i - 2) * PACKET_NSEC);
		assert_int_equal(decision.color, i < 2 ? PST_COLOR_GREEN : PST_COLOR_RED);
	}
	/* Its turn is one tick past a nanosecond, or one tick after now: rounded up, never before the turn. */
	one.limit.state = pst_clock_ticks(now) + 1;
	decision = single_decide(&one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_HOLD, PST_REASON_HELD, 1);
	one.limit.state = pst_clock_ticks(now + 5) + 1;
	assert_int_equal(single_decide(&one, &plain, 0).departure_ns, now + 6);
	/* Its turn is now: red, but it need not wait. */
	one.limit.state = pst_clock_ticks(now);
	decision = single_decide(&one, &plain, 0);
	assert_int_equal(decision.color, PST_COLOR_RED);
	assert_decided(&decision, PST_VERDICT_PASS, PST_REASON_NONE, 0);
	/* A meter that cannot hold lets pass. */
	one.profile.meter = PST_METER_RFC2697;
	one.limit.state = 0;
	for (i = 0; i < 10; i++)
		assert_int_equal(single_decide(&one, &plain, 0).verdict, PST_VERDICT_PASS);
}

/* I1, I4: each bound has its reason, is met to the packet, and what is dropped is not charged. */
static void test_i4_bounds(void **state)
{
	const uint64_t packet = pst_rate_cost(pst_rate_encode(RATE_BPS), BYTES);
	const struct { uint64_t hold_ticks; uint32_t hold_bytes; uint32_t held; uint8_t reason; } cases[] = {
		{ 3 * packet, 0, 3, PST_REASON_HORIZON },
		{ 3 * packet - 1, 0, 2, PST_REASON_HORIZON },
		{ 1, 0, 1, PST_REASON_HORIZON },         /* never less than a packet's time */
		{ 0, 4 * BYTES, 3, PST_REASON_BACKLOG }, /* the one that was just sent still drains */
		{ 0, 4 * BYTES - 1, 2, PST_REASON_BACKLOG },
		{ 0, 1, 1, PST_REASON_BACKLOG },         /* never less than two packets */
		{ 3 * packet, 3 * BYTES, 2, PST_REASON_BACKLOG },
	};
	struct pst_decision decision;
	uint64_t before;
	size_t i;
	uint32_t n;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct single one;

		shape(&one, 0);
		one.profile.hold_ticks = cases[i].hold_ticks;
		one.profile.hold_bytes = cases[i].hold_bytes;
		for (n = 0; n <= cases[i].held; n++)
			assert_int_not_equal(single_decide(&one, &plain, 0).verdict, PST_VERDICT_DROP);
		before = one.limit.state;
		decision = single_decide(&one, &plain, 0);
		assert_decided(&decision, PST_VERDICT_DROP, cases[i].reason, 0);
		assert_int_equal(one.limit.state, before);
	}
}

/* Room in all is asked for last, in chunks. */
static void test_no_room(void **state)
{
	struct pst_decision decision;
	struct single one;

	(void)state;
	assert_int_equal(pst_hold_chunks(0), 1);
	assert_int_equal(pst_hold_chunks(PST_HOLD_CHUNK_ROOM), 1);
	assert_int_equal(pst_hold_chunks(PST_HOLD_CHUNK_ROOM + 1), 2);
	shape(&one, 0);
	one.plane.room_chunks = 0;
	assert_int_equal(single_decide(&one, &plain, 0).verdict, PST_VERDICT_PASS); /* who need not wait needs no room */
	decision = single_decide(&one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_DROP, PST_REASON_NO_ROOM, 0);
	one.plane.room_chunks = 1;
	decision = single_decide(&one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_HOLD, PST_REASON_HELD, PACKET_NSEC);
	assert_int_equal(decision.cost_ns, PACKET_NSEC);
}

/* I3: somebody waits still, though his time has come: who comes now goes behind him, at once. Others are not concerned. */
static void test_i3_nobody_overtakes(void **state)
{
	uint64_t waiting[4] = { 0, 0, 5, 0 };
	struct pst_decision decision;
	struct single one;

	(void)state;
	shape(&one, 10 * BYTES);
	one.limit.owner = 6; /* shares its number with 2 */
	one.plane.waiting = waiting;
	one.plane.waiting_mask = 3;
	decision = single_decide(&one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_HOLD, PST_REASON_HELD, 0);
	assert_int_equal(decision.owner, 6);
	assert_int_equal(decision.color, PST_COLOR_GREEN);
	one.plane.room_chunks = 0;
	decision = single_decide(&one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_DROP, PST_REASON_NO_ROOM, 0);
	waiting[2] = 0;
	decision = single_decide(&one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_PASS, PST_REASON_NONE, 0);
	assert_int_equal(decision.owner, 6);
}

/* Who waits longer than ce_ns is marked, if it can be. */
static void test_ce(void **state)
{
	struct pst_decision decision;
	struct single one;
	uint32_t i;

	(void)state;
	shape(&one, 0);
	one.profile.ce_ns = (uint32_t)PACKET_NSEC;
	for (i = 0; i < 6; i++) {
		bool is_late = i >= 2;
		bool is_ect = i % 2;

		decision = single_decide(&one, is_ect ? &ect : &plain, 0);
		if (i > 0)
			assert_decided(&decision, PST_VERDICT_HOLD, is_late && is_ect ? PST_REASON_HELD_CE : PST_REASON_HELD,
				       i * PACKET_NSEC);
	}
}

/* Nobody there: the limit polices, and says why. Its window is that of a limit that polices (S2): two packets. */
static void test_nobody_there(void **state)
{
	uint64_t waiting = 1;
	struct pst_decision decision;
	struct single one;
	uint32_t i;

	(void)state;
	shape(&one, 0);
	one.plane.is_holder_absent = true;
	for (i = 0; i < 4; i++) {
		decision = single_decide(&one, &plain, 0);
		assert_decided(&decision, i < 2 ? PST_VERDICT_PASS : PST_VERDICT_DROP,
			       i < 2 ? PST_REASON_NONE : PST_REASON_NO_SHAPER, 0);
	}
	/* While who holds packets is leaving, nobody passes in front of those who wait there. */
	one.limit.state = pst_limiter_idle(single_round_ns(0));
	one.plane.is_holder_leaving = true;
	one.plane.waiting = &waiting;
	decision = single_decide(&one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_DROP, PST_REASON_NO_SHAPER, 0);
	waiting = 0;
	decision = single_decide(&one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_PASS, PST_REASON_NONE, 0);
	one.plane.is_holder_leaving = false;
	/* When who held packets has gone, and left a queue of a second, nothing passes for a second. */
	one.limit.state = pst_clock_ticks(single_round_ns(0) + PST_NSEC_PER_SEC);
	decision = single_decide(&one, &plain, 0);
	assert_decided(&decision, PST_VERDICT_DROP, PST_REASON_NO_SHAPER, 0);
}

/* I1, I2 over random arrivals, rates and bounds. */
static void test_i2_departures_do_not_fall(void **state)
{
	uint64_t rng = pst_rng_seed(61), held = 0;
	int run, i;

	(void)state;
	for (run = 0; run < 300; run++) {
		uint64_t now = (uint64_t)pst_rng_next(&rng) << 20, last = now;
		struct pst_decision decision;
		struct single one;

		shape(&one, pst_scale_u32(pst_rng_next(&rng), 5000));
		one.limit.state = pst_limiter_idle(now);
		one.profile.hold_ticks = pst_clock_ticks(pst_rng_next(&rng) >> 6);
		for (i = 0; i < 300; i++) {
			struct pst_packet packet = { .length = 60 + pst_scale_u32(pst_rng_next(&rng), 1400) };

			pst_pipeline_decide(&decision, &one.plane, &packet, now, 0);
			if (decision.verdict != PST_VERDICT_DROP) {
				assert_true(decision.departure_ns >= now && decision.departure_ns >= last);
				last = decision.departure_ns;
				held += decision.verdict == PST_VERDICT_HOLD;
			}
			now += pst_rng_next(&rng) >> (6 + pst_scale_u32(pst_rng_next(&rng), 12));
		}
	}
	assert_true(held > 10000);
}

/* Another rate, burst or bound, and now and then a limit that drops: nobody overtakes whom was held before, whatever the terms are. */
static void test_i2_over_changes_of_terms(void **state)
{
	uint64_t rng = pst_rng_seed(62), held = 0, changes = 0;
	int run, i;

	(void)state;
	for (run = 0; run < 1000; run++) {
		uint64_t now = (uint64_t)pst_rng_next(&rng) << 20, last = now;
		struct pst_decision decision;
		struct single one;

		shape(&one, pst_scale_u32(pst_rng_next(&rng), 5000));
		one.limit.state = pst_limiter_idle(now);
		for (i = 0; i < 200; i++) {
			struct pst_packet packet = { .length = 60 + pst_scale_u32(pst_rng_next(&rng), 1400) };

			if (pst_scale_u32(pst_rng_next(&rng), 10) == 0) {
				struct pst_limiter_profile before, after;

				pst_limiter_resolve(&before, &one.profile, one.limit.rate);
				one.limit.rate = pst_rate_encode(1000 + (pst_rng_next(&rng) >> pst_scale_u32(pst_rng_next(&rng), 24)));
				one.profile.burst_bytes = pst_rng_next(&rng) >> (16 + pst_scale_u32(pst_rng_next(&rng), 16));
				one.profile.red_action = pst_scale_u32(pst_rng_next(&rng), 4) ? PST_ACTION_HOLD : PST_ACTION_DROP;
				one.profile.hold_ticks = pst_clock_ticks(1 + (pst_rng_next(&rng) >> 4));
				pst_limiter_resolve(&after, &one.profile, one.limit.rate);
				one.limit.state = pst_limiter_convert(&before, &after, one.limit.state, now);
				changes++;
			}
			pst_pipeline_decide(&decision, &one.plane, &packet, now, 0);
			if (decision.verdict != PST_VERDICT_DROP) {
				assert_true(decision.departure_ns >= last);
				last = decision.departure_ns;
				held += decision.verdict == PST_VERDICT_HOLD;
			}
			now += pst_rng_next(&rng) >> (6 + pst_scale_u32(pst_rng_next(&rng), 12));
		}
	}
	assert_true(held > 10000 && changes > 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_i1_packets_leave_at_their_turns),
		cmocka_unit_test(test_i4_bounds),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_i3_nobody_overtakes),
		cmocka_unit_test(test_ce),
		cmocka_unit_test(test_nobody_there),
		cmocka_unit_test(test_i2_departures_do_not_fall),
		cmocka_unit_test(test_i2_over_changes_of_terms),
	};

	return cmocka_run_group_tests_name("hold", tests, NULL, NULL);
}
