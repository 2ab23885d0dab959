/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * ewma.h: the rate at which packets come, by exponential averaging that is clocked by packets.
 *
 * What         T = now - last    R = R e^-(T/K) + length / T (1 - e^-(T/K))                  length / K (1 - T/2K ..) as T nears 0
 *              K is a power of two from n to 4n mean gaps, 2^20 ns at least; the mean gap is averaged over 16 packets.
 * Source       CSFQ's estimator (Stoica et al., which HSDBA names in section 4.2) with errata H1 and H11: HSDBA's equation 3 has a minus where
 *              a plus must be, and a fixed K cannot both follow a fast node and keep a slow one exact. Of the two right forms this is the one
 *              that is exact for evenly spaced packets; length / K + R e^-(T/K) is too high by T/2K where it is read, just after a packet.
 * Units        _Bps_q8 bytes a second in 2^-8, bytes_q8 bytes in 2^-8 (an inner node counts parts of packets, H9), _ns.
 * Ranges       bytes below 2^18; rates up to PST_EWMA_MAX_BPS_Q8; now may wrap.
 * Invariants   I1  R converges to length / T of evenly spaced packets, to within 0.1 %, and in the mean to that of uneven ones, to within 0.5 %.
 *              I2  a change of rate is followed to within 10 % in 45 packets at 100 Mbit/s, and as fast after a pause.
 *              I3  time that steps back counts as no time.
 *              I4  after a long gap nothing is left but the packet that ends it.
 * Overflow     bytes_q8 < 2^26, times 10^9 below 2^56. R < 2^45 (decay.h).
 * Concurrency  pure.
 */
#ifndef PENSTOCK_EWMA_H
#define PENSTOCK_EWMA_H

#include "decay.h"
#include "wire_share.h"

#define PST_EWMA_SHIFT_MIN 20 /* K is 1.05 ms at least */
#define PST_EWMA_MORE_MAX 12  /* and 4.3 s at most */
#define PST_EWMA_PATIENCE_MAX 32 /* twice 4.3 s */
#define PST_EWMA_MEMORY 64       /* packets */
#define PST_EWMA_GAP_FIRST_NSEC (UINT64_C(1) << 16)
#define PST_EWMA_GAP_BITS 4
#define PST_EWMA_MAX_BPS_Q8 (UINT64_C(1) << 45)

/* log2 of K. */
PST_INLINE uint32_t pst_ewma_shift(const struct pst_ewma *ewma)
{
	return PST_EWMA_SHIFT_MIN + (ewma->more & 15);
}

/*
 * log2 of the time after which a silent sender has stopped: 2 K, or twice its longest gap of late where that was longer. Who sends rarely has a low rate long
 * before K is known, and who sends in bursts is there between them, too: to forget either would have others take its share in between.
 */
PST_INLINE uint32_t pst_ewma_patience(const struct pst_ewma *ewma)
{
	uint32_t of_gap = ewma->more >> 8 & 255, of_k = pst_ewma_shift(ewma);

	return (of_gap > of_k ? of_gap : of_k) + 1;
}

/* Remembers a gap that was longer than K: for PST_EWMA_MEMORY packets, then half of it for as many more. */
PST_INLINE void pst_ewma_remember(struct pst_ewma *ewma, uint64_t elapsed_ns, uint32_t shift)
{
	uint32_t known = ewma->more >> 8 & 255, age = (ewma->more >> 16) + 1, bits = 0;

	if (elapsed_ns >> shift)
		bits = pst_bit_length(elapsed_ns);
	if (bits > PST_EWMA_PATIENCE_MAX)
		bits = PST_EWMA_PATIENCE_MAX;
	if (bits >= known) {
		known = bits;
		age = 0;
	} else if (age == PST_EWMA_MEMORY) {
		known--;
		age = 0;
	}
	ewma->more = (ewma->more & 15) | known << 8 | age << 16;
}

/* T / K in 2^-32. */
PST_INLINE uint64_t pst_ewma_age_q32(uint64_t elapsed_ns, uint32_t shift)
{
	if (elapsed_ns >> (shift + 5)) /* nothing is left then */
		return UINT64_MAX;
	return shift > 32 ? elapsed_ns >> (shift - 32) : elapsed_ns << (32 - shift);
}

