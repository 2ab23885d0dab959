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

struct ref_share_sums ref_share_sums(const struct ref_share_child *children, int count)
{
	struct ref_share_sums sums = { 0, 0, 0, 0 };
	int i;

	for (i = 0; i < count; i++) {
		uint64_t weight = children[i].weight ? children[i].weight : 1;

		if (children[i].state == REF_SHARE_SATISFIED || children[i].state == REF_SHARE_HELD)
			sums.taken_Bps += children[i].taken_Bps;
		if (children[i].state == REF_SHARE_HELD)
			sums.held_Bps += children[i].taken_Bps;
		if (children[i].state == REF_SHARE_UNSATISFIED)
			sums.weight += weight;
		if (children[i].state == REF_SHARE_SATISFIED)
			sums.weight_taken += weight;
	}
	return sums;
}

void ref_share_leave(struct ref_share_child *child)
{
	child->state = REF_SHARE_IDLE;
	child->taken_Bps = 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A weight's part of what is left, cut. */
static uint64_t part_of(uint64_t parent_Bps, uint64_t taken_Bps, uint64_t weight, uint64_t others)
{
	if (taken_Bps >= parent_Bps)
		return 0;
	return (uint64_t)((unsigned __int128)(parent_Bps - taken_Bps) * weight / (others + weight));
}

uint64_t ref_share_step(struct ref_share_child *children, int count, int child, uint64_t parent_Bps, uint64_t demand_Bps)
{
	struct ref_share_child *self = &children[child];
	uint64_t weight = self->weight ? self->weight : 1, asked = least(demand_Bps, self->ceiling_Bps), fair, even;
	struct ref_share_sums others;

	ref_share_leave(self);
	others = ref_share_sums(children, count);
	fair = part_of(parent_Bps, others.taken_Bps, weight, others.weight);
	even = part_of(parent_Bps, others.held_Bps, weight, others.weight + others.weight_taken);
	fair = even > fair ? even : fair;
	if (asked <= fair) {
		self->state = REF_SHARE_SATISFIED;
		self->taken_Bps = asked;
	} else if (self->guarantee_Bps > fair) {
		self->state = REF_SHARE_HELD;
		self->taken_Bps = least(asked, self->guarantee_Bps);
	} else {
		self->state = REF_SHARE_UNSATISFIED;
	}
	return least(self->ceiling_Bps, fair > self->guarantee_Bps ? fair : self->guarantee_Bps);
}
