/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * ref_fixed.h: rate codes in exact arithmetic.
 *
 * A code means mantissa * 2^exponent units of 2^-24 tick a byte (fixed.h). Here that is one 128-bit integer, and every
 * result is one exact division.
 */
#ifndef PENSTOCK_REF_FIXED_H
#define PENSTOCK_REF_FIXED_H

#include <penstock/types.h>

typedef __int128 ref_int;

#define REF_TICKS_PER_NSEC 1024
#define REF_TICKS_PER_SEC ((ref_int)1024 * 1000000000)
#define REF_UNITS_PER_TICK ((ref_int)1 << 24)

/* Rounds down, and to the nearest with halves up, for divisors above 0. */
ref_int ref_divide_down(ref_int numerator, ref_int divisor);
ref_int ref_divide_near(ref_int numerator, ref_int divisor);

uint32_t ref_rate_code(uint64_t rate_Bps);
ref_int ref_rate_units_per_byte(uint32_t code);
ref_int ref_rate_cost(uint32_t code, uint64_t bytes);
ref_int ref_rate_bytes_q8(uint32_t code, ref_int ticks);

#endif /* PENSTOCK_REF_FIXED_H */
