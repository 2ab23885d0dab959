/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* forest.h: trees of shares with sources at their leaves, be they users of a class, and what exact water-filling gives them. */
#ifndef PENSTOCK_TEST_FOREST_H
#define PENSTOCK_TEST_FOREST_H

#include <math.h>
#include <penstock/limiter.h>
#include <penstock/tree.h>

#include "ref_share.h"
#include "schedule.h"

#define NODES_MAX 600
#define USERS_MAX 600 /* sources, too: behind those of leaves */
#define ENTRIES 64    /* of a class that has users; nodes behind all places, the last for who finds none */
#define USER_CLASSES_MAX 40
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

/* A user of a class whose users have entries. */
struct user {
	uint64_t user;
	uint32_t place;
	uint32_t weight;
};

struct forest {
	struct pst_plane plane;
	uint32_t child_counts[NODES_MAX];
	struct pst_tree_place places[NODES_MAX];
	struct pst_tree_node nodes[NODES_MAX + USER_CLASSES_MAX * (ENTRIES + 1)]; /* of tree.h */
	struct source sources[NODES_MAX + USERS_MAX];
	struct ref_share_node exact[NODES_MAX + USERS_MAX];
	struct user users[USERS_MAX];
	uint32_t first_users[NODES_MAX]; /* of a class's users, which lie side by side */
	uint32_t user_counts[NODES_MAX];
	uint32_t user_count;
	uint32_t user_class_count;
	uint64_t rng;
	bool jitters;
};

static struct forest forest;

static inline bool is_leaf(uint32_t node)
{
	return node >= NODES_MAX || (forest.child_counts[node] == 0 && forest.user_counts[node] == 0);
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
	forest.plane.place_count = node + 1;
	forest.plane.node_count = sizeof(forest.nodes) / sizeof(forest.nodes[0]);
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
	if (leaf < NODES_MAX)
		forest.nodes[leaf].vft_ticks = pst_limiter_idle(START_NS);
}

/* Makes a leaf a class whose users have entries. */
static inline void settle_users(uint32_t leaf)
{
	struct pst_tree_place *place = &forest.places[leaf];

	place->users = 0;
	place->first_user = NODES_MAX + forest.user_class_count++ * (ENTRIES + 1);
	place->user_count = ENTRIES;
	forest.first_users[leaf] = NODES_MAX + forest.user_count;
}

