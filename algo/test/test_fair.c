/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* fair.h and window.h: single decisions. What its limit and its share say of a packet, and what becomes of both. */
#include "vectors.h"

#include "fair_plane.h"

/* ---- the rate of a share ---- */

static void assert_rate(uint64_t share_Bps)
{
	uint64_t clamped = share_Bps < PST_RATE_MIN_BPS ? PST_RATE_MIN_BPS : share_Bps > PST_RATE_MAX_BPS ? PST_RATE_MAX_BPS : share_Bps;
	long double exact = (long double)PST_TICKS_PER_SEC / (long double)clamped; /* ticks a byte */
	uint32_t rate = pst_fair_rate(share_Bps);
	long double ticks = ldexpl(pst_rate_mantissa(rate), (int)(rate >> PST_RATE_MANTISSA_BITS) - PST_RATE_EXPONENT_BIAS);

	assert_int_not_equal(rate, 0);
	assert_true(ticks <= exact && exact - ticks <= exact * 0x1p-26L);
}

static void test_a_shares_rate_is_its_division(void **state)
{
	uint64_t rng = pst_rng_seed(1);
	uint32_t i;

	(void)state;
	for (i = 0; i < 64; i++) {
		assert_rate(UINT64_C(1) << i);
		assert_rate((UINT64_C(1) << i) - 1);
	}
	for (i = 0; i < 1000000; i++)
		assert_rate(draw(&rng) >> below(&rng, 64));
	assert_int_equal(pst_fair_rate(0), pst_fair_rate(PST_RATE_MIN_BPS));
	assert_int_equal(pst_fair_rate(UINT64_MAX), pst_fair_rate(PST_RATE_MAX_BPS));
}

/* ---- two verdicts become one ---- */

#define NOW_NS UINT64_C(1000)

/* P pass, C CE, D DSCP, X dropped by the share, x by the limit, H held for 3 to 9 ns, h the same with CE, c and d held with a mark; S shadow. */
static const char *name_of(const struct pst_decision *decision)
{
	static char name[8];
	static const struct { uint8_t verdict, reason; char letter; } letters[] = {
		{ PST_VERDICT_PASS, PST_REASON_NONE, 'P' },       { PST_VERDICT_MARK, PST_REASON_CE_MARK, 'C' },
		{ PST_VERDICT_MARK, PST_REASON_DSCP_MARK, 'D' },  { PST_VERDICT_DROP, PST_REASON_OVER_SHARE, 'X' },
		{ PST_VERDICT_DROP, PST_REASON_OVER_RATE, 'x' },  { PST_VERDICT_HOLD, PST_REASON_HELD, 'H' },
		{ PST_VERDICT_HOLD, PST_REASON_HELD_CE, 'h' },    { PST_VERDICT_HOLD, PST_REASON_CE_MARK, 'c' },
		{ PST_VERDICT_HOLD, PST_REASON_DSCP_MARK, 'd' },
	};
	char *at = name;
	size_t i;

	for (i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
		if (decision->verdict == letters[i].verdict && decision->reason == letters[i].reason)
			*at++ = letters[i].letter;
	}
	if (decision->departure_ns != NOW_NS)
		*at++ = (char)('0' + decision->departure_ns - NOW_NS);
	if (decision->shadow)
		*at++ = 'S';
	*at = '\0';
	return name;
}

/* Likewise the other way round. What is held costs as many ns as it waits, of owner 1; of the share's owner 2. */
static struct pst_decision said(const char *name, uint32_t owner)
{
	struct pst_decision decision;

