/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * table.h: the table of limiters: two candidate cache lines a key, three limiters in each.
 *
 * What         n buckets, n even. A key has a tag (48 bits, never 0) and two buckets:
 *                  first  = scale(place, n)                           from hash.place
 *                  second = (sum - first) mod n,  sum = 2 * scale(tag, n / 2) + 1
 *              b -> sum - b is its own inverse, so an entry moves to its other bucket by its tag alone. The sum is odd
 *              and n is even, so the two buckets are never the same. Scaling is a multiplication and a shift: no
 *              division, and n need not be a power of two.
 *              An entry goes to its first bucket if there is room, then to its second; when both are full, a
 *              breadth-first search finds the shortest chain of entries that make room by moving to their other bucket.
 *              One kind of table serves limiters (value: a profile) and rules (value: a rule; rate and state 0).
 * Source       Pagh and Rodler, "Cuckoo hashing", J. Algorithms 51 (2004). Buckets: Dietzfelbinger and Weidling,
 *              "Balanced allocation and dictionaries with tightly packed constant size bins", TCS 380 (2007). The other
 *              bucket from the tag: Fan et al., "Cuckoo filter", CoNEXT 2014, section 3.1, here with a difference in
 *              place of its xor. The sequence: Lamport, "Concurrent reading and writing", CACM 20 (1977).
 * Units        a slot is bucket * PST_BUCKET_SLOTS + 0..2; states as in limiter.h, rates are rate codes (fixed.h).
 * Ranges       2 <= n <= PST_TABLE_BUCKETS_MAX.
 *              Two choices and three slots can be filled to a load of 0.959; pst_table_buckets_for(N) gives 0.85 (25.1
 *              bytes an entry) and 48 buckets more. Those are for small N: a pair of buckets takes 6 entries, and that
 *              some pair is given a seventh has a probability of about n^2/4 * (4 N / n^2)^7 / 7!, with them below 1e-9
 *              for every N. Insertion then answers FULL, and the host builds the table again with another secret.
 *              One search looks at PST_TABLE_SEARCH_BUCKETS buckets and moves PST_TABLE_MOVES_MAX entries, at most.
 *              An unknown key is taken for some entry with probability at most 6 * 2^-48 (2.1e-14): it is compared with
 *              six entries at most, in 48 bits (the hash taken as random; what is proven of it is in hash.h).
 * Invariants   I1  every entry lies in one of its two buckets, and once.
 *              I2  two entries of equal tag never share a bucket: insertion answers TAKEN, and the host, which has the
 *                  whole keys, tells a key that came twice from a twin (build again with another secret).
 *              I3  an insertion that fails changes nothing, sequences included.
 *              I4  a reader gets rate, profile and state of one entry at one moment, or is told to come again.
 *              I5  an entry that is in the table is never reported absent, while it or others move as well.
 *              I6  no charge is lost or doubled by a move or a change of rate.
 * Overflow     scaling: n * 2^32 <= 2^62. A sum of two buckets is below 2^31, a slot below 2^32.
 * Concurrency  One writer; any number of readers, without locks. `sequence` is odd while the writer is in a bucket.
 *              I4: a reader takes key, state and rate between two equal, even readings of the sequence. It has 16 bits: to be
 *              deceived a reader would have to stand still for 32,768 writes to its bucket, or a multiple, to the write.
 *              I5: a move opens both buckets, so at each moment one of them has the entry or is visibly open. A reader
 *              that missed in both looks at the first one's sequence once more: had the entry come there from the
 *              second in between, it would differ.
 *              I6: readers charge by compare-and-swap on the state in the slot, against the one in their view. When that
 *              fails they read the state again, and find the entry again if its bucket was opened since. The writer takes a state out of a slot by an atomic exchange with 0 and
 *              converts one by compare-and-swap: a charge comes before, and is carried along, or after, and fails.
 *              A charge to a slot that changed hands fails too, unless the new owner's state equals the old one's to
 *              the tick. Two limiters made idle at the same `now` are so: one packet is then charged to the wrong one.
 *              Busy means that the writer was met PST_TABLE_TRIES times. Its writes last some ten nanoseconds, unless
 *              it loses its CPU in one: then one bucket, or two, are busy until it runs again.
 *              Under BPF the compiler alone orders the loads: right on x86, not on weakly ordered CPUs.
 * Not done     no growth: sized once, built again when too small. No change of the kind of meter in place, since its
 *              state means something else: remove and insert. Memory is the host's, and so are 2 MB pages.
 */
#ifndef PENSTOCK_TABLE_H
#define PENSTOCK_TABLE_H

#include "hash.h"
#include "limiter.h"

