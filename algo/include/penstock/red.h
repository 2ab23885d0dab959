/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * red.h: early drop and early marking in the yellow zone.
 *
 * What         p(depth) = 0                                     depth <= c
 *              p(depth) = max * (depth - c) / e                 c < depth < c + e
 *              p(depth) = max                                   depth >= c + e
 *              A packet is dropped or marked when a uniform 32-bit number is below p.
 * Source       the linear rise of RED (Floyd and Jacobson 1993) over the instantaneous depth; SwitchRL section 7,
 *              Algorithm 4, "randomDrop", whose probability the paper never gives (erratum S4); Nimble section 4.1,
 *              congestion manager: DCTCP marks every yellow packet, DCQCN marks with RED's probability.
 * Units        _q32 a probability in units of 2^-32; depths in ticks, or in any one unit common to all three.
 * Ranges       all of u64 for the depths (green <= window), all of u32 for max_q32: at most 1 - 2^-32.
 * Invariants   I1  p is 0 up to c and max from c + e on.
 *              I2  p is monotone in the depth and never above max.
 *              I3  |p - exact| < 3 units of 2^-32: the rise and e are cut together so that e has 32 significant bits.
 *              I4  p = 0 never drops; a p above 0 drops exactly p of the 2^32 possible numbers.
 * Overflow     rise < 2^32 and max < 2^32, so the product is below 2^64.
 * Concurrency  pure.
 * Not done     no averaged queue (RED's EWMA): the papers use the virtual queue's depth as it is.
 */
#ifndef PENSTOCK_RED_H
#define PENSTOCK_RED_H

#include "fixed.h"

#define PST_RED_MAX_DEFAULT_Q32 UINT32_C(429496730) /* 10 %, erratum S4 */

enum pst_red_marking {
	PST_RED_MARK_ALL = 0,    /* DCTCP: every yellow packet */
	PST_RED_MARK_RANDOM = 1, /* DCQCN: with RED's probability */
};

/* One division, of 64 by 32 bits, and only for packets inside the yellow zone. */
PST_INLINE uint32_t pst_red_probability_q32(uint64_t depth_ticks, uint64_t green_ticks, uint64_t window_ticks,
					    uint32_t max_q32)
{
	uint64_t rise, excess;
	uint32_t length;

	if (depth_ticks <= green_ticks)
		return 0;
	if (depth_ticks >= window_ticks)
		return max_q32;
	rise = depth_ticks - green_ticks;
	excess = window_ticks - green_ticks; /* > rise > 0 */
	length = pst_bit_length(excess);
	if (length > 32) {
		rise >>= length - 32;
		excess >>= length - 32;
	}
	return (uint32_t)(rise * max_q32 / excess);
}

PST_INLINE bool pst_red_drops(uint32_t probability_q32, uint32_t random_u32)
{
	return random_u32 < probability_q32;
}

/* Whether a yellow packet that can carry a mark gets one. */
PST_INLINE bool pst_red_marks(enum pst_red_marking marking, uint32_t probability_q32, uint32_t random_u32)
{
	return marking == PST_RED_MARK_ALL || pst_red_drops(probability_q32, random_u32);
}

#endif /* PENSTOCK_RED_H */
