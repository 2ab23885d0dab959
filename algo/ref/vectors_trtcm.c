/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of trtcm.h. */
#include "ref_trtcm.h"
#include "vectors.h"

static void run(struct pst_profile *profile, uint64_t rate_Bps, uint64_t second_rate_Bps, ref_int now_ns, int count)
{
	struct ref_trtcm meter;
	uint32_t rate = ref_rate_code(rate_Bps), faster = ref_rate_code(rate_Bps + second_rate_Bps);
	ref_int idle = ref_limiter_idle(now_ns);
	uint64_t seed = rate_Bps + profile->flags;

	profile->second_rate = ref_rate_code(second_rate_Bps);
	ref_trtcm_init(&meter, profile, rate, now_ns, idle);
	vectors_profile(profile, rate_Bps, second_rate_Bps);
	printf(" state=%" PRIu64 ",%" PRIu64 " -> rate=%" PRIu32 " second_rate=%" PRIu32 " cbs_ticks=%" PRIu64
	       " %s_ticks=%" PRIu64 "\n", (uint64_t)idle, (uint64_t)idle, rate, profile->second_rate,
	       (uint64_t)meter.depth[0], profile->meter == PST_METER_RFC2698 ? "pbs" : "ebs", (uint64_t)meter.depth[1]);
	for (; count > 0; count--) {
		uint32_t bytes = vectors_bytes[vectors_draw(&seed, 8)];
		uint32_t in = vectors_draw(&seed, 8); /* half of the packets come green, a few red */
		enum pst_color color;

		in = in < 5 ? PST_COLOR_GREEN : in < 7 ? PST_COLOR_YELLOW : PST_COLOR_RED;
		color = ref_trtcm_take(&meter, now_ns, bytes, (enum pst_color)in);
		printf("take now=%" PRIu64 " bytes=%" PRIu32 " in=%s -> color=%s state=%" PRIu64 ",%" PRIu64 "\n",
		       (uint64_t)now_ns, bytes, vectors_colors[in], vectors_colors[color], (uint64_t)meter.words[0],
		       (uint64_t)meter.words[1]);
		now_ns += vectors_gap_ns(&seed, faster, bytes);
	}
}

int main(void)
{
	static const uint64_t rates_Bps[] = { 7500, 1250000, 12500000000 };
	struct pst_profile profile = { .mtu_bytes = 1514 };
	size_t i;

	vectors_header("trtcm.h: RFC 2698 and RFC 4115.");
	for (i = 0; i < 4 * sizeof(rates_Bps) / sizeof(rates_Bps[0]); i++) {
		uint64_t rate_Bps = rates_Bps[i / 4];

		profile.flags = i % 2 ? PST_PROFILE_COLOR_AWARE : 0;
		profile.meter = i % 4 < 2 ? PST_METER_RFC2698 : PST_METER_RFC4115;
		printf("# the second rate is twice the first\n");
		profile.burst_bytes = 15000;
		profile.excess_bytes = 30000;
		run(&profile, rate_Bps, 2 * rate_Bps, 1000, 50);
		printf("# across the wrap of the ticks; the second rate is barely above the first\n");
		run(&profile, rate_Bps, rate_Bps + rate_Bps / 100, vectors_before_wrap_ns(rate_Bps), 40);
		printf("# widened to two and three packets\n");
		profile.burst_bytes = 1;
		profile.excess_bytes = 1;
		run(&profile, rate_Bps, 3 * rate_Bps, 1000, 20);
	}
	return 0;
}
