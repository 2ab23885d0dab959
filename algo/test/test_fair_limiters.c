/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* fair.h with traffic: users without entries, told apart by a sketch, each held to its share by a limiter of the sketch. */
#include "vectors.h"

#include "cells.h"
#include "fair_plane.h"

#define LINK_BPS (80 * MBIT) /* 42 packets in tau */
#define FROM (1000 * MSEC)
#define UNTIL (5000 * MSEC)
#define TRAIN_BYTES 65536

static void start(uint32_t flags)
{
	fair_start(LINK_BPS);
	fair_slice(0);
	fair.slices[0].flags = flags;
}

/* Of rates of 0.3 to 3 times the link's, by IPv4 or IPv6. */
static void test_greedy_users_get_equal_parts(void **state)
{
	static const double rates[] = { 0.3, 0.6, 1, 3 };
	uint32_t i;

	(void)state;
	start(PST_SLICE_LIMITERS);
	for (i = 0; i < 4; i++)
		fair_send(packet_of(0, i / 2, i % 2, PROTO_UDP, 0), (uint64_t)(rates[i] * LINK_BPS));
	fair_measure(FROM, UNTIL);
	for (i = 0; i < 4; i++)
		assert_near(fair_part_of(&fair.sources[i]), 0.25, 0.03);
	assert_near(fair_part_of_all(), 1, 0.02);
}

/* Profile.weight of a user's row. */
static void test_weights(void **state)
{
	static const uint16_t weights[] = { 1, 2, 4 };
	uint32_t i;

	(void)state;
	start(PST_SLICE_LIMITERS);
	for (i = 0; i < 3; i++) {
		struct pst_packet packet = packet_of(0, 100 + i, false, PROTO_UDP, 0);

		fair_row(0, &packet, weights[i]);
		fair_send(packet, LINK_BPS);
	}
	fair_measure(FROM, UNTIL);
	for (i = 0; i < 3; i++)
		assert_near(fair_part_of(&fair.sources[i]), weights[i] / 7.0, 0.03);
	assert_near(fair_part_of_all(), 1, 0.02);
}

/* Does somebody meet a user in each row? */
static bool is_crowded(const struct pst_packet *packet)
{
	uint32_t row, i;

	for (row = 0; row < fair.plane.sketch.rows; row++) {
		uint32_t own = pst_sketch_index(&fair.plane.sketch, row, pst_fair_user(&fair.plane, packet, 0));

		for (i = 1; i < fair.source_count; i++) {
			if (pst_sketch_index(&fair.plane.sketch, row, pst_fair_user(&fair.plane, &fair.sources[i].packet, 0)) == own)
				break;
		}
		if (i == fair.source_count)
			return false;
	}
	return true;
}

/*
 * In eight columns: who is met in each row reads as all who meet it there, and is held to its share with them; all others lose nothing. One in ten
 * is met, of four users who are busy: (1 - (7/8)^4)^3 = 7 %.
 */
static void test_who_is_below_its_share_loses_nothing(void **state)
{
	uint32_t trial, i, crowded = 0;

	(void)state;
	for (trial = 0; trial < 60; trial++) {
		start(PST_SLICE_LIMITERS);
		fair.plane.sketch.column_bits = 3;
		for (i = 0; i < 3; i++)
			fair.plane.sketch.seeds[i] = pst_hash_mix(draw(&fair.rng) + trial);
		fair_send(packet_of(0, 9, false, PROTO_UDP, 0), LINK_BPS / 10);
		for (i = 0; i < 4; i++)
			fair_send(packet_of(0, i, false, PROTO_UDP, 0), LINK_BPS / 2);
		fair_measure(FROM, FROM + 300 * MSEC);
		assert_true(fair.sources[0].sent_bytes > 200 * MTU);
		if (is_crowded(&fair.sources[0].packet))
			crowded++;
		else
			assert_int_equal(fair.sources[0].passed_bytes, fair.sources[0].sent_bytes);
	}
	assert_in_range(crowded, 1, 20);
}

