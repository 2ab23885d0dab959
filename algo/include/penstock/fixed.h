/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * fixed.h: multiply-shift arithmetic and the rate code.
 *
 * What         A rate is kept as the time that one byte takes, as a float of our own in 32 bits:
 *                  ticks per byte = mantissa * 2^(exponent - 24),  mantissa in [2^26, 2^27)
 *              Bits 0..26 are the mantissa (its top bit always set), bits 27..31 the exponent. Code 0 is "no rate".
 *              The cost of a packet is one 64-bit multiplication and two shifts:
 *                  cost(bytes) = round(mantissa * bytes * 2^(exponent - 24))
 * Source       ours; a float code for rates is DragonKing's idea (errata D5), with 27 bits in place of 11.
 * Units        rate_Bps bytes per second, _ticks 1/1024 ns (clock.h).
 * Ranges       Codes hold 2^2..2^34 ticks a byte, that is about 60 B/s (477 bit/s) to 2.56e11 B/s (2 Tbit/s).
 *              Relative error of the code: at most 2^-27. Of a cost: that, plus half a tick.
 * Invariants   I1  |cost - exact| <= exact * 2^-27 + 1/2 tick, for every rate and length.
 *              I2  cost is monotone: more bytes never cost less.
 *              I3  the code is monotone: a faster rate never has a larger time per byte.
 *              I4  bytes(cost(n)) == n for n up to 64 KB at rates up to 400 Gbit/s, to within 1/256 byte + 1 tick.
 * Overflow     cost: mantissa < 2^27, bytes < 2^30, so the product is at most 2^57 - 2^30, and shifted left by 7 it
 *              leaves room for the rounding, which is at most 2^30.
 *              bytes: ticks < 2^57 over a mantissa >= 2^26, shifted left by at most 32, is below 2^63.
 *              convert: saturates at PST_CONVERT_MAX_TICKS; what is added to that is below 2^58 + 2^34.
 *              encode: 1.024e12 * 2^24 = 1.72e19 < 2^64, and rate / 2 < 2^37 more still fits.
 */
#ifndef PENSTOCK_FIXED_H
#define PENSTOCK_FIXED_H

#include "clock.h"

#define PST_RATE_MANTISSA_BITS 27
#define PST_RATE_EXPONENT_BIAS 24
#define PST_RATE_LEFT_MAX 7 /* the largest exponent, 31, less the bias */
#define PST_RATE_MIN_BPS UINT64_C(64)             /* bytes/s: 512 bit/s */
#define PST_RATE_MAX_BPS UINT64_C(125000000000)   /* bytes/s: 1 Tbit/s */
#define PST_COST_BYTES_MAX (UINT32_C(1) << 30)    /* largest length that pst_rate_cost takes */
#define PST_CONVERT_MAX_TICKS (UINT64_C(1) << 62) /* where pst_rate_convert ends: above all windows and waits */
#define PST_TICKS_PER_SEC (PST_NSEC_PER_SEC << PST_TICK_BITS)

/* High 64 bits of a 64x64 product, from four 32x32 products: BPF has no 128-bit multiply. */
PST_INLINE uint64_t pst_mul_high(uint64_t a, uint64_t b)
{
	uint64_t a_low = a & UINT32_MAX, a_high = a >> 32;
	uint64_t b_low = b & UINT32_MAX, b_high = b >> 32;
	uint64_t middle = a_high * b_low + ((a_low * b_low) >> 32);
	uint64_t carry = a_low * b_high + (middle & UINT32_MAX);

	return a_high * b_high + (middle >> 32) + (carry >> 32);
}

/* The place of the highest bit that is set, counted from 1; 0 for 0. (clang 14 crashes on __builtin_clzll for BPF.) */
PST_INLINE uint32_t pst_bit_length(uint64_t value)
{
	uint32_t length = 0, step;

	for (step = 32; step > 0; step >>= 1) {
		if (value >> step) {
			value >>= step;
			length += step;
		}
	}
	return length + (uint32_t)value;
}

/*
 * Comparisons and choices as arithmetic, for what no CPU can predict: compilers like to make branches of them, and for BPF,
 * which has no other form, always do. The empty statement hides from clang what the sign bit stands for.
 */
#ifdef __bpf__
#define PST_HIDE(word) __asm__ volatile("" : "+r"(word))
#else
#define PST_HIDE(word) ((void)0)
#endif

/* 1 if a > b, else 0; a and b below 2^63. */
PST_INLINE uint32_t pst_is_above(uint64_t a, uint64_t b)
{
#ifdef __bpf__
	uint64_t difference = b - a;

	PST_HIDE(difference);
	return (uint32_t)(difference >> 63);
#else
	return a > b;
#endif
}

/* 1 if a == b, else 0; a and b below 2^63. */
PST_INLINE uint32_t pst_is_same(uint64_t a, uint64_t b)
{
#ifdef __bpf__
	uint64_t difference = 0 - (a ^ b);

	PST_HIDE(difference);
	return 1 ^ (uint32_t)(difference >> 63);
#else
	return a == b;
#endif
}