/* One more user of the class that was settled last. Returns its source. */
static inline uint32_t add_user(uint32_t leaf, uint32_t weight)
{
	struct user *user = &forest.users[forest.user_count];

	user->user = draw(&forest.rng) | 1;
	user->place = leaf;
	user->weight = weight;
	forest.user_counts[leaf]++;
	return NODES_MAX + forest.user_count++;
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

/* The source after this one: leaves' first, then users'. 0: there is none. */
static inline uint32_t source_after(uint32_t source)
{
	source++;
	if (source == forest.plane.place_count)
		source = NODES_MAX;
	return source < NODES_MAX + forest.user_count ? source : 0;
}

static inline uint32_t next_leaf(void)
{
	uint32_t node, next = 0;

	for (node = source_after(0); node; node = source_after(node)) {
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

/* A source's packet. Returns its share. */
static inline uint64_t send_one(uint32_t leaf, uint32_t bytes)
{
	struct source *source = &forest.sources[leaf];
	uint64_t now_ns = START_NS + (uint64_t)source->next_ns, window = pst_clock_ticks(42500000), cost;
	struct pst_tree_walk walk = { .now_ns = now_ns, .place = leaf };
	struct pst_limiter_profile profile = { window, window, 0, false };
	struct pst_limiter_result result;
	uint64_t share_Bps;

	if (leaf >= NODES_MAX) {
		walk.place = forest.users[leaf - NODES_MAX].place;
		walk.user = forest.users[leaf - NODES_MAX].user;
		walk.weight = forest.users[leaf - NODES_MAX].weight;
	}
	share_Bps = pst_tree_share(&forest.plane, &walk, bytes);
	cost = cost_at(share_Bps, bytes);
	if (profile.window_ticks < 2 * cost)
		profile.green_ticks = profile.window_ticks = 2 * cost;
	result = pst_limiter_judge(&profile, forest.nodes[walk.leaf].vft_ticks, now_ns, cost);
	forest.nodes[walk.leaf].vft_ticks = result.vft_ticks;
	source->passed_bytes += result.color == PST_COLOR_RED ? 0 : bytes;
	send_later(leaf, bytes);
	return share_Bps;
}

static inline void run_until(double end_ns)
{
	uint32_t leaf;

	for (leaf = next_leaf(); leaf && forest.sources[leaf].next_ns < end_ns; leaf = next_leaf())
		send_one(leaf, FRAME_BYTES);
}

static inline void fill_exactly(void)
{
	uint32_t node, i;

	for (node = 0; node < forest.plane.place_count; node++) {
		const struct pst_tree_place *place = &forest.places[node];

		forest.exact[node].first_child = (int)place->first_child;
		forest.exact[node].child_count = (int)forest.child_counts[node];
		forest.exact[node].share.weight = place->terms.weight;
		forest.exact[node].share.guarantee = (double)place->terms.guarantee_Bps;
		forest.exact[node].share.ceiling = (double)place->terms.ceiling_Bps;
		forest.exact[node].share.demand = forest.sources[node].rate_Bps;
		if (forest.user_counts[node]) {
			forest.exact[node].first_child = (int)forest.first_users[node];
			forest.exact[node].child_count = (int)forest.user_counts[node];
		}
	}
	for (i = 0; i < forest.user_count; i++) {
		struct ref_share share = { forest.users[i].weight, 0, NO_CEILING, forest.sources[NODES_MAX + i].rate_Bps, 0 };

		forest.exact[NODES_MAX + i] = (struct ref_share_node){ share, 0, 0 };
	}
	ref_share_tree(forest.exact, 1, (int)forest.child_counts[0], (double)forest.places[0].terms.ceiling_Bps);
}

/* Of what the leaves may have in all, the part that passed in a time. */
static inline double used_share(double time_ns)
{
	double used = 0, usable = 0;
	uint32_t node;

	fill_exactly();
	for (node = source_after(0); node; node = source_after(node)) {
		if (!is_leaf(node))
			continue;
		used += (double)forest.sources[node].passed_bytes * 1e9 / time_ns;
		usable += forest.exact[node].share.share;
	}
	return used / usable;
}

/* Every leaf within 3 % of its share or 1 % of the link, 98 % of what can be used is. */
static inline void assert_as_filled(double time_ns)
{
	double link_Bps = (double)forest.places[0].terms.ceiling_Bps;
	uint32_t node;

	assert_true(used_share(time_ns) >= 0.98);
	for (node = source_after(0); node; node = source_after(node)) {
		double share = forest.exact[node].share.share;
		double got = (double)forest.sources[node].passed_bytes * 1e9 / time_ns;

		if (is_leaf(node) && fabs(got - share) > fmax(0.03 * share, 0.01 * link_Bps))
			fail_msg("leaf %u gets %.0f, should %.0f of %.0f", node, got, share, link_Bps);
	}
}

/* tree.h I1. */
static inline void assert_sums(void)
{
	struct pst_share_sums sums[NODES_MAX];
	uint32_t node, i;

	memset(sums, 0, sizeof(sums));
	for (node = 0; node < forest.plane.place_count; node++) {
		for (i = 0; forest.places[node].user_count && i <= forest.places[node].user_count; i++)
			pst_share_join(&sums[node], &forest.nodes[forest.places[node].first_user + i].part);
	}
	for (node = 1; node < forest.plane.place_count; node++)
		pst_share_join(&sums[forest.places[node].parent], &forest.nodes[node].part);
	for (node = 0; node < forest.plane.place_count; node++)
		assert_memory_equal(&sums[node], &forest.nodes[node].children, sizeof(sums[node]));
}

static inline void forget_passed(void)
{
	uint32_t node;

	for (node = source_after(0); node; node = source_after(node))
		forest.sources[node].passed_bytes = 0;
}

static inline void measure(double from_ns, double until_ns)
{
	run_until(from_ns);
	forget_passed();
	run_until(until_ns);
	assert_sums();
	assert_as_filled(until_ns - from_ns);
}

#endif /* PENSTOCK_TEST_FOREST_H */
