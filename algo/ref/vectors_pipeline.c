/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of pipeline.h: one limit, and packets through it from arrival to verdict. */
#include "ref_pipeline.h"
#include "vectors.h"

#define MSEC_TICKS (UINT64_C(1000000) * REF_TICKS_PER_NSEC)
#define OVERHEAD_BYTES 14U

static const char *const meters[] = { "window", "rfc2697", "rfc2698", "rfc4115" };
static const char *const actions[] = { "pass", "drop", "mark", "dscp", "red", "hold" };
static const char *const verdicts[] = { "pass", "mark", "drop", "hold" };
static const char *const reasons[] = { "none", "over_rate", "early_drop", "yellow", "ce_mark", "dscp_mark", "held",
				       "unmatched", "table_busy", "horizon", "held_ce", "backlog" };

/* One link, one class that takes everything, its limit. */
struct run {
	struct ref_plane plane;
	struct pst_link link;
	uint32_t unmatched_class;
	uint32_t class_limit;
	struct ref_limit limit;
	ref_int now_ns;
	uint64_t seed;
};

static void words(const char *name, const struct ref_limit *limit)
{
	uint64_t state[2];

	ref_limit_words(limit, state);
	printf(" %s=%" PRIu64, name, state[0]);
	if (limit->profile.meter != PST_METER_WINDOW)
		printf(",%" PRIu64, state[1]);
}

static void begin(struct run *run, const struct pst_profile *profile, uint64_t rate_Bps, uint64_t second_rate_Bps,
		  ref_int now_ns)
{
	struct pst_profile written = *profile;

	*run = (struct run){ .link = { .overhead_bytes = OVERHEAD_BYTES }, .now_ns = now_ns, .seed = rate_Bps };
	run->plane.policy.unmatched_classes = &run->unmatched_class;
	run->plane.policy.link_count = 1;
	run->plane.links = &run->link;
	run->plane.class_limits = &run->class_limit;
	run->plane.limits = &run->limit;
	if (second_rate_Bps)
		written.second_rate = ref_rate_code(second_rate_Bps);
	ref_limit_init(&run->limit, &written, ref_rate_code(rate_Bps), now_ns, ref_limiter_idle(now_ns));
	printf("limit meter=%s rate_Bps=%" PRIu64, meters[profile->meter], rate_Bps);
	vectors_field("second_rate_Bps", second_rate_Bps);
	vectors_field("burst_ticks", profile->burst_ticks);
	vectors_field("burst_bytes", profile->burst_bytes);
	vectors_field("excess_ticks", profile->excess_ticks);
	vectors_field("excess_bytes", profile->excess_bytes);
	vectors_field("mtu_bytes", profile->mtu_bytes);
	vectors_field("color_aware", (profile->flags & PST_PROFILE_COLOR_AWARE) != 0);
	vectors_field("shadow", (profile->flags & PST_PROFILE_SHADOW) != 0);
	printf(" yellow=%s red=%s", actions[profile->yellow_action], actions[profile->red_action]);
	vectors_field("yellow_dscp", profile->yellow_dscp);
	vectors_field("red_dscp", profile->red_dscp);
	vectors_field("red_max", profile->red_max_q32);
	vectors_field("hold_ticks", profile->hold_ticks);
	vectors_field("hold_bytes", profile->hold_bytes);
	vectors_field("ce_ns", profile->ce_ns);
	printf(" overhead=%u", OVERHEAD_BYTES);
	words("state", &run->limit);
	printf("\n");
}

static void packet(struct run *run, const struct ref_arrival *arrival)
{
	static const struct pst_key key;
	struct pst_decision decision = ref_pipeline_decide(&run->plane, &key, arrival);

	printf("packet now=%" PRIu64 " length=%" PRIu32 " random=%" PRIu32, (uint64_t)arrival->now_ns, arrival->length,
	       arrival->random);
	if (arrival->is_ip)
		printf(" tos=%u", arrival->tos);
	printf(" -> verdict=%s color=%s reason=%s departure=%" PRIu64, verdicts[decision.verdict],
	       vectors_colors[decision.color], reasons[decision.reason], decision.departure_ns);
	if (decision.reason == PST_REASON_DSCP_MARK)
		printf(" dscp=%u", decision.dscp);
	words("state", &run->limit);
	printf("\n");
}

