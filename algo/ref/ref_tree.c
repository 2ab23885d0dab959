/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_tree.h"

#include <string.h>

#include "ref_sketch.h"

#define NO_CEILING ((uint64_t)1 << 36)
#define WAYS 4

void ref_tree_start(struct ref_tree *tree, uint64_t rate_Bps)
{
	memset(tree, 0, sizeof(*tree));
	tree->rate_Bps = rate_Bps;
	tree->nodes[0].parent = -1;
	tree->nodes[0].looked = -1;
	tree->count = 1;
}

int ref_tree_grow(struct ref_tree *tree, int parent, const struct ref_share_child *child)
{
	struct ref_tree_node *above = &tree->nodes[parent], *node = &tree->nodes[tree->count];

	node->parent = parent;
	node->nth = above->count;
	node->looked = -1;
	node->demand.constant_shift = 20;
	above->children[above->count] = *child;
	above->kids[above->count++] = tree->count;
	return tree->count++;
}

void ref_tree_settle(struct ref_tree *tree, int node, int entries)
{
	const struct ref_share_child child = { 0, NO_CEILING, 0, REF_SHARE_IDLE, 0 };
	int i;

	tree->nodes[node].has_users = true;
	tree->nodes[node].looked = 0;
	for (i = 0; i <= entries; i++)
		tree->nodes[ref_tree_grow(tree, node, &child)].is_entry = true;
}

static struct ref_share_child *to_parent(struct ref_tree *tree, int node)
{
	return &tree->nodes[tree->nodes[node].parent].children[tree->nodes[node].nth];
}

static bool is_gone(const struct ref_tree_node *node, uint64_t now_ns)
{
	return ref_ewma_words_has_stopped(&node->demand, now_ns);
}

static void forget_if_gone(struct ref_tree *tree, int node, uint64_t now_ns)
{
	if (is_gone(&tree->nodes[node], now_ns))
		ref_share_leave(to_parent(tree, node));
}

static uint64_t demand_Bps(const struct ref_tree_node *node)
{
	return node->demand.rate_Bps_q8 / 256;
}

/* The entries that a user may have: four of one set, four of another. */
static int entry_at(const struct ref_tree *tree, int class_node, uint64_t user, int i)
{
	const struct ref_tree_node *node = &tree->nodes[class_node];
	uint64_t sets = (uint64_t)(node->count - 1) / WAYS, hash = user / 4294967296;

	if (i >= WAYS)
		hash = ref_sketch_mix(user) / 4294967296;
	return node->kids[hash * sets / 4294967296 * WAYS + (uint64_t)(i % WAYS)];
}

/* Nothing was sent for as long as it matters. */
static uint64_t idle(uint64_t now_ns)
{
	return now_ns * 1024 - ((uint64_t)1 << 54);
}

static int find(const struct ref_tree *tree, const struct ref_tree_packet *packet)
{
	int i;

	for (i = 0; i < 2 * WAYS; i++) {
		int entry = entry_at(tree, packet->node, packet->user, i);

		if (tree->nodes[entry].user == packet->user)
			return entry;
	}
	return -1;
}

static int crowd(const struct ref_tree *tree, int class_node)
{
	return tree->nodes[class_node].kids[tree->nodes[class_node].count - 1];
}

/* The first of its entries that is nobody's, or whose user is gone. */
static int admit(struct ref_tree *tree, const struct ref_tree_packet *packet)
{
	int i;

	for (i = 0; i < 2 * WAYS; i++) {
		int entry = entry_at(tree, packet->node, packet->user, i);
		struct ref_tree_node *node = &tree->nodes[entry];

		if (node->user != 0 && !is_gone(node, packet->now_ns))
			continue;
		ref_share_leave(to_parent(tree, entry));
		to_parent(tree, entry)->weight = packet->weight;
		node->demand = (struct ref_ewma_words){ packet->now_ns - 16777216, 0, 0, 20, 0, 0 };
		node->share_Bps = node->late_bytes = 0;
		node->vft_ticks = idle(packet->now_ns);
		node->user = packet->user;
		return entry;
	}
	return crowd(tree, packet->node);
}

