/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * nanobytes.h: bytes that accumulate with time, without any rounding.
 *
 * What         A rate of R bytes/s moves R nanobytes in a nanosecond. Counted in nanobytes, "rate times elapsed time"
 *              is an integer product, so the meters that keep bytes (SwitchRL's Algorithms 1 and 2, Nimble's logical
 *              meter) lose nothing between packets, however short the gap. What moves in one gap is at most `full_nB`:
 *              the bucket or the virtual queue holds no more.
 * Source       ours.
 * Units        _nB nanobytes (10^-9 bytes), rate_Bps bytes per second, _ns nanoseconds.
 * Ranges       up to 2^32 - 1 bytes; rates PST_RATE_MIN_BPS .. PST_RATE_MAX_BPS (clamped); now may wrap.
 * Invariants   I1  flow(t1) + flow(t2) == flow(t1 + t2) exactly while the sum is below full.
 *              I2  flow is monotone in time and never above full.
 *              I3  time that steps back moves nothing, and that time is not counted again once it has passed.
 *              I4  a last time more than PST_AHEAD_MAX_NSEC in the future is stale: a long gap (limiter.h, I5).
 * Overflow     full < 2^32 * 10^9 < 2^62. elapsed < fill_ns = ceil(full / rate) implies rate * elapsed < full.
 * Concurrency  pure.
 */
#ifndef PENSTOCK_NANOBYTES_H
#define PENSTOCK_NANOBYTES_H

#include "fixed.h"

#define PST_NANOBYTES_PER_BYTE UINT64_C(1000000000)
#define PST_AHEAD_MAX_NSEC (UINT64_C(1) << 38) /* 275 s */

struct pst_flow_profile {
	uint64_t rate_Bps;
	uint64_t full_nB;
	uint64_t fill_ns; /* from empty to full */
};

PST_INLINE uint64_t pst_nanobytes(uint32_t bytes)
{
	return bytes * PST_NANOBYTES_PER_BYTE;
}

PST_INLINE void pst_flow_compile(struct pst_flow_profile *out, uint64_t rate_Bps, uint32_t full_bytes)
{
	if (rate_Bps < PST_RATE_MIN_BPS)
		rate_Bps = PST_RATE_MIN_BPS;
	if (rate_Bps > PST_RATE_MAX_BPS)
		rate_Bps = PST_RATE_MAX_BPS;
	out->rate_Bps = rate_Bps;
	out->full_nB = pst_nanobytes(full_bytes);
	out->fill_ns = (out->full_nB + rate_Bps - 1) / rate_Bps;
}

/* The gap since `last_ns`: 0 when time stepped back, and then last_ns must be kept. */
PST_INLINE uint64_t pst_flow_elapsed_ns(uint64_t now_ns, uint64_t last_ns)
{
	int64_t elapsed_ns = (int64_t)(now_ns - last_ns);

	if (elapsed_ns >= 0)
		return (uint64_t)elapsed_ns;
	return last_ns - now_ns > PST_AHEAD_MAX_NSEC ? UINT64_MAX : 0;
}

/* What moves in a gap, at most full_nB. */
PST_INLINE uint64_t pst_flow_nB(const struct pst_flow_profile *profile, uint64_t elapsed_ns)
{
	return elapsed_ns >= profile->fill_ns ? profile->full_nB : profile->rate_Bps * elapsed_ns;
}

#endif /* PENSTOCK_NANOBYTES_H */
