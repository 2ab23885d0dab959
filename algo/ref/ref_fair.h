/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Slow form of fair.h for classes without users: a class's own limit, its leaf in a tree, and its share as one more limit. */
#ifndef PENSTOCK_REF_FAIR_H
#define PENSTOCK_REF_FAIR_H

#include "ref_pipeline.h"
#include "ref_tree.h"

#define REF_FAIR_CLASSES 3

struct ref_fair {
	struct ref_tree tree; /* class i is node i + 1 */
	struct pst_link link;
	struct ref_limit limits[REF_FAIR_CLASSES]; /* a rate of 0: none */
	struct ref_limit shares[REF_FAIR_CLASSES];
	uint64_t passed_bytes[REF_FAIR_CLASSES];
};

/* A share's rate code: ticks a byte, cut to 27 bits. */
uint32_t ref_fair_rate(uint64_t share_Bps);

struct pst_decision ref_fair_decide(struct ref_fair *fair, uint32_t class_index, const struct ref_arrival *arrival);

#endif /* PENSTOCK_REF_FAIR_H */
