/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * rng.h: random numbers as a state that the host owns.
 *
 * What         xorshift64 with a multiplied output (xorshift64*), 32 bits a draw.
 * Source       Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", 2016.
 * Units        draws are uniform in [0, 2^32).
 * Ranges       the state is never 0; seed 0 is replaced.
 * Invariants   I1  the sequence depends on the seed alone. I2  the state never becomes 0.
 * Concurrency  one state per CPU or per batch; a lost update only repeats a draw.
 * Not done     not for secrets: hash seeds come from the host's own source.
 */
#ifndef PENSTOCK_RNG_H
#define PENSTOCK_RNG_H

#include "types.h"

PST_INLINE uint64_t pst_rng_seed(uint64_t seed)
{
	/* splitmix64, so that seeds 1, 2, 3 give unrelated sequences. */
	seed += UINT64_C(0x9e3779b97f4a7c15);
	seed = (seed ^ (seed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	seed = (seed ^ (seed >> 27)) * UINT64_C(0x94d049bb133111eb);
	seed ^= seed >> 31;
	return seed ? seed : 1;
}

PST_INLINE uint32_t pst_rng_next(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return (uint32_t)((x * UINT64_C(0x2545f4914f6cdd1d)) >> 32);
}

#endif /* PENSTOCK_RNG_H */
