/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* forest.h: trees of shares with sources at their leaves, and what exact water-filling gives them. */
#ifndef PENSTOCK_TEST_FOREST_H
#define PENSTOCK_TEST_FOREST_H

#include <math.h>
#include <penstock/limiter.h>
#include <penstock/tree.h>

#include "ref_share.h"
#include "schedule.h"

#define NODES_MAX 600
#define NO_CEILING (UINT64_C(1) << 36)
#define START_NS (UINT64_C(1) << 50)
#define MS_NS UINT64_C(1000000)
#define FRAME_BYTES 1066

/* What a leaf sends. */
struct source {
	double rate_Bps;
	double next_ns;
	uint64_t passed_bytes;
};

struct forest {
	struct pst_plane plane;
	uint32_t child_counts[NODES_MAX];
	struct pst_tree_place places[NODES_MAX];
	struct pst_tree_node nodes[NODES_MAX]; /* of tree.h */
	struct source sources[NODES_MAX];
	struct ref_share_node exact[NODES_MAX];
	uint64_t rng;
	bool jitters;
};

static struct forest forest;

static inline bool is_leaf(uint32_t node)
{
	return forest.child_counts[node] == 0;
}

static inline uint32_t depth_of(uint32_t node)
{
	uint32_t depth = 0;

	for (; node != 0; node = forest.places[node].parent)
		depth++;
	return depth;
}

static inline struct pst_tree_place *put_place(uint32_t node, uint32_t parent)
{
	struct pst_tree_place *place = &forest.places[node];

	place->parent = parent;
	place->first_child = place->next_sibling = place->profile = place->users = place->slice = PST_NONE;
	forest.plane.place_count = forest.plane.node_count = node + 1;
	return place;
}

/* What a leaf may have now that a packet of it comes. */
static inline uint64_t share_of(uint32_t leaf, uint64_t now_ns, uint32_t bytes)
{
	struct pst_tree_walk walk = { .now_ns = now_ns, .place = leaf };

	return pst_tree_share(&forest.plane, &walk, bytes);
}

/* Ticks that a packet takes at a share. */
static inline uint64_t cost_at(uint64_t share_Bps, uint32_t bytes)
{
	return bytes * PST_TICKS_PER_SEC / (share_Bps < PST_RATE_MIN_BPS ? PST_RATE_MIN_BPS : share_Bps);
}

/* Node 0 is the link. */
static inline void plant(uint64_t seed, uint64_t rate_Bps)
{
	memset(&forest, 0, sizeof(forest));
	forest.plane.nodes = forest.nodes;
	forest.plane.places = forest.places;
	put_place(0, PST_NONE);
	forest.places[0].terms.ceiling_Bps = rate_Bps;
	forest.rng = pst_rng_seed(seed);
}

static inline void grow(uint32_t parent, uint32_t count)
{
	uint32_t i;

	forest.places[parent].first_child = forest.plane.place_count;
	forest.child_counts[parent] = count;
	for (i = 0; i < count; i++) {
		uint32_t node = forest.plane.place_count;
		struct pst_tree_place *place = put_place(node, parent);

		place->next_sibling = i + 1 < count ? node + 1 : PST_NONE;
		place->terms.weight = 1;
		place->terms.ceiling_Bps = NO_CEILING;
	}
}

static inline void send_at(uint32_t leaf, double rate_Bps)
{
	forest.sources[leaf].rate_Bps = rate_Bps;
	forest.sources[leaf].next_ns += below(&forest.rng, 1000000);
	forest.nodes[leaf].vft_ticks = pst_limiter_idle(START_NS);
}

