/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* fair.h and window.h on golden vectors: whole decisions about packets of classes that share a link. */
#include "vectors.h"

#include "fair_plane.h"

static const char *const actions[] = { "pass", "drop", "mark", "dscp", "red", "hold" };
static const char *const verdicts[] = { "pass", "mark", "drop", "hold" };
static const char *const colors[] = { "green", "yellow", "red", "none" };
/* By their numbers in verdict.h; those that no line names are left out. */
static const char *const reasons[] = { "none", "over_rate", "early_drop", "yellow", "ce_mark", "dscp_mark", "held", "-", "-", "horizon", "held_ce",
				       "backlog" };

static void read_profile(struct vectors *v, struct pst_profile *profile)
{
	uint32_t mtu_bytes = profile->mtu_bytes;

	*profile = (struct pst_profile){
		.burst_ticks = vectors_in_or(v, "burst_ticks", 0), .excess_ticks = vectors_in_or(v, "excess_ticks", 0), .mtu_bytes = mtu_bytes,
		.red_max_q32 = UINT32_C(1) << 31, .flags = vectors_in_or(v, "shadow", 0) ? PST_PROFILE_SHADOW : 0,
		.yellow_action = vectors_name(v, vectors_in_text(v, "yellow"), actions, 6),
		.red_action = vectors_name(v, vectors_in_text(v, "red"), actions, 6), .yellow_dscp = 12, .red_dscp = 14,
		.hold_ticks = vectors_in_or(v, "hold_ticks", 0), .ce_ns = (uint32_t)vectors_in_or(v, "ce_ns", 0),
	};
}

static uint32_t class_of(struct vectors *v)
{
	uint64_t index = vectors_in(v, "class");

	assert_in_range(index, 0, CLASSES - 1);
	return (uint32_t)index;
}

static void start(struct vectors *v)
{
	uint32_t i;

	fair_start(vectors_in(v, "rate_Bps"));
	fair.plane.waiting = NULL; /* nobody is ever late */
	fair.link.overhead_bytes = (uint32_t)vectors_in(v, "overhead");
	for (i = 0; i < PROFILES; i++)
		fair.profiles[i].mtu_bytes = (uint32_t)vectors_in(v, "mtu_bytes");
}

static void read_limit(struct vectors *v)
{
	uint32_t index = class_of(v);

	read_profile(v, &fair.profiles[CLASSES + index]);
	fair.classes[index].limit_index = index;
	fair.limits[index] = (struct pst_limit){ vectors_in(v, "state"), pst_rate_encode(vectors_in(v, "rate_Bps")), (uint16_t)(CLASSES + index), 0 };
}

static void check_packet(struct vectors *v)
{
	uint32_t index = class_of(v);
	struct pst_packet packet = packet_of(index, 1, false, PROTO_UDP, (uint8_t)vectors_in(v, "tos"));
	const char *reason = vectors_out_text(v, "reason");
	struct pst_decision decision;

	packet.length = (uint32_t)vectors_in(v, "length");
	memset(&decision, 0x5a, sizeof(decision));
	pst_pipeline_decide(&decision, &fair.plane, &packet, vectors_in(v, "now"), (uint32_t)vectors_in(v, "random"));
	assert_int_equal(decision.verdict, vectors_name(v, vectors_out_text(v, "verdict"), verdicts, 4));
	assert_int_equal(decision.color, vectors_name(v, vectors_out_text(v, "color"), colors, 4));
	assert_int_equal(decision.reason, strcmp(reason, "over_share") ? vectors_name(v, reason, reasons, 12) : PST_REASON_OVER_SHARE);
	assert_int_equal(decision.shadow, vectors_out(v, "shadow"));
	assert_int_equal(decision.departure_ns, vectors_out(v, "departure"));
	if (decision.verdict == PST_VERDICT_HOLD)
		assert_int_equal(decision.cost_ns, vectors_out(v, "cost"));
	assert_int_equal(fair.nodes[index].share_Bps, vectors_out(v, "share"));
	assert_int_equal(fair.nodes[index].vft_ticks, vectors_out(v, "vft"));
	assert_int_equal(fair.nodes[index].passed_bytes, vectors_out(v, "passed"));
}

static void test_golden_vectors(void **state)
{
	struct vectors v;

	(void)state;
	vectors_open(&v, "vectors/fair.txt");
	while (vectors_next(&v)) {
		if (vectors_is(&v, "link")) {
			start(&v);
		} else if (vectors_is(&v, "share")) {
			fair.places[class_of(&v)].terms.weight = (uint32_t)vectors_in(&v, "weight");
			read_profile(&v, &fair.profiles[class_of(&v)]);
		} else if (vectors_is(&v, "limit")) {
			read_limit(&v);
		} else {
			assert_true(vectors_is(&v, "packet"));
			check_packet(&v);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
