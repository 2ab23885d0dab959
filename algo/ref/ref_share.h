/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* ref_share.h: weighted max-min with guarantees and ceilings, by filling water. */
#ifndef REF_SHARE_H
#define REF_SHARE_H

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

#endif /* REF_SHARE_H */
