/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * tree.h: a packet's way through a tree of shares, from its leaf to the link and back.
 *
 * What         Up, leaf first: each node's rate is estimated anew; above a ceiling only the part counts that the ceiling lets through (H9).
 *              Down, root first: each node gets its share of what its parent gives (share.h). The leaf's share is the rate of its
 *              limiter (H10): inner nodes compute and drop nothing (H7).
 *              On its way it looks at one more child of each node, in turns: who has sent nothing for 2 K is forgotten (H5).
 * Source       HSDBA (hsdba.txt), Algorithm 1 and section 4.5, in the form of errata H3 to H11. An inner node's estimator has a longer K than
 *              a leaf's (H11 has 16 mean gaps for all): packets of many come like rain, and with 11 gaps the estimate has an error of 15 %, which a child
 *              that just gets what it asks for loses. With 90 it has 5 %, and an inner node has more packets.
 * Units        share.h, ewma.h.
 * Ranges       depth 1 to PST_TREE_DEPTH_MAX below the link; rates below 2^37 Bps; now may wrap.
 * Invariants   I1  every node's sums are those of its children's parts.
 *              I2  saturated sources reach the shares of exact water-filling, to within 3 % or 1 % of the link.
 *              I3  a node that stops is forgotten when its siblings' packets have gone round; its next packet makes it a child again.
 * Overflow     bytes below 2^18, cut to it: bytes_q8 ceiling < 2^26 2^37 = 2^63; in the estimator, over 2^12 ns or more, below 2^44.
 * Concurrency  one CPU at a time works in the tree of a link (pst_tree_share); the others' bytes count with the next packets of their leaves. A CPU
 *              holds the link's lock for one packet, and nobody waits for it. A leaf's limiter commits by compare-and-swap (limiter.h).
 *              pst_tree_begin's store may undo one such charge, when a leaf comes again on two CPUs at once.
 * Not done     nothing is forgotten where nobody sends: who hosts it looks at such nodes now and then (pst_tree_fade).
 */
#ifndef PENSTOCK_TREE_H
#define PENSTOCK_TREE_H

#include "ewma.h"
#include "share.h"

#define PST_TREE_DEPTH_MAX 8
#define PST_TREE_LEAF_GAPS 11
#define PST_TREE_INNER_GAPS 90
#define PST_TREE_NONE UINT32_MAX
#define PST_TREE_CREDIT_NSEC 1000000
#define PST_TREE_BYTES_MAX ((UINT32_C(1) << 18) - 1) /* what a packet counts at most (ewma.h): four times a packet's largest length on a wire */
#define PST_TREE_LATE_MAX (UINT32_C(1) << 17)        /* of it, what it brings along of others */

struct pst_tree_node {
	struct pst_ewma demand;
	struct pst_share_sums children;
	struct pst_share_part part; /* in its parent's sums */
	uint64_t share_Bps;         /* as its last packet found it; a link's is its rate */
	uint64_t vft_ticks;         /* of a leaf's limiter */
	uint64_t late_bytes;        /* of a leaf: packets that came while another CPU was at work in its tree */
	uint32_t hand;              /* which child is looked at next */
	uint32_t lock;              /* of a link: somebody is at work in its tree */
	uint64_t unused[3];         /* two cache lines */
};
PST_STATIC_ASSERT(sizeof(struct pst_tree_node) == 128, "a node is two cache lines");

/* What the policy says of a node. A link has no parent, and no terms. */
struct pst_tree_place {
	struct pst_share_terms terms;
	uint32_t parent;
	uint32_t first_child; /* children lie side by side */
	uint32_t child_count;
	uint32_t link;
};

struct pst_tree {
	struct pst_tree_node *nodes;
	const struct pst_tree_place *places;
	uint32_t count;
};

/* Of a length in 2^-8 bytes, what a ceiling lets through of a node that asks for `demand_Bps`. */
PST_INLINE uint32_t pst_tree_effective_q8(uint32_t bytes_q8, uint64_t ceiling_Bps, uint64_t demand_Bps)
{
	return demand_Bps <= ceiling_Bps ? bytes_q8 : (uint32_t)(bytes_q8 * ceiling_Bps / demand_Bps);
}

PST_INLINE uint64_t pst_tree_demand_Bps(const struct pst_tree_node *node)
{
	return node->demand.rate_Bps_q8 >> 8;
}

PST_INLINE bool pst_tree_is_gone(const struct pst_tree_node *node, uint64_t now_ns)
{
	return pst_ewma_elapsed_ns(&node->demand, now_ns) >> (pst_ewma_shift(&node->demand) + 1) != 0;
}

/* Forgets a node that sends no more. */
PST_INLINE void pst_tree_fade(struct pst_tree_node *node, struct pst_tree_node *parent, uint64_t now_ns)
{
	if (node->part.state != PST_SHARE_IDLE && pst_tree_is_gone(node, now_ns))
		pst_share_leave(&parent->children, &node->part);
}

/* Looks at the next child of a node that is not the one whose packet has come. */
PST_INLINE void pst_tree_look(const struct pst_tree *tree, struct pst_tree_node *parent,
			      const struct pst_tree_place *place, uint32_t comes, uint64_t now_ns)
{
	uint32_t hand = parent->hand + 1 < place->child_count ? parent->hand + 1 : 0;
	uint32_t child = place->first_child + hand;

	parent->hand = hand;
	if (child != comes && child < tree->count)
		pst_tree_fade(&tree->nodes[child], parent, now_ns);
}

