/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * sketch.h: the rates of millions of users in a few thousand words.
 *
 * What         r rows of c low-pass filters. A packet is added to one filter of each row, which a hash of its user picks; the user's rate
 *              is the least of the r values after that.
 * Source       AHAB section IV-B (CMS-LPF), IV-C (one sketch for all slices), V-E (weights). Theorem 1 has its letters mixed up and its sign
 *              turned (erratum A1): for r rows and c columns, R' >= R always, and
 *                  Pr[R' > R + e/c sum of all R] <= e^-r
 * Units        parts (lpf.h), already divided by the user's weight and its slice's nominal rate: an error is of one size for all slices.
 * Ranges       1 .. 4 rows, 2^0 .. 2^20 columns, others are cut; 8 bytes a filter: 3 x 2048 are 48 KiB, 3 x 16384 384 KiB.
 *              (A switch packs one into 4 bytes, and 3 x 16384 of those are 192 KB, not the 768 of Table II.)
 * Invariants   I1  a user never reads as less than it would alone, but for one part a packet (lpf.h I1).
 *              I2  Theorem 1, as above, over the seeds.
 *              I3  rows are independent: each has a seed of its own, which the host draws and keeps to itself.
 * Overflow     indices are below rows * columns, at most 2^22.
 * Concurrency  each filter for itself (lpf.h). Two packets of one user at once may read each other's or not.
 * Not done     no conservative update (adding to the least only): what a filter holds would no longer be the sum that the theorem needs.
 */
#ifndef PENSTOCK_SKETCH_H
#define PENSTOCK_SKETCH_H

#include "hash.h"
#include "lpf.h"
#include "plane.h"

/*
 * Where in its row a user's filter lies. `user` is any number that two users do not share: a hash of what makes a user, with its slice. NH
 * over one pair of words, so that two users meet in a row with a probability of 1/c, whatever they are called (hash.h).
 */
PST_INLINE uint32_t pst_sketch_column(uint64_t user, uint64_t seed, uint32_t column_bits)
{
	if (column_bits == 0)
		return 0;
	return (uint32_t)(pst_hash_mix(pst_hash_product(user, seed) ^ seed) >> ((64 - column_bits) & 63));
}

PST_INLINE uint32_t pst_sketch_rows(const struct pst_sketch *sketch)
{
	return sketch->rows < PST_SKETCH_ROWS_MAX ? sketch->rows : PST_SKETCH_ROWS_MAX;
}

/* Where a user's filter of a row lies among all filters. */
PST_INLINE uint32_t pst_sketch_index(const struct pst_sketch *sketch, uint32_t row, uint64_t user)
{
	uint32_t bits = sketch->column_bits < PST_SKETCH_COLUMN_BITS_MAX ? sketch->column_bits : PST_SKETCH_COLUMN_BITS_MAX;

	return (row << bits) + pst_sketch_column(user, sketch->seeds[row & (PST_SKETCH_ROWS_MAX - 1)], bits);
}

/* A user's cells: where its filter of each row lies among all filters. As far behind them lie the words of its limiter (limiter_sketch.h). */
struct pst_sketch_cells {
	uint32_t index[PST_SKETCH_ROWS_MAX]; /* of rows that there are */
};

/* Finds a user's cells: once a packet, for all that is counted and charged there. */
PST_INLINE void pst_sketch_find(struct pst_sketch_cells *cells, const struct pst_plane *plane, uint64_t user)
{
	const struct pst_sketch *sketch = pst_plane_sketch(plane);
	uint32_t rows = pst_sketch_rows(sketch), row;

	for (row = 0; row < PST_SKETCH_ROWS_MAX && row < rows; row++)
		cells->index[row] = pst_sketch_index(sketch, row, user);
}

/* A packet of a user has come: what the user reads as now. */
PST_INLINE uint32_t pst_sketch_add(const struct pst_plane *plane, const struct pst_sketch_cells *cells, uint32_t stamp, uint32_t parts)
{
	const struct pst_sketch *sketch = pst_plane_sketch(plane);
	uint32_t rows = pst_sketch_rows(sketch), least = PST_LPF_MAX_PARTS, row;

	for (row = 0; row < PST_SKETCH_ROWS_MAX && row < rows; row++) {
		uint64_t *filter = pst_plane_filter(plane, cells->index[row]);
		uint32_t value = filter ? pst_lpf_add(filter, stamp, parts) : least;

		least = value < least ? value : least;
	}
	return least;
}

/* The same, without a packet. */
PST_INLINE uint32_t pst_sketch_read(const struct pst_plane *plane, const struct pst_sketch_cells *cells, uint32_t stamp)
{
	const struct pst_sketch *sketch = pst_plane_sketch(plane);
	uint32_t rows = pst_sketch_rows(sketch), least = PST_LPF_MAX_PARTS, row;

	for (row = 0; row < PST_SKETCH_ROWS_MAX && row < rows; row++) {
		const uint64_t *filter = pst_plane_filter(plane, cells->index[row]);
		uint32_t value = filter ? pst_lpf_read(*(const volatile uint64_t *)filter, stamp) : least;

		least = value < least ? value : least;
	}
	return least;
}

#endif /* PENSTOCK_SKETCH_H */
