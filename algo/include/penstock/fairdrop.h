/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * fairdrop.h: which packets of a user above its limit are dropped.
 *
 * What         chance     drop with probability 1 - min(1, T / R):  pass when U < T / R, U uniform in [0, 1)
 *                         default: U R < T, U in 2^-32, exact and without a division; faithful: U in 2^-12 below the prefix divide's quotient
 *              periodic   for TCP. While R > T: a countdown of what passes; when it has run out one packet is dropped, and the countdown starts
 *                         anew with T * const. A second one, a quarter as long, marks what can be marked.
 *              const is 8.4 ms, 2 tau where that is 4.2, and a quarter of it for marks. The paper names none ("corresponding to the desired congestion window size"); its public
 *              release shifts T by 5 and by 3. But drops that are 32 tau apart do not hold senders whose round trip is short: their windows grow
 *              back long before the next. Eight CUBIC flows in 1 Gbit/s with round trips of 1 ms, as modelled in test_ahab_tcp.c, use 3.7 times
 *              the slice's capacity with 32 tau, and 1.08 times with 2; from 1.5 to 30 ms 0.92 to 1.04. Where T * round trip is below some ten
 *              packets no distance will do (1.6 times at 0.3 ms, and the ceiling ends it there): chance does, at 1.05.
 * Source       AHAB section IV-A (equation 3), V-A (equation 7, countdowns).
 * Units        parts (lpf.h), all three divided by the user's weight: limit, user and length. Countdowns in parts of length.
 * Ranges       all of u32.
 * Invariants   I1  chance, default: of the 2^32 numbers exactly ceil(2^32 T / R) pass. R <= T always passes.
 *              I2  faithful: the drop probability is right to within 2^-b (1 + T / R) + 2^-13 (approx.h I7).
 *              I3  periodic: between two drops at least max(T * const, 8 packets) pass, between two marks a quarter of that: at rates so low that
 *                  a window is no more than some packets, 11 % are lost at most, and not all.
 *              I4  below its limit nobody is dropped, marked, or counted down.
 *              I5  with a ceiling, a sender that does not heed its drops is dropped by chance as soon as R > T * 2^ceiling. Ours: periodic drops
 *                  alone would let whoever writes TCP into its packets send as much as it likes. The public release drops all above 1.5 T;
 *                  where T is some packets in tau, each window's burst is above that.
 * Overflow     random < 2^32 times R < 2^32.
 * Concurrency  chance: pure. Periodic: both countdowns are one word; who loses PST_CAS_TRIES times lets its packet pass uncounted.
 * Not done     what the marked sender does. Two flows of one counter share their drops.
 */
#ifndef PENSTOCK_FAIRDROP_H
#define PENSTOCK_FAIRDROP_H

#include "approx.h"
#include "limiter.h"
#include "verdict.h"

#define PST_FAIRDROP_CONST_NS_SHIFT 23 /* 8.4 ms */
#define PST_FAIRDROP_CONST_SHIFT_RELEASED 5
#define PST_FAIRDROP_MARK_SHIFT 2 /* four times as often */
#define PST_FAIRDROP_LEAST_PACKETS 8
#define PST_FAIRDROP_CEILING_SHIFT 1 /* 2 T */
#define PST_FAIRDROP_NO_CEILING 32

struct pst_fairdrop_profile {
	uint32_t const_shift; /* of the release: PST_FAIRDROP_CONST_SHIFT_RELEASED */
	uint32_t ceiling_shift; /* faithful: PST_FAIRDROP_NO_CEILING */
	uint32_t divide_bits;   /* faithful: b; 0: default */
};

struct pst_fairdrop_packet {
	uint32_t limit_parts;
	uint32_t user_parts;
	uint32_t length_parts;
	uint32_t random_u32;
	bool can_be_marked; /* ECT */
};

/* T is what passes in tau; a countdown is no shorter than that. */
PST_INLINE uint32_t pst_fairdrop_const_shift(uint32_t tau_shift)
{
	return tau_shift < PST_FAIRDROP_CONST_NS_SHIFT ? PST_FAIRDROP_CONST_NS_SHIFT - tau_shift : 0;
}

PST_INLINE struct pst_fairdrop_profile pst_fairdrop_default(uint32_t tau_shift)
{
	struct pst_fairdrop_profile profile = { pst_fairdrop_const_shift(tau_shift), PST_FAIRDROP_CEILING_SHIFT, 0 };

	return profile;
}

PST_INLINE bool pst_fairdrop_passes(uint32_t limit_parts, uint32_t user_parts, uint32_t random_u32)
{
	return user_parts <= limit_parts || (uint64_t)random_u32 * user_parts < (uint64_t)limit_parts << 32;
}

