/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * ref_limiter.h: the virtual-finish-time limiter on a time axis that never wraps.
 *
 * Times are 128-bit and absolute: a host's u64 clock and the u64 state are these numbers modulo 2^64.
 */
#ifndef PENSTOCK_REF_LIMITER_H
#define PENSTOCK_REF_LIMITER_H

#include <penstock/wire.h>

#include "ref_fixed.h"

#define REF_WINDOW_MAX_TICKS ((ref_int)1 << 52)
#define REF_AHEAD_MAX_TICKS ((ref_int)1 << 48)

struct ref_limiter_profile {
	ref_int green_ticks;
	ref_int window_ticks;
	uint32_t rate;
	bool shapes;
};

struct ref_limiter_result {
	ref_int vft_ticks;
	ref_int depth_ticks;
	ref_int wait_ticks;
	enum pst_color color;
};

ref_int ref_depth_ticks(uint32_t rate, uint64_t ticks, uint32_t bytes);
struct ref_limiter_profile ref_limiter_resolve(const struct pst_profile *profile, uint32_t rate);
ref_int ref_limiter_idle(ref_int now_ns);
struct ref_limiter_result ref_limiter_try(const struct ref_limiter_profile *profile, ref_int vft_ticks, ref_int now_ns,
					  uint32_t bytes);
ref_int ref_limiter_convert(const struct ref_limiter_profile *before, const struct ref_limiter_profile *after,
			    ref_int vft_ticks, ref_int now_ns);

#endif /* PENSTOCK_REF_LIMITER_H */
