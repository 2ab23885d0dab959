/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Slow form of hsdba.h, HSDBA as published, in whole numbers that are cut where the header says so. */
#ifndef PENSTOCK_REF_HSDBA_H
#define PENSTOCK_REF_HSDBA_H

#include <stdbool.h>
#include <stdint.h>

#define REF_HSDBA_NODES 32
#define REF_HSDBA_DEPTH 8

struct ref_hsdba_node {
	int parent; /* of the root: -1 */
	uint64_t ceiling_Bps;
	uint64_t weight;
	bool is_known, is_unsatisfied;
	uint64_t last_ns, rate_Bps_q8;                     /* R */
	uint64_t satisfied_last_ns, satisfied_rate_Bps_q8; /* S.rate of its children */
	uint64_t alpha_Bps;                                /* of its children */
};

struct ref_hsdba {
	struct ref_hsdba_node nodes[REF_HSDBA_NODES];
	int count;
	uint64_t link_Bps;
	uint32_t shift;
};

/* Algorithm 1 for a packet of a leaf; a random number for each level, the leaf's first. Is it dropped? */
bool ref_hsdba_take(struct ref_hsdba *tree, int leaf, uint64_t now_ns, uint32_t bytes, const uint32_t *random);
uint64_t ref_hsdba_unsatisfied_weight(const struct ref_hsdba *tree, int node);

#endif /* PENSTOCK_REF_HSDBA_H */
