/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * wheel.h: a timing wheel: what waits leaves when its time has come, in constant work however much waits.
 *
 * What         Items are filed by the slot of their due time, rounded up: slot = ceil(due / 4096 ns). A slot is a list, first in,
 *              first out. Slots of the block that is being emptied and of the next one (4096 slots each) are near; what is due
 *              later is far: a list a block, poured into slots while the block before it is being emptied.
 * Source       Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", SOSP 1987, scheme 7. As a shaper: Saeed et al.,
 *              "Carousel", SIGCOMM 2017, section 4. It is DragonKing's packet grouping (section III-A) with a group a slot, so
 *              that nothing recirculates.
 * Units        _ns; items are indices into an array of the host's.
 * Ranges       due times up to PST_WHEEL_AHEAD_NSEC (68.7 s) after the wheel's own; later ones are refused. Earlier ones go to the slot
 *              that is being emptied.
 * Invariants   I1  nothing is taken before it is due, and with now_ns past due by a slot's width (4096 ns) it is taken.
 *              I2  what was put later is not taken earlier, unless it is due in an earlier slot. So what has one owner, and due times
 *                  that do not fall, keeps its order.
 *              I3  what is put is taken once; between put and take the host leaves the item alone.
 *              I4  only differences of times matter: adding a multiple of 4096 ns to all of them changes nothing, wraps included.
 * Overflow     ahead is below 2^37; slots count modulo 2^52, which 2^64 ns divide into.
 * Concurrency  none: a wheel has one owner.
 * Not done     removal of what waits: a host marks it and skips it when it comes.
 */
#ifndef PENSTOCK_WHEEL_H
#define PENSTOCK_WHEEL_H

#include "wire.h"

#define PST_WHEEL_SLOT_BITS 12 /* ns: a bit less than the paper's 5 us */
#define PST_WHEEL_SLOT_NSEC (UINT64_C(1) << PST_WHEEL_SLOT_BITS)
#define PST_WHEEL_BLOCK_BITS 12 /* slots */
#define PST_WHEEL_BLOCK_NSEC (PST_WHEEL_SLOT_NSEC << PST_WHEEL_BLOCK_BITS)
/* One block less than there are: the block at hand may be nearly over. */
#define PST_WHEEL_AHEAD_NSEC ((PST_WHEEL_FAR - 2) * PST_WHEEL_BLOCK_NSEC)

PST_STATIC_ASSERT(PST_WHEEL_NEAR == 2 << PST_WHEEL_BLOCK_BITS, "two blocks are near");

/* ---- bits that say which lists have items ---- */

PST_INLINE bool pst_bits_have(const uint64_t *words, uint32_t index)
{
	return words[index / 64] >> index % 64 & 1;
}

PST_INLINE void pst_bits_set(uint64_t *words, uint32_t index)
{
	words[index / 64] |= UINT64_C(1) << index % 64;
}

PST_INLINE void pst_bits_clear(uint64_t *words, uint32_t index)
{
	words[index / 64] &= ~(UINT64_C(1) << index % 64);
}

/* The lowest set bit of a word that has one. clang 14 fails to compile the builtin for BPF. */
PST_INLINE uint32_t pst_bits_lowest(uint64_t word)
{
#ifdef __bpf__
	uint32_t bits, lowest = 0;

	for (bits = 32; bits > 0; bits /= 2) {
		if (word << (64 - bits) == 0) {
			word >>= bits;
			lowest += bits;
		}
	}
	return lowest;
#else
	return (uint32_t)__builtin_ctzll(word);
#endif
}

/* The first set bit from `from` on and below `end`; `end` when there is none. */
PST_OUTLINE uint32_t pst_bits_next(const uint64_t *words, uint32_t from, uint32_t end)
{
	while (from < end) {
		uint64_t word = words[from / 64] >> from % 64;

		if (word) {
			from += pst_bits_lowest(word);
			return from < end ? from : end;
		}
		from = (from / 64 + 1) * 64;
	}
	return end;
}

/* ---- lists ---- */

PST_INLINE void pst_wheel_append(struct pst_wheel_list *lists, uint64_t *bits, uint32_t index,
				 struct pst_wheel_item *items, uint32_t item)
{
	if (pst_bits_have(bits, index))
		items[lists[index].last].next = item;
	else
		lists[index].first = item;
	lists[index].last = item;
	pst_bits_set(bits, index);
}