	memset(&decision, 0, sizeof(decision));
	pst_decision_clear(&decision, NOW_NS);
	decision.color = PST_COLOR_GREEN;
	switch (name[0]) {
	case 'C':
		pst_decide(&decision, PST_VERDICT_MARK, PST_REASON_CE_MARK);
		break;
	case 'D':
		pst_decide(&decision, PST_VERDICT_MARK, PST_REASON_DSCP_MARK);
		decision.dscp = 12;
		break;
	case 'X':
		pst_decide(&decision, PST_VERDICT_DROP, PST_REASON_OVER_SHARE);
		break;
	case 'x':
		pst_decide(&decision, PST_VERDICT_DROP, PST_REASON_OVER_RATE);
		break;
	case 'H':
	case 'h':
		pst_decide(&decision, PST_VERDICT_HOLD, name[0] == 'H' ? PST_REASON_HELD : PST_REASON_HELD_CE);
		decision.cost_ns = (uint32_t)(name[1] - '0');
		decision.departure_ns += decision.cost_ns;
		decision.owner = owner;
		break;
	default:
		break;
	}
	decision.shadow = name[strlen(name) - 1] == 'S';
	return decision;
}

#define SAYINGS 7
static const char *const share_says[SAYINGS] = { "P", "C", "X", "H9", "h9", "H3", "h3" };

struct join {
	const char *limit_says;
	const char *become[SAYINGS];
};

static const struct join joins[] = {
	/*          P      C      X    H9    h9    H3    h3 */
	{ "P",   { "P",   "C",   "X", "H9", "h9", "H3", "h3" } },
	{ "C",   { "C",   "C",   "X", "c9", "c9", "c3", "c3" } },
	{ "D",   { "D",   "D",   "X", "d9", "d9", "d3", "d3" } }, /* one mark has room: its limit's */
	{ "H5",  { "H5",  "h5",  "X", "H9", "h9", "H5", "h5" } },
	{ "h5",  { "h5",  "h5",  "X", "h9", "h9", "h5", "h5" } },
	{ "PS",  { "PS",  "C",   "X", "H9", "h9", "H3", "h3" } }, /* what only would be does not hold a share up */
	{ "CS",  { "CS",  "C",   "X", "H9", "h9", "H3", "h3" } },
	{ "DS",  { "DS",  "C",   "X", "H9", "h9", "H3", "h3" } },
	{ "xS",  { "xS",  "C",   "X", "H9", "h9", "H3", "h3" } },
	{ "H5S", { "H5S", "C",   "X", "H9", "h9", "H3", "h3" } },
};

/* I3: a share in shadow mode changes nothing that is done, and says what it would do only where nothing else is said. */
static const struct join shadow_joins[] = {
	{ "P",   { "P",   "CS",  "XS",  "H9S", "h9S", "H3S", "h3S" } },
	{ "C",   { "C",   "C",   "C",   "C",   "C",   "C",   "C" } },
	{ "D",   { "D",   "D",   "D",   "D",   "D",   "D",   "D" } },
	{ "H5",  { "H5",  "H5",  "H5",  "H5",  "H5",  "H5",  "H5" } },
	{ "h5",  { "h5",  "h5",  "h5",  "h5",  "h5",  "h5",  "h5" } },
	{ "PS",  { "PS",  "CS",  "XS",  "H9S", "h9S", "H3S", "h3S" } },
	{ "xS",  { "xS",  "xS",  "xS",  "xS",  "xS",  "xS",  "xS" } },
	{ "H5S", { "H5S", "H5S", "H5S", "H5S", "H5S", "H5S", "H5S" } },
};

static void assert_joined(const struct join *join, int column, bool is_shadow)
{
	struct pst_decision limit = said(join->limit_says, 1), own = said(share_says[column], 2), decision = limit;

	pst_fair_join(&decision, &own, NOW_NS, is_shadow);
	if (strcmp(name_of(&decision), join->become[column]) != 0)
		fail_msg("%s and %s become %s, should %s", join->limit_says, share_says[column], name_of(&decision), join->become[column]);
	assert_int_equal(decision.dscp, decision.reason == PST_REASON_DSCP_MARK ? 12 : 0);
	assert_int_equal(decision.color, limit.color);
	if (decision.verdict == PST_VERDICT_HOLD) {
		assert_int_equal(decision.cost_ns, decision.departure_ns - NOW_NS);
		/* Whoever waits for its share waits among those of its share. */
		assert_int_equal(decision.owner, memcmp(&decision, &limit, sizeof(limit)) == 0 || own.verdict != PST_VERDICT_HOLD ? limit.owner : 2);
	}
}

