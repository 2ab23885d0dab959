/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* pipeline.h on one limit: every action at every colour, and what happens without a limit. */
#include "single.h"

#include <penstock/action.h>
#include <penstock/rng.h>

/* ---- every action at every colour ---- */

#define ACTION_BYTES 1000U
#define ACTION_SPARED UINT32_MAX /* a random number that RED lets pass */

static const struct pst_packet not_ip = { .length = ACTION_BYTES };
static const struct pst_packet not_ect = { .length = ACTION_BYTES, .network_family = 4, .network_tos = 0xb8 };
static const struct pst_packet ect_1 = { .length = ACTION_BYTES, .network_family = 4, .network_tos = 0xb9 };
static const struct pst_packet ect_0 = { .length = ACTION_BYTES, .network_family = 6, .network_tos = 0xba };
static const struct pst_packet had_ce = { .length = ACTION_BYTES, .network_family = 6, .network_tos = 0xbb };

struct action_case {
	uint8_t color;
	uint8_t action; /* of that colour; the other colours drop */
	const struct pst_packet *packet;
	uint32_t random;
	uint8_t verdict;
	uint8_t reason;
};

#define CASE(color, action, packet, random, verdict, reason) \
	{ PST_COLOR_##color, PST_ACTION_##action, &(packet), random, PST_VERDICT_##verdict, PST_REASON_##reason }

static const struct action_case action_cases[] = {
	CASE(GREEN, DROP, not_ect, 0, PASS, NONE), /* green has no action */
	CASE(GREEN, DROP, had_ce, 0, PASS, NONE),
	CASE(YELLOW, PASS, not_ect, 0, PASS, NONE),
	CASE(YELLOW, PASS, ect_0, 0, PASS, NONE),
	CASE(YELLOW, DROP, not_ect, ACTION_SPARED, DROP, YELLOW),
	CASE(YELLOW, DROP, ect_0, ACTION_SPARED, DROP, YELLOW),
	CASE(YELLOW, MARK, ect_1, 0, MARK, CE_MARK),
	CASE(YELLOW, MARK, ect_0, 0, MARK, CE_MARK),
	CASE(YELLOW, MARK, had_ce, 0, MARK, CE_MARK),
	CASE(YELLOW, MARK, not_ect, 0, DROP, EARLY_DROP),
	CASE(YELLOW, MARK, not_ect, ACTION_SPARED, PASS, NONE),
	CASE(YELLOW, MARK, not_ip, 0, DROP, EARLY_DROP),
	CASE(YELLOW, MARK, not_ip, ACTION_SPARED, PASS, NONE),
	CASE(YELLOW, DSCP, not_ect, 0, MARK, DSCP_MARK),
	CASE(YELLOW, DSCP, had_ce, 0, MARK, DSCP_MARK),
	CASE(YELLOW, DSCP, not_ip, 0, PASS, NONE),
	CASE(YELLOW, RED, not_ect, 0, DROP, EARLY_DROP),
	CASE(YELLOW, RED, ect_0, 0, DROP, EARLY_DROP), /* random drop does not mark */
	CASE(YELLOW, RED, ect_0, ACTION_SPARED, PASS, NONE),
	CASE(YELLOW, HOLD, ect_0, 0, PASS, NONE), /* nothing waits in yellow */
	CASE(RED, PASS, not_ect, 0, PASS, NONE),
	CASE(RED, DROP, not_ect, ACTION_SPARED, DROP, OVER_RATE),
	CASE(RED, DROP, had_ce, ACTION_SPARED, DROP, OVER_RATE),
	CASE(RED, MARK, ect_1, 0, MARK, CE_MARK),
	CASE(RED, MARK, had_ce, 0, MARK, CE_MARK),
	CASE(RED, MARK, not_ect, ACTION_SPARED, DROP, OVER_RATE),
	CASE(RED, MARK, not_ip, ACTION_SPARED, DROP, OVER_RATE),
	CASE(RED, DSCP, ect_0, 0, MARK, DSCP_MARK),
	CASE(RED, DSCP, not_ip, 0, PASS, NONE),
	CASE(RED, RED, not_ect, ACTION_SPARED, DROP, OVER_RATE),
};

/* A limit of three green packets, then three yellow ones, then red. RFC 4115 asks for one byte more (trtcm.h). */
static void action_limit(struct single *one, uint8_t meter)
{
	uint32_t rate = pst_rate_encode(125000), spare = meter == PST_METER_RFC4115;
	struct pst_profile profile = {
		.burst_bytes = 3 * ACTION_BYTES + spare, .excess_bytes = 3 * ACTION_BYTES + spare,
		.mtu_bytes = ACTION_BYTES, .second_rate = rate, .meter = meter, .red_max_q32 = UINT32_C(1) << 31,
		.yellow_dscp = 12, .red_dscp = 14,
	};

	if (meter == PST_METER_RFC2698)
		profile.excess_bytes = 6 * ACTION_BYTES;
	single_init(one, &profile, rate);
}

static struct pst_decision action_decide(uint8_t meter, const struct action_case *row)
{
	static const uint32_t packets_before[] = { 2, 4, 6 };
	struct single one;
	uint32_t i;

	action_limit(&one, meter);
	for (i = 0; i < packets_before[row->color]; i++)
		assert_int_equal(single_decide(&one, &not_ip, 0).verdict, PST_VERDICT_PASS);
	one.profile.yellow_action = row->color == PST_COLOR_YELLOW ? row->action : PST_ACTION_DROP;
	one.profile.red_action = row->color == PST_COLOR_RED ? row->action : PST_ACTION_DROP;
	return single_decide(&one, row->packet, row->random);
}

static void test_actions(void **state)
{
	uint8_t meter;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(action_cases) / sizeof(action_cases[0]); i++) {
		const struct action_case *row = &action_cases[i];

		for (meter = PST_METER_WINDOW; meter <= PST_METER_RFC4115; meter++) {
			struct pst_decision decision = action_decide(meter, row);
			uint8_t dscp = row->color == PST_COLOR_RED ? 14 : 12;

			if (decision.color != row->color || decision.verdict != row->verdict ||
			    decision.reason != row->reason)
				fail_msg("case %zu, meter %u: color %u verdict %u reason %u", i, meter, decision.color,
					 decision.verdict, decision.reason);
			assert_int_equal(decision.dscp, row->reason == PST_REASON_DSCP_MARK ? dscp : 0);
			assert_int_equal(decision.departure_ns, single_round_ns(0));
		}
	}
}

