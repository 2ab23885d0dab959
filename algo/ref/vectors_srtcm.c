/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of srtcm.h. */
#include "ref_srtcm.h"
#include "vectors.h"

static void run(const struct pst_profile *profile, uint64_t rate_Bps, ref_int now_ns, int count)
{
	struct ref_rfc2697 meter;
	uint32_t rate = ref_rate_code(rate_Bps);
	ref_int idle = ref_limiter_idle(now_ns);
	uint64_t seed = rate_Bps + profile->flags;

	ref_rfc2697_init(&meter, profile, rate, now_ns, idle);
	vectors_profile(profile, rate_Bps, 0);
	printf(" state=%" PRIu64 ",%" PRIu64 " -> rate=%" PRIu32 " cbs_ticks=%" PRIu64 " ebs_ticks=%" PRIu64 "\n",
	       (uint64_t)idle, (uint64_t)idle, rate, (uint64_t)meter.cbs, (uint64_t)meter.ebs);
	for (; count > 0; count--) {
		uint32_t bytes = vectors_bytes[vectors_draw(&seed, 8)];
		uint32_t in = vectors_draw(&seed, 8); /* half of the packets come green, a few red */
		enum pst_color color;

		in = in < 5 ? PST_COLOR_GREEN : in < 7 ? PST_COLOR_YELLOW : PST_COLOR_RED;
		color = ref_rfc2697_take(&meter, now_ns, bytes, (enum pst_color)in);
		printf("take now=%" PRIu64 " bytes=%" PRIu32 " in=%s -> color=%s state=%" PRIu64 ",%" PRIu64 "\n",
		       (uint64_t)now_ns, bytes, vectors_colors[in], vectors_colors[color], (uint64_t)meter.words[0],
		       (uint64_t)meter.words[1]);
		now_ns += vectors_gap_ns(&seed, rate, bytes);
	}
}

int main(void)
{
	static const uint64_t rates_Bps[] = { 7500, 1250000, 12500000000 };
	struct pst_profile profile = { .meter = PST_METER_RFC2697, .mtu_bytes = 1514 };
	size_t i;

	vectors_header("srtcm.h: RFC 2697.");
	for (i = 0; i < 2 * sizeof(rates_Bps) / sizeof(rates_Bps[0]); i++) {
		profile.flags = i % 2 ? PST_PROFILE_COLOR_AWARE : 0;
		printf("# both buckets\n");
		profile.burst_bytes = 15000;
		profile.excess_bytes = 30000;
		run(&profile, rates_Bps[i / 2], 1000, 50);
		printf("# across the wrap of the ticks\n");
		run(&profile, rates_Bps[i / 2], vectors_before_wrap_ns(rates_Bps[i / 2]), 40);
		printf("# C alone, widened to two packets\n");
		profile.burst_bytes = 2000;
		profile.excess_bytes = 0;
		run(&profile, rates_Bps[i / 2], 1000, 20);
		printf("# E alone\n");
		profile.burst_bytes = 0;
		profile.excess_bytes = 9000;
		run(&profile, rates_Bps[i / 2], 1000, 20);
	}
	printf("# neither: C gets two packets\n");
	profile.excess_bytes = 0;
	run(&profile, 125000, 1000, 10);
	return 0;
}