/* Depth 1 to 8, 2 to 200 leaves, random demands, weights, ceilings and guarantees. */
static inline void plant_at_random(uint64_t seed)
{
	uint32_t depth, leaves, leaves_max, node;
	double link_Bps, guaranteed = 0;

	plant(seed, 12500000 * (1 + seed % 10));
	link_Bps = (double)forest.places[0].terms.ceiling_Bps;
	forest.jitters = seed % 2;
	depth = 1 + below(&forest.rng, 8);
	leaves_max = 2 + below(&forest.rng, seed % 4 ? 40 : 199);
	grow(0, depth == 1 ? leaves_max : 2 + below(&forest.rng, 4));
	leaves = forest.child_counts[0];
	for (node = 1; node < forest.plane.place_count && leaves < leaves_max; node++) {
		if (depth_of(node) < depth && below(&forest.rng, 3)) {
			grow(node, 2 + below(&forest.rng, 4));
			leaves += forest.child_counts[node] - 1;
		}
	}
	for (node = 1; node < forest.plane.place_count; node++) {
		struct pst_share_terms *terms = &forest.places[node].terms;

		terms->weight = 1 + below(&forest.rng, 4);
		if (is_leaf(node))
			send_at(node, link_Bps / leaves * exp((below(&forest.rng, 2000) / 1000.0 - 1) * 2.3));
		if (below(&forest.rng, 5) == 0)
			terms->ceiling_Bps = (uint64_t)(link_Bps * (0.05 + below(&forest.rng, 100) / 150.0));
		if (forest.places[node].parent == 0 && guaranteed < 0.6 && below(&forest.rng, 4) == 0) {
			terms->guarantee_Bps = (uint64_t)(link_Bps / 5);
			terms->ceiling_Bps = NO_CEILING;
			guaranteed += 0.2;
		}
	}
}

static inline uint32_t next_leaf(void)
{
	uint32_t node, next = 0;

	for (node = 1; node < forest.plane.place_count; node++) {
		if (forest.sources[node].rate_Bps > 0 &&
		    (next == 0 || forest.sources[node].next_ns < forest.sources[next].next_ns))
			next = node;
	}
	return next;
}

/* When a leaf sends next, after a packet. */
static inline void send_later(uint32_t leaf, uint32_t bytes)
{
	double gap_ns = bytes / forest.sources[leaf].rate_Bps * 1e9;

	forest.sources[leaf].next_ns +=
		forest.jitters ? gap_ns * (0.5 + below(&forest.rng, 1000) / 1000.0) : gap_ns;
}

static inline void fill_exactly(void)
{
	uint32_t node;

	for (node = 0; node < forest.plane.place_count; node++) {
		const struct pst_tree_place *place = &forest.places[node];

		forest.exact[node].first_child = (int)place->first_child;
		forest.exact[node].child_count = (int)forest.child_counts[node];
		forest.exact[node].share.weight = place->terms.weight;
		forest.exact[node].share.guarantee = (double)place->terms.guarantee_Bps;
		forest.exact[node].share.ceiling = (double)place->terms.ceiling_Bps;
		forest.exact[node].share.demand = forest.sources[node].rate_Bps;
	}
	ref_share_tree(forest.exact, 1, (int)forest.child_counts[0], (double)forest.places[0].terms.ceiling_Bps);
}

/* Of what the leaves may have in all, the part that passed in a time. */
static inline double used_share(double time_ns)
{
	double used = 0, usable = 0;
	uint32_t node;

	fill_exactly();
	for (node = 1; node < forest.plane.place_count; node++) {
		if (!is_leaf(node))
			continue;
		used += (double)forest.sources[node].passed_bytes * 1e9 / time_ns;
		usable += forest.exact[node].share.share;
	}
	return used / usable;
}

/* tree.h I1. */
static inline void assert_sums(void)
{
	struct pst_share_sums sums[NODES_MAX];
	uint32_t node;

	memset(sums, 0, sizeof(sums));
	for (node = 1; node < forest.plane.place_count; node++)
		pst_share_join(&sums[forest.places[node].parent], &forest.nodes[node].part);
	for (node = 0; node < forest.plane.place_count; node++)
		assert_memory_equal(&sums[node], &forest.nodes[node].children, sizeof(sums[node]));
}

static inline void forget_passed(void)
{
	uint32_t node;

	for (node = 0; node < forest.plane.place_count; node++)
		forest.sources[node].passed_bytes = 0;
}

#endif /* PENSTOCK_TEST_FOREST_H */