static void test_of_two_verdicts_the_stricter_one_holds(void **state)
{
	size_t i;
	int column;

	(void)state;
	for (i = 0; i < sizeof(joins) / sizeof(joins[0]); i++) {
		for (column = 0; column < SAYINGS; column++)
			assert_joined(&joins[i], column, false);
	}
	for (i = 0; i < sizeof(shadow_joins) / sizeof(shadow_joins[0]); i++) {
		for (column = 0; column < SAYINGS; column++)
			assert_joined(&shadow_joins[i], column, true);
	}
}

/* Its turn is now, but others of its share are late: what it costs must be known to who holds it. */
static void test_who_waits_behind_others_has_a_cost(void **state)
{
	struct pst_decision decision = said("P", 0), own = said("H0", 2);

	(void)state;
	own.cost_ns = 77;
	pst_fair_join(&decision, &own, NOW_NS, false);
	assert_int_equal(decision.verdict, PST_VERDICT_HOLD);
	assert_int_equal(decision.cost_ns, 77);
}

/* Without a limit of its own a packet has its share's colour. */
static void test_the_colour_is_the_limits_or_the_shares(void **state)
{
	struct pst_decision decision = said("P", 0), own = said("P", 0);

	(void)state;
	own.color = PST_COLOR_RED;
	pst_fair_join(&decision, &own, NOW_NS, false);
	assert_int_equal(decision.color, PST_COLOR_GREEN);
	decision.color = PST_COLOR_NONE;
	pst_fair_join(&decision, &own, NOW_NS, false);
	assert_int_equal(decision.color, PST_COLOR_RED);
}

/* ---- one leaf, by the pipeline ---- */

/* A full second's worth, at one moment. Returns the first decision that is another than PASS. */
static struct pst_decision exceed(const struct pst_packet *packet, uint64_t now_ns)
{
	struct pst_decision decision;
	int i;

	for (i = 0; i < 20000; i++) {
		decision = fair_decide(packet, now_ns);
		if (decision.verdict != PST_VERDICT_PASS)
			return decision;
	}
	fail_msg("a second's worth passes at once");
	return decision;
}

/* I1. */
static void test_i1_what_is_dropped_is_not_charged(void **state)
{
	struct pst_packet packet = packet_of(1, 5, false, PROTO_UDP, 0);
	struct pst_decision decision;
	uint64_t before, passed;
	int i;

	(void)state;
	fair_start(8 * MBIT);
	decision = exceed(&packet, START_NS);
	assert_int_equal(decision.reason, PST_REASON_OVER_SHARE);
	assert_int_equal(decision.color, PST_COLOR_RED);
	assert_int_equal(decision.class_index, 1);
	assert_int_equal(decision.departure_ns, START_NS);
	before = fair.nodes[1].vft_ticks;
	passed = fair.nodes[1].passed_bytes;
	assert_true(passed > 0 && passed % MTU == 0);
	for (i = 0; i < 100; i++) {
		assert_int_equal(fair_decide(&packet, START_NS).verdict, PST_VERDICT_DROP);
		assert_int_equal(fair.nodes[1].vft_ticks, before);
		assert_int_equal(fair.nodes[1].passed_bytes, passed);
	}
}

/* I2: as long as nothing else is there, the same bits twice. */
static void test_i2_the_same_bits(void **state)
{
	static struct fair_plane first;
	uint32_t round, i;

	(void)state;
	for (round = 0; round < 2; round++) {
		fair_start(80 * MBIT);
		fair_entries(0);
		fair_slice(1);
		for (i = 0; i < 30; i++)
			fair_send(packet_of(i % 3, i, i % 4 == 0, i % 2 ? PROTO_TCP : PROTO_UDP, i % 5 ? 0 : ECT), 4 * MBIT * (1 + i));
		fair_run(100 * MSEC);
		if (round == 0)
			first = fair;
	}
	assert_memory_equal(&first, &fair, sizeof(fair));
}

