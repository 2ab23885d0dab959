/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * trtcm.h: the two rate three color markers, colour-blind and colour-aware.
 *
 * What         Two buckets that fill independently, each a finish time in the time of its own rate (meter.h). With both
 *              clamped to now first, and fits(X) meaning finish + cost - now <= depth of bucket X:
 *              RFC 2698 (C at CIR, P at PIR)           RFC 4115 (C at CIR, E at EIR)
 *                  red      if P does not fit              green    if C fits      charge C
 *                  yellow   if C does not    charge P      yellow   if E fits      charge E
 *                  green    otherwise        charge both   red      otherwise
 *              Colour-aware: 2698 red stays red, and yellow is not tried on C. 4115 likewise.
 *              RFC 4115 asks for Tc(t) - B > 0 where the others ask for >= 0: its buckets never become empty.
 * Source       RFC 2698 sections 2 and 3; RFC 4115 sections 2 and 3; the time domain from SwitchRL section 5.
 * Units        _ticks 1/1024 ns at the bucket's own rate, bytes, rate codes (fixed.h).
 * Ranges       as limiter.h; bytes up to 2^17, mtu up to 2^16. PIR >= CIR is the policy's to check: a lower PIR limits.
 * Invariants   I1  2698, in any [s, t]: green bytes <= CBS + CIR * (t-s), green and yellow <= PBS + PIR * (t-s).
 *                  4115: green bytes <= CBS + CIR * (t-s), yellow bytes <= EBS + EIR * (t-s).
 *              I2  equal to the RFC's two counters, to within the rounding of a cost (fixed.h I1).
 *              I3  red changes nothing; yellow takes nothing from C, 4115's green nothing from E.
 *              I4  decisions depend on differences of times only; wraps and idle hours change nothing.
 *              I5  saturated: 2698 passes PIR and marks CIR of it green; 4115 passes CIR + EIR. No credit is lost.
 *              I6  colour-aware never improves a colour, and is colour-blind when everything comes green.
 * Overflow     finish - now <= depth + PST_AHEAD_MAX_TICKS + cost < 2^54.
 * Concurrency  pure; many CPUs on one state: meter.h.
 * Not done     RFC 4115's coupling of the buckets through T = CBS/CIR = EBS/EIR: write both as the same time instead.
 */
#ifndef PENSTOCK_TRTCM_H
#define PENSTOCK_TRTCM_H

#include "meter.h"

struct pst_rfc2698_profile {
	uint64_t cbs_ticks; /* at CIR */
	uint64_t pbs_ticks; /* at PIR */
	uint32_t rate;      /* CIR, rate code */
	uint32_t peak_rate; /* PIR, rate code */
	bool color_aware;
};

struct pst_rfc4115_profile {
	uint64_t cbs_ticks;   /* at CIR */
	uint64_t ebs_ticks;   /* at EIR */
	uint32_t rate;        /* CIR, rate code */
	uint32_t excess_rate; /* EIR, rate code */
	bool color_aware;
};

/* Resolves the shared profile for one CIR. C is asked only for what P passes: three packets (meter.h I2). */
PST_INLINE void pst_rfc2698_resolve(struct pst_rfc2698_profile *out, const struct pst_profile *profile, uint32_t rate)
{
	out->rate = rate;
	out->peak_rate = profile->second_rate;
	out->color_aware = (profile->flags & PST_PROFILE_COLOR_AWARE) != 0;
	out->cbs_ticks = pst_meter_depth(rate, profile->burst_ticks, profile->burst_bytes, 3, profile->mtu_bytes);
	out->pbs_ticks = pst_meter_depth(out->peak_rate, profile->excess_ticks, profile->excess_bytes, 2,
					 profile->mtu_bytes);
}

/* Colours one packet without changing anything; `color_in` (green, yellow, red) counts in colour-aware mode only. */
PST_INLINE struct pst_meter_result pst_rfc2698_meter(const struct pst_rfc2698_profile *profile,
						     const struct pst_meter_state *in, uint64_t now_ns, uint32_t bytes,
						     uint8_t color_in)
{
	uint64_t now = pst_clock_ticks(now_ns);
	uint64_t committed = pst_meter_base(in->committed_ticks, now, profile->cbs_ticks);
	uint64_t peak = pst_meter_base(in->excess_ticks, now, profile->pbs_ticks);
	uint64_t cost = pst_rate_cost(profile->rate, bytes);
	uint64_t peak_cost = pst_rate_cost(profile->peak_rate, bytes);
	struct pst_meter_result result;

	if (!profile->color_aware)
		color_in = PST_COLOR_GREEN;
	result.committed_cost_ticks = 0;
	result.excess_cost_ticks = 0;
	if (color_in > PST_COLOR_YELLOW || peak + peak_cost - now > profile->pbs_ticks) {
		result.color = PST_COLOR_RED;
		result.state = *in;
		return result;
	}
	result.color = PST_COLOR_YELLOW;
	result.state.committed_ticks = committed;
	result.state.excess_ticks = peak + peak_cost;
	result.excess_cost_ticks = peak_cost;
	if (color_in == PST_COLOR_GREEN && committed + cost - now <= profile->cbs_ticks) {
		result.color = PST_COLOR_GREEN;
		result.state.committed_ticks = committed + cost;
		result.committed_cost_ticks = cost;
	}
	return result;
}