PST_INLINE uint64_t pst_ewma_elapsed_ns(const struct pst_ewma *ewma, uint64_t now_ns)
{
	uint64_t elapsed_ns = now_ns - ewma->last_ns;

	return (int64_t)elapsed_ns < 0 ? 0 : elapsed_ns;
}

/* What a packet adds: its length over the gap, as far as the gap counts, or over K where the gap is short. */
PST_INLINE uint64_t pst_ewma_added_Bps_q8(uint32_t bytes_q8, uint64_t elapsed_ns, uint32_t shift, uint32_t left_q31)
{
	uint64_t nanobytes_q8 = bytes_q8 * PST_NSEC_PER_SEC, added;

	if (elapsed_ns >> (shift - 8) == 0) {
		uint64_t age_q16 = pst_ewma_age_q32(elapsed_ns, shift) >> 16; /* below 2^8 */

		added = nanobytes_q8 >> shift;
		return added - ((added * age_q16) >> 17);
	}
	added = nanobytes_q8 / elapsed_ns; /* by 2^12 or more: below 2^44 */
	return pst_part_q31(added, PST_DECAY_ONE_Q31 - left_q31);
}

/*
 * The mean gap, and K after it. A pause is no gap: the mean may grow by a quarter with each packet. K is doubled below `gaps` mean gaps, and halved above
 * four times as many: if it followed closely, it would be long for some packets and short for others, and these would count for more.
 */
PST_INLINE void pst_ewma_clock(struct pst_ewma *ewma, uint64_t elapsed_ns, uint32_t gaps)
{
	uint64_t mean_q4 = ewma->gap_ns_q4, most_ns = (mean_q4 >> 2) + PST_EWMA_GAP_FIRST_NSEC, gaps_ns;

	mean_q4 += (elapsed_ns < most_ns ? elapsed_ns : most_ns) - (mean_q4 >> PST_EWMA_GAP_BITS);
	ewma->gap_ns_q4 = (uint32_t)(mean_q4 < UINT32_MAX ? mean_q4 : UINT32_MAX);
	gaps_ns = (mean_q4 * gaps) >> PST_EWMA_GAP_BITS;
	if (gaps_ns >> pst_ewma_shift(ewma))
		ewma->more += (ewma->more & 15) < PST_EWMA_MORE_MAX;
	else if (gaps_ns >> (pst_ewma_shift(ewma) - 2) == 0)
		ewma->more -= (ewma->more & 15) > 0;
}

/* A packet has come. Its K is `gaps` mean gaps or more, below 2^16. */
PST_INLINE void pst_ewma_add(struct pst_ewma *ewma, uint64_t now_ns, uint32_t bytes_q8, uint32_t gaps)
{
	uint64_t elapsed_ns = pst_ewma_elapsed_ns(ewma, now_ns);
	uint32_t shift = pst_ewma_shift(ewma);
	uint32_t left_q31 = pst_decay_q31(pst_ewma_age_q32(elapsed_ns, shift));
	uint64_t rate = pst_part_q31(ewma->rate_Bps_q8, left_q31) + pst_ewma_added_Bps_q8(bytes_q8, elapsed_ns, shift, left_q31);

	ewma->rate_Bps_q8 = rate < PST_EWMA_MAX_BPS_Q8 ? rate : PST_EWMA_MAX_BPS_Q8 - 1;
	pst_ewma_clock(ewma, elapsed_ns, gaps);
	pst_ewma_remember(ewma, elapsed_ns, shift);
	ewma->last_ns = now_ns;
}

/* Has it sent nothing for so long that it is to be forgotten? */
PST_INLINE bool pst_ewma_has_stopped(const struct pst_ewma *ewma, uint64_t now_ns)
{
	return pst_ewma_elapsed_ns(ewma, now_ns) >> (pst_ewma_patience(ewma) & 63) != 0;
}

/* The rate now, of a node whose packets may have stopped. */
PST_INLINE uint64_t pst_ewma_rate_Bps(const struct pst_ewma *ewma, uint64_t now_ns)
{
	uint64_t age_q32 = pst_ewma_age_q32(pst_ewma_elapsed_ns(ewma, now_ns), pst_ewma_shift(ewma));

	return pst_part_q31(ewma->rate_Bps_q8, pst_decay_q31(age_q32)) >> 8;
}

#endif /* PENSTOCK_EWMA_H */
