/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * limiter_sketch.h: limiters for millions of users in a few thousand words.
 *
 * What         r rows of c virtual finish times, behind the filters of the sketch (sketch.h), in its rows and columns. A user's limiter is the
 *              emptiest of its r words; what a packet makes of that is written to all of them that lie before it. So a word is ahead of
 *              all who share it, and a user is held back by others only where somebody busy meets it in every row.
 * Source       ours: the count-min sketch with conservative update (Estan and Varghese, 2002) of the one-number limiter. AHAB drops by chance
 *              (section IV-A), which costs senders who slow down at each loss a part of their share, and at intervals (V-A), which holds only
 *              those who heed a single loss.
 * Units        ticks (clock.h).
 * Ranges       sketch.h; words that nobody has touched are 0, and read as idle but for the 275 s before the clock wraps, once in 208 days.
 * Invariants   I1  a user's limiter is never emptier than those of its packets that passed would alone have it.
 *              I2  it is as they would have it, unless in each row another user's is fuller, or was at a packet of its own since it was last empty. Where b
 *                  users are busy in c columns, they push a stranger's with a probability of (b/c)^r at most, over the seeds.
 *              I3  a user's limiter is never emptier after another's packet: who waits is not overtaken.
 *              I4  a word that is further ahead than a limiter can be is as empty as can be (limiter.h I5).
 * Overflow     indices are below 2 * 4 * 2^20.
 * Concurrency  the word that was chosen is changed by compare-and-swap; the others are raised once, and stay where another CPU was faster:
 *              that one wrote what is later, or the next packet does. A packet that comes after another CPU has charged a word and before that has
 *              raised the others may choose one of those: both are charged as one. So n CPUs may let n times as much pass at worst, up to r times;
 *              two that did nothing else missed 4 in 10^6.
 */
#ifndef PENSTOCK_LIMITER_SKETCH_H
#define PENSTOCK_LIMITER_SKETCH_H

#include "limiter.h"
#include "sketch.h"

/* How far a word is ahead of now; behind it, below 0. */
PST_INLINE int64_t pst_limiter_sketch_ahead(uint64_t vft_ticks, uint64_t now_ticks)
{
	int64_t ahead = pst_clock_since(vft_ticks, now_ticks);

	return ahead <= (int64_t)PST_AHEAD_MAX_TICKS ? ahead : INT64_MIN;
}

/* A user's word of a row, among the filters. */
PST_INLINE uint32_t pst_limiter_sketch_index(const struct pst_sketch *sketch, const struct pst_sketch_cells *cells, uint32_t row)
{
	uint32_t bits = sketch->column_bits < PST_SKETCH_COLUMN_BITS_MAX ? sketch->column_bits : PST_SKETCH_COLUMN_BITS_MAX;

	return (pst_sketch_rows(sketch) << bits) + cells->index[row];
}

PST_STATIC_ASSERT(PST_SKETCH_ROWS_MAX == 4, "each row is looked at, and raised");

/* A word of a user, and how far it is ahead. */
struct pst_limiter_sketch_word {
	uint32_t index; /* among the filters; PST_NONE: none yet */
	int64_t ahead;
};

/* Takes the word of this row if it is emptier. */
PST_INLINE void pst_limiter_sketch_look(struct pst_limiter_sketch_word *least, const struct pst_plane *plane, const struct pst_sketch_cells *cells,
					uint32_t row, uint64_t now_ticks)
{
	const struct pst_sketch *sketch = pst_plane_sketch(plane);
	uint32_t index = pst_limiter_sketch_index(sketch, cells, row);
	const uint64_t *word = row < pst_sketch_rows(sketch) ? pst_plane_filter(plane, index) : 0;
	int64_t ahead = word ? pst_limiter_sketch_ahead(*(const volatile uint64_t *)word, now_ticks) : INT64_MAX;

	if (ahead < least->ahead) {
		least->ahead = ahead;
		least->index = index;
	}
}

/*
 * The word that is a user's limiter now, among the filters; PST_NONE: there are none. Row by row, and no loop: compilers lay out this one, and that
 * of raise, such that its end falls into its beginning, which Linux 6.1 refuses as an endless one.
 */
PST_INLINE uint32_t pst_limiter_sketch_find(const struct pst_plane *plane, const struct pst_sketch_cells *cells, uint64_t now_ns)
{
	struct pst_limiter_sketch_word least = { PST_NONE, INT64_MAX };
	uint64_t now_ticks = pst_clock_ticks(now_ns);

	pst_limiter_sketch_look(&least, plane, cells, 0, now_ticks);
	pst_limiter_sketch_look(&least, plane, cells, 1, now_ticks);
	pst_limiter_sketch_look(&least, plane, cells, 2, now_ticks);
	pst_limiter_sketch_look(&least, plane, cells, 3, now_ticks);
	return least.index;
}

/* Has the word of this row be no emptier than that. */
PST_INLINE void pst_limiter_sketch_raise_row(const struct pst_plane *plane, const struct pst_sketch_cells *cells, uint32_t row, uint64_t next,
					     uint64_t now_ticks)
{
	const struct pst_sketch *sketch = pst_plane_sketch(plane);
	uint64_t *word = row < pst_sketch_rows(sketch) ? pst_plane_filter(plane, pst_limiter_sketch_index(sketch, cells, row)) : 0, old;

	if (!word)
		return;
	old = *(volatile uint64_t *)word;
	if (pst_limiter_sketch_ahead(old, now_ticks) < pst_limiter_sketch_ahead(next, now_ticks))
		pst_limiter_commit(word, &old, next);
}

/* What was charged to a user's limiter, for its other words. */
PST_INLINE void pst_limiter_sketch_raise(const struct pst_plane *plane, const struct pst_sketch_cells *cells, uint32_t charged_index,
					 uint64_t now_ns)
{
	const uint64_t *charged = pst_plane_filter(plane, charged_index);
	uint64_t now_ticks = pst_clock_ticks(now_ns), next;

	if (!charged)
		return;
	next = *(const volatile uint64_t *)charged;
	pst_limiter_sketch_raise_row(plane, cells, 0, next, now_ticks);
	pst_limiter_sketch_raise_row(plane, cells, 1, next, now_ticks);
	pst_limiter_sketch_raise_row(plane, cells, 2, next, now_ticks);
	pst_limiter_sketch_raise_row(plane, cells, 3, next, now_ticks);
}

#endif /* PENSTOCK_LIMITER_SKETCH_H */