/* condition ? yes : no; condition is 0 or 1. */
PST_INLINE uint64_t pst_select_u64(uint32_t condition, uint64_t yes, uint64_t no)
{
	uint64_t mask = 0 - (uint64_t)condition;

	PST_HIDE(mask);
	return no ^ ((no ^ yes) & mask);
}

/* Scales a 32-bit random number or hash to [0, range) without a division. */
PST_INLINE uint32_t pst_scale_u32(uint32_t uniform, uint32_t range)
{
	return (uint32_t)(((uint64_t)uniform * range) >> 32);
}

/*
 * The code of a rate. rate_Bps outside [PST_RATE_MIN_BPS, PST_RATE_MAX_BPS] is clamped to it: the policy refuses such
 * rates before they come here, and a data plane must still be total.
 */
PST_INLINE uint32_t pst_rate_encode(uint64_t rate_Bps)
{
	uint32_t exponent;
	uint64_t mantissa = 0;

	if (rate_Bps < PST_RATE_MIN_BPS)
		rate_Bps = PST_RATE_MIN_BPS;
	if (rate_Bps > PST_RATE_MAX_BPS)
		rate_Bps = PST_RATE_MAX_BPS;
	/* The smallest exponent whose mantissa fits 27 bits is the most precise one. */
	for (exponent = 0; exponent < 32; exponent++) {
		uint64_t numerator, divisor = rate_Bps;

		if (exponent <= PST_RATE_EXPONENT_BIAS) {
			numerator = PST_TICKS_PER_SEC << (PST_RATE_EXPONENT_BIAS - exponent);
		} else {
			numerator = PST_TICKS_PER_SEC;
			divisor <<= exponent - PST_RATE_EXPONENT_BIAS;
		}
		mantissa = (numerator + divisor / 2) / divisor;
		if (mantissa < (UINT64_C(1) << PST_RATE_MANTISSA_BITS))
			break;
	}
	return (uint32_t)mantissa | (exponent << PST_RATE_MANTISSA_BITS);
}

PST_INLINE uint32_t pst_rate_mantissa(uint32_t rate_code)
{
	return rate_code & ((UINT32_C(1) << PST_RATE_MANTISSA_BITS) - 1);
}

/* Ticks that `bytes` (below PST_COST_BYTES_MAX) take at this rate, rounded to the nearest tick. */
PST_INLINE uint64_t pst_rate_cost(uint32_t rate_code, uint32_t bytes)
{
	/* Shifted left by the most that an exponent can ask for, so that what remains is a shift right: no branch. */
	uint64_t product = ((uint64_t)pst_rate_mantissa(rate_code) * bytes) << PST_RATE_LEFT_MAX;
	uint32_t right = PST_RATE_EXPONENT_BIAS + PST_RATE_LEFT_MAX - (rate_code >> PST_RATE_MANTISSA_BITS);

	return (product + ((UINT64_C(1) << right) >> 1)) >> right;
}

/* Bytes, in 1/256, that drain in `ticks` (below 2^57) at this rate, rounded down. The inverse of pst_rate_cost. */
PST_INLINE uint64_t pst_rate_bytes_q8(uint32_t rate_code, uint64_t ticks)
{
	uint32_t exponent = rate_code >> PST_RATE_MANTISSA_BITS;
	uint64_t mantissa = pst_rate_mantissa(rate_code);
	uint32_t left = 8 + PST_RATE_EXPONENT_BIAS - exponent; /* 1..32: bytes_q8 = (ticks << left) / mantissa */
	uint64_t whole, rest;

	if (mantissa == 0)
		return 0;
	whole = ticks / mantissa;
	rest = ticks % mantissa; /* < 2^27, so rest << 32 fits */
	return (whole << left) + (rest << left) / mantissa;
}

/*
 * Ticks (below 2^57) at one rate as those that their bytes take at another, to within 1/256 byte and two ticks. There may be
 * more bytes than one cost takes, so they are counted in blocks that take a whole number of ticks at every rate.
 */
PST_INLINE uint64_t pst_rate_convert(uint32_t before_rate, uint32_t after_rate, uint64_t ticks)
{
	const uint32_t block_bytes = UINT32_C(1) << PST_RATE_EXPONENT_BIAS;
	uint64_t bytes_q8 = pst_rate_bytes_q8(before_rate, ticks), bytes = bytes_q8 >> 8;
	uint64_t blocks = bytes / block_bytes, block = pst_rate_cost(after_rate, block_bytes);

	if (block && blocks > PST_CONVERT_MAX_TICKS / block)
		return PST_CONVERT_MAX_TICKS;
	return blocks * block + pst_rate_cost(after_rate, (uint32_t)(bytes % block_bytes)) +
	       (pst_rate_cost(after_rate, (uint32_t)(bytes_q8 & 255)) >> 8);
}

#endif /* PENSTOCK_FIXED_H */