/* RED's probability in yellow, with red_max 1/2: one number below it drops, the number itself does not. */
static void test_red_near_misses(void **state)
{
	/* The third of three yellow packets is at the end of yellow; P has lost five packets of six before it. */
	static const struct { uint8_t meter; uint32_t before, p_q32; } cases[] = {
		{ PST_METER_WINDOW, 3, 0x2aaaaaaa },  { PST_METER_WINDOW, 4, 0x55555555 },  { PST_METER_WINDOW, 5, 0x80000000 },
		{ PST_METER_RFC2697, 3, 0x2aaaaaaa }, { PST_METER_RFC2697, 5, 0x80000000 }, { PST_METER_RFC2698, 3, 0x55555555 },
		{ PST_METER_RFC2698, 5, 0x80000000 },
	};
	static const uint8_t red_actions[] = { PST_ACTION_RED, PST_ACTION_MARK };
	size_t i, k;
	uint32_t n;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (k = 0; k < sizeof(red_actions); k++) {
			struct pst_decision drop, pass;
			struct single one, other;

			action_limit(&one, cases[i].meter);
			for (n = 0; n < cases[i].before; n++)
				single_decide(&one, &not_ip, 0);
			one.profile.yellow_action = red_actions[k];
			single_init(&other, &one.profile, one.limit.rate);
			other.limit = one.limit;
			other.meter = one.meter;
			drop = single_decide(&one, &not_ect, cases[i].p_q32 - 1);
			pass = single_decide(&other, &not_ect, cases[i].p_q32);
			assert_int_equal(drop.color, PST_COLOR_YELLOW);
			assert_int_equal(drop.reason, PST_REASON_EARLY_DROP);
			assert_int_equal(pass.verdict, PST_VERDICT_PASS);
		}
	}
}

/* ---- I2, I5 ---- */

/* I2: of the window; in the RFCs metering and dropping are apart, so yellow is charged before it is dropped. */
static void test_drop_is_not_charged(void **state)
{
	static const uint8_t dropping[] = { PST_ACTION_DROP, PST_ACTION_RED, PST_ACTION_MARK };
	uint8_t meter;
	uint32_t i, k;

	(void)state;
	for (meter = PST_METER_WINDOW; meter <= PST_METER_RFC4115; meter++) {
		for (k = 0; k < sizeof(dropping); k++) {
			struct single one;
			struct pst_meter_state meter_before;
			uint64_t before;

			action_limit(&one, meter);
			for (i = 0; i < 4; i++)
				single_decide(&one, &not_ect, 0);
			one.profile.yellow_action = dropping[k];
			before = one.limit.state;
			meter_before = one.meter;
			assert_int_equal(single_decide(&one, &not_ect, 0).verdict, PST_VERDICT_DROP);
			assert_int_equal(one.limit.state, before);
			assert_true((memcmp(&one.meter, &meter_before, sizeof(meter_before)) == 0) ==
				    (meter == PST_METER_WINDOW));
		}
	}
}