/* One node's rate, and what of a packet's length goes on to its parent. */
PST_INLINE uint32_t pst_tree_ask(struct pst_tree_node *node, const struct pst_tree_place *place, uint64_t now_ns,
				 uint32_t bytes_q8)
{
	uint32_t gaps = place->child_count ? PST_TREE_INNER_GAPS : PST_TREE_LEAF_GAPS;

	pst_ewma_add(&node->demand, now_ns, bytes_q8, gaps);
	return pst_tree_effective_q8(bytes_q8, place->terms.ceiling_Bps, pst_tree_demand_Bps(node));
}

/* A leaf that comes, or comes again, has credit for a few packets only: else it would send far more than its share for as long as a burst may last. */
PST_INLINE void pst_tree_begin(struct pst_tree_node *leaf, uint64_t now_ns)
{
	uint64_t least_ticks = pst_clock_ticks(now_ns - PST_TREE_CREDIT_NSEC);

	if (leaf->part.state == PST_SHARE_IDLE && pst_clock_before(leaf->vft_ticks, least_ticks))
		leaf->vft_ticks = least_ticks;
}

/* A packet of a leaf, of a CPU that has the tree to itself. Returns the leaf's share; 0 of what is no leaf of this tree. */
PST_INLINE uint64_t pst_tree_walk(const struct pst_tree *tree, uint32_t leaf, uint64_t now_ns, uint32_t bytes)
{
	uint32_t path[PST_TREE_DEPTH_MAX], bytes_q8 = bytes << 8, node = leaf, depth;
	uint64_t share_Bps;

	for (depth = 0; depth < PST_TREE_DEPTH_MAX; depth++) {
		if (node >= tree->count || tree->places[node].parent >= tree->count)
			break;
		path[depth] = node;
		bytes_q8 = pst_tree_ask(&tree->nodes[node], &tree->places[node], now_ns, bytes_q8);
		node = tree->places[node].parent;
	}
	if (node >= tree->count || depth == 0)
		return 0;
	pst_tree_begin(&tree->nodes[leaf], now_ns);
	share_Bps = tree->nodes[node].share_Bps;
	while (depth > 0) {
		uint32_t child = path[--depth];
		struct pst_tree_node *parent = &tree->nodes[node];

		pst_tree_look(tree, parent, &tree->places[node], child, now_ns);
		share_Bps = pst_share_step(&tree->places[child].terms, &parent->children, &tree->nodes[child].part, share_Bps,
					   pst_tree_demand_Bps(&tree->nodes[child]));
		tree->nodes[child].share_Bps = share_Bps;
		node = child;
	}
	return share_Bps;
}

/* Whether this CPU is the one that works in a tree now. */
PST_INLINE bool pst_tree_enter(struct pst_tree_node *link)
{
#ifdef PST_ONE_THREAD
	(void)link;
	return true;
#else
	return __sync_val_compare_and_swap(&link->lock, 0, 1) == 0;
#endif
}

PST_INLINE void pst_tree_exit(struct pst_tree_node *link)
{
#ifdef PST_ONE_THREAD
	(void)link;
#else
	__sync_fetch_and_and(&link->lock, 0);
#endif
}

/*
 * A packet of a leaf. Nobody waits: who finds another CPU at work goes by the share that the leaf has, and leaves its bytes to the leaf's next packet.
 * 0 of what is no leaf of this tree.
 */
PST_INLINE uint64_t pst_tree_share(const struct pst_tree *tree, uint32_t leaf, uint64_t now_ns, uint32_t bytes)
{
	struct pst_tree_node *node, *link;
	uint64_t share_Bps, late_bytes;

	if (leaf >= tree->count || tree->places[leaf].link >= tree->count)
		return 0;
	node = &tree->nodes[leaf];
	link = &tree->nodes[tree->places[leaf].link];
	if (!pst_tree_enter(link)) {
		__sync_fetch_and_add(&node->late_bytes, bytes);
		share_Bps = *(volatile uint64_t *)&node->share_Bps;
		return share_Bps ? share_Bps : link->share_Bps;
	}
	late_bytes = *(volatile uint64_t *)&node->late_bytes;
	if (late_bytes > PST_TREE_LATE_MAX)
		late_bytes = PST_TREE_LATE_MAX;
	if (late_bytes)
		__sync_fetch_and_add(&node->late_bytes, 0 - late_bytes);
	late_bytes += bytes;
	share_Bps = pst_tree_walk(tree, leaf, now_ns, (uint32_t)(late_bytes < PST_TREE_BYTES_MAX ? late_bytes : PST_TREE_BYTES_MAX));
	pst_tree_exit(link);
	return share_Bps;
}

/* Ticks that a packet takes at a share, which is no rate code: it is another one with every packet. */
PST_INLINE uint64_t pst_tree_cost(uint64_t share_Bps, uint32_t bytes)
{
	return bytes * PST_TICKS_PER_SEC / (share_Bps < PST_RATE_MIN_BPS ? PST_RATE_MIN_BPS : share_Bps);
}

#endif /* PENSTOCK_TREE_H */
