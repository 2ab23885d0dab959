/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* fair.h with traffic: users without entries, told apart by a sketch and held to the limit of their slice. */
#include "vectors.h"

#include "fair_plane.h"

#define LINK_BPS (80 * MBIT) /* 42 packets in tau */
#define FROM (500 * MSEC)
#define UNTIL (4500 * MSEC)

static void start(void)
{
	fair_start(LINK_BPS);
	fair_slice(0);
}

/* AHAB, equation 2, through the whole pipeline: four users at twice their shares get a quarter each, be it by IPv4 or IPv6. */
static void test_four_users_get_a_quarter_each(void **state)
{
	uint32_t i;

	(void)state;
	start();
	for (i = 0; i < 4; i++)
		fair_send(packet_of(0, i / 2, i % 2, PROTO_UDP, 0), LINK_BPS / 2);
	fair_measure(FROM, UNTIL);
	for (i = 0; i < 4; i++)
		assert_near(fair_part_of(&fair.sources[i]), 0.25, 0.03);
	assert_near(fair_part_of_all(), 1, 0.02);
	assert_int_equal(fair.nodes[0].part.state, PST_SHARE_UNSATISFIED);
	/* The limit is that of the last epoch. */
	assert_in_range((START_NS + UNTIL) / 1048576 - (fair.slices[0].threshold.limit >> 32), 0, 1);
}

static void test_who_is_below_its_share_loses_nothing(void **state)
{
	uint32_t i;

	(void)state;
	start();
	fair_send(packet_of(0, 9, false, PROTO_UDP, 0), LINK_BPS / 10);
	for (i = 0; i < 4; i++)
		fair_send(packet_of(0, i, false, PROTO_UDP, 0), LINK_BPS / 2);
	fair_measure(FROM, UNTIL);
	assert_true(fair.sources[0].passed_bytes == fair.sources[0].sent_bytes);
	for (i = 1; i < 5; i++)
		assert_near(fair_part_of(&fair.sources[i]), 0.9 / 4, 0.03);
}

/* Profile.weight of a user's row. */
static void test_weights(void **state)
{
	static const uint16_t weights[] = { 1, 2, 4 };
	uint32_t i;

	(void)state;
	start();
	for (i = 0; i < 3; i++) {
		struct pst_packet packet = packet_of(0, 100 + i, false, PROTO_UDP, 0);

		fair_row(0, &packet, weights[i]);
		fair_send(packet, LINK_BPS);
	}
	fair_measure(FROM, UNTIL);
	for (i = 0; i < 3; i++)
		assert_near(fair_part_of(&fair.sources[i]), weights[i] / 7.0, 0.04);
	assert_near(fair_part_of_all(), 1, 0.02);
}

/* Section III-B: C is the class's share, which the tree gives: a third of the link here, and all of it when the other class stops. */
static void test_a_slices_capacity_is_its_classes_share(void **state)
{
	struct fair_source *other;
	uint32_t i;

	(void)state;
	start();
	fair.places[1].terms.weight = 2;
	for (i = 0; i < 3; i++)
		fair_send(packet_of(0, i, false, PROTO_UDP, 0), LINK_BPS);
	other = fair_send(packet_of(1, 9, false, PROTO_UDP, 0), 2 * LINK_BPS);
	fair_measure(FROM, UNTIL);
	for (i = 0; i < 3; i++)
		assert_near(fair_part_of(&fair.sources[i]), 1 / 9.0, 0.05);
	assert_near(fair_part_of(other), 2 / 3.0, 0.01);
	other->rate_Bps = 0;
	fair_measure(UNTIL + FROM, UNTIL + UNTIL);
	for (i = 0; i < 3; i++)
		assert_near(fair_part_of(&fair.sources[i]), 1 / 3.0, 0.03);
}

/* With yellow: mark, ECT packets are marked in the place of drops, up to twice the limit; above it, and of others, they are dropped. */
static void test_marks_take_the_place_of_drops(void **state)
{
	struct fair_source *heeds, *ignores, *plain;
	uint32_t i;

	(void)state;
	start();
	fair.profiles[0].yellow_action = PST_ACTION_MARK;
	heeds = fair_send(packet_of(0, 1, false, PROTO_UDP, ECT), LINK_BPS * 4 / 10);
	ignores = fair_send(packet_of(0, 2, true, PROTO_UDP, ECT), LINK_BPS);
	plain = fair_send(packet_of(0, 3, false, PROTO_UDP, 0), LINK_BPS * 4 / 10);
	fair_measure(FROM, UNTIL);
	/* f(T) = C counts what would be dropped: T is C / 3 for all. */
	assert_near((double)pst_threshold_limit_parts(fair.slices[0].threshold.limit) / (1 << PST_LPF_NOMINAL_BITS), 1 / 3.0, 0.1);
	assert_near((double)heeds->passed_bytes, (double)heeds->sent_bytes, 0.001);
	assert_near((double)heeds->marked_bytes, (double)heeds->sent_bytes * (1 - 1 / 1.2), 0.2);
	assert_near(fair_part_of(ignores), 1 / 3.0, 0.05);
	assert_true(ignores->marked_bytes < ignores->sent_bytes / 100);
	assert_near(fair_part_of(plain), 1 / 3.0, 0.05);
	assert_int_equal(plain->marked_bytes, 0);
	fair.profiles[0].yellow_action = PST_ACTION_PASS; /* not asked for */
	fair_measure(UNTIL + FROM, UNTIL + UNTIL);
	for (i = 0; i < 3; i++)
		assert_int_equal(fair.sources[i].marked_bytes, 0);
}