/* I5: the same decisions, and the same states, as without shadow; only the flag differs. */
static void test_shadow(void **state)
{
	uint8_t meter;
	uint32_t i;

	(void)state;
	for (meter = PST_METER_WINDOW; meter <= PST_METER_RFC4115; meter++) {
		struct single real, shadow;

		action_limit(&real, meter);
		real.profile.yellow_action = PST_ACTION_RED;
		real.profile.red_action = meter == PST_METER_WINDOW ? PST_ACTION_HOLD : PST_ACTION_DROP;
		action_limit(&shadow, meter);
		shadow.profile = real.profile;
		shadow.profile.flags = PST_PROFILE_SHADOW;
		for (i = 0; i < 20; i++) {
			struct pst_decision expected = single_decide(&real, &ect_0, i * 300000000U);
			struct pst_decision decision = single_decide(&shadow, &ect_0, i * 300000000U);

			assert_int_equal(expected.shadow, 0);
			assert_int_equal(decision.shadow, 1);
			expected.shadow = 1;
			assert_memory_equal(&decision, &expected, sizeof(decision));
			assert_int_equal(real.limit.state, shadow.limit.state);
			assert_memory_equal(&real.meter, &shadow.meter, sizeof(real.meter));
		}
	}
}

/* ---- without a limit ---- */

static void assert_disposed(struct single *one, const struct pst_packet *packet, uint8_t verdict, uint8_t reason)
{
	struct pst_decision decision = single_decide(one, packet, 0);

	assert_int_equal(decision.verdict, verdict);
	assert_int_equal(decision.reason, reason);
	assert_int_equal(decision.color, PST_COLOR_NONE);
	assert_int_equal(decision.length, ACTION_BYTES + one->link.overhead_bytes);
	assert_int_equal(decision.slot, PST_NONE);
	assert_int_equal(decision.departure_ns, single_round_ns(0));
}

/* Malformed: pass or drop, by the link, and it keeps its reason. Unmatched: pass, drop or a class. Unlimited: pass. */
static void test_without_a_limit(void **state)
{
	struct pst_packet malformed = { .length = ACTION_BYTES, .reason = PST_REASON_BAD_UDP_LENGTH };
	struct single one;

	(void)state;
	action_limit(&one, PST_METER_WINDOW);
	one.link.overhead_bytes = 14;
	assert_disposed(&one, &malformed, PST_VERDICT_PASS, PST_REASON_BAD_UDP_LENGTH);
	one.link.malformed_action = PST_ACTION_DROP;
	assert_disposed(&one, &malformed, PST_VERDICT_DROP, PST_REASON_BAD_UDP_LENGTH);
	assert_int_equal(one.limit.state, pst_limiter_idle(single_round_ns(0)));

	assert_int_equal(single_decide(&one, &not_ect, 0).color, PST_COLOR_GREEN);
	one.link.unmatched_action = PST_ACTION_DROP; /* the class comes first */
	assert_int_equal(single_decide(&one, &not_ect, 0).color, PST_COLOR_GREEN);
	one.link.unmatched_class = PST_NONE;
	assert_disposed(&one, &not_ect, PST_VERDICT_DROP, PST_REASON_UNMATCHED);
	one.link.unmatched_action = PST_ACTION_PASS;
	assert_disposed(&one, &not_ect, PST_VERDICT_PASS, PST_REASON_NONE);

	one.link.unmatched_class = 0;
	one.limit.rate = 0;
	assert_disposed(&one, &not_ect, PST_VERDICT_PASS, PST_REASON_NONE);
	one.class.limit_index = PST_NONE;
	assert_disposed(&one, &not_ect, PST_VERDICT_PASS, PST_REASON_NONE);
}

/* A host with many ports has more links than a byte can count. */
static void test_last_link(void **state)
{
	struct pst_link *links = calloc(PST_LINKS_MAX, sizeof(*links));
	struct pst_decision decision;
	struct single one;

	(void)state;
	assert_non_null(links);
	action_limit(&one, PST_METER_WINDOW);
	links[PST_LINKS_MAX - 1] = one.link;
	one.plane.links = links;
	one.plane.link_first = PST_LINKS_MAX - 1;
	decision = single_decide(&one, &not_ect, 0);
	assert_int_equal(decision.link, PST_LINKS_MAX - 1);
	assert_int_equal(decision.color, PST_COLOR_GREEN);
	free(links);
}

