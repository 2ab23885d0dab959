/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* ref_share.h: weighted max-min with guarantees and ceilings, by filling water. */
#ifndef REF_SHARE_H
#define REF_SHARE_H

#include <stdint.h>

struct ref_share {
	double weight, guarantee, ceiling, demand;
	double share; /* what comes out */
};

/*
 * Divides `rate` among `count`: each gets min(demand, ceiling, max(guarantee, weight alpha)), alpha such that the rate is used up, or everybody
 * has what he asks for.
 */
void ref_share_fill(struct ref_share *children, int count, double rate);

/* A node of a tree: its children lie side by side. */
struct ref_share_node {
	struct ref_share share;
	int first_child, child_count;
};

/* Divides `rate` among `count` nodes from `first` on, and what each gets among its own children. An inner node asks for what its children may use. */
void ref_share_tree(struct ref_share_node *nodes, int first, int count, double rate);

/* A child as share.h has it, in whole numbers: what it is to its parent, and what it takes. Sums are added up anew whenever they are asked for. */
enum ref_share_state { REF_SHARE_IDLE, REF_SHARE_SATISFIED, REF_SHARE_UNSATISFIED, REF_SHARE_HELD };

struct ref_share_child {
	uint64_t guarantee_Bps, ceiling_Bps;
	uint32_t weight;
	enum ref_share_state state;
	uint64_t taken_Bps; /* of those that are satisfied or held */
};

/* Taken by both, by those that are held, weights of those that are unsatisfied, and satisfied. */
struct ref_share_sums {
	uint64_t taken_Bps, held_Bps, weight, weight_taken;
};
struct ref_share_sums ref_share_sums(const struct ref_share_child *children, int count);

/* One child asks of its parent's rate. Returns what it may pass on. */
uint64_t ref_share_step(struct ref_share_child *children, int count, int child, uint64_t parent_Bps, uint64_t demand_Bps);
void ref_share_leave(struct ref_share_child *child);

#endif /* REF_SHARE_H */
