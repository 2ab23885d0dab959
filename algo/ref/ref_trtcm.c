/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_trtcm.h"

void ref_trtcm_init(struct ref_trtcm *meter, const struct pst_profile *profile, uint32_t rate, ref_int now_ns,
		    ref_int word)
{
	bool is_2698 = profile->meter == PST_METER_RFC2698;

	meter->meter = profile->meter;
	meter->color_aware = (profile->flags & PST_PROFILE_COLOR_AWARE) != 0;
	meter->rate[0] = rate;
	meter->rate[1] = profile->second_rate;
	meter->depth[0] = ref_bucket_depth(rate, profile->burst_ticks, profile->burst_bytes, is_2698 ? 3 : 2,
					   profile->mtu_bytes);
	meter->depth[1] = ref_bucket_depth(profile->second_rate, profile->excess_ticks, profile->excess_bytes,
					   is_2698 ? 2 : 3, profile->mtu_bytes);
	/* Both RFCs, section 3: the buckets are initially full. */
	meter->tokens[0] = meter->depth[0];
	meter->tokens[1] = meter->depth[1];
	meter->last_ns = now_ns;
	meter->words[0] = word;
	meter->words[1] = word;
}

/* RFC 2698 section 3, colour-blind when everything counts as green. */
static enum pst_color ref_rfc2698_color(struct ref_trtcm *meter, ref_int size_c, ref_int size_p, enum pst_color in)
{
	if (in == PST_COLOR_RED || meter->tokens[1] - size_p < 0)
		return PST_COLOR_RED;
	if (in == PST_COLOR_YELLOW || meter->tokens[0] - size_c < 0) {
		meter->tokens[1] -= size_p;
		return PST_COLOR_YELLOW;
	}
	meter->tokens[1] -= size_p;
	meter->tokens[0] -= size_c;
	return PST_COLOR_GREEN;
}

/* RFC 4115 section 3; its comparisons are strict. */
static enum pst_color ref_rfc4115_color(struct ref_trtcm *meter, ref_int size_c, ref_int size_e, enum pst_color in)
{
	if (in == PST_COLOR_GREEN && meter->tokens[0] - size_c > 0) {
		meter->tokens[0] -= size_c;
		return PST_COLOR_GREEN;
	}
	if ((in == PST_COLOR_GREEN || in == PST_COLOR_YELLOW) && meter->tokens[1] - size_e > 0) {
		meter->tokens[1] -= size_e;
		return PST_COLOR_YELLOW;
	}
	return PST_COLOR_RED;
}

enum pst_color ref_trtcm_take(struct ref_trtcm *meter, ref_int now_ns, uint32_t bytes, enum pst_color color_in)
{
	ref_int sizes[2], now = now_ns * REF_TICKS_PER_NSEC;
	enum pst_color in = meter->color_aware ? color_in : PST_COLOR_GREEN, color;
	int i;

	for (i = 0; i < 2; i++) {
		meter->tokens[i] += (now_ns - meter->last_ns) * REF_TICKS_PER_NSEC;
		if (meter->tokens[i] > meter->depth[i])
			meter->tokens[i] = meter->depth[i];
		sizes[i] = ref_rate_cost(meter->rate[i], bytes);
	}
	meter->last_ns = now_ns;
	if (meter->meter == PST_METER_RFC2698)
		color = ref_rfc2698_color(meter, sizes[0], sizes[1], in);
	else
		color = ref_rfc4115_color(meter, sizes[0], sizes[1], in);
	if (color != PST_COLOR_RED) {
		for (i = 0; i < 2; i++)
			meter->words[i] = now + (meter->depth[i] - meter->tokens[i]);
	}
	return color;
}