#define PST_TABLE_TRIES 8
#define PST_TABLE_BUCKETS_MAX (UINT32_C(1) << 30)
#define PST_TABLE_SPARE_BUCKETS 48
#define PST_TABLE_SEARCH_BUCKETS 242 /* 2 * (3^0 + .. + 3^PST_TABLE_MOVES_MAX): whole levels */
#define PST_TABLE_PROFILE_BITS 16

#ifdef __bpf__
#define PST_TABLE_FENCE_ACQUIRE() __asm__ volatile("" ::: "memory")
#else
#define PST_TABLE_FENCE_ACQUIRE() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#endif

/* Where a key may lie. */
struct pst_place {
	uint64_t tag;
	uint32_t first;
	uint32_t second;
};

/* A copy of an entry as it was at one moment. */
struct pst_slot_view {
	uint64_t state;
	uint32_t rate;
	uint32_t sequence; /* of the bucket; set when the answer is ABSENT, too */
	uint32_t bucket;   /* set by pst_pair_find and pst_table_find: one bucket does not know its number */
	uint16_t profile;
	uint16_t slot;     /* in its bucket: 0..2 */
};

enum pst_found {
	PST_FOUND_ABSENT = 0,
	PST_FOUND_ENTRY = 1,
	PST_FOUND_BUSY = 2, /* the writer was in the way at every try */
};

/* What an entry holds besides its key. */
struct pst_table_entry {
	uint64_t state;
	uint32_t rate;
	uint16_t profile;
};

enum pst_table_result {
	PST_TABLE_DONE = 0,
	PST_TABLE_FULL = 1,  /* no chain of moves within the bounds makes room */
	PST_TABLE_TAKEN = 2, /* an entry with this tag is in these buckets already (I2) */
};

/* How a state changes with its limit: resolved before and after (pst_limiter_resolve). */
struct pst_table_conversion {
	const struct pst_limiter_profile *before;
	const struct pst_limiter_profile *after;
	uint64_t now_ns;
};

/* Buckets of a table that takes `keys` entries, keys <= 2^31. */
PST_INLINE uint32_t pst_table_buckets_for(uint32_t keys)
{
	/* 20 / 51 = 1 / (3 slots * 0.85) */
	uint64_t buckets = ((uint64_t)keys * 20 + 50) / 51 + PST_TABLE_SPARE_BUCKETS;

	return (uint32_t)((buckets + 1) & ~UINT64_C(1));
}

PST_INLINE uint64_t pst_table_tag(struct pst_hash hash)
{
	uint64_t tag = hash.tag >> PST_TABLE_PROFILE_BITS;

	return tag ? tag : 1;
}

PST_INLINE uint32_t pst_table_first(struct pst_hash hash, uint32_t bucket_count)
{
	return pst_scale_u32((uint32_t)(hash.place >> 32), bucket_count);
}

/* The other bucket of an entry that lies in `bucket`. */
PST_INLINE uint32_t pst_table_other(uint64_t tag, uint32_t bucket, uint32_t bucket_count)
{
	uint32_t sum = 2 * pst_scale_u32((uint32_t)(tag >> 16), bucket_count / 2) + 1;

	return sum >= bucket ? sum - bucket : sum + bucket_count - bucket;
}

PST_INLINE struct pst_place pst_table_place(struct pst_hash hash, uint32_t bucket_count)
{
	struct pst_place place;

	place.tag = pst_table_tag(hash);
	place.first = pst_table_first(hash, bucket_count);
	place.second = pst_table_other(place.tag, place.first, bucket_count);
	return place;
}

/* The table slot of an entry that pst_pair_find or pst_table_find returned. */
PST_INLINE uint32_t pst_table_slot(const struct pst_slot_view *view)
{
	return view->bucket * PST_BUCKET_SLOTS + view->slot;
}

/* ---- readers ---- */

PST_INLINE uint64_t pst_table_load_u64(const uint64_t *word)
{
	return *(const volatile uint64_t *)word;
}

PST_INLINE uint32_t pst_table_load_u32(const uint32_t *word)
{
	return *(const volatile uint32_t *)word;
}

PST_INLINE uint16_t pst_table_load_u16(const uint16_t *word)
{
	return *(const volatile uint16_t *)word;
}

/* Opens a read of a bucket: its sequence. Under PST_ONE_THREAD (types.h) nobody needs it. */
PST_INLINE uint32_t pst_bucket_sequence(const struct pst_bucket *bucket)
{
#ifdef PST_ONE_THREAD
	(void)bucket;
	return 0;
#else
	uint32_t sequence = pst_table_load_u16(&bucket->sequence);

	PST_TABLE_FENCE_ACQUIRE();
	return sequence;
#endif
}

