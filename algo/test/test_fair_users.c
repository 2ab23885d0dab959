/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* fair.h with traffic: classes and their users, with entries and without, in virtual time through the whole pipeline. */
#include "vectors.h"

#include "fair_plane.h"

#define LINK_BPS (80 * MBIT) /* a packet takes 100 us */
#define DAY_NSEC (86400000 * MSEC)

static double rate_of(const struct fair_source *source, uint64_t time_ns)
{
	return (double)source->passed_bytes * 1e9 / (double)time_ns;
}

/* ---- classes ---- */

static void test_classes_share_by_weight(void **state)
{
	struct fair_source *light, *heavy;

	(void)state;
	fair_start(LINK_BPS);
	fair.places[1].terms.weight = 3;
	light = fair_send(packet_of(0, 1, false, PROTO_UDP, 0), LINK_BPS);
	heavy = fair_send(packet_of(1, 2, false, PROTO_UDP, 0), LINK_BPS);
	fair_measure(500 * MSEC, 2500 * MSEC);
	assert_near(rate_of(light, 2000 * MSEC), 0.25 * LINK_BPS, 0.01);
	assert_near(rate_of(heavy, 2000 * MSEC), 0.75 * LINK_BPS, 0.01);
	fair_assert_sums();
}

/* A class that sends ten times its own limit asks its link for the limit: the other has all the rest. */
static void test_what_a_limit_drops_asks_for_nothing(void **state)
{
	struct fair_source *limited, *other;

	(void)state;
	fair_start(LINK_BPS);
	fair_limit(0, LINK_BPS / 10);
	limited = fair_send(packet_of(0, 1, false, PROTO_UDP, 0), LINK_BPS);
	other = fair_send(packet_of(1, 2, false, PROTO_UDP, 0), 2 * LINK_BPS);
	fair_measure(500 * MSEC, 2500 * MSEC);
	assert_near(rate_of(limited, 2000 * MSEC), 0.1 * LINK_BPS, 0.02);
	assert_near(rate_of(other, 2000 * MSEC), 0.9 * LINK_BPS, 0.02);
}

/* A share in shadow counts in the tree, and lets all of it pass. */
static void test_a_class_in_shadow_passes(void **state)
{
	struct fair_source *shadow, *other;

	(void)state;
	fair_start(LINK_BPS);
	fair.profiles[0].flags = PST_PROFILE_SHADOW;
	shadow = fair_send(packet_of(0, 1, false, PROTO_UDP, 0), 2 * LINK_BPS);
	other = fair_send(packet_of(1, 2, false, PROTO_UDP, 0), 2 * LINK_BPS);
	fair_measure(500 * MSEC, 1500 * MSEC);
	assert_int_equal(shadow->passed_bytes, shadow->sent_bytes);
	assert_near(rate_of(other, 1000 * MSEC), 0.5 * LINK_BPS, 0.01);
	assert_near((double)fair.nodes[0].share_Bps, 0.5 * LINK_BPS, 0.01);
}

/* ---- users with entries ---- */

static uint32_t entry_of(const struct pst_packet *packet, uint32_t class_index)
{
	struct pst_tree_walk walk = { .place = class_index, .user = pst_fair_user(&fair.plane, packet, class_index) };

	assert_int_not_equal(walk.user, 0);
	return pst_tree_find(&fair.plane, &walk);
}

/* An address is of one family only, whatever its bits are; and of one class. */
static void test_users_are_told_apart(void **state)
{
	struct pst_packet packets[4] = { packet_of(0, 5, false, PROTO_UDP, 0), packet_of(0, 5, true, PROTO_UDP, 0),
					 packet_of(0, 6, false, PROTO_UDP, 0), packet_of(0, 6, true, PROTO_UDP, 0) };
	uint32_t entries[4], i, k;

	(void)state;
	fair_start(LINK_BPS);
	fair_entries(0);
	for (i = 0; i < 4; i++) {
		assert_int_equal(entry_of(&packets[i], 0), PST_NONE);
		fair_decide(&packets[i], START_NS);
		entries[i] = entry_of(&packets[i], 0);
		assert_in_range(entries[i], fair.places[0].first_user, fair.places[0].first_user + ENTRIES - 1);
		for (k = 0; k < i; k++)
			assert_int_not_equal(entries[i], entries[k]);
	}
	packets[0].key.words[1] |= UINT64_C(7777) << 16; /* another port, another protocol, another destination */
	packets[0].key.words[0] |= 99;
	fair_decide(&packets[0], START_NS + MSEC);
	assert_int_equal(entry_of(&packets[0], 0), entries[0]);
	for (i = 0; i < 4; i++)
		assert_int_equal(fair.nodes[entries[i]].passed_bytes, i ? MTU : 2 * MTU);
	fair_entries(1);
	for (i = 0; i < 4; i++) {
		uint64_t user = pst_fair_user(&fair.plane, &packets[i], 0), elsewhere = pst_fair_user(&fair.plane, &packets[i], 1);

		assert_int_not_equal(user, elsewhere); /* slices share a sketch */
		assert_int_equal(user & elsewhere & 1, 1); /* never 0, which is nobody */
	}
	assert_int_equal(pst_fair_user(&fair.plane, &packets[0], 2), 0);
}

