/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* srtcm.h and trtcm.h for Rust. The profile says which of the three RFCs it is. */
#include "meter.h"

#include <penstock/srtcm.h>
#include <penstock/trtcm.h>

void pst_host_meter_depths(const struct pst_profile *profile, uint32_t rate, uint64_t *committed_ticks,
			   uint64_t *excess_ticks);
uint64_t pst_host_meter_used_ns(const struct pst_profile *profile, uint32_t rate, const struct pst_meter_state *state,
				uint64_t now_ns, uint64_t *holds_ns);
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

/* What is used of the committed bucket. */
uint64_t pst_host_meter_used_ns(const struct pst_profile *profile, uint32_t rate, const struct pst_meter_state *state,
				uint64_t now_ns, uint64_t *holds_ns)
{
	uint64_t now = pst_clock_ticks(now_ns), committed_ticks, excess_ticks;

	pst_host_meter_depths(profile, rate, &committed_ticks, &excess_ticks);
	*holds_ns = committed_ticks >> PST_TICK_BITS;
	return (pst_meter_base(state->committed_ticks, now, committed_ticks) - now) >> PST_TICK_BITS;
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

/* What was counted by another RFC means something else: the buckets are full then. */
struct pst_meter_state pst_host_meter_convert(const struct pst_profile *before, uint32_t before_rate,
					      const struct pst_profile *after, uint32_t after_rate,
					      const struct pst_meter_state *state, uint64_t now_ns)
{
	if (before->meter != after->meter)
		return pst_meter_idle(now_ns);
	if (after->meter == PST_METER_RFC2697) {
		struct pst_rfc2697_profile from, to;

		pst_rfc2697_resolve(&from, before, before_rate);
		pst_rfc2697_resolve(&to, after, after_rate);
		return pst_rfc2697_convert(&from, &to, state, now_ns);
	}
	if (after->meter == PST_METER_RFC2698) {
		struct pst_rfc2698_profile from, to;

		pst_rfc2698_resolve(&from, before, before_rate);
		pst_rfc2698_resolve(&to, after, after_rate);
		return pst_rfc2698_convert(&from, &to, state, now_ns);
	}
	struct pst_rfc4115_profile from, to;

	pst_rfc4115_resolve(&from, before, before_rate);
	pst_rfc4115_resolve(&to, after, after_rate);
	return pst_rfc4115_convert(&from, &to, state, now_ns);
}

/*
 * The same in place, while packets are charged: a word that changed meanwhile is converted as it is then. C's word does not depend on
 * the other, so that what it was charged with in between needs no second look at E's.
 */
void pst_host_meter_change(const struct pst_profile *before, uint32_t before_rate, const struct pst_profile *after,
			   uint32_t after_rate, struct pst_meter_state *state, uint64_t now_ns)
{
	struct pst_meter_state old, next;

	do {
		old = pst_meter_load(state);
		next = pst_host_meter_convert(before, before_rate, after, after_rate, &old, now_ns);
	} while (!pst_limiter_commit(&state->excess_ticks, &old.excess_ticks, next.excess_ticks));
	while (!pst_limiter_commit(&state->committed_ticks, &old.committed_ticks, next.committed_ticks))
		next = pst_host_meter_convert(before, before_rate, after, after_rate, &old, now_ns);
}