/* Closes it. False: the writer was there meanwhile, and what was read is worth nothing. */
PST_INLINE bool pst_bucket_is_still(const struct pst_bucket *bucket, uint32_t sequence)
{
#ifdef PST_ONE_THREAD
	(void)bucket;
	(void)sequence;
	return true;
#else
	PST_TABLE_FENCE_ACQUIRE();
	return !(sequence & 1) && pst_table_load_u16(&bucket->sequence) == sequence;
#endif
}

/* A slot of a bucket, whatever the number is. BPF's verifier believes a bound that it sees on the very register only. */
PST_INLINE uint32_t pst_slot_bounded(uint32_t slot)
{
#ifdef __bpf__
	__asm__ volatile("" : "+r"(slot));
	return slot < PST_BUCKET_SLOTS ? slot : 0;
#else
	return slot;
#endif
}

/* One look for a tag in one bucket. BUSY: the writer was there. */
PST_INLINE enum pst_found pst_bucket_find(const struct pst_bucket *bucket, uint64_t tag, struct pst_slot_view *out)
{
	uint32_t in_1, in_2, slot;
	uint64_t key;

	out->sequence = pst_bucket_sequence(bucket);
	/* No branch depends on which slot it is: nobody could predict it. Slot 0 stands for "neither of the others". */
	in_1 = pst_is_same(pst_table_load_u64(&bucket->keys[1]) >> PST_TABLE_PROFILE_BITS, tag);
	in_2 = pst_is_same(pst_table_load_u64(&bucket->keys[2]) >> PST_TABLE_PROFILE_BITS, tag);
	slot = pst_slot_bounded(in_2 << 1 | (in_1 & ~in_2));
	key = pst_table_load_u64(&bucket->keys[slot]);
	out->state = pst_table_load_u64(&bucket->states[slot]);
	out->rate = pst_table_load_u32(&bucket->rates[slot]);
	out->profile = (uint16_t)key;
	out->slot = (uint16_t)slot;
	if (!pst_bucket_is_still(bucket, out->sequence))
		return PST_FOUND_BUSY;
	return key >> PST_TABLE_PROFILE_BITS == tag ? PST_FOUND_ENTRY : PST_FOUND_ABSENT;
}

/* Looks for a key in its two buckets: the whole of a read, also for a host that gets buckets one by one. */
PST_INLINE enum pst_found pst_pair_find(const struct pst_bucket *first, const struct pst_bucket *second,
					const struct pst_place *place, struct pst_slot_view *out)
{
	int tries;

	for (tries = 0; tries < PST_TABLE_TRIES; tries++) {
		enum pst_found found = pst_bucket_find(first, place->tag, out);
		uint32_t sequence = out->sequence;

		out->bucket = place->first;
		if (found == PST_FOUND_ABSENT) {
			found = pst_bucket_find(second, place->tag, out);
			out->bucket = place->second;
			if (found == PST_FOUND_ABSENT && pst_bucket_is_still(first, sequence))
				return PST_FOUND_ABSENT;
		}
		if (found == PST_FOUND_ENTRY)
			return found;
	}
	return PST_FOUND_BUSY;
}

PST_INLINE enum pst_found pst_table_find(const struct pst_table *table, const struct pst_place *place,
					 struct pst_slot_view *out)
{
	return pst_pair_find(&table->buckets[place->first], &table->buckets[place->second], place, out);
}

/*
 * Turns a place round when its first bucket has not got the tag, for a find whose both buckets are in the cache already: a
 * quarter of the keys lie in the second, and no CPU can predict which. A guess: the find does not rely on it.
 */
PST_INLINE struct pst_place pst_place_turn(const struct pst_bucket *first, struct pst_place place)
{
	uint32_t has_0 = pst_is_same(pst_table_load_u64(&first->keys[0]) >> PST_TABLE_PROFILE_BITS, place.tag);
	uint32_t has_1 = pst_is_same(pst_table_load_u64(&first->keys[1]) >> PST_TABLE_PROFILE_BITS, place.tag);
	uint32_t has_2 = pst_is_same(pst_table_load_u64(&first->keys[2]) >> PST_TABLE_PROFILE_BITS, place.tag);
	uint32_t swap = (place.first ^ place.second) & ((has_0 | has_1 | has_2) - 1);

	place.first ^= swap;
	place.second ^= swap;
	return place;
}