/* The writer is in the way: a link that drops the unknown drops it, with its own reason. */
static void test_busy_bucket(void **state)
{
	struct pst_bucket buckets[2] = { { .sequence = 0 }, { .sequence = 0 } };
	struct pst_tuple tuple = { .specificity_q8 = 1 };
	struct single one;

	(void)state;
	action_limit(&one, PST_METER_WINDOW);
	one.link.tuple_count = 1;
	one.plane.tuples = &tuple;
	one.plane.tuple_count = 1;
	one.plane.tables[PST_TUPLE_RULES] = (struct pst_table){ buckets, 2 };
	one.link.unmatched_class = PST_NONE;
	one.link.unmatched_action = PST_ACTION_DROP;
	assert_disposed(&one, &not_ect, PST_VERDICT_DROP, PST_REASON_UNMATCHED);
	buckets[0].sequence = 1;
	assert_disposed(&one, &not_ect, PST_VERDICT_DROP, PST_REASON_TABLE_BUSY);
	one.link.unmatched_class = 0; /* perhaps another class is right */
	assert_disposed(&one, &not_ect, PST_VERDICT_DROP, PST_REASON_TABLE_BUSY);
	one.link.unmatched_action = PST_ACTION_PASS;
	assert_int_equal(single_decide(&one, &not_ect, 0).color, PST_COLOR_GREEN);
	one.link.unmatched_class = PST_NONE;
	assert_disposed(&one, &not_ect, PST_VERDICT_PASS, PST_REASON_NONE);
}

/* A capture may declare any length: at the slowest rate, too, it is red and not some small number after an overflow. */
static void test_longest_length(void **state)
{
	static const uint32_t lengths[] = { PST_LENGTH_MAX - 1, PST_LENGTH_MAX, PST_LENGTH_MAX + 1, 1 << 30, UINT32_MAX };
	static const uint32_t overheads[] = { 0, 1, UINT32_MAX };
	size_t i, k;

	(void)state;
	for (i = 0; i < 5; i++) {
		for (k = 0; k < 3; k++) {
			struct pst_packet packet = { .length = lengths[i] };
			struct pst_decision decision;
			struct single one;

			action_limit(&one, PST_METER_WINDOW);
			one.profile.red_action = PST_ACTION_DROP;
			one.limit.rate = pst_rate_encode(0);
			one.link.overhead_bytes = overheads[k];
			decision = single_decide(&one, &packet, 0);
			assert_int_equal(decision.length, i + k == 0 ? PST_LENGTH_MAX - 1 : PST_LENGTH_MAX);
			assert_int_equal(decision.verdict, PST_VERDICT_DROP);
		}
	}
}

/* Any bits in limits and profiles: no index is followed out of its array (the sanitizer looks), and I1 still holds. */
static void test_wild_limits(void **state)
{
	uint64_t rng = pst_rng_seed(4);
	uint32_t round, i;

	(void)state;
	for (round = 0; round < 200000; round++) {
		struct pst_packet packet = { .length = pst_rng_next(&rng), .network_tos = (uint8_t)pst_rng_next(&rng) };
		struct pst_decision decision;
		struct single one;
		uint8_t bytes[sizeof(one.profile)];

		for (i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)pst_rng_next(&rng);
		action_limit(&one, PST_METER_WINDOW);
		memcpy(&one.profile, bytes, sizeof(bytes));
		one.profile.meter &= 7;
		one.limit.rate = pst_rng_next(&rng);
		one.limit.profile = (uint16_t)(pst_rng_next(&rng) % 3);
		one.limit.state = round % 3 ? pst_rng_next(&rng) % 3 : (uint64_t)pst_rng_next(&rng) << 32;
		one.class.limit_index = pst_rng_next(&rng) % 3;
		packet.network_family = round % 2 ? 4 : 0;
		decision = single_decide(&one, &packet, pst_rng_next(&rng));
		assert_true(decision.verdict <= PST_VERDICT_HOLD && decision.reason <= PST_REASON_HELD);
		assert_int_equal(decision.verdict == PST_VERDICT_PASS, decision.reason == PST_REASON_NONE);
		assert_int_equal(decision.limit_index, one.class.limit_index == 0 ? 0 : PST_NONE);
		if (decision.limit_index == PST_NONE || one.limit.profile > 0)
			assert_int_equal(decision.color, PST_COLOR_NONE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_actions),        cmocka_unit_test(test_red_near_misses),
		cmocka_unit_test(test_drop_is_not_charged),
		cmocka_unit_test(test_shadow),         cmocka_unit_test(test_without_a_limit),
		cmocka_unit_test(test_busy_bucket),    cmocka_unit_test(test_longest_length),
		cmocka_unit_test(test_wild_limits),    cmocka_unit_test(test_last_link),
	};

	return cmocka_run_group_tests_name("pipeline", tests, NULL, NULL);
}
