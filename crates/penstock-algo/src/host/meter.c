/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* srtcm.h and trtcm.h for Rust. The profile says which of the three RFCs it is. */
#include <penstock/srtcm.h>
#include <penstock/trtcm.h>

void pst_host_meter_depths(const struct pst_profile *profile, uint32_t rate, uint64_t *committed_ticks,
			   uint64_t *excess_ticks);
uint32_t pst_host_meter_take(const struct pst_profile *profile, uint32_t rate, struct pst_meter_state *state,
			     uint64_t now_ns, uint32_t bytes, uint32_t color_in);

/* The depth of C, and of the bucket beside it: E, or P of RFC 2698. */
void pst_host_meter_depths(const struct pst_profile *profile, uint32_t rate, uint64_t *committed_ticks,
			   uint64_t *excess_ticks)
{
	if (profile->meter == PST_METER_RFC2697) {
		struct pst_rfc2697_profile meter;

		pst_rfc2697_resolve(&meter, profile, rate);
		*committed_ticks = meter.cbs_ticks;
		*excess_ticks = meter.ebs_ticks;
	} else if (profile->meter == PST_METER_RFC2698) {
		struct pst_rfc2698_profile meter;

		pst_rfc2698_resolve(&meter, profile, rate);
		*committed_ticks = meter.cbs_ticks;
		*excess_ticks = meter.pbs_ticks;
	} else {
		struct pst_rfc4115_profile meter;

		pst_rfc4115_resolve(&meter, profile, rate);
		*committed_ticks = meter.cbs_ticks;
		*excess_ticks = meter.ebs_ticks;
	}
}

/* Returns the colour. */
uint32_t pst_host_meter_take(const struct pst_profile *profile, uint32_t rate, struct pst_meter_state *state,
			     uint64_t now_ns, uint32_t bytes, uint32_t color_in)
{
	uint8_t in = color_in < PST_COLOR_RED ? (uint8_t)color_in : PST_COLOR_RED;
	struct pst_meter_result result;

	if (profile->meter == PST_METER_RFC2697) {
		struct pst_rfc2697_profile meter;

		pst_rfc2697_resolve(&meter, profile, rate);
		result = pst_rfc2697_meter(&meter, state, now_ns, bytes, in);
	} else if (profile->meter == PST_METER_RFC2698) {
		struct pst_rfc2698_profile meter;

		pst_rfc2698_resolve(&meter, profile, rate);
		result = pst_rfc2698_meter(&meter, state, now_ns, bytes, in);
	} else {
		struct pst_rfc4115_profile meter;

		pst_rfc4115_resolve(&meter, profile, rate);
		result = pst_rfc4115_meter(&meter, state, now_ns, bytes, in);
	}
	*state = result.state;
	return result.color;
}
