/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* hsdba.h for Rust, which owns the memory: Algorithm 1 as published, leaves below a link. */
#include <penstock/hsdba.h>

#include <stddef.h>

#define LEAVES_MAX 64

struct pst_host_hsdba {
	struct pst_hsdba tree;
	struct pst_hsdba_node nodes[LEAVES_MAX + 1]; /* the link, then its leaves */
	struct pst_tree_place places[LEAVES_MAX + 1];
};

size_t pst_host_hsdba_bytes(void);
uint32_t pst_host_hsdba_leaves_max(void);
void pst_host_hsdba_start(struct pst_host_hsdba *link, uint64_t link_Bps, const uint32_t *weights, uint32_t leaves, uint32_t tau_shift);
bool pst_host_hsdba_take(struct pst_host_hsdba *link, uint32_t leaf, uint64_t now_ns, uint32_t bytes, uint32_t random_u32);
void pst_host_hsdba_leave(struct pst_host_hsdba *link, uint32_t leaf);
uint64_t pst_host_hsdba_alpha_Bps(const struct pst_host_hsdba *link);

size_t pst_host_hsdba_bytes(void)
{
	return sizeof(struct pst_host_hsdba);
}

uint32_t pst_host_hsdba_leaves_max(void)
{
	return LEAVES_MAX;
}

/* The memory is zeros; LEAVES_MAX leaves at most. */
void pst_host_hsdba_start(struct pst_host_hsdba *link, uint64_t link_Bps, const uint32_t *weights, uint32_t leaves, uint32_t tau_shift)
{
	uint32_t leaf;

	link->tree = (struct pst_hsdba){ link->nodes, link->places, link_Bps, leaves + 1, tau_shift };
	link->places[0].parent = PST_NONE;
	for (leaf = 0; leaf < leaves; leaf++) {
		link->places[leaf + 1].terms.weight = weights[leaf];
		link->places[leaf + 1].terms.ceiling_Bps = PST_TREE_NO_CEILING_BPS;
		link->places[leaf + 1].parent = 0;
	}
	link->nodes[0].alpha_Bps = link_Bps;
}

/* A packet of a leaf that is there. Returns whether it passes. */
bool pst_host_hsdba_take(struct pst_host_hsdba *link, uint32_t leaf, uint64_t now_ns, uint32_t bytes, uint32_t random_u32)
{
	uint32_t numbers[PST_TREE_DEPTH_MAX], level;

	for (level = 0; level < PST_TREE_DEPTH_MAX; level++)
		numbers[level] = random_u32; /* there is one level */
	return !pst_hsdba_take(&link->tree, leaf + 1, now_ns, bytes, numbers);
}

/* A leaf that was taken out. */
void pst_host_hsdba_leave(struct pst_host_hsdba *link, uint32_t leaf)
{
	pst_hsdba_leave(&link->nodes[leaf + 1], &link->nodes[0], link->places[leaf + 1].terms.weight);
}

/* alpha, for a weight of 1. */
uint64_t pst_host_hsdba_alpha_Bps(const struct pst_host_hsdba *link)
{
	return link->nodes[0].alpha_Bps;
}
