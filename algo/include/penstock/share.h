/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * share.h: one node's share of its parent's bandwidth, by weighted max-min with guarantees and ceilings.
 *
 * What         A node that asks for less than it may have is satisfied and takes what it asks for; one whose guarantee is above its fair
 *              share takes its guarantee; the rest share what is left by their weights. A parent has the sums of both:
 *                  take the node's own part out of its parent's sums          (H3: exact, as each node keeps what it put in)
 *                  fair   = (B - taken) weight / (weights + weight)           if it were unsatisfied (H8)
 *                  fair  >= (B - held) weight / (all weights)                 those that are satisfied take no more than by their weights
 *                  share  = max(guarantee, fair)
 *                  demand = min(R, ceiling)
 *                  demand <= fair: takes demand | guarantee > fair: takes min(demand, guarantee) | else: weighs
 *                  B of the level below = min(ceiling, share)                 (H4: not the demand)
 * Source       HSDBA (hsdba.txt), sections 4.3 and 4.4, Table 2, in the form of errata H3, H4, H5 and H8.
 * Units        _Bps bytes a second; weights are numbers.
 * Ranges       B and rates below 2^37; weights 1 to PST_WEIGHT_MAX, of all children together below 2^63; a weight of 0 counts as 1.
 * Invariants   I1  the sums are those of what the children put in, always: nothing leaks, whatever order packets come in (H3, H5).
 *              I2  children whose rates stand still reach the shares of an exact water-filling.
 *              I3  what all children may have at rest is B when they ask for it, or what they ask for.
 *              I4  a node that is forgotten has put in nothing, and its next packet makes it a child again.
 * Overflow     B weight < 2^37 2^24 = 2^61.
 * Concurrency  none: who hosts it lets one CPU at a time step a node and its parent (tree.h).
 */
#ifndef PENSTOCK_SHARE_H
#define PENSTOCK_SHARE_H

#include "wire_share.h"

#define PST_WEIGHT_MAX (UINT32_C(1) << 24)

/* Takes a node's part out of its parent's sums. */
PST_INLINE void pst_share_leave(struct pst_share_sums *sums, struct pst_share_part *part)
{
	sums->taken_Bps -= part->taken_Bps;
	if (part->state == PST_SHARE_HELD)
		sums->held_Bps -= part->taken_Bps;
	else if (part->state == PST_SHARE_SATISFIED)
		sums->weight_taken -= part->weight;
	else
		sums->weight -= part->weight;
	part->taken_Bps = 0;
	part->weight = 0;
	part->state = PST_SHARE_IDLE;
}

PST_INLINE void pst_share_join(struct pst_share_sums *sums, const struct pst_share_part *part)
{
	sums->taken_Bps += part->taken_Bps;
	if (part->state == PST_SHARE_HELD)
		sums->held_Bps += part->taken_Bps;
	else if (part->state == PST_SHARE_SATISFIED)
		sums->weight_taken += part->weight;
	else
		sums->weight += part->weight;
}

/* rate weight / (weights + weight), of what is left of a rate. Sums that somebody left wrong who was killed (tree.h) may be anything. */
PST_INLINE uint64_t pst_share_fair(uint64_t rate_Bps, uint64_t taken_Bps, uint64_t weight, uint64_t weights)
{
	uint64_t all = weights + weight;

	return rate_Bps > taken_Bps && all ? (rate_Bps - taken_Bps) * weight / all : 0;
}

/*
 * A node that asks for `demand_Bps` of its parent's `parent_Bps`. Returns what it may pass on to its own children, or send. What its parent knows of
 * it is renewed.
 */
PST_INLINE uint64_t pst_share_step(const struct pst_share_terms *terms, struct pst_share_sums *sums,
				   struct pst_share_part *part, uint64_t parent_Bps, uint64_t demand_Bps)
{
	uint64_t fair_Bps, least_Bps = 0, share_Bps;
	uint32_t weight = terms->weight ? terms->weight : 1;

	pst_share_leave(sums, part);
	fair_Bps = pst_share_fair(parent_Bps, sums->taken_Bps, weight, sums->weight);
	if (sums->weight_taken) /* else nobody is satisfied, and it is the same: a division for nothing */
		least_Bps = pst_share_fair(parent_Bps, sums->held_Bps, weight, sums->weight + sums->weight_taken);
	if (fair_Bps < least_Bps)
		fair_Bps = least_Bps;
	share_Bps = fair_Bps > terms->guarantee_Bps ? fair_Bps : terms->guarantee_Bps;
	if (demand_Bps > terms->ceiling_Bps)
		demand_Bps = terms->ceiling_Bps;
	if (demand_Bps <= fair_Bps) {
		part->state = PST_SHARE_SATISFIED;
		part->taken_Bps = demand_Bps;
		part->weight = weight;
	} else if (terms->guarantee_Bps > fair_Bps) {
		part->state = PST_SHARE_HELD;
		part->taken_Bps = demand_Bps < share_Bps ? demand_Bps : share_Bps;
	} else {
		part->state = PST_SHARE_UNSATISFIED;
		part->weight = weight;
	}
	pst_share_join(sums, part);
	return share_Bps < terms->ceiling_Bps ? share_Bps : terms->ceiling_Bps;
}

#endif /* PENSTOCK_SHARE_H */
