/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * lpf.h: a counter that forgets: one low-pass filter in one word.
 *
 * What         v = x + v0 e^-(t - t0)/tau     after x came at t;     v e^-(t - t1)/tau     read at t
 *              v / tau is a rate: evenly spaced packets of x, T apart, make v rise to x / (1 - e^-T/tau) just after one of them. That is
 *              x tau/T (1 + T/2tau ..): too high by T/2tau; just before the next it is as much too low, and on average over time exact.
 *              A word holds v in its upper 32 bits and t0 in its lower 32, so that one compare-and-swap changes both.
 * Source       AHAB equation 4, section IV-B. Constants: section VI-A, tau = 4 ms; here 2^22 ns = 4.19 ms, where a shift is a division.
 * Units        parts: 2^-PST_LPF_NOMINAL_BITS of what a nominal rate moves in tau, per unit of weight (section IV-C, V-E). Whoever sends
 *              at `nominal` has v = 2^24. So limits, users and packets of slices of all sizes are numbers of one kind, below 2^32.
 *              Stamps: now in tau / 1024.
 * Ranges       tau 2^10 .. 2^40 ns; weights 1 .. 65535. A nominal rate is 1/250 or more of the fastest that its users may send at:
 *              v ends at 2^32 - 1.
 *              A packet is known to within half a part, and counts as one at least: at nominal 40 Gbit/s a byte is 0.8 parts.
 *              A rate below some five packets in tau cannot be told: whoever sends a packet a tau reads as 1.58 times its rate just after
 *              it, and nobody reads as less than x / tau, which is 2.9 Mbit/s for 1500 bytes.
 * Invariants   I1  v is what equation 4 says, to within 0.2 % and half a part for each update that still counts.
 *              I2  monotone in what came; never above 2^32 - 1, which is kept and not wrapped.
 *              I3  time that steps back by up to 4 tau counts as no time, and is not counted again. What is further back is a long gap.
 *              I4  after 22 tau nothing is left. A word that nobody touched for a whole turn of its stamp, 2^22 tau (4.9 hours), reads as
 *                  fresh, or as from the future, for 26 tau (I3): 6 in 10^6 of such words, for some tau.
 *              I5  time may wrap.
 * Overflow     factor < 2^32 times bytes < 2^17 and the rounding below 2^50. v < 2^32, times what is left, at most 2^31, is below 2^63.
 * Concurrency  compare-and-swap. A writer that loses PST_CAS_TRIES times adds its parts without letting time pass, which the next one
 *              does: nothing that came is lost. Only a word that is already half full may miss it then, rather than wrap.
 * Not done     no floating point, so no rates across more than 32 bits.
 */
#ifndef PENSTOCK_LPF_H
#define PENSTOCK_LPF_H

#include "decay.h"
#include "limiter.h"

#define PST_LPF_NOMINAL_BITS 24
#define PST_LPF_STAMP_BITS 10 /* a stamp is tau / 2^10 */
#define PST_LPF_TAU_SHIFT 22  /* 4.19 ms */
#define PST_LPF_TAU_SHIFT_MIN 10
#define PST_LPF_TAU_SHIFT_MAX 40
#define PST_LPF_BACK_STAMPS (UINT32_C(4) << PST_LPF_STAMP_BITS)
#define PST_LPF_MAX_PARTS UINT32_MAX
#define PST_LPF_WEIGHT_MAX UINT32_C(65535)

/* An absent tau is the default; others are cut to the range. */
PST_INLINE uint32_t pst_lpf_tau_shift(uint32_t shift)
{
	if (shift == 0)
		return PST_LPF_TAU_SHIFT;
	if (shift < PST_LPF_TAU_SHIFT_MIN)
		return PST_LPF_TAU_SHIFT_MIN;
	return shift > PST_LPF_TAU_SHIFT_MAX ? PST_LPF_TAU_SHIFT_MAX : shift;
}

PST_INLINE uint64_t pst_lpf_nominal_Bps(uint64_t nominal_Bps)
{
	if (nominal_Bps < PST_RATE_MIN_BPS)
		return PST_RATE_MIN_BPS;
	return nominal_Bps > PST_RATE_MAX_BPS ? PST_RATE_MAX_BPS : nominal_Bps;
}

/* 2^24 / (nominal tau weight), to 32 bits, by long division: for whoever writes tables. */
PST_INLINE void pst_lpf_scale_compile(struct pst_lpf_scale *out, uint64_t nominal_Bps, uint32_t weight, uint32_t tau_shift)
{
	uint32_t most = weight < PST_LPF_WEIGHT_MAX ? weight : PST_LPF_WEIGHT_MAX, steps = 0;
	uint64_t divisor = pst_lpf_nominal_Bps(nominal_Bps) * (most ? most : 1); /* below 2^37 * 2^16 */
	uint64_t factor = PST_NSEC_PER_SEC / divisor, rest = PST_NSEC_PER_SEC % divisor;

	while (factor < (UINT64_C(1) << 31) && steps < 64) {
		rest <<= 1; /* below 2^54 */
		factor = factor << 1 | (rest >= divisor);
		rest -= rest >= divisor ? divisor : 0;
		steps++;
	}
	/* factor / 2^steps = 10^9 / divisor; parts need 2^(24 - tau_shift) of it. */
	out->factor = (uint32_t)factor;
	out->shift = steps + pst_lpf_tau_shift(tau_shift) - PST_LPF_NOMINAL_BITS;
}

