/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * hsdba.h: HSDBA as published, for study; share.h and tree.h have the form that penstock limits by.
 *
 * What         For each node on a packet's way, root first:
 *                  R = length / tau + R e^-(T / tau)                                           equation 3, with the sign of H1
 *                  f = min(ceiling, weight alpha) of the parent's alpha                          section 4.3 (H2: line 7 leaves the weight out)
 *                  R <= f: satisfied, and the parent's S.rate measures this packet; else unsatisfied, and S.rate only decays
 *                          dropped when random > f / R                                           (H2: section 4.3 has it the other way round)
 *                  U.weight of the parent follows the node's state                              Table 2
 *                  alpha = (B' - S.rate) / U.weight,  B' of the level below = min(weight alpha, R)   lines 20, 21
 *              As published it drops at every level (H7), judges by the alpha that is there (H8), passes the demand down (H4), and
 *              S.rate is one decaying counter of all that are satisfied, which lags (H3).
 * Source       HSDBA (hsdba.txt), Algorithm 1, equations 3 to 6, Table 2. Alpha starts at B' / sum of weights (H5). Where no child is unsatisfied
 *              line 20 divides by 0, and section 4.4 has alpha = max R, by which nobody is ever unsatisfied again: here it is B' while what the
 *              children send fits, and 0 when it does not.
 * Units        _Bps bytes a second; a probability in 2^-32; tau is 2^shift ns.
 * Ranges       as share.h and ewma.h; shift 16 to 36; depth 1 to PST_TREE_DEPTH_MAX.
 * Invariants   I1  U.weight is the sum of the weights of children that are unsatisfied.
 *              I2  R is equation 3's to within 0.1 %.
 *              I3  on one level, leaves that ask for more get their weights' parts, to within 5 %.
 * Overflow     length / tau: 2^17 2^30 2^8 2^-16 < 2^45 at tau of 2^16 ns or more.
 * Concurrency  none.
 * Not done     guarantees: the paper has none. A node that is gone stays until its host takes it out (pst_hsdba_leave).
 */
#ifndef PENSTOCK_HSDBA_H
#define PENSTOCK_HSDBA_H

#include "tree.h"

/* What decays. */
struct pst_hsdba_meter {
	uint64_t last_ns;
	uint64_t rate_Bps_q8;
};

struct pst_hsdba_node {
	struct pst_hsdba_meter demand;
	struct pst_hsdba_meter satisfied; /* S.rate of its children */
	uint64_t alpha_Bps;               /* of its children, for a weight of 1 */
	uint64_t unsatisfied_weight;      /* U.weight of its children */
	uint32_t state;                   /* enum pst_share_state: idle, satisfied or unsatisfied */
	uint32_t unused;
};

struct pst_hsdba {
	struct pst_hsdba_node *nodes;
	const struct pst_tree_place *places;
	uint64_t link_Bps;
	uint32_t count;
	uint32_t shift; /* tau is 2^shift ns */
};

/* Equation 3. */
PST_INLINE uint64_t pst_hsdba_measure(struct pst_hsdba_meter *meter, uint32_t shift, uint64_t now_ns, uint32_t bytes)
{
	uint64_t elapsed_ns = now_ns - meter->last_ns;
	uint64_t added = (bytes * PST_NSEC_PER_SEC << 8) >> shift, rate;

	if ((int64_t)elapsed_ns < 0)
		elapsed_ns = 0;
	rate = pst_part_q31(meter->rate_Bps_q8, pst_decay_q31(pst_ewma_age_q32(elapsed_ns, shift))) + added;
	meter->rate_Bps_q8 = rate < PST_EWMA_MAX_BPS_Q8 ? rate : PST_EWMA_MAX_BPS_Q8 - 1;
	meter->last_ns = now_ns;
	return meter->rate_Bps_q8 >> 8;
}

/* Table 2: a node's state, and its parent's U.weight after it. */
PST_INLINE void pst_hsdba_become(struct pst_hsdba_node *node, struct pst_hsdba_node *parent, uint32_t weight,
				 uint32_t state)
{
	if (node->state == PST_SHARE_UNSATISFIED)
		parent->unsatisfied_weight -= weight;
	if (state == PST_SHARE_UNSATISFIED)
		parent->unsatisfied_weight += weight;
	node->state = state;
}

/* A node that was taken out. */
PST_INLINE void pst_hsdba_leave(struct pst_hsdba_node *node, struct pst_hsdba_node *parent, uint32_t weight)
{
	pst_hsdba_become(node, parent, weight, PST_SHARE_IDLE);
}

/* Line 20; `parent_Bps` is B'. */
PST_INLINE uint64_t pst_hsdba_alpha_Bps(const struct pst_hsdba_node *parent, uint64_t parent_Bps)
{
	uint64_t satisfied_Bps = parent->satisfied.rate_Bps_q8 >> 8;
	uint64_t free_Bps = parent_Bps > satisfied_Bps ? parent_Bps - satisfied_Bps : 0;

	if (parent->unsatisfied_weight)
		return free_Bps / parent->unsatisfied_weight;
	return free_Bps ? parent_Bps : 0;
}

/* Lines 5 to 21 for one node. Returns B' of the level below; `drops` is set when the packet is to be dropped, and never cleared. */
PST_INLINE uint64_t pst_hsdba_step(const struct pst_hsdba *tree, uint32_t index, struct pst_hsdba_node *parent,
				   uint64_t parent_Bps, uint64_t now_ns, uint32_t bytes, uint32_t random_u32, bool *drops)
{
	const struct pst_share_terms *terms = &tree->places[index].terms;
	struct pst_hsdba_node *node = &tree->nodes[index];
	uint32_t weight = terms->weight ? terms->weight : 1;
	uint64_t rate_Bps = pst_hsdba_measure(&node->demand, tree->shift, now_ns, bytes), fair_Bps;

	if (node->state == PST_SHARE_IDLE) { /* it joins as unsatisfied */
		pst_hsdba_become(node, parent, weight, PST_SHARE_UNSATISFIED);
		parent->alpha_Bps = pst_hsdba_alpha_Bps(parent, parent_Bps);
	}
	fair_Bps = parent->alpha_Bps * weight;
	fair_Bps = fair_Bps < terms->ceiling_Bps ? fair_Bps : terms->ceiling_Bps;
	if (rate_Bps <= fair_Bps) {
		pst_hsdba_become(node, parent, weight, PST_SHARE_SATISFIED);
		pst_hsdba_measure(&parent->satisfied, tree->shift, now_ns, bytes);
	} else {
		/* random > f / R without a division: both below 2^37, times a number of 26 bits. */
		if ((uint64_t)(random_u32 >> 6) * rate_Bps > fair_Bps << 26)
			*drops = true;
		pst_hsdba_become(node, parent, weight, PST_SHARE_UNSATISFIED);
		pst_hsdba_measure(&parent->satisfied, tree->shift, now_ns, 0);
	}
	parent->alpha_Bps = pst_hsdba_alpha_Bps(parent, parent_Bps);
	fair_Bps = parent->alpha_Bps * weight;
	return fair_Bps < rate_Bps ? fair_Bps : rate_Bps;
}

/*
 * Algorithm 1 for a packet of a leaf. `random_u32` has PST_TREE_DEPTH_MAX numbers, one for each level, which may be one and the same. Returns whether the packet is
 * dropped; what is no leaf of this tree is not.
 */
PST_INLINE bool pst_hsdba_take(const struct pst_hsdba *tree, uint32_t leaf, uint64_t now_ns, uint32_t bytes,
			       const uint32_t *random_u32)
{
	uint32_t path[PST_TREE_DEPTH_MAX], node = leaf, depth;
	uint64_t parent_Bps = tree->link_Bps;
	bool drops = false;

	for (depth = 0; depth < PST_TREE_DEPTH_MAX; depth++) {
		if (node >= tree->count || tree->places[node].parent >= tree->count)
			break;
		path[depth] = node;
		node = tree->places[node].parent;
	}
	if (node >= tree->count)
		return false;
	while (depth > 0) {
		uint32_t child = path[--depth];

		parent_Bps = pst_hsdba_step(tree, child, &tree->nodes[node], parent_Bps, now_ns, bytes, random_u32[depth],
					    &drops);
		node = child;
	}
	return drops;
}

#endif /* PENSTOCK_HSDBA_H */