/* Reads the state in a view again. False when the writer has been in the bucket since: the entry must be found anew. */
PST_INLINE bool pst_bucket_refresh(const struct pst_bucket *bucket, struct pst_slot_view *view)
{
	view->state = pst_table_load_u64(&bucket->states[pst_slot_bounded(view->slot)]);
	return pst_bucket_is_still(bucket, view->sequence);
}

/* The state in a slot: what a reader commits to, by pst_limiter_commit against the state in its view. */
PST_INLINE uint64_t *pst_table_state(const struct pst_table *table, uint32_t slot)
{
	return &table->buckets[slot / PST_BUCKET_SLOTS].states[slot % PST_BUCKET_SLOTS];
}

/* ---- the writer: userspace only, BPF has neither its fences nor the stack for its search ---- */

#define PST_TABLE_WRITER static inline __attribute__((unused))

PST_TABLE_WRITER void pst_bucket_open(struct pst_bucket *bucket)
{
	__atomic_store_n(&bucket->sequence, (uint16_t)(bucket->sequence + 1), __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

PST_TABLE_WRITER void pst_bucket_close(struct pst_bucket *bucket)
{
	__atomic_store_n(&bucket->sequence, (uint16_t)(bucket->sequence + 1), __ATOMIC_RELEASE);
}

/* Fills a slot of an open bucket. */
PST_TABLE_WRITER void
pst_bucket_put(struct pst_bucket *bucket, uint32_t slot, uint64_t key, uint32_t rate, uint64_t state)
{
	__atomic_store_n(&bucket->keys[slot], key, __ATOMIC_RELAXED);
	__atomic_store_n(&bucket->rates[slot], rate, __ATOMIC_RELAXED);
	__atomic_store_n(&bucket->states[slot], state, __ATOMIC_RELAXED);
}

/* The slot of this tag in a bucket, tag 0 meaning a free one; PST_BUCKET_SLOTS if there is none. */
PST_TABLE_WRITER uint32_t pst_bucket_slot(const struct pst_bucket *bucket, uint64_t tag)
{
	uint32_t slot;

	for (slot = 0; slot < PST_BUCKET_SLOTS; slot++)
		if (bucket->keys[slot] >> PST_TABLE_PROFILE_BITS == tag)
			break;
	return slot;
}

/* Moves an entry from one slot to a free one of its other bucket. */
PST_TABLE_WRITER void pst_table_shift(const struct pst_table *table, struct pst_table_move move)
{
	struct pst_bucket *from = &table->buckets[move.from_slot / PST_BUCKET_SLOTS];
	struct pst_bucket *to = &table->buckets[move.to_slot / PST_BUCKET_SLOTS];
	uint32_t from_slot = move.from_slot % PST_BUCKET_SLOTS, to_slot = move.to_slot % PST_BUCKET_SLOTS;
	uint64_t state;

	pst_bucket_open(to);
	pst_bucket_open(from);
	/* From here on a charge to the old place fails, and its reader finds the new one. */
	state = __atomic_exchange_n(&from->states[from_slot], 0, __ATOMIC_ACQ_REL);
	pst_bucket_put(to, to_slot, from->keys[from_slot], from->rates[from_slot], state);
	pst_bucket_put(from, from_slot, 0, 0, 0);
	pst_bucket_close(to);
	pst_bucket_close(from);
}

/* A bucket that the search came to, by moving the entry in `slot` of its parent. */
struct pst_table_step {
	uint32_t bucket;
	uint16_t parent;
	uint16_t slot;
};

/*
 * Fills `steps` breadth first from both buckets of a place, up to one with a free slot. Returns its index, or
 * PST_TABLE_SEARCH_BUCKETS if there is none. Its chain meets no bucket twice: cutting out the loop would give a shorter
 * chain, and breadth first that one would have been found before.
 */
PST_TABLE_WRITER uint32_t
pst_table_search(const struct pst_table *table, const struct pst_place *place, struct pst_table_step *steps)
{
	uint32_t next, count = 2;

	steps[0].bucket = place->first;
	steps[1].bucket = place->second;
	for (next = 0; next < count; next++) {
		const struct pst_bucket *bucket = &table->buckets[steps[next].bucket];
		uint16_t slot;

		if (pst_bucket_slot(bucket, 0) < PST_BUCKET_SLOTS)
			return next;
		for (slot = 0; slot < PST_BUCKET_SLOTS && count < PST_TABLE_SEARCH_BUCKETS; slot++) {
			struct pst_table_step *step = &steps[count++];

			step->bucket = pst_table_other(bucket->keys[slot] >> PST_TABLE_PROFILE_BITS,
						       steps[next].bucket, table->bucket_count);
			step->parent = (uint16_t)next;
			step->slot = slot;
			__builtin_prefetch(&table->buckets[step->bucket]);
		}
	}
	return PST_TABLE_SEARCH_BUCKETS;
}

/* Adds an entry. `out` is set when the answer is DONE. */
PST_TABLE_WRITER enum pst_table_result
pst_table_insert(const struct pst_table *table, const struct pst_place *place, const struct pst_table_entry *entry,
		 struct pst_table_insertion *out)
{
	struct pst_table_step steps[PST_TABLE_SEARCH_BUCKETS];
	struct pst_bucket *bucket;
	uint32_t step, slot;

	if (pst_bucket_slot(&table->buckets[place->first], place->tag) < PST_BUCKET_SLOTS ||
	    pst_bucket_slot(&table->buckets[place->second], place->tag) < PST_BUCKET_SLOTS)
		return PST_TABLE_TAKEN;
	step = pst_table_search(table, place, steps);
	if (step == PST_TABLE_SEARCH_BUCKETS)
		return PST_TABLE_FULL;
	slot = pst_bucket_slot(&table->buckets[steps[step].bucket], 0);
	/* The last of the chain moves first: each finds its place free. Steps 0 and 1 are the key's own buckets. */
	for (out->move_count = 0; step > 1; out->move_count++) {
		struct pst_table_move *move = &out->moves[out->move_count];
		uint32_t parent = steps[step].parent;

		move->from_slot = steps[parent].bucket * PST_BUCKET_SLOTS + steps[step].slot;
		move->to_slot = steps[step].bucket * PST_BUCKET_SLOTS + slot;
		pst_table_shift(table, *move);
		slot = steps[step].slot;
		step = parent;
	}
	out->slot = steps[step].bucket * PST_BUCKET_SLOTS + slot;
	bucket = &table->buckets[steps[step].bucket];
	pst_bucket_open(bucket);
	pst_bucket_put(bucket, slot, place->tag << PST_TABLE_PROFILE_BITS | entry->profile, entry->rate, entry->state);
	pst_bucket_close(bucket);
	return PST_TABLE_DONE;
}

/* Frees a slot. A charge that is on its way to it fails. */
PST_TABLE_WRITER void pst_table_remove(const struct pst_table *table, uint32_t slot)
{
	struct pst_bucket *bucket = &table->buckets[slot / PST_BUCKET_SLOTS];

	pst_bucket_open(bucket);
	pst_bucket_put(bucket, slot % PST_BUCKET_SLOTS, 0, 0, 0);
	pst_bucket_close(bucket);
}

/*
 * Closes buckets that a writer left open when it was killed, and frees their slots that it had not filled or was moving: an entry there
 * has no state, which is stored last and taken away first. Nobody else writes.
 */
PST_TABLE_WRITER void pst_table_heal(const struct pst_table *table)
{
	uint32_t i, slot;

	for (i = 0; i < table->bucket_count; i++) {
		struct pst_bucket *bucket = &table->buckets[i];

		if (!(bucket->sequence & 1))
			continue;
		for (slot = 0; slot < PST_BUCKET_SLOTS; slot++)
			if (!bucket->keys[slot] || !bucket->states[slot])
				pst_bucket_put(bucket, slot, 0, 0, 0);
		pst_bucket_close(bucket);
	}
}

/*
 * Gives the entry in a slot another rate and profile. With a conversion its state, a virtual finish time, keeps the
 * bytes of the virtual queue; without one (NULL) it stays as it is: so for an RFC meter, whose state is an index.
 */
PST_TABLE_WRITER void pst_table_change(const struct pst_table *table, uint32_t slot, uint16_t profile, uint32_t rate,
				 const struct pst_table_conversion *conversion)
{
	struct pst_bucket *bucket = &table->buckets[slot / PST_BUCKET_SLOTS];
	uint32_t index = slot % PST_BUCKET_SLOTS;
	uint64_t tag = bucket->keys[index] >> PST_TABLE_PROFILE_BITS;
	uint64_t state = pst_table_load_u64(&bucket->states[index]);

	pst_bucket_open(bucket);
	__atomic_store_n(&bucket->keys[index], tag << PST_TABLE_PROFILE_BITS | profile, __ATOMIC_RELAXED);
	__atomic_store_n(&bucket->rates[index], rate, __ATOMIC_RELAXED);
	/* Only charges that were decided before the bucket was open can come in between: one a CPU, so this ends. */
	while (conversion) {
		uint64_t next = pst_limiter_convert(conversion->before, conversion->after, state, conversion->now_ns);

		if (pst_limiter_commit(&bucket->states[index], &state, next))
			break;
	}
	pst_bucket_close(bucket);
}

#endif /* PENSTOCK_TABLE_H */