/* A user that sends clumps of three at 0.7 of its share, which a queue of two packets does not take: but R <= T, so all of them pass. */
static void test_clumps_below_the_share_pass(void **state)
{
	struct pst_packet packet = packet_of(0, 9, false, PROTO_UDP, 0);
	uint64_t gap_ns = (uint64_t)(3 * MTU * 1e9 / (0.7 * LINK_BPS / 4)), now_ns;
	uint32_t i;

	(void)state;
	start(PST_SLICE_LIMITERS);
	fair.profiles[0].burst_ticks = 0; /* two packets are the least (S2) */
	for (i = 0; i < 3; i++)
		fair_send(packet_of(0, i, false, PROTO_UDP, 0), LINK_BPS / 2);
	fair_run(FROM);
	for (now_ns = FROM; now_ns < 2 * FROM; now_ns += gap_ns) {
		fair_run(now_ns);
		for (i = 0; i < 3; i++)
			assert_int_equal(fair_decide(&packet, START_NS + now_ns).verdict, PST_VERDICT_PASS);
	}
}

/* A user's words, after it has sent for a while at this rate beside three that are greedy: has a limiter been charged? */
static bool is_charged(double part_of_share)
{
	struct pst_packet packet = packet_of(0, 9, false, PROTO_UDP, 0);
	uint32_t i;

	start(PST_SLICE_LIMITERS);
	fair_send(packet, (uint64_t)(part_of_share * LINK_BPS / 4));
	for (i = 0; i < 3; i++)
		fair_send(packet_of(0, i, false, PROTO_UDP, 0), LINK_BPS);
	fair_run(FROM);
	memset(&fair.filters[3 << COLUMN_BITS], 0, sizeof(fair.filters) / 2);
	fair_run(FROM + 100 * MSEC);
	return fair.filters[pst_limiter_sketch_find(&fair.plane, cells_of(&fair.plane, pst_fair_user(&fair.plane, &packet, 0)), START_NS + FROM)] != 0;
}

/* T is then (1 - 0.35 / 4) / 3 of C: 0.35 of a quarter is 0.29 of it. R reads high by half a gap: 15 % there. */
static void test_no_limiter_below_half_of_a_share(void **state)
{
	(void)state;
	assert_false(is_charged(0.35));
	assert_true(is_charged(0.8));
}

struct trains {
	double due_ns[SOURCES_MAX];
	uint32_t left[SOURCES_MAX];
	double least, largest; /* of users' parts of their shares */
	double all;            /* of capacity */
	double most;           /* of capacity, in any 100 ms */
};

/* When a user's next packet comes: ten times its share in a train; twice on average. */
static void train_go_on(struct trains *trains, uint32_t user, double share_Bps)
{
	double gap_ns = MTU * 1e9 / (10 * share_Bps), pause_ns = TRAIN_BYTES * 1e9 / share_Bps * (1 / 2.0 - 1 / 10.0);

	trains->due_ns[user] += gap_ns;
	if (--trains->left[user] == 0) {
		trains->left[user] = TRAIN_BYTES / MTU;
		trains->due_ns[user] += pause_ns * (0.8 + below(&fair.rng, 1000) / 2500.0);
	}
}

/* Users of trains of 64 KB, for two seconds and then measured for four. */
static struct trains run_trains(uint32_t users)
{
	struct trains trains = { .least = 9 };
	double share_Bps = (double)LINK_BPS / users, spans[40] = { 0 };
	uint32_t i, first;