/* I3: decided and counted as without shadow, but let pass. */
static void test_i3_shadow(void **state)
{
	struct pst_packet packet = packet_of(0, 5, false, PROTO_UDP, 0);
	struct pst_decision decision;
	uint64_t vft_ticks;

	(void)state;
	fair_start(8 * MBIT);
	exceed(&packet, START_NS);
	vft_ticks = fair.nodes[0].vft_ticks;
	fair_start(8 * MBIT);
	fair.profiles[0].flags = PST_PROFILE_SHADOW;
	decision = exceed(&packet, START_NS);
	assert_int_equal(decision.shadow, 1);
	assert_int_equal(decision.reason, PST_REASON_OVER_SHARE);
	assert_int_equal(fair.nodes[0].vft_ticks, vft_ticks);
	/* A limit that drops for good is not softened by it. */
	fair_limit(0, MBIT);
	fair.limits[0].state = pst_clock_ticks(START_NS + MSEC);
	decision = fair_decide(&packet, START_NS + MSEC);
	assert_int_equal(decision.shadow, 0);
	assert_int_equal(decision.reason, PST_REASON_OVER_RATE);
}

/* Both in shadow: the limit's word, which comes first; and a limit in shadow before a share that is not. */
static void test_shadow_on_the_limit(void **state)
{
	struct pst_packet packet = packet_of(0, 5, false, PROTO_UDP, 0);
	struct pst_decision decision;

	(void)state;
	fair_start(8 * MBIT);
	fair_limit(0, MBIT)->flags = PST_PROFILE_SHADOW;
	exceed(&packet, START_NS);
	fair.limits[0].state = pst_clock_ticks(START_NS + 10 * MSEC);
	decision = fair_decide(&packet, START_NS + 10 * MSEC); /* the share has room again */
	assert_int_equal(decision.shadow, 1);
	assert_int_equal(decision.reason, PST_REASON_OVER_RATE);
	fair.nodes[0].vft_ticks = pst_clock_ticks(START_NS + 10 * MSEC);
	decision = fair_decide(&packet, START_NS + 10 * MSEC);
	assert_int_equal(decision.shadow, 0);
	assert_int_equal(decision.reason, PST_REASON_OVER_SHARE);
	fair.profiles[0].flags = PST_PROFILE_SHADOW;
	decision = fair_decide(&packet, START_NS + 10 * MSEC);
	assert_int_equal(decision.shadow, 1);
	assert_int_equal(decision.reason, PST_REASON_OVER_RATE);
}

/* What the class's own limit drops asks for nothing: the tree does not hear of it. */
static void test_what_the_limit_drops_asks_for_nothing(void **state)
{
	struct pst_packet packet = packet_of(0, 5, false, PROTO_UDP, 0);
	struct pst_tree_node before;

	(void)state;
	fair_start(8 * MBIT);
	fair_limit(0, MBIT);
	fair_decide(&packet, START_NS);
	fair.limits[0].state = pst_clock_ticks(START_NS);
	before = fair.nodes[0];
	assert_int_equal(fair_decide(&packet, START_NS + MSEC).reason, PST_REASON_OVER_RATE);
	assert_memory_equal(&fair.nodes[0], &before, sizeof(before));
}

