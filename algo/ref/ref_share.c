/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_share.h"

#include <math.h>

static double share_at(const struct ref_share *child, double alpha)
{
	return fmin(fmin(child->demand, child->ceiling), fmax(child->guarantee, child->weight * alpha));
}

static double used_at(const struct ref_share *children, int count, double alpha)
{
	double used = 0;
	int i;

	for (i = 0; i < count; i++)
		used += share_at(&children[i], alpha);
	return used;
}

void ref_share_fill(struct ref_share *children, int count, double rate)
{
	double low = 0, high = 1;
	int i;

	while (high < 0x1p60 && used_at(children, count, high) < rate)
		high *= 2;
	for (i = 0; i < 200; i++) {
		double middle = (low + high) / 2;

		if (used_at(children, count, middle) < rate)
			low = middle;
		else
			high = middle;
	}
	for (i = 0; i < count; i++)
		children[i].share = share_at(&children[i], high);
}

static double demand_of(struct ref_share_node *nodes, int node)
{
	int i;

	if (nodes[node].child_count) {
		nodes[node].share.demand = 0;
		for (i = 0; i < nodes[node].child_count; i++)
			nodes[node].share.demand += demand_of(nodes, nodes[node].first_child + i);
	}
	return fmin(nodes[node].share.demand, nodes[node].share.ceiling);
}

void ref_share_tree(struct ref_share_node *nodes, int first, int count, double rate)
{
	struct ref_share children[256];
	int i;

	for (i = 0; i < count; i++) {
		demand_of(nodes, first + i);
		children[i] = nodes[first + i].share;
	}
	ref_share_fill(children, count, rate);
	for (i = 0; i < count; i++) {
		nodes[first + i].share.share = children[i].share;
		ref_share_tree(nodes, nodes[first + i].first_child, nodes[first + i].child_count, children[i].share);
	}
}
