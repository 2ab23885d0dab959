/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_srtcm.h"

ref_int ref_bucket_depth(uint32_t rate, uint64_t ticks, uint32_t bytes, int packets, uint32_t mtu_bytes)
{
	ref_int depth = ref_depth_ticks(rate, ticks, bytes);
	ref_int least = packets * ref_rate_cost(rate, mtu_bytes);

	return depth > least ? depth : least;
}

void ref_rfc2697_init(struct ref_rfc2697 *meter, const struct pst_profile *profile, uint32_t rate, ref_int now_ns,
		      ref_int word)
{
	bool has_c = profile->burst_ticks || profile->burst_bytes;
	bool has_e = profile->excess_ticks || profile->excess_bytes;

	meter->rate = rate;
	meter->color_aware = (profile->flags & PST_PROFILE_COLOR_AWARE) != 0;
	meter->cbs = has_c || !has_e ? ref_bucket_depth(rate, profile->burst_ticks, profile->burst_bytes, 2,
							profile->mtu_bytes) : 0;
	meter->ebs = has_e ? ref_bucket_depth(rate, profile->excess_ticks, profile->excess_bytes, 2,
					      profile->mtu_bytes) : 0;
	/* Section 3: "The token buckets C and E are initially (at time 0) full". */
	meter->tc = meter->cbs;
	meter->te = meter->ebs;
	meter->last_ns = now_ns;
	meter->words[0] = word;
	meter->words[1] = word;
}

/* Section 3: tokens go to C while it is below CBS, else to E while that is below EBS, else nowhere. */
static void ref_rfc2697_refill(struct ref_rfc2697 *meter, ref_int now_ns)
{
	ref_int tokens = (now_ns - meter->last_ns) * REF_TICKS_PER_NSEC;
	ref_int room_c = meter->cbs - meter->tc, room_e = meter->ebs - meter->te;
	ref_int to_c = tokens < room_c ? tokens : room_c;
	ref_int to_e = tokens - to_c < room_e ? tokens - to_c : room_e;

	meter->tc += to_c;
	meter->te += to_e;
	meter->last_ns = now_ns;
}

enum pst_color ref_rfc2697_take(struct ref_rfc2697 *meter, ref_int now_ns, uint32_t bytes, enum pst_color color_in)
{
	ref_int size = ref_rate_cost(meter->rate, bytes);
	enum pst_color color;

	ref_rfc2697_refill(meter, now_ns);
	if ((!meter->color_aware || color_in == PST_COLOR_GREEN) && meter->tc - size >= 0) {
		color = PST_COLOR_GREEN;
		meter->tc -= size;
	} else if ((!meter->color_aware || color_in == PST_COLOR_GREEN || color_in == PST_COLOR_YELLOW) &&
		   meter->te - size >= 0) {
		color = PST_COLOR_YELLOW;
		meter->te -= size;
	} else {
		return PST_COLOR_RED;
	}
	meter->words[0] = now_ns * REF_TICKS_PER_NSEC + (meter->cbs - meter->tc);
	meter->words[1] = meter->words[0] + (meter->ebs - meter->te);
	return color;
}