/* Yellow: ECT is marked, the rest takes its chance with RED. The random number is another one than the limit's own. */
static void test_yellow_marks_or_drops_early(void **state)
{
	uint32_t ect_marks = 0, drops = 0, i;

	(void)state;
	fair_start(8 * MBIT);
	fair.profiles[0].excess_ticks = pst_clock_ticks(20 * MSEC);
	fair.profiles[0].yellow_action = PST_ACTION_MARK;
	fair.profiles[0].red_max_q32 = UINT32_C(1) << 31;
	for (i = 0; i < 2000; i++) {
		struct pst_packet packet = packet_of(0, 5, false, PROTO_UDP, i % 2 ? ECT : 0);
		struct pst_decision decision;

		fair_decide(&packet, START_NS + i * MSEC);
		fair.nodes[0].vft_ticks = pst_clock_ticks(START_NS + i * MSEC - 10 * MSEC); /* the middle of yellow */
		decision = fair_decide(&packet, START_NS + i * MSEC);
		assert_int_equal(decision.color, PST_COLOR_YELLOW);
		ect_marks += i % 2 && decision.reason == PST_REASON_CE_MARK;
		drops += i % 2 == 0 && decision.reason == PST_REASON_EARLY_DROP;
	}
	assert_int_equal(ect_marks, 1000);
	assert_in_range(drops, 1000 * 275 / 1000 - 60, 1000 * 275 / 1000 + 60); /* half of 1/2, and a packet: 1 ms of 20 */
}

static void shape(uint32_t class_index)
{
	fair.profiles[class_index].red_action = PST_ACTION_HOLD;
	fair.profiles[class_index].burst_ticks = 0;
	fair.profiles[class_index].hold_ticks = pst_clock_ticks(500 * MSEC);
}

/* 8 Mbit/s: a packet takes 1 ms. */
static void test_a_share_that_shapes(void **state)
{
	struct pst_packet packet = packet_of(1, 5, false, PROTO_UDP, 0);
	struct pst_decision decision;
	uint32_t i;

	(void)state;
	fair_start(8 * MBIT);
	shape(1);
	fair_decide(&packet, START_NS);
	fair.nodes[1].vft_ticks = pst_clock_ticks(START_NS);
	for (i = 0; i < 10; i++) {
		decision = fair_decide(&packet, START_NS);
		assert_int_equal(decision.verdict, i ? PST_VERDICT_HOLD : PST_VERDICT_PASS);
		assert_near((double)(decision.departure_ns - START_NS), i * 1e6, 1e-6);
		if (i) {
			assert_int_equal(decision.reason, PST_REASON_HELD);
			assert_int_equal(decision.owner, fair.places[1].owner);
			assert_in_range(decision.cost_ns, 999990, 1000000);
		}
	}
	fair.plane.room_chunks = 0;
	assert_int_equal(fair_decide(&packet, START_NS).reason, PST_REASON_NO_ROOM);
	fair.plane.room_chunks = 1;
	packet.length = 2 * MTU;
	assert_int_equal(fair_decide(&packet, START_NS).reason, PST_REASON_NO_ROOM);
	fair.plane.is_holder_absent = true;
	assert_int_equal(fair_decide(&packet, START_NS).reason, PST_REASON_NO_SHAPER);
	fair.plane.is_holder_absent = false;
	packet.length = MTU;
	fair.nodes[1].vft_ticks = pst_clock_ticks(START_NS + 2000 * MSEC);
	fair.plane.room_chunks = 1;
	assert_int_equal(fair_decide(&packet, START_NS).reason, PST_REASON_HORIZON);
}

/* Users of a class wait apart; whoever its limit holds already waits among those of its limit. */
static void test_who_waits_has_an_owner(void **state)
{
	struct pst_packet first = packet_of(1, 5, false, PROTO_UDP, 0), second = packet_of(1, 6, false, PROTO_UDP, 0);
	struct pst_decision decision;
	struct pst_profile *limit;
	uint32_t owner;

	(void)state;
	fair_start(8 * MBIT);
	fair_entries(1);
	shape(1);
	owner = exceed(&first, START_NS).owner;
	assert_int_equal(owner, fair.places[1].owner ^ (uint32_t)pst_fair_user(&fair.plane, &first, 1));
	assert_int_not_equal(exceed(&second, START_NS).owner, owner);
	limit = fair_limit(1, 4 * MBIT);
	limit->red_action = PST_ACTION_HOLD;
	limit->hold_ticks = pst_clock_ticks(500 * MSEC);
	fair.limits[1].owner = 99;
	fair.limits[1].state = pst_clock_ticks(START_NS + 200 * MSEC);
	decision = fair_decide(&first, START_NS); /* its limit is slower, and its turn there comes later */
	assert_int_equal(decision.owner, 99);
	assert_int_equal(decision.departure_ns, START_NS + 200 * MSEC);
	assert_int_equal(decision.reason, PST_REASON_HELD);
}