PST_INLINE bool pst_fairdrop_passes_by_table(uint32_t limit_parts, uint32_t user_parts, uint32_t b, uint32_t random_u32)
{
	return random_u32 >> 20 < pst_prefix_divide_q12(limit_parts, user_parts, b);
}

/* Traffic that is not TCP: pass or drop. */
PST_INLINE uint8_t pst_fairdrop_by_chance(const struct pst_fairdrop_profile *profile, const struct pst_fairdrop_packet *packet)
{
	bool passes;

	if (profile->divide_bits)
		passes = pst_fairdrop_passes_by_table(packet->limit_parts, packet->user_parts, profile->divide_bits, packet->random_u32);
	else
		passes = pst_fairdrop_passes(packet->limit_parts, packet->user_parts, packet->random_u32);
	return passes ? PST_VERDICT_PASS : PST_VERDICT_DROP;
}

/* The same, but that what can be marked is marked in the place of a drop, as long as its sender heeds that: up to T * 2^ceiling. */
PST_INLINE uint8_t pst_fairdrop_by_chance_or_mark(const struct pst_fairdrop_profile *profile, const struct pst_fairdrop_packet *packet)
{
	uint8_t verdict = pst_fairdrop_by_chance(profile, packet);
	bool is_heeded = packet->user_parts <= (uint64_t)packet->limit_parts << (profile->ceiling_shift & 31);

	if (verdict == PST_VERDICT_DROP && packet->can_be_marked && is_heeded)
		return PST_VERDICT_MARK;
	return verdict;
}

/* A countdown's start: T * const, or some packets of this length where that is more. */
PST_INLINE uint32_t pst_fairdrop_start(const struct pst_fairdrop_packet *packet, uint32_t const_shift)
{
	uint64_t start = (uint64_t)packet->limit_parts << (const_shift & 31), least = (uint64_t)packet->length_parts * PST_FAIRDROP_LEAST_PACKETS;

	if (start < least)
		start = least;
	return start < UINT32_MAX ? (uint32_t)start : UINT32_MAX;
}

PST_INLINE uint32_t pst_fairdrop_count_down(uint32_t left_parts, uint32_t length_parts)
{
	return left_parts > length_parts ? left_parts - length_parts : 0;
}

/* One step of both countdowns, the drop's in the upper 32 bits. Puts the word's next value into `next`. */
PST_INLINE uint8_t pst_fairdrop_step(const struct pst_fairdrop_profile *profile, const struct pst_fairdrop_packet *packet, uint64_t word,
				     uint64_t *next)
{
	uint32_t drop = (uint32_t)(word >> 32), mark = (uint32_t)word, start = pst_fairdrop_start(packet, profile->const_shift);
	uint8_t verdict = PST_VERDICT_PASS;

	if (drop == 0) {
		*next = (uint64_t)start << 32 | start >> PST_FAIRDROP_MARK_SHIFT;
		return PST_VERDICT_DROP;
	}
	drop = pst_fairdrop_count_down(drop, packet->length_parts);
	if (packet->can_be_marked && mark == 0) {
		verdict = PST_VERDICT_MARK;
		mark = start >> PST_FAIRDROP_MARK_SHIFT;
	} else {
		mark = pst_fairdrop_count_down(mark, packet->length_parts);
	}
	*next = (uint64_t)drop << 32 | mark;
	return verdict;
}

/* TCP: pass, mark or drop. `word` is the flow's, of an array that a hash of the flow indexes; 0 at first, so that its first excess is dropped. */
PST_INLINE uint8_t pst_fairdrop_periodic(const struct pst_fairdrop_profile *profile, const struct pst_fairdrop_packet *packet, uint64_t *word)
{
	uint64_t old, next = 0;
	int tries;

	if (packet->user_parts <= packet->limit_parts)
		return PST_VERDICT_PASS;
	if (profile->ceiling_shift < PST_FAIRDROP_NO_CEILING && packet->user_parts > (uint64_t)packet->limit_parts << profile->ceiling_shift)
		return pst_fairdrop_by_chance(profile, packet);
	old = *(volatile uint64_t *)word;
	for (tries = 0; tries < PST_CAS_TRIES; tries++) {
		uint8_t verdict = pst_fairdrop_step(profile, packet, old, &next);

		if (pst_limiter_commit(word, &old, next))
			return verdict;
	}
	return PST_VERDICT_PASS;
}

#endif /* PENSTOCK_FAIRDROP_H */