/* Of a list that has items. */
PST_INLINE uint32_t pst_wheel_pop(struct pst_wheel_list *lists, uint64_t *bits, uint32_t index,
				  const struct pst_wheel_item *items)
{
	uint32_t item = lists[index].first;

	if (item == lists[index].last)
		pst_bits_clear(bits, index);
	else
		lists[index].first = items[item].next;
	return item;
}

/* ---- the wheel ---- */

PST_INLINE uint32_t pst_wheel_near(uint64_t at_ns)
{
	return (uint32_t)(at_ns >> PST_WHEEL_SLOT_BITS) % PST_WHEEL_NEAR;
}

PST_INLINE uint32_t pst_wheel_far(uint64_t at_ns)
{
	return (uint32_t)(at_ns >> (PST_WHEEL_SLOT_BITS + PST_WHEEL_BLOCK_BITS)) % PST_WHEEL_FAR;
}

/* Zeroed memory is an empty wheel; this one begins at now_ns. */
PST_INLINE void pst_wheel_start(struct pst_wheel *wheel, uint64_t now_ns)
{
	wheel->at_ns = now_ns & ~(PST_WHEEL_SLOT_NSEC - 1);
	wheel->waiting = 0;
}

/* Where the slot of a due time begins: not before the one that is being emptied. */
PST_INLINE uint64_t pst_wheel_slot_ns(const struct pst_wheel *wheel, uint64_t due_ns)
{
	uint64_t up_ns = (due_ns + PST_WHEEL_SLOT_NSEC - 1) & ~(PST_WHEEL_SLOT_NSEC - 1);

	return (int64_t)(up_ns - wheel->at_ns) > 0 ? up_ns : wheel->at_ns;
}

PST_INLINE uint64_t pst_wheel_blocks_ahead(const struct pst_wheel *wheel, uint64_t slot_ns)
{
	uint64_t block_ns = wheel->at_ns & ~(PST_WHEEL_BLOCK_NSEC - 1);

	return (slot_ns - block_ns) / PST_WHEEL_BLOCK_NSEC;
}

/* Files an item that is due at due_ns. False when that is further ahead than the wheel reaches: then it is not taken in. */
PST_INLINE bool pst_wheel_put(struct pst_wheel *wheel, struct pst_wheel_item *items, uint32_t item, uint64_t due_ns)
{
	uint64_t slot_ns = pst_wheel_slot_ns(wheel, due_ns), ahead;

	if (slot_ns - wheel->at_ns > PST_WHEEL_AHEAD_NSEC)
		return false;
	items[item].due_ns = due_ns;
	ahead = pst_wheel_blocks_ahead(wheel, slot_ns);
	/* While the next block is being poured, who comes late stays behind those that wait to be poured (I2). */
	if (ahead == 0 || (ahead == 1 && !pst_bits_have(wheel->far_bits, pst_wheel_far(slot_ns))))
		pst_wheel_append(wheel->near, wheel->near_bits, pst_wheel_near(slot_ns), items, item);
	else
		pst_wheel_append(wheel->far, wheel->far_bits, pst_wheel_far(slot_ns), items, item);
	wheel->waiting++;
	return true;
}

/* Pours up to `count` items of the next block into its slots. Returns whether some are left. */
PST_OUTLINE bool pst_wheel_pour(struct pst_wheel *wheel, struct pst_wheel_item *items, uint32_t count)
{
	uint32_t block = pst_wheel_far(wheel->at_ns + PST_WHEEL_BLOCK_NSEC);

	for (; count > 0 && pst_bits_have(wheel->far_bits, block); count--) {
		uint32_t item = pst_wheel_pop(wheel->far, wheel->far_bits, block, items);
		uint64_t slot_ns = pst_wheel_slot_ns(wheel, items[item].due_ns);

		pst_wheel_append(wheel->near, wheel->near_bits, pst_wheel_near(slot_ns), items, item);
	}
	return pst_bits_have(wheel->far_bits, block);
}

/*
 * The next block that has items, in slots or still far, at most `most` blocks ahead: how many. 0 when there is none. The block
 * at hand is looked at by who asks.
 */