/* A packet in parts: to the nearest, one at least, as many as fit at most. */
PST_INLINE uint32_t pst_lpf_parts(const struct pst_lpf_scale *scale, uint32_t bytes)
{
	uint64_t product, parts;

	if (bytes >= UINT32_C(1) << 17)
		bytes = (UINT32_C(1) << 17) - 1;
	product = (uint64_t)scale->factor * bytes;
	if ((int32_t)scale->shift <= 0) {
		uint32_t left = 0 - scale->shift;

		parts = left < 15 ? product << left : PST_LPF_MAX_PARTS;
	} else {
		parts = scale->shift > 50 ? 0 : (product + (UINT64_C(1) << (scale->shift - 1))) >> scale->shift;
	}
	if (parts > PST_LPF_MAX_PARTS)
		return PST_LPF_MAX_PARTS;
	return parts ? (uint32_t)parts : 1;
}

/* A rate, of a user of weight 1 or of a whole slice, in parts. */
PST_INLINE uint32_t pst_lpf_parts_of_rate(uint64_t nominal_Bps, uint64_t rate_Bps)
{
	uint64_t parts;

	if (rate_Bps > PST_RATE_MAX_BPS)
		rate_Bps = PST_RATE_MAX_BPS;
	parts = (rate_Bps << PST_LPF_NOMINAL_BITS) / pst_lpf_nominal_Bps(nominal_Bps); /* 2^37 << 24 */
	return parts < PST_LPF_MAX_PARTS ? (uint32_t)parts : PST_LPF_MAX_PARTS;
}

PST_INLINE uint64_t pst_lpf_rate_Bps(uint64_t nominal_Bps, uint32_t parts)
{
	return pst_mul_high((uint64_t)parts << 32, pst_lpf_nominal_Bps(nominal_Bps) << (32 - PST_LPF_NOMINAL_BITS));
}

/* tau_shift as compiled: PST_LPF_TAU_SHIFT_MIN at least. */
PST_INLINE uint32_t pst_lpf_stamp(uint64_t now_ns, uint32_t tau_shift)
{
	return (uint32_t)(now_ns >> ((tau_shift - PST_LPF_STAMP_BITS) & 63));
}

/* What is left after a while, in 2^-31. */
PST_INLINE uint32_t pst_lpf_left_q31(uint32_t stamps)
{
	return pst_decay_q31((uint64_t)stamps << (32 - PST_LPF_STAMP_BITS));
}

PST_INLINE uint32_t pst_lpf_value(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

/* Stamps from the word's to this one. */
PST_INLINE uint32_t pst_lpf_elapsed(uint64_t word, uint32_t stamp)
{
	uint32_t elapsed = stamp - (uint32_t)word;

	return elapsed > UINT32_MAX - PST_LPF_BACK_STAMPS ? 0 : elapsed;
}

/* v now. */
PST_INLINE uint32_t pst_lpf_read(uint64_t word, uint32_t stamp)
{
	uint32_t elapsed = pst_lpf_elapsed(word, stamp);

	if (elapsed == 0)
		return pst_lpf_value(word);
	return (uint32_t)((pst_lpf_value(word) * (uint64_t)pst_lpf_left_q31(elapsed) + (UINT64_C(1) << 30)) >> 31);
}

/* The word with this value, at this moment or, where time stepped back, at the word's. */
PST_INLINE uint64_t pst_lpf_word(uint64_t before, uint32_t stamp, uint64_t value)
{
	if (value > PST_LPF_MAX_PARTS)
		value = PST_LPF_MAX_PARTS;
	return value << 32 | (pst_lpf_elapsed(before, stamp) ? stamp : (uint32_t)before);
}

/* The word after parts have come. */
PST_INLINE uint64_t pst_lpf_next(uint64_t word, uint32_t stamp, uint32_t parts)
{
	return pst_lpf_word(word, stamp, (uint64_t)pst_lpf_read(word, stamp) + parts);
}

/* Parts have come: v after them. */
PST_STAGE uint32_t pst_lpf_add(uint64_t *word, uint32_t stamp, uint32_t parts)
{
	uint64_t old, next;
	int tries;

	if (PST_IS_ABSENT(word))
		return 0;
	old = *(volatile uint64_t *)word;
	for (tries = 0; tries < PST_CAS_TRIES; tries++) {
		next = pst_lpf_next(old, stamp, parts);
		if (pst_limiter_commit(word, &old, next))
			return pst_lpf_value(next);
	}
	if (!(old >> 63) && !(parts >> 24))
		__sync_fetch_and_add(word, (uint64_t)parts << 32);
	return pst_lpf_value(pst_lpf_next(old, stamp, parts));
}

/* Something of this size was seen: a peak that is forgotten as all else is. */
PST_STAGE bool pst_lpf_raise(uint64_t *word, uint32_t stamp, uint32_t parts)
{
	uint64_t old;
	int tries;

	if (PST_IS_ABSENT(word))
		return true;
	old = *(volatile uint64_t *)word;
	for (tries = 0; tries < PST_CAS_TRIES; tries++) {
		if (pst_lpf_read(old, stamp) >= parts || pst_limiter_commit(word, &old, pst_lpf_word(old, stamp, parts)))
			return true;
	}
	return false;
}

/* What came counts as so much more or less than `before`, as much as it is to be now; what others add meanwhile stays. */
PST_RARE_STAGE bool pst_lpf_move(uint64_t *word, uint32_t stamp, uint32_t before_parts, uint32_t after_parts)
{
	uint64_t old;
	int tries;

	if (PST_IS_ABSENT(word))
		return true;
	old = *(volatile uint64_t *)word;
	for (tries = 0; tries < PST_CAS_TRIES; tries++) {
		uint64_t value = (uint64_t)pst_lpf_read(old, stamp) + after_parts;

		value -= value < before_parts ? value : before_parts;
		if (pst_limiter_commit(word, &old, pst_lpf_word(old, stamp, value)))
			return true;
	}
	return false;
}

#endif /* PENSTOCK_LPF_H */