/* ---- what no policy makes ---- */

static void assert_untouched(const struct pst_packet *packet)
{
	int i;

	for (i = 0; i < 100; i++) {
		struct pst_decision decision = fair_decide(packet, START_NS);

		assert_int_equal(decision.verdict, PST_VERDICT_PASS);
		assert_int_equal(decision.reason, PST_REASON_NONE);
	}
}

static void test_what_has_no_share_goes_on(void **state)
{
	struct pst_packet packet = packet_of(0, 5, false, PROTO_UDP, 0), nobody = packet_of(77, 5, false, PROTO_UDP, 0);

	(void)state;
	fair_start(8 * MBIT);
	assert_untouched(&nobody); /* no class */
	fair.places[0].parent = PST_NONE;
	assert_untouched(&packet); /* a class whose link shares nothing */
	fair.plane.place_count = 0;
	assert_untouched(&packet);
	fair_start(8 * MBIT);
	fair.places[0].profile = PST_NONE;
	assert_untouched(&packet);
	fair_start(8 * MBIT);
	fair.places[0].link = PST_NONE;
	assert_untouched(&packet);
	fair_start(8 * MBIT);
	fair.plane.node_count = 0;
	assert_untouched(&packet);
	fair_start(8 * MBIT);
	fair.places[0].first_child = 1;
	assert_untouched(&packet);
	fair_start(8 * MBIT);
	fair_slice(0);
	fair.places[0].slice = CLASSES;
	assert_untouched(&packet);
}

/* Any index, any size: nothing is followed out of its array, nothing hangs. */
static void test_wild_places(void **state)
{
	uint32_t round, i;

	(void)state;
	for (round = 0; round < 20000; round++) {
		uint64_t rng = pst_rng_seed(round);
		uint32_t *words = (uint32_t *)(void *)&fair.places[0].parent;

		if (round % 100 == 0)
			fair_start(8 * MBIT);
		for (i = 0; i < 10; i++) {
			if (below(&rng, 4) == 0)
				words[i] = below(&rng, 3) ? below(&rng, 8) : (uint32_t)draw(&rng);
		}
		for (i = 0; i < 10; i++) {
			struct pst_packet packet = packet_of(below(&rng, 3), below(&rng, 9), below(&rng, 2), (uint8_t)draw(&rng), (uint8_t)draw(&rng));
			struct pst_decision decision;

			packet.length = below(&rng, 2) ? (uint32_t)draw(&rng) : MTU;
			decision = fair_decide(&packet, draw(&rng) >> below(&rng, 64));
			assert_true(decision.verdict <= PST_VERDICT_HOLD && decision.reason < PST_REASON_COUNT);
			assert_int_equal(decision.verdict == PST_VERDICT_PASS, decision.reason == PST_REASON_NONE);
			assert_int_equal(fair.nodes[LINK].lock, 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_shares_rate_is_its_division), cmocka_unit_test(test_of_two_verdicts_the_stricter_one_holds),
		cmocka_unit_test(test_who_waits_behind_others_has_a_cost), cmocka_unit_test(test_the_colour_is_the_limits_or_the_shares),
		cmocka_unit_test(test_i1_what_is_dropped_is_not_charged), cmocka_unit_test(test_i2_the_same_bits),
		cmocka_unit_test(test_i3_shadow),                     cmocka_unit_test(test_shadow_on_the_limit),
		cmocka_unit_test(test_what_the_limit_drops_asks_for_nothing), cmocka_unit_test(test_yellow_marks_or_drops_early),
		cmocka_unit_test(test_a_share_that_shapes),           cmocka_unit_test(test_who_waits_has_an_owner),
		cmocka_unit_test(test_what_has_no_share_goes_on),     cmocka_unit_test(test_wild_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