/* Four users of each family, one of which asks for little: max-min. */
static void test_users_get_their_shares(void **state)
{
	uint32_t i;

	(void)state;
	fair_start(LINK_BPS);
	fair_entries(0);
	for (i = 0; i < 8; i++)
		fair_send(packet_of(0, i / 2, i % 2, PROTO_UDP, 0), i ? LINK_BPS / 4 : LINK_BPS / 20);
	fair_measure(500 * MSEC, 2500 * MSEC);
	assert_true(fair.sources[0].passed_bytes == fair.sources[0].sent_bytes);
	for (i = 1; i < 8; i++)
		assert_near(rate_of(&fair.sources[i], 2000 * MSEC), 0.95 / 7 * LINK_BPS, 0.03);
	fair_assert_sums();
}

/* Profile.weight of a user's row; who has no row weighs 1. */
static void test_rows_give_users_weights(void **state)
{
	static const uint16_t weights[] = { 1, 2, 4, 0 };
	uint32_t i;

	(void)state;
	fair_start(LINK_BPS);
	fair_entries(0);
	for (i = 0; i < 4; i++) {
		struct pst_packet packet = packet_of(0, 100 + i, false, PROTO_UDP, 0);

		if (i)
			fair_row(0, &packet, weights[i]);
		fair_send(packet, LINK_BPS);
	}
	fair_measure(500 * MSEC, 2500 * MSEC);
	for (i = 0; i < 4; i++)
		assert_near(rate_of(&fair.sources[i], 2000 * MSEC), (weights[i] ? weights[i] : 1) / 8.0 * LINK_BPS, 0.03);
}

/* Who has no entry, and finds none, shares the last one, and is told so. */
static void test_a_full_set_leads_to_the_crowd(void **state)
{
	const struct pst_tree_node *crowd;
	uint32_t user, strangers = 0, reasons = 0;

	(void)state;
	fair_start(LINK_BPS);
	fair_entries(0);
	crowd = &fair.nodes[pst_tree_crowd(&fair.places[0])];
	for (user = 0; user < 20 * ENTRIES; user++) { /* at one moment: nobody is gone */
		struct pst_packet packet = packet_of(0, user, false, PROTO_UDP, 0);

		fair_decide(&packet, START_NS);
	}
	for (user = 0; user < 20 * ENTRIES; user++) {
		struct pst_packet packet = packet_of(0, user, false, PROTO_UDP, 0);
		bool is_stranger = entry_of(&packet, 0) == PST_NONE;
		struct pst_decision decision = fair_decide(&packet, START_NS);

		strangers += is_stranger;
		if (is_stranger && decision.verdict == PST_VERDICT_DROP) {
			assert_int_equal(decision.reason, PST_REASON_NO_ENTRY);
			reasons++;
		} else if (decision.verdict == PST_VERDICT_DROP) {
			assert_int_equal(decision.reason, PST_REASON_OVER_SHARE);
		}
	}
	assert_int_equal(strangers, 19 * ENTRIES); /* each entry has somebody */
	assert_true(reasons > 18 * ENTRIES);
	assert_int_equal(crowd->user, 0);
	assert_int_not_equal(crowd->part.state, PST_SHARE_IDLE);
	fair_assert_sums();
}

/* An entry changes hands with nothing of before: no weight stays in the sums, no rate, no debt. */
static void test_an_entry_is_taken_over(void **state)
{
	uint32_t user, round;

	(void)state;
	fair_start(LINK_BPS);
	fair_entries(0);
	for (round = 0; round < 50; round++) {
		for (user = 0; user < 200; user++) {
			struct pst_packet packet = packet_of(0, round * 1000 + user, false, PROTO_UDP, 0);

			fair_decide(&packet, START_NS + round * 3 * MSEC);
			fair_assert_sums();
		}
	}
	/* 80 ms later, more than four times what a newcomer's gap is taken for, one user is alone: nobody who is gone weighs anything when its packets have
	   gone round. */
	for (user = 0; user < 2 * ENTRIES; user++) {
		struct pst_packet packet = packet_of(0, 7, false, PROTO_UDP, 0);

		fair_decide(&packet, START_NS + round * 3 * MSEC + 80 * MSEC + user * MSEC);
	}
	fair_assert_sums();
	assert_int_equal(fair.nodes[0].children.weight + fair.nodes[0].children.weight_taken, 1);
}