/* A packet that is not IP has no ECN field, whatever lies there. */
static void test_what_is_no_ip_is_not_marked(void **state)
{
	struct fair_source *source;

	(void)state;
	start();
	fair.profiles[0].yellow_action = PST_ACTION_MARK;
	source = fair_send(packet_of(0, 1, false, PROTO_UDP, ECT), LINK_BPS * 3 / 2);
	source->packet.network_family = 0;
	fair_measure(FROM, UNTIL);
	assert_int_equal(source->marked_bytes, 0);
	assert_near(fair_part_of(source), 1, 0.03);
}

/* Green, yellow where it is marked, red where it is dropped. */
static void test_colours(void **state)
{
	static const uint8_t reasons[] = { PST_REASON_NONE, PST_REASON_CE_MARK, PST_REASON_OVER_SHARE };
	struct pst_packet packet = packet_of(0, 1, false, PROTO_UDP, ECT);
	uint32_t seen[3] = { 0, 0, 0 }, i;
	uint64_t now_ns = 0;

	(void)state;
	start();
	fair.profiles[0].yellow_action = PST_ACTION_MARK;
	for (i = 0; i < 20000; i++) { /* at 1.5 times its limit, then at 5 times */
		struct pst_decision decision = fair_decide(&packet, START_NS + now_ns);

		now_ns += i < 10000 ? 66667 : 20000;
		assert_in_range(decision.color, PST_COLOR_GREEN, PST_COLOR_RED);
		assert_int_equal(decision.reason, reasons[decision.color]);
		seen[decision.color]++;
	}
	for (i = 0; i < 3; i++)
		assert_true(seen[i] > 1000);
}

struct gaps {
	uint32_t drops, least, passed; /* packets that passed since the last drop, and the least of all times */
};

/* A user that sends steadily at 1.5 times its limit: which packets are dropped. */
static struct gaps watch(uint8_t proto, uint32_t flags)
{
	struct gaps gaps = { 0, UINT32_MAX, 0 };
	struct pst_packet packet = packet_of(0, 1, false, proto, 0);
	uint32_t i;

	start();
	fair.slices[0].flags = flags;
	for (i = 0; i < 20000; i++) {
		struct pst_decision decision = fair_decide(&packet, START_NS + i * UINT64_C(66667));

		if (decision.verdict != PST_VERDICT_DROP) {
			gaps.passed++;
			continue;
		}
		assert_int_equal(decision.reason, PST_REASON_OVER_SHARE);
		assert_int_equal(decision.color, PST_COLOR_RED);
		if (gaps.drops++ && gaps.passed < gaps.least)
			gaps.least = gaps.passed;
		gaps.passed = 0;
	}
	return gaps;
}

/* Section V-A: between two drops T * const pass, of TCP in a slice that says so: 2 tau of C here, 84 packets. By chance it is every third. */
static void test_periodic_drops_of_tcp(void **state)
{
	struct gaps chance = watch(PROTO_TCP, 0), udp = watch(PROTO_UDP, PST_SLICE_PERIODIC), tcp = watch(PROTO_TCP, PST_SLICE_PERIODIC);

	(void)state;
	assert_in_range(chance.drops, 6000, 7000);
	assert_int_equal(chance.least, 0);
	assert_in_range(udp.drops, 6000, 7000);
	assert_in_range(tcp.least, 40, 130);
	assert_in_range(tcp.drops, 100, 500);
}

/* Two flows of one user count down apart. */
static void test_flows_have_countdowns_of_their_own(void **state)
{
	struct pst_packet packet = packet_of(0, 1, false, PROTO_TCP, 0);
	uint32_t i, used = 0;

	(void)state;
	start();
	fair.slices[0].flags = PST_SLICE_PERIODIC;
	for (i = 0; i < 5000; i++) {
		packet.key.words[1] = (packet.key.words[1] & ~(UINT64_C(0xffff) << 16)) | (uint64_t)(1 + i % 5) << 16;
		fair_decide(&packet, START_NS + i * UINT64_C(66667));
	}
	for (i = 0; i < COUNTDOWNS; i++)
		used += fair.countdowns[i] != 0;
	assert_int_equal(used, 5);
	start();
	fair.slices[0].flags = PST_SLICE_PERIODIC;
	fair.plane.countdown_count = 0; /* no place for them: by chance */
	for (i = 0; i < 5000; i++)
		fair_decide(&packet, START_NS + i * UINT64_C(66667));
	for (i = 0; i < COUNTDOWNS; i++)
		assert_int_equal(fair.countdowns[i], 0);
}

/* A slice in shadow finds its limit as ever, says what it would drop, and lets all of it pass. */
static void test_shadow(void **state)
{
	struct pst_packet packet = packet_of(0, 1, false, PROTO_UDP, 0);
	uint32_t i, would_drop = 0;

	(void)state;
	start();
	fair.profiles[0].flags = PST_PROFILE_SHADOW;
	for (i = 0; i < 10000; i++) {
		struct pst_decision decision = fair_decide(&packet, START_NS + i * UINT64_C(50000));

		assert_int_equal(decision.shadow, decision.verdict == PST_VERDICT_DROP);
		would_drop += i >= 1000 && decision.shadow;
	}
	assert_near(would_drop, 4500, 0.05);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_four_users_get_a_quarter_each),
		cmocka_unit_test(test_who_is_below_its_share_loses_nothing),
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_a_slices_capacity_is_its_classes_share),
		cmocka_unit_test(test_marks_take_the_place_of_drops),
		cmocka_unit_test(test_what_is_no_ip_is_not_marked),
		cmocka_unit_test(test_colours),
		cmocka_unit_test(test_periodic_drops_of_tcp),
		cmocka_unit_test(test_flows_have_countdowns_of_their_own),
		cmocka_unit_test(test_shadow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