	fair.measured_ns = UNTIL - FROM;
	for (i = 0; i < users; i++) {
		fair_send(packet_of(0, i, false, PROTO_UDP, 0), LINK_BPS);
		trains.due_ns[i] = below(&fair.rng, (uint32_t)(TRAIN_BYTES * 5e8 / share_Bps));
		trains.left[i] = TRAIN_BYTES / MTU;
	}
	for (;;) {
		for (i = first = 0; i < users; i++)
			first = trains.due_ns[i] < trains.due_ns[first] ? i : first;
		if (trains.due_ns[first] >= (double)UNTIL)
			break;
		if (fair_decide(&fair.sources[first].packet, START_NS + (uint64_t)trains.due_ns[first]).verdict != PST_VERDICT_DROP &&
		    trains.due_ns[first] >= (double)FROM) {
			fair.sources[first].passed_bytes += MTU;
			spans[((uint64_t)trains.due_ns[first] - FROM) / (100 * MSEC) % 40] += MTU * 10 / (double)LINK_BPS;
		}
		train_go_on(&trains, first, share_Bps);
	}
	for (i = 0; i < users; i++) {
		trains.least = fmin(trains.least, fair_part_of(&fair.sources[i]) * users);
		trains.largest = fmax(trains.largest, fair_part_of(&fair.sources[i]) * users);
	}
	for (i = 0; i < 40; i++)
		trains.most = fmax(trains.most, spans[i]);
	trains.all = fair_part_of_all();
	return trains;
}

static struct trains trains_of(uint32_t flags, uint32_t tau_shift, uint64_t window_ms, uint64_t seed)
{
	start(flags);
	fair.rng = pst_rng_seed(seed);
	fair.profiles[0].burst_ticks = fair.profiles[0].excess_ticks = pst_clock_ticks(window_ms / 2 * MSEC);
	fair.slices[0].tau_shift = tau_shift;
	pst_lpf_scale_compile(&fair.slices[0].scale, LINK_BPS, 1, tau_shift);
	return run_trains(4);
}

static void assert_trains(const struct trains *trains, double least, double largest, double most)
{
	if (trains->least < least || trains->largest > largest || trains->most > most)
		fail_msg("%.3f to %.3f of shares, most %.3f of capacity", trains->least, trains->largest, trains->most);
}

/*
 * Four trains in 50 ms and pauses of 8 to 13 ms, of senders that heed nothing. Where tau and the limiters' windows reach over a pause, all get their
 * shares. With the usual 4 ms and 8 ms they lose a tenth, and that is what the capacity is not used for.
 */
static void test_senders_in_bursts_get_their_shares(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 3; seed++) {
		struct trains longer = trains_of(PST_SLICE_LIMITERS, 24, 24, seed), usual = trains_of(PST_SLICE_LIMITERS, 22, 8, seed);

		assert_trains(&longer, 0.97, 1.02, 1.10);
		assert_near(longer.all, 0.99, 0.01);
		assert_trains(&usual, 0.87, 0.98, 1.03);
		assert_near(usual.all, 0.93, 0.02);
	}
}

/*
 * What does not hold. By chance the same senders do not get less; more than the capacity passes of them. And limiters forget what was saved longer ago
 * than their windows: with a longer tau, which remembers who is busy, they lose a sixth, and no gain above 1 makes up for it.
 */
static void test_senders_in_bursts_by_chance_and_in_short_windows(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 3; seed++) {
		struct trains chance = trains_of(0, 22, 8, seed), brief = trains_of(PST_SLICE_LIMITERS, 24, 8, seed);

		assert_trains(&chance, 0.97, 1.07, 1.17);
		assert_near(chance.all, 1.018, 0.01);
		assert_trains(&brief, 0.81, 0.86, 0.93);
		assert_int_equal(fair.slices[0].threshold.gain_q16, PST_THRESHOLD_GAIN_ONE_Q16);
	}
}

/*
 * With yellow: mark, what comes into the second part of a limiter's queue is marked, where it can be; what cannot is dropped there at times. A greedy
 * user's queue is always that long.
 */
