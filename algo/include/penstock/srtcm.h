/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * srtcm.h: the single rate three color marker, colour-blind and colour-aware.
 *
 * What         RFC 2697 fills C at CIR, and E with what C cannot hold. So a state is two finish times: `committed` is
 *              when C would be full, `excess` (never before it) when E would be full too. With both clamped to now:
 *                  tokens in C = CBS - (committed - now)          tokens in E = EBS - (excess - committed)
 *                  green    if committed + cost - now <= CBS      committed += cost, excess += cost
 *                  yellow   if excess + cost - committed <= EBS   excess += cost
 *                  red      otherwise                             nothing
 *              Colour-aware: green only if it came green, yellow only if it came green or yellow.
 *              Why charging C moves E's finish too: while C refills that packet's tokens, E waits.
 * Source       RFC 2697 sections 2 and 3; the time domain from SwitchRL section 5.
 * Units        _ticks 1/1024 ns at CIR, bytes, rate codes (fixed.h).
 * Ranges       as limiter.h; bytes up to 2^17, mtu up to 2^16.
 * Invariants   I1  in any [s, t]: green bytes <= CBS + CIR * (t-s), green and yellow <= CBS + EBS + CIR * (t-s).
 *              I2  equal to the RFC's two counters, to within the rounding of a cost (fixed.h I1).
 *              I3  red changes nothing.
 *              I4  decisions depend on differences of times only; wraps and idle hours change nothing.
 *              I5  a saturated meter passes CIR, all of it green once the buckets were emptied: no credit is lost.
 *              I6  colour-aware never improves a colour, and is colour-blind when everything comes green.
 * Overflow     excess - now <= CBS + EBS + PST_AHEAD_MAX_TICKS + cost < 2^55.
 * Concurrency  pure; many CPUs on one state: meter.h.
 * Not done     no CBS = EBS = 0 (RFC 2697 section 2 forbids it): CBS is then widened.
 */
#ifndef PENSTOCK_SRTCM_H
#define PENSTOCK_SRTCM_H

#include "meter.h"

struct pst_rfc2697_profile {
	uint64_t cbs_ticks;
	uint64_t ebs_ticks;
	uint32_t rate; /* CIR, rate code */
	bool color_aware;
};

/*
 * Resolves the shared profile for one CIR. A bucket in use gets its two packets (meter.h I2): E too, which is asked
 * for every packet when they all come yellow. A bucket of depth 0 is not in use, unless both are.
 */
PST_INLINE void pst_rfc2697_resolve(struct pst_rfc2697_profile *out, const struct pst_profile *profile, uint32_t rate)
{
	bool has_cbs = profile->burst_ticks != 0 || profile->burst_bytes != 0;
	bool has_ebs = profile->excess_ticks != 0 || profile->excess_bytes != 0;
	uint32_t mtu = profile->mtu_bytes;

	out->rate = rate;
	out->color_aware = (profile->flags & PST_PROFILE_COLOR_AWARE) != 0;
	out->cbs_ticks = 0;
	out->ebs_ticks = 0;
	if (has_cbs || !has_ebs)
		out->cbs_ticks = pst_meter_depth(rate, profile->burst_ticks, profile->burst_bytes, 2, mtu);
	if (has_ebs)
		out->ebs_ticks = pst_meter_depth(rate, profile->excess_ticks, profile->excess_bytes, 2, mtu);
}

/* Colours one packet without changing anything; `color_in` (green, yellow, red) counts in colour-aware mode only. */
PST_INLINE struct pst_meter_result pst_rfc2697_meter(const struct pst_rfc2697_profile *profile,
						     const struct pst_meter_state *in, uint64_t now_ns, uint32_t bytes,
						     uint8_t color_in)
{
	uint64_t now = pst_clock_ticks(now_ns);
	uint64_t cost = pst_rate_cost(profile->rate, bytes);
	uint64_t committed = pst_meter_base(in->committed_ticks, now, profile->cbs_ticks);
	uint64_t excess = pst_meter_base(in->excess_ticks, now, profile->cbs_ticks + profile->ebs_ticks);
	struct pst_meter_result result;

	if (pst_clock_before(excess, committed))
		excess = committed;
	if (!profile->color_aware)
		color_in = PST_COLOR_GREEN;
	result.state = *in;
	result.committed_cost_ticks = 0;
	result.excess_cost_ticks = 0;
	if (color_in == PST_COLOR_GREEN && committed + cost - now <= profile->cbs_ticks) {
		result.color = PST_COLOR_GREEN;
		result.state.committed_ticks = committed + cost;
		result.state.excess_ticks = excess + cost;
		result.committed_cost_ticks = cost;
		result.excess_cost_ticks = cost;
	} else if (color_in <= PST_COLOR_YELLOW && excess + cost - committed <= profile->ebs_ticks) {
		result.color = PST_COLOR_YELLOW;
		result.state.committed_ticks = committed;
		result.state.excess_ticks = excess + cost;
		result.excess_cost_ticks = cost;
	} else {
		result.color = PST_COLOR_RED;
	}
	return result;
}

/* The state after a meter changed from `before` to `after` (meter.h I3). */
PST_INLINE struct pst_meter_state pst_rfc2697_convert(const struct pst_rfc2697_profile *before,
						      const struct pst_rfc2697_profile *after,
						      const struct pst_meter_state *in, uint64_t now_ns)
{
	uint64_t now = pst_clock_ticks(now_ns);
	uint64_t committed = pst_meter_base(in->committed_ticks, now, before->cbs_ticks);
	uint64_t excess = pst_meter_base(in->excess_ticks, now, before->cbs_ticks + before->ebs_ticks);
	struct pst_meter_state out;

	if (pst_clock_before(excess, committed))
		excess = committed;
	out.committed_ticks = now + pst_meter_convert(before->rate, after->rate, committed - now, after->cbs_ticks);
	out.excess_ticks = out.committed_ticks +
			   pst_meter_convert(before->rate, after->rate, excess - committed, after->ebs_ticks);
	return out;
}

#endif /* PENSTOCK_SRTCM_H */