/* A newcomer's credit is that of a few packets at any time of the clock, also where a state of zeros is ahead of now. */
static void test_a_newcomer_has_little_credit(void **state)
{
	static const uint64_t starts_ns[] = { MSEC, UINT64_C(1) << 50, UINT64_C(3) << 52, (UINT64_C(1) << 54) - MSEC, (UINT64_C(1) << 54) + 5 };
	uint32_t i, users;

	(void)state;
	for (i = 0; i < sizeof(starts_ns) / sizeof(starts_ns[0]); i++) {
		for (users = 0; users < 2; users++) {
			struct pst_packet packet = packet_of(0, 5, false, PROTO_UDP, 0);
			uint32_t passed = 0;

			fair_start(LINK_BPS);
			if (users)
				fair_entries(0);
			fair.profiles[0].burst_ticks = pst_clock_ticks(100 * MSEC);
			while (fair_decide(&packet, starts_ns[i]).verdict == PST_VERDICT_PASS)
				passed++;
			/* Of its 100 ms, which are 1000 packets, all but 1 ms are used up as soon as it asks for more than half its share. */
			assert_in_range(passed, 10, 20);
			/* It comes again after 150 days, when its state has long become one that is ahead. */
			assert_true(pst_tree_tend(&fair.plane, users ? 0 : LINK, starts_ns[i] + 10000 * MSEC));
			passed = 0;
			while (fair_decide(&packet, starts_ns[i] + 150 * DAY_NSEC).verdict == PST_VERDICT_PASS)
				passed++;
			assert_in_range(passed, 10, 20);
		}
	}
}

/* ---- a flood of users ---- */

/*
 * 100,000 users, a packet of 64 bytes each, in a second, which is 64 % of the link: nothing grows, and who was there before keeps its max-min share of
 * those who are active. Those are the strangers who find entries, each for 2 K at least, 2.1 ms, and for all others one: 16.3 % of the link for
 * each of the four. Measured: 17.0 %.
 */
static void test_a_flood_of_users(void **state)
{
	static const uint32_t before = 4;
	static const double strangers_Bps = (ENTRIES - 4) * 64e9 / (2 << PST_EWMA_SHIFT_MIN);
	uint32_t i, flood;
	uint64_t time_ns;

	(void)state;
	fair_start(LINK_BPS);
	fair_entries(0);
	for (i = 0; i < before; i++)
		fair_send(packet_of(0, i, i % 2, PROTO_UDP, 0), LINK_BPS);
	fair_run(300 * MSEC);
	for (i = 0; i < before; i++)
		fair.sources[i].passed_bytes = 0;
	for (flood = 0; flood < 100000; flood++) {
		struct pst_packet packet = packet_of(0, 1000 + flood, false, PROTO_UDP, 0);

		time_ns = 300 * MSEC + flood * UINT64_C(10000);
		fair_run(time_ns);
		packet.length = 64;
		fair_decide(&packet, START_NS + time_ns);
		if (flood % 1000 == 0)
			fair_assert_sums();
	}
	for (i = 0; i < before; i++) {
		double got = rate_of(&fair.sources[i], 1000 * MSEC);

		assert_true(got > 0.97 * (LINK_BPS - strangers_Bps) / (before + 1) && got < LINK_BPS / 4.0);
	}
	fair_measure(1400 * MSEC, 2400 * MSEC);
	for (i = 0; i < before; i++)
		assert_near(rate_of(&fair.sources[i], 1000 * MSEC), LINK_BPS / 4.0, 0.01);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classes_share_by_weight),
		cmocka_unit_test(test_what_a_limit_drops_asks_for_nothing),
		cmocka_unit_test(test_a_class_in_shadow_passes),
		cmocka_unit_test(test_users_are_told_apart),
		cmocka_unit_test(test_users_get_their_shares),
		cmocka_unit_test(test_rows_give_users_weights),
		cmocka_unit_test(test_a_full_set_leads_to_the_crowd),
		cmocka_unit_test(test_an_entry_is_taken_over),
		cmocka_unit_test(test_a_newcomer_has_little_credit),
		cmocka_unit_test(test_a_flood_of_users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