/* The state after a meter changed from `before` to `after` (meter.h I3). */
PST_INLINE struct pst_meter_state pst_rfc2698_convert(const struct pst_rfc2698_profile *before,
						      const struct pst_rfc2698_profile *after,
						      const struct pst_meter_state *in, uint64_t now_ns)
{
	uint64_t now = pst_clock_ticks(now_ns);
	uint64_t committed = pst_meter_base(in->committed_ticks, now, before->cbs_ticks) - now;
	uint64_t peak = pst_meter_base(in->excess_ticks, now, before->pbs_ticks) - now;
	struct pst_meter_state out;

	out.committed_ticks = now + pst_meter_convert(before->rate, after->rate, committed, after->cbs_ticks);
	out.excess_ticks = now + pst_meter_convert(before->peak_rate, after->peak_rate, peak, after->pbs_ticks);
	return out;
}

/* Resolves the shared profile for one CIR. E is asked only for what C refuses: three packets (meter.h I2). */
PST_INLINE void pst_rfc4115_resolve(struct pst_rfc4115_profile *out, const struct pst_profile *profile, uint32_t rate)
{
	out->rate = rate;
	out->excess_rate = profile->second_rate;
	out->color_aware = (profile->flags & PST_PROFILE_COLOR_AWARE) != 0;
	out->cbs_ticks = pst_meter_depth(rate, profile->burst_ticks, profile->burst_bytes, 2, profile->mtu_bytes);
	out->ebs_ticks = pst_meter_depth(out->excess_rate, profile->excess_ticks, profile->excess_bytes, 3,
					 profile->mtu_bytes);
}

/* Colours one packet without changing anything; `color_in` (green, yellow, red) counts in colour-aware mode only. */
PST_INLINE struct pst_meter_result pst_rfc4115_meter(const struct pst_rfc4115_profile *profile,
						     const struct pst_meter_state *in, uint64_t now_ns, uint32_t bytes,
						     uint8_t color_in)
{
	uint64_t now = pst_clock_ticks(now_ns);
	uint64_t committed = pst_meter_base(in->committed_ticks, now, profile->cbs_ticks);
	uint64_t excess = pst_meter_base(in->excess_ticks, now, profile->ebs_ticks);
	uint64_t cost = pst_rate_cost(profile->rate, bytes);
	uint64_t excess_cost = pst_rate_cost(profile->excess_rate, bytes);
	struct pst_meter_result result;

	if (!profile->color_aware)
		color_in = PST_COLOR_GREEN;
	result.state.committed_ticks = committed;
	result.state.excess_ticks = excess;
	result.committed_cost_ticks = 0;
	result.excess_cost_ticks = 0;
	if (color_in == PST_COLOR_GREEN && committed + cost - now < profile->cbs_ticks) {
		result.color = PST_COLOR_GREEN;
		result.state.committed_ticks = committed + cost;
		result.committed_cost_ticks = cost;
	} else if (color_in <= PST_COLOR_YELLOW && excess + excess_cost - now < profile->ebs_ticks) {
		result.color = PST_COLOR_YELLOW;
		result.state.excess_ticks = excess + excess_cost;
		result.excess_cost_ticks = excess_cost;
	} else {
		result.color = PST_COLOR_RED;
		result.state = *in;
	}
	return result;
}

/* The state after a meter changed from `before` to `after` (meter.h I3). */
PST_INLINE struct pst_meter_state pst_rfc4115_convert(const struct pst_rfc4115_profile *before,
						      const struct pst_rfc4115_profile *after,
						      const struct pst_meter_state *in, uint64_t now_ns)
{
	uint64_t now = pst_clock_ticks(now_ns);
	uint64_t committed = pst_meter_base(in->committed_ticks, now, before->cbs_ticks) - now;
	uint64_t excess = pst_meter_base(in->excess_ticks, now, before->ebs_ticks) - now;
	struct pst_meter_state out;

	out.committed_ticks = now + pst_meter_convert(before->rate, after->rate, committed, after->cbs_ticks);
	out.excess_ticks = now + pst_meter_convert(before->excess_rate, after->excess_rate, excess, after->ebs_ticks);
	return out;
}

#endif /* PENSTOCK_TRTCM_H */
