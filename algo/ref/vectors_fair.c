/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of fair.h: whole decisions about packets of classes that share a link. */
#include "ref_fair.h"
#include "vectors.h"

#define MSEC_TICKS (UINT64_C(1000000) * REF_TICKS_PER_NSEC)
#define MTU_BYTES 1500

static const char *const actions[] = { "pass", "drop", "mark", "dscp", "red", "hold" };
static const char *const verdicts[] = { "pass", "mark", "drop", "hold" };
static const char *const colors[] = { "green", "yellow", "red", "none" };

static uint64_t seed = 1;
static struct ref_fair fair;

static const char *reason_of(uint8_t reason)
{
	static const struct { uint8_t reason; const char *name; } names[] = {
		{ PST_REASON_NONE, "none" }, { PST_REASON_OVER_RATE, "over_rate" }, { PST_REASON_EARLY_DROP, "early_drop" },
		{ PST_REASON_YELLOW, "yellow" }, { PST_REASON_CE_MARK, "ce_mark" }, { PST_REASON_DSCP_MARK, "dscp_mark" },
		{ PST_REASON_HELD, "held" }, { PST_REASON_HORIZON, "horizon" }, { PST_REASON_HELD_CE, "held_ce" },
		{ PST_REASON_BACKLOG, "backlog" }, { PST_REASON_OVER_SHARE, "over_share" },
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].reason == reason)
			return names[i].name;
	}
	return "unknown";
}

/* The terms of a limit, or of a share. */
static struct pst_profile terms(uint8_t yellow, uint8_t red, uint64_t burst_ms)
{
	return (struct pst_profile){
		.burst_ticks = burst_ms * MSEC_TICKS, .excess_ticks = yellow ? burst_ms * MSEC_TICKS : 0, .mtu_bytes = MTU_BYTES,
		.red_max_q32 = UINT32_C(1) << 31, .yellow_action = yellow, .red_action = red, .yellow_dscp = 12, .red_dscp = 14,
		.hold_ticks = red == PST_ACTION_HOLD ? 60 * MSEC_TICKS : 0, .ce_ns = red == PST_ACTION_HOLD ? 10000000 : 0,
	};
}

static void say(const char *what, uint32_t index, const struct pst_profile *profile)
{
	printf("%s class=%" PRIu32 " yellow=%s red=%s", what, index, actions[profile->yellow_action], actions[profile->red_action]);
	vectors_field("burst_ticks", profile->burst_ticks);
	vectors_field("excess_ticks", profile->excess_ticks);
	vectors_field("hold_ticks", profile->hold_ticks);
	vectors_field("ce_ns", profile->ce_ns);
	vectors_field("shadow", (profile->flags & PST_PROFILE_SHADOW) != 0);
}

static void link_of(uint64_t rate_Bps)
{
	fair = (struct ref_fair){ .link = { .overhead_bytes = 14 } };
	ref_tree_start(&fair.tree, rate_Bps);
	printf("link rate_Bps=%" PRIu64 " mtu_bytes=%d overhead=14\n", rate_Bps, MTU_BYTES);
}

static void share(uint32_t index, uint32_t weight, struct pst_profile profile)
{
	const struct ref_share_child child = { 0, (uint64_t)1 << 36, weight, REF_SHARE_IDLE, 0 };

	ref_tree_grow(&fair.tree, 0, &child);
	fair.tree.nodes[0].looked = 0; /* as with a host whose first place is a class: the next one is looked at first */
	ref_limit_init(&fair.shares[index], &profile, 0, 0, 0);
	say("share", index, &profile);
	printf(" weight=%" PRIu32 "\n", weight);
}

static void limit(uint32_t index, uint64_t rate_Bps, struct pst_profile profile, uint64_t now_ns)
{
	ref_limit_init(&fair.limits[index], &profile, ref_rate_code(rate_Bps), (ref_int)now_ns, ref_limiter_idle((ref_int)now_ns));
	say("limit", index, &profile);
	printf(" rate_Bps=%" PRIu64 " state=%" PRIu64 "\n", rate_Bps, (uint64_t)fair.limits[index].vft_ticks);
}

/* All classes at twice the link's rate together; some pause. Every ECN code point. */
static void packets(uint64_t now_ns, int count)
{
	int i;

	for (i = 0; i < count; i++) {
		uint32_t index = vectors_draw(&seed, i / 40 % 3 == 2 ? 2 : 3);
		struct ref_arrival arrival = { .now_ns = (ref_int)now_ns, .length = vectors_bytes[vectors_draw(&seed, 7)],
					       .random = (uint32_t)vectors_draw_wide(&seed, (uint64_t)1 << 32), .is_ip = true,
					       .tos = (uint8_t)vectors_draw(&seed, 4) };
		struct pst_decision decision = ref_fair_decide(&fair, index, &arrival);

		printf("packet now=%" PRIu64 " class=%" PRIu32 " length=%" PRIu32 " random=%" PRIu32 " tos=%u -> verdict=%s color=%s reason=%s shadow=%u"
		       " departure=%" PRIu64,
		       now_ns, index, arrival.length, arrival.random, arrival.tos, verdicts[decision.verdict], colors[decision.color],
		       reason_of(decision.reason), decision.shadow, decision.departure_ns);
		if (decision.verdict == PST_VERDICT_HOLD)
			printf(" cost=%" PRIu32, decision.cost_ns);
		printf(" share=%" PRIu64 " vft=%" PRIu64 " passed=%" PRIu64 "\n", fair.tree.nodes[index + 1].share_Bps,
		       fair.tree.nodes[index + 1].vft_ticks, fair.passed_bytes[index]);
		now_ns += vectors_draw_wide(&seed, (uint64_t)arrival.length * 1000000000 / fair.tree.rate_Bps) + (vectors_draw(&seed, 50) ? 0 : 30000000);
	}
}

int main(void)
{
	const uint64_t now_ns = UINT64_C(1) << 50;
	struct pst_profile shadow = terms(PST_ACTION_PASS, PST_ACTION_DROP, 2);

	shadow.flags = PST_PROFILE_SHADOW;
	vectors_header("fair.h: packets of three classes that share a link.");
	link_of(1250000);
	share(0, 1, terms(PST_ACTION_PASS, PST_ACTION_DROP, 10));
	share(1, 3, terms(PST_ACTION_MARK, PST_ACTION_DROP, 10));
	share(2, 2, terms(PST_ACTION_RED, PST_ACTION_DROP, 10));
	packets(now_ns, 160);
	link_of(1250000);
	share(0, 1, terms(PST_ACTION_PASS, PST_ACTION_HOLD, 4));
	share(1, 1, shadow);
	share(2, 2, terms(PST_ACTION_DSCP, PST_ACTION_DROP, 10));
	packets(now_ns, 160);
	link_of(12500000);
	share(0, 1, terms(PST_ACTION_PASS, PST_ACTION_HOLD, 0));
	limit(0, 2500000, terms(PST_ACTION_PASS, PST_ACTION_HOLD, 2), now_ns);
	share(1, 1, terms(PST_ACTION_MARK, PST_ACTION_DROP, 2));
	limit(1, 2500000, shadow, now_ns);
	share(2, 1, terms(PST_ACTION_MARK, PST_ACTION_HOLD, 1));
	limit(2, 5000000, terms(PST_ACTION_DSCP, PST_ACTION_DROP, 3), now_ns);
	packets(now_ns, 240);
	return 0;
}
