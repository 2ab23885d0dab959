/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Slow form of tree.h in whole numbers: every node has a list of its children, and whatever is known of them is added up anew. */
#ifndef PENSTOCK_REF_TREE_H
#define PENSTOCK_REF_TREE_H

#include <stdbool.h>

#include "ref_ewma.h"
#include "ref_share.h"

#define REF_TREE_NODES 128
#define REF_TREE_CHILDREN 40

struct ref_tree_node {
	int parent, nth;                                    /* which of its parent's children it is; the link's parent is -1 */
	int kids[REF_TREE_CHILDREN];                        /* nodes; of a class whose users have entries these, and the crowd's */
	struct ref_share_child children[REF_TREE_CHILDREN]; /* what they are to it */
	int count, looked;
	bool has_users, is_entry;
	struct ref_ewma_words demand;
	uint64_t share_Bps, vft_ticks, late_bytes, user, came_ns; /* when it came: its first packet after it was idle */
};

struct ref_tree {
	struct ref_tree_node nodes[REF_TREE_NODES];
	int count;
	uint64_t rate_Bps;
};

struct ref_tree_packet {
	uint64_t now_ns;
	int node; /* a class */
	uint64_t user;
	uint32_t weight;
	uint32_t bytes;
};

/* A link. The node is 0. */
void ref_tree_start(struct ref_tree *tree, uint64_t rate_Bps);
/* One more child. Returns the node. */
int ref_tree_grow(struct ref_tree *tree, int parent, const struct ref_share_child *child);
/* Gives a class entries for its users, and one for those who find none. */
void ref_tree_settle(struct ref_tree *tree, int node, int entries);
/* Its share. `node` becomes the leaf's: an entry. */
uint64_t ref_tree_take(struct ref_tree *tree, struct ref_tree_packet *packet);
/* The same while another CPU is at work. */
uint64_t ref_tree_miss(struct ref_tree *tree, struct ref_tree_packet *packet);
void ref_tree_tend(struct ref_tree *tree, int node, uint64_t now_ns);

#endif /* PENSTOCK_REF_TREE_H */