/* At several times the rate. Every ECN code point, best effort and AF11..AF13, sometimes no IP at all. */
static void packets(struct run *run, int count)
{
	static const uint8_t dscps[] = { 0, 0, 10, 12, 14, 46 };

	for (; count > 0; count--) {
		struct ref_arrival arrival = {
			.now_ns = run->now_ns,
			.length = vectors_bytes[vectors_draw(&run->seed, 7)],
			.random = (uint32_t)vectors_draw_wide(&run->seed, (uint64_t)1 << 32),
			.is_ip = vectors_draw(&run->seed, 12) > 0,
		};

		if (arrival.is_ip)
			arrival.tos = (uint8_t)(4U * dscps[vectors_draw(&run->seed, 6)] + vectors_draw(&run->seed, 4));
		packet(run, &arrival);
		run->now_ns += vectors_gap_ns(&run->seed, run->limit.rate, arrival.length) / 4;
	}
}

int main(void)
{
	const ref_int hour_ns = (ref_int)3600 * 1000000000;
	const struct pst_profile police = {
		.burst_ticks = 7 * MSEC_TICKS / 4, .excess_ticks = 5 * MSEC_TICKS / 2, .mtu_bytes = 1514,
		.yellow_action = PST_ACTION_RED, .red_action = PST_ACTION_DROP, .red_max_q32 = (uint32_t)1 << 30,
	};
	struct pst_profile profile;
	struct run run;

	vectors_header("pipeline.h: a limit, and packets from arrival to verdict.");
	printf("# police: random drop in yellow, drop in red\n");
	begin(&run, &police, 1250000, 0, hour_ns);
	packets(&run, 60);
	printf("# mark: CE for ECT packets in yellow, RED for the rest, drop in red; a small window, the ticks wrap\n");
	profile = police;
	profile.burst_ticks = 0;
	profile.burst_bytes = 3000;
	profile.excess_ticks = 0;
	profile.excess_bytes = 6000;
	profile.yellow_action = PST_ACTION_MARK;
	profile.red_max_q32 = UINT32_MAX;
	begin(&run, &profile, 125000, 0, ((ref_int)1 << 54) - 60000000);
	packets(&run, 60);
	printf("# shape, in shadow\n");
	profile.yellow_action = PST_ACTION_PASS;
	profile.red_action = PST_ACTION_HOLD;
	profile.flags = PST_PROFILE_SHADOW;
	begin(&run, &profile, 125000, 0, hour_ns);
	packets(&run, 40);
	printf("# shape: a horizon of 60 ms, CE after 20 ms; then 4000 bytes at most\n");
	profile.flags = 0;
	profile.hold_ticks = 60 * MSEC_TICKS;
	profile.ce_ns = 20000000;
	begin(&run, &profile, 125000, 0, hour_ns);
	packets(&run, 60);
	profile.hold_bytes = 4000;
	begin(&run, &profile, 125000, 0, hour_ns);
	packets(&run, 60);
	profile.hold_ticks = profile.hold_bytes = profile.ce_ns = 0;
	printf("# RFC 2697, colour-aware: another DSCP in yellow and in red\n");
	profile.meter = PST_METER_RFC2697;
	profile.flags = PST_PROFILE_COLOR_AWARE;
	profile.yellow_action = PST_ACTION_DSCP;
	profile.yellow_dscp = 12;
	profile.red_action = PST_ACTION_DSCP;
	profile.red_dscp = 14;
	begin(&run, &profile, 125000, 0, hour_ns);
	packets(&run, 60);
	printf("# RFC 2698, colour-blind: marked in yellow and in red\n");
	profile.meter = PST_METER_RFC2698;
	profile.flags = 0;
	profile.yellow_action = PST_ACTION_MARK;
	profile.red_action = PST_ACTION_MARK;
	profile.red_max_q32 = (uint32_t)1 << 31;
	begin(&run, &profile, 125000, 150000, hour_ns);
	packets(&run, 60);
	printf("# RFC 4115, colour-blind: yellow is dropped, red as well\n");
	profile.meter = PST_METER_RFC4115;
	profile.yellow_action = PST_ACTION_DROP;
	profile.red_action = PST_ACTION_DROP;
	begin(&run, &profile, 100000, 50000, hour_ns);
	packets(&run, 60);
	return 0;
}
