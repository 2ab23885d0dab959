/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * decay.h: how much of something is left after a time.
 *
 * What         e^-x = 2^-(x log2 e): the whole part is a shift, the rest lies between two entries of a table of 65, a little below the line
 *              between them.
 * Source       "Exponential by table, integers" (erratum H1 of HSDBA); a low-pass filter's decay in AHAB, equation 4.
 * Units        x in 2^-32: one is a time constant; what is left in 2^-31.
 * Ranges       all of u64: from x = 22 on nothing is left.
 * Invariants   I1  |left - e^-x| < 2^-22 e^-x + 2^-30; and what is gone, 1 - e^-x, is right to within 2^-12 of itself and 2^-30: many small steps
 *                  add up.
 *              I2  monotone, but for 2^-31; 1 at x = 0.
 * Overflow     x < 22 * 2^32 < 2^37, times log2 e in 2^-24, which is below 2^25. The bend: 2^31 2^14 2^-16 2^18.
 * Concurrency  pure.
 */
#ifndef PENSTOCK_DECAY_H
#define PENSTOCK_DECAY_H

#include "fixed.h"

#define PST_DECAY_ONE_Q31 (UINT32_C(1) << 31)
#define PST_DECAY_END_Q32 (UINT64_C(22) << 32)
#define PST_LOG2_E_Q24 UINT64_C(24204406)
#define PST_DECAY_BEND_Q32 UINT64_C(251899) /* (ln 2 / 64)^2 / 2 */

/* 2^-(i / 64), i = 0..64, in 2^-31. */
static const uint32_t pst_decay_table_q31[65] __attribute__((unused)) = {
	0x80000000, 0x7e9f0606, 0x7d41d96e, 0x7be86fba, 0x7a92be8b, 0x7940bb9e, 0x77f25cce, 0x76a7980f,
	0x75606374, 0x741cb528, 0x72dc8374, 0x719fc4b9, 0x70666f76, 0x6f307a41, 0x6dfddbcc, 0x6cce8ae1,
	0x6ba27e65, 0x6a79ad56, 0x69540ec9, 0x683199ed, 0x6712460b, 0x65f60a7f, 0x64dcdec3, 0x63c6ba64,
	0x62b39509, 0x61a3666d, 0x60962665, 0x5f8bccdb, 0x5e8451d0, 0x5d7fad59, 0x5c7dd7a4, 0x5b7ec8f2,
	0x5a82799a, 0x5988e209, 0x5891fac1, 0x579dbc57, 0x56ac1f75, 0x55bd1cdb, 0x54d0ad5a, 0x53e6c9da,
	0x52ff6b55, 0x521a8ad7, 0x51382182, 0x50582888, 0x4f7a9930, 0x4e9f6cd4, 0x4dc69cdd, 0x4cf022ca,
	0x4c1bf829, 0x4b4a169c, 0x4a7a77d4, 0x49ad1598, 0x48e1e9ba, 0x4818ee22, 0x47521cc6, 0x468d6fae,
	0x45cae0f2, 0x450a6abb, 0x444c0740, 0x438fb0cb, 0x42d561b4, 0x421d1462, 0x4166c34c, 0x40b268fa,
	0x40000000,
};

PST_INLINE uint32_t pst_decay_q31(uint64_t x_q32)
{
	uint64_t halvings_q56, rest_q26, rest_q16, bend_q31;
	uint32_t index, above, below;

	if (x_q32 >= PST_DECAY_END_Q32)
		return 0;
	halvings_q56 = x_q32 * PST_LOG2_E_Q24;
	index = (uint32_t)(halvings_q56 >> 50) & 63;
	rest_q26 = (halvings_q56 >> 24) & 0x3ffffff;
	rest_q16 = rest_q26 >> 10;
	above = pst_decay_table_q31[index];
	below = pst_decay_table_q31[index + 1];
	bend_q31 = (above * (rest_q16 * (65536 - rest_q16) >> 16) >> 16) * PST_DECAY_BEND_Q32 >> 32;
	return (above - (uint32_t)((above - below) * rest_q26 >> 26) - (uint32_t)bend_q31) >> (halvings_q56 >> 56);
}

/* A part, in 2^-31, of a number below 2^45. */
PST_INLINE uint64_t pst_part_q31(uint64_t number, uint32_t part_q31)
{
	return pst_mul_high(number << 18, (uint64_t)part_q31 << 15);
}

#endif /* PENSTOCK_DECAY_H */