static void test_marks(void **state)
{
	struct fair_source *ect, *plain, *below_share;
	uint32_t round;

	(void)state;
	start(PST_SLICE_LIMITERS);
	fair.profiles[0].burst_ticks = pst_clock_ticks(4 * MSEC);
	fair.profiles[0].excess_ticks = pst_clock_ticks(16 * MSEC);
	ect = fair_send(packet_of(0, 1, false, PROTO_UDP, ECT), LINK_BPS);
	plain = fair_send(packet_of(0, 2, true, PROTO_UDP, 0), LINK_BPS);
	below_share = fair_send(packet_of(0, 3, true, PROTO_UDP, ECT), LINK_BPS / 4);
	for (round = 0; round < 2; round++) {
		fair.profiles[0].yellow_action = round ? PST_ACTION_PASS : PST_ACTION_MARK;
		fair_measure(round * UNTIL + FROM, round * UNTIL + UNTIL);
		assert_near(fair_part_of(ect), 0.375, 0.03);
		assert_near(fair_part_of(plain), 0.375, 0.03);
		assert_near((double)ect->marked_bytes, round ? 0 : (double)ect->passed_bytes, 0.02);
		assert_int_equal(plain->marked_bytes, 0);
		assert_int_equal(below_share->marked_bytes, 0);
		assert_int_equal(below_share->passed_bytes, below_share->sent_bytes);
	}
}

/* What part of the link's rate passes of so many users who send so much of it together, in no order. */
static double part_of_a_crowd(uint32_t users, double demand)
{
	uint64_t passed = 0, gap_ns = (uint64_t)(MTU * 1e9 / (demand * LINK_BPS)), now_ns;

	start(PST_SLICE_LIMITERS);
	for (now_ns = 0; now_ns < 2 * FROM; now_ns += gap_ns) {
		struct pst_packet packet = packet_of(0, below(&fair.rng, users), false, PROTO_UDP, 0);

		passed += fair_decide(&packet, START_NS + now_ns).verdict != PST_VERDICT_DROP && now_ns >= FROM;
	}
	return (double)passed * MTU * 1e9 / (double)FROM / (double)LINK_BPS;
}

/*
 * Of many users with a packet now and then, no limiter is ever full: with limiters alone all that 2000 users send passes, 1.3 of the capacity of 200 users.
 * Where T is less than a packet in tau, as from some 40 users on here, chance holds it.
 */
static void test_crowds_are_held_to_the_capacity(void **state)
{
	static const uint32_t users[] = { 8, 20, 30, 40, 60, 200, 2000, 100000 };
	uint32_t i;

	(void)state;
	for (i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
		assert_near(part_of_a_crowd(users[i], 2), 1, 0.03);
		assert_near(part_of_a_crowd(users[i], 1.3), 1, 0.03);
	}
}

/* A slice in shadow finds its limit as ever, says what it would drop, and lets all of it pass. */
static void test_shadow(void **state)
{
	struct pst_packet packet = packet_of(0, 1, false, PROTO_UDP, 0);
	uint32_t i, would_drop = 0;

	(void)state;
	start(PST_SLICE_LIMITERS);
	fair.profiles[0].flags = PST_PROFILE_SHADOW;
	for (i = 0; i < 20000; i++) {
		struct pst_decision decision = fair_decide(&packet, START_NS + i * UINT64_C(50000));

		assert_int_equal(decision.shadow, decision.verdict == PST_VERDICT_DROP);
		if (decision.shadow)
			assert_int_equal(decision.reason, PST_REASON_OVER_SHARE);
		would_drop += i >= 10000 && decision.shadow;
	}
	assert_near(would_drop, 5000, 0.05);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_greedy_users_get_equal_parts),
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_who_is_below_its_share_loses_nothing),
		cmocka_unit_test(test_clumps_below_the_share_pass),
		cmocka_unit_test(test_no_limiter_below_half_of_a_share),
		cmocka_unit_test(test_senders_in_bursts_get_their_shares),
		cmocka_unit_test(test_senders_in_bursts_by_chance_and_in_short_windows),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_crowds_are_held_to_the_capacity),
		cmocka_unit_test(test_shadow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
