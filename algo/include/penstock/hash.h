/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * hash.h: a keyed universal hash of a masked packet key.
 *
 * What         Two lanes of NH over the 64-bit words of a key that a mask selects, each finished by a mixer:
 *                  lane = sum over words of (low32(w) + low32(k)) * (high32(w) + high32(k))
 *              with 32-bit additions and 64-bit products. Words come in pairs, 0 and 1 to 6 and 7: a pair counts when the
 *              mask selects any of it. Lane 0 gives the tag, lane 1 the bucket. Whoever needs n bits takes the highest n:
 *              the low ones are not well mixed.
 * Source       NH: Black, Halevi, Krawczyk, Krovetz, Rogaway, "UMAC: fast and secure message authentication",
 *              CRYPTO 1999, section 4 (also RFC 4418, section 5.2.2); the second lane is its Toeplitz shift.
 *              Mixer: fold and multiply (Knuth, TAOCP volume 3, section 6.4); it is a bijection, so it adds no collision.
 * Units        64-bit words in, two 64-bit words out.
 * Ranges       Two different keys of the same tuple collide in one lane with probability 2^-32 over the secret, and in
 *              both with 2^-64, whatever the keys are: a sender who does not know the secret cannot aim at an entry.
 * Invariants   I1  words that the mask zeroes out do not matter.
 *              I2  the result depends on the salt, so the same value under two masks does not collide by design.
 * Overflow     sums and products wrap modulo 2^32 and 2^64 by definition of NH.
 * Not done     no secret is made here: the host draws pst_hash_key once a table and keeps it to itself.
 */
#ifndef PENSTOCK_HASH_H
#define PENSTOCK_HASH_H

#include "wire.h"

#if defined(__SSE2__) && defined(__x86_64__)
#define PST_HASH_SSE2 1
#include <emmintrin.h>
#endif

struct pst_hash {
	uint64_t tag;
	uint64_t place;
};

PST_INLINE uint64_t pst_hash_mix(uint64_t x)
{
	return (x ^ (x >> 32)) * UINT64_C(0x9e3779b97f4a7c15);
}

PST_INLINE uint64_t pst_hash_product(uint64_t word, uint64_t key)
{
	return (uint64_t)((uint32_t)word + (uint32_t)key) *
	       ((uint32_t)(word >> 32) + (uint32_t)(key >> 32));
}

/* Adds words i and i + 1 to both lanes. */
PST_INLINE void pst_hash_pair(struct pst_hash *lanes, const struct pst_hash_secret *secret, const struct pst_tuple *tuple,
			      const struct pst_key *key, uint32_t i)
{
	uint64_t even = key->words[i] & tuple->mask.words[i];
	uint64_t odd = key->words[i + 1] & tuple->mask.words[i + 1];

	lanes->tag += pst_hash_product(even, secret->words[i]) + pst_hash_product(odd, secret->words[i + 1]);
	lanes->place += pst_hash_product(even, secret->words[i + 2]) + pst_hash_product(odd, secret->words[i + 3]);
}

/* Both lanes without the mixer. No loop: BPF has too few registers for the loop's own. */
PST_INLINE struct pst_hash pst_hash_lanes_plain(const struct pst_hash_secret *secret, const struct pst_tuple *tuple,
						const struct pst_key *key)
{
	struct pst_hash lanes = { tuple->salt, ~tuple->salt };

	if (tuple->words & 0x03U)
		pst_hash_pair(&lanes, secret, tuple, key, 0);
	if (tuple->words & 0x0cU)
		pst_hash_pair(&lanes, secret, tuple, key, 2);
	if (tuple->words & 0x30U)
		pst_hash_pair(&lanes, secret, tuple, key, 4);
	if (tuple->words & 0xc0U)
		pst_hash_pair(&lanes, secret, tuple, key, 6);
	return lanes;
}

/* The same. With SSE2 a pair of words at a time, in half the instructions. */
PST_INLINE struct pst_hash pst_hash_lanes(const struct pst_hash_secret *secret, const struct pst_tuple *tuple,
					  const struct pst_key *key)
{
#ifdef PST_HASH_SSE2
	const __m128i *masks = (const __m128i *)tuple->mask.words;
	const __m128i *keys = (const __m128i *)secret->words; /* the second lane's begin two words later */
	__m128i tag = _mm_setzero_si128(), place = tag, both;
	struct pst_hash lanes = { tuple->salt, ~tuple->salt };
	uint32_t selected = tuple->words, i;

	for (i = 0; selected && i < PST_KEY_WORDS / 2; i++, selected >>= 2) {
		__m128i word, to_tag, to_place;

		if (!(selected & 3U))
			continue;
		/* Two loads: the parser has just stored these words one by one, and a CPU forwards no two stores to one load. */
		word = _mm_unpacklo_epi64(_mm_loadl_epi64((const __m128i *)&key->words[2 * i]),
					  _mm_loadl_epi64((const __m128i *)&key->words[2 * i + 1]));
		word = _mm_and_si128(word, _mm_loadu_si128(masks + i));
		to_tag = _mm_add_epi32(word, _mm_loadu_si128(keys + i));
		to_place = _mm_add_epi32(word, _mm_loadu_si128(keys + i + 1));
		tag = _mm_add_epi64(tag, _mm_mul_epu32(to_tag, _mm_srli_epi64(to_tag, 32)));
		place = _mm_add_epi64(place, _mm_mul_epu32(to_place, _mm_srli_epi64(to_place, 32)));
	}
	both = _mm_add_epi64(_mm_unpacklo_epi64(tag, place), _mm_unpackhi_epi64(tag, place));
	lanes.tag += (uint64_t)_mm_cvtsi128_si64(both);
	lanes.place += (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(both, both));
	return lanes;
#else
	return pst_hash_lanes_plain(secret, tuple, key);
#endif
}

/* Hashes the words of `key` that `tuple` looks at, under its mask. */
PST_INLINE struct pst_hash pst_hash_key(const struct pst_hash_secret *secret, const struct pst_tuple *tuple,
					const struct pst_key *key)
{
	struct pst_hash lanes = pst_hash_lanes(secret, tuple, key);

	lanes.tag = pst_hash_mix(lanes.tag);
	lanes.place = pst_hash_mix(lanes.place);
	return lanes;
}

#endif /* PENSTOCK_HASH_H */
