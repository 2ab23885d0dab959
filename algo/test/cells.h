/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* cells.h: a user's cells, for a test that has only the user. They are good until the next ones are asked for. */
#ifndef PENSTOCK_TEST_CELLS_H
#define PENSTOCK_TEST_CELLS_H

#include <penstock/sketch.h>

static inline const struct pst_sketch_cells *cells_of(const struct pst_plane *plane, uint64_t user)
{
	static struct pst_sketch_cells cells;

	pst_sketch_find(&cells, plane, user);
	return &cells;
}

#endif /* PENSTOCK_TEST_CELLS_H */