/* H9, H11: every node's demand, leaf first; above a ceiling only what it lets through goes on. */
static void go_up(struct ref_tree *tree, int leaf, uint64_t now_ns, uint64_t bytes_q8)
{
	int at;

	for (at = leaf; at != 0; at = tree->nodes[at].parent) {
		struct ref_tree_node *node = &tree->nodes[at];
		uint64_t ceiling_Bps = to_parent(tree, at)->ceiling_Bps;

		ref_ewma_words_add(&node->demand, now_ns, bytes_q8, node->count > 0 ? 90 : 11);
		if (!node->is_entry && demand_Bps(node) > ceiling_Bps)
			bytes_q8 = (uint64_t)((unsigned __int128)bytes_q8 * ceiling_Bps / demand_Bps(node));
	}
}

/* The shares down to a node, of each node on the way; each looks at one more of its children. */
static uint64_t come_down(struct ref_tree *tree, int at, uint64_t now_ns)
{
	struct ref_tree_node *node = &tree->nodes[at], *above;
	uint64_t parent_Bps;

	if (at == 0)
		return tree->rate_Bps;
	parent_Bps = come_down(tree, node->parent, now_ns);
	above = &tree->nodes[node->parent];
	above->looked = (above->looked + 1) % above->count;
	if (above->looked != node->nth)
		forget_if_gone(tree, above->kids[above->looked], now_ns);
	node->share_Bps = ref_share_step(above->children, above->count, node->nth, parent_Bps, demand_Bps(node));
	return node->share_Bps;
}

/*
 * Who came some 8 ms ago at most, and asks for more than half its share, has credit for three packets, or for 1 ms where that is more; what is further
 * ahead than 2^48 ticks is from the past.
 */
static void start(struct ref_tree *tree, int leaf, uint64_t now_ns, uint64_t bytes, bool was_idle, bool had_share)
{
	struct ref_tree_node *node = &tree->nodes[leaf];
	uint64_t now_ticks = now_ns * 1024, ahead, behind, credit;

	if (was_idle)
		node->came_ns = now_ns;
	if (was_idle && !had_share)
		node->vft_ticks = idle(now_ns);
	if (now_ns / 1048576 - node->came_ns / 1048576 > 8 || demand_Bps(node) <= node->share_Bps / 2)
		return;
	credit = (uint64_t)((unsigned __int128)3 * bytes * 1024000000000 / (node->share_Bps < 64 ? 64 : node->share_Bps));
	credit = credit < 1024000000 ? 1024000000 : credit;
	ahead = node->vft_ticks - now_ticks;
	behind = now_ticks - node->vft_ticks;
	if (ahead > (uint64_t)1 << 48 && behind > credit)
		node->vft_ticks = now_ticks - credit;
}

uint64_t ref_tree_take(struct ref_tree *tree, struct ref_tree_packet *packet)
{
	uint64_t late, bytes, share_Bps;
	bool was_idle, had_share;

	if (tree->nodes[packet->node].has_users) {
		int entry = find(tree, packet);

		packet->node = entry >= 0 ? entry : admit(tree, packet);
	}
	late = tree->nodes[packet->node].late_bytes;
	late = late < 131072 ? late : 131072;
	tree->nodes[packet->node].late_bytes -= late;
	bytes = late + packet->bytes;
	bytes = bytes < 262143 ? bytes : 262143;
	go_up(tree, packet->node, packet->now_ns, bytes * 256);
	was_idle = to_parent(tree, packet->node)->state == REF_SHARE_IDLE;
	had_share = tree->nodes[packet->node].share_Bps != 0;
	share_Bps = come_down(tree, packet->node, packet->now_ns);
	start(tree, packet->node, packet->now_ns, bytes, was_idle, had_share);
	return share_Bps;
}

uint64_t ref_tree_miss(struct ref_tree *tree, struct ref_tree_packet *packet)
{
	if (tree->nodes[packet->node].has_users) {
		int entry = find(tree, packet);

		packet->node = entry >= 0 ? entry : crowd(tree, packet->node);
	}
	tree->nodes[packet->node].late_bytes += packet->bytes;
	return tree->nodes[packet->node].share_Bps ? tree->nodes[packet->node].share_Bps : tree->rate_Bps;
}

void ref_tree_tend(struct ref_tree *tree, int node, uint64_t now_ns)
{
	int i;

	for (i = 0; i < tree->nodes[node].count; i++)
		forget_if_gone(tree, tree->nodes[node].kids[i], now_ns);
}