PST_OUTLINE uint64_t pst_wheel_block_next(const struct pst_wheel *wheel, uint64_t most)
{
	uint32_t block = pst_wheel_far(wheel->at_ns), end, found;
	uint32_t slots = pst_wheel_near(wheel->at_ns + PST_WHEEL_BLOCK_NSEC) & ~(uint32_t)(PST_WHEEL_NEAR / 2 - 1);

	if (most == 0)
		return 0;
	if (pst_bits_next(wheel->near_bits, slots, slots + PST_WHEEL_NEAR / 2) < slots + PST_WHEEL_NEAR / 2)
		return 1;
	end = most < PST_WHEEL_FAR - block ? block + (uint32_t)most + 1 : PST_WHEEL_FAR;
	found = pst_bits_next(wheel->far_bits, block + 1, end);
	if (found < end)
		return found - block;
	most -= end - 1 - block;
	end = most < block ? (uint32_t)most : block; /* round the corner */
	found = pst_bits_next(wheel->far_bits, 0, end);
	return found < end ? PST_WHEEL_FAR - block + found : 0;
}

/* Goes on to the next slot that has items, at most to that of now_ns. Returns whether it has one. */
PST_OUTLINE bool pst_wheel_advance(struct pst_wheel *wheel, struct pst_wheel_item *items, uint64_t now_ns)
{
	uint64_t to_ns = now_ns & ~(PST_WHEEL_SLOT_NSEC - 1);

	while ((int64_t)(to_ns - wheel->at_ns) >= 0) {
		uint64_t blocks = pst_wheel_blocks_ahead(wheel, to_ns), ahead;
		uint32_t slot = pst_wheel_near(wheel->at_ns), end, found;

		end = blocks ? (slot | (PST_WHEEL_NEAR / 2 - 1)) + 1 : pst_wheel_near(to_ns) + 1;
		found = pst_bits_next(wheel->near_bits, slot, end);
		wheel->at_ns += (uint64_t)(found - slot) * PST_WHEEL_SLOT_NSEC;
		if (found < end)
			return true;
		if (!blocks) {
			wheel->at_ns = to_ns;
			return false;
		}
		/* at_ns is the first slot of the next block now: as if that were the second of two, it is poured from there. */
		wheel->at_ns -= PST_WHEEL_SLOT_NSEC;
		ahead = wheel->waiting ? pst_wheel_block_next(wheel, blocks) : 0;
		if (ahead == 0) {
			wheel->at_ns = to_ns;
			return false;
		}
		wheel->at_ns = (wheel->at_ns & ~(PST_WHEEL_BLOCK_NSEC - 1)) + (ahead - 1) * PST_WHEEL_BLOCK_NSEC;
		pst_wheel_pour(wheel, items, UINT32_MAX);
		wheel->at_ns += PST_WHEEL_BLOCK_NSEC;
	}
	return false;
}

/* Takes an item whose slot has come, or PST_NONE. Pours a few on the way. */
PST_INLINE uint32_t pst_wheel_take(struct pst_wheel *wheel, struct pst_wheel_item *items, uint64_t now_ns)
{
	pst_wheel_pour(wheel, items, PST_WHEEL_POUR);
	if (!pst_wheel_advance(wheel, items, now_ns))
		return PST_NONE;
	wheel->waiting--;
	return pst_wheel_pop(wheel->near, wheel->near_bits, pst_wheel_near(wheel->at_ns), items);
}

/*
 * When there is something to do next: a slot to be emptied, or a block to be poured. False when nothing waits. Whoever comes by then
 * takes everything on time.
 */
PST_INLINE bool pst_wheel_next(const struct pst_wheel *wheel, uint64_t *next_ns)
{
	uint32_t slot = pst_wheel_near(wheel->at_ns), end = (slot | (PST_WHEEL_NEAR / 2 - 1)) + 1, found;
	uint64_t ahead;

	if (!wheel->waiting)
		return false;
	*next_ns = wheel->at_ns;
	if (pst_bits_have(wheel->far_bits, pst_wheel_far(wheel->at_ns + PST_WHEEL_BLOCK_NSEC)))
		return true;
	found = pst_bits_next(wheel->near_bits, slot, end);
	*next_ns += (uint64_t)(found - slot) * PST_WHEEL_SLOT_NSEC;
	if (found < end)
		return true;
	/* The next block begins then. One that is further on is poured while the one before it lasts. */
	ahead = pst_wheel_block_next(wheel, PST_WHEEL_FAR - 1);
	if (ahead > 1)
		*next_ns += (ahead - 2) * PST_WHEEL_BLOCK_NSEC;
	return true;
}

#endif /* PENSTOCK_WHEEL_H */
