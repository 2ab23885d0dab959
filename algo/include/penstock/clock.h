/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * clock.h: time that may wrap.
 *
 * What         A tick is 1/1024 ns. `now` enters algo/ as u64 ns and is turned into ticks once.
 * Units        _ns nanoseconds, _ticks ticks.
 * Ranges       2^64 ticks are 2^54 ns = 208 days, so a difference is meaningful up to +-104 days.
 *              The limiter's tick must be finer than 1/256 ns: a 64 B packet at 400 Gbit/s costs
 *              1.28 ns = 1311 ticks, so rounding to a tick errs by at most 0.04 %.
 * Invariants   I1  before(a, b) == !before(b, a) unless a and b are equal or 2^63 ticks apart.
 *              I2  since(a, b) is the true distance while that is below 2^63 ticks, across any wrap.
 * Overflow     All differences are taken modulo 2^64 and read as signed; no signed operation can overflow.
 * Not done     No clock is read here, or anywhere in algo/: the host passes `now`.
 */
#ifndef PENSTOCK_CLOCK_H
#define PENSTOCK_CLOCK_H

#include "types.h"

#define PST_TICK_BITS 10
#define PST_TICKS_PER_NSEC (UINT64_C(1) << PST_TICK_BITS)

PST_INLINE uint64_t pst_clock_ticks(uint64_t now_ns)
{
	return now_ns << PST_TICK_BITS;
}

/* Ticks from `earlier` to `later`; negative when `later` is in fact before. */
PST_INLINE int64_t pst_clock_since(uint64_t later_ticks, uint64_t earlier_ticks)
{
	return (int64_t)(later_ticks - earlier_ticks);
}

PST_INLINE bool pst_clock_before(uint64_t a_ticks, uint64_t b_ticks)
{
	return pst_clock_since(a_ticks, b_ticks) < 0;
}

#endif /* PENSTOCK_CLOCK_H */
