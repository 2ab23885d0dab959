/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_hsdba.h"

#include "ref_lpf.h"

typedef unsigned __int128 wide;

/* Equation 3, with the sign of H1. */
static void measure(uint64_t *last_ns, uint64_t *rate_Bps_q8, uint32_t shift, uint64_t now_ns, uint64_t bytes)
{
	uint64_t elapsed_ns = now_ns - *last_ns;
	wide left_q31, rate;

	if (elapsed_ns >= (uint64_t)1 << 63)
		elapsed_ns = 0;
	left_q31 = ref_decay_q31((wide)elapsed_ns * 4294967296 / ((wide)1 << shift));
	rate = *rate_Bps_q8 * left_q31 / 2147483648 + (wide)bytes * 256 * 1000000000 / ((wide)1 << shift);
	*rate_Bps_q8 = rate < (wide)1 << 45 ? (uint64_t)rate : ((uint64_t)1 << 45) - 1;
	*last_ns = now_ns;
}

uint64_t ref_hsdba_unsatisfied_weight(const struct ref_hsdba *tree, int node)
{
	uint64_t weight = 0;
	int i;

	for (i = 0; i < tree->count; i++) {
		if (tree->nodes[i].parent == node && tree->nodes[i].is_unsatisfied)
			weight += tree->nodes[i].weight;
	}
	return weight;
}

/* Line 20; where nobody is unsatisfied, B' while what the others send fits. */
static void renew_alpha(struct ref_hsdba *tree, int node, uint64_t rate_Bps)
{
	uint64_t satisfied_Bps = tree->nodes[node].satisfied_rate_Bps_q8 / 256, weight = ref_hsdba_unsatisfied_weight(tree, node);
	uint64_t rest_Bps = rate_Bps > satisfied_Bps ? rate_Bps - satisfied_Bps : 0;

	if (weight)
		tree->nodes[node].alpha_Bps = rest_Bps / weight;
	else
		tree->nodes[node].alpha_Bps = rest_Bps ? rate_Bps : 0;
}

/* Lines 5 to 21. Returns B' of the next level, and whether the packet is dropped here. */
static uint64_t step(struct ref_hsdba *tree, int at, uint64_t parent_Bps, uint64_t now_ns, uint32_t bytes, uint32_t random, bool *drops)
{
	struct ref_hsdba_node *node = &tree->nodes[at], *parent = &tree->nodes[node->parent];
	uint64_t rate_Bps, fair_Bps;

	measure(&node->last_ns, &node->rate_Bps_q8, tree->shift, now_ns, bytes);
	rate_Bps = node->rate_Bps_q8 / 256;
	if (!node->is_known) { /* it joins as unsatisfied */
		node->is_known = node->is_unsatisfied = true;
		renew_alpha(tree, node->parent, parent_Bps);
	}
	fair_Bps = parent->alpha_Bps * node->weight;
	if (fair_Bps > node->ceiling_Bps)
		fair_Bps = node->ceiling_Bps;
	node->is_unsatisfied = rate_Bps > fair_Bps;
	/* random > f / R, random having 26 bits */
	if (node->is_unsatisfied && (wide)(random / 64) * rate_Bps > (wide)fair_Bps * 67108864)
		*drops = true;
	measure(&parent->satisfied_last_ns, &parent->satisfied_rate_Bps_q8, tree->shift, now_ns, node->is_unsatisfied ? 0 : bytes);
	renew_alpha(tree, node->parent, parent_Bps);
	fair_Bps = parent->alpha_Bps * node->weight;
	return fair_Bps < rate_Bps ? fair_Bps : rate_Bps;
}

bool ref_hsdba_take(struct ref_hsdba *tree, int leaf, uint64_t now_ns, uint32_t bytes, const uint32_t *random)
{
	int path[REF_HSDBA_DEPTH], depth = 0, at;
	uint64_t rate_Bps = tree->link_Bps;
	bool drops = false;

	for (at = leaf; tree->nodes[at].parent >= 0; at = tree->nodes[at].parent)
		path[depth++] = at;
	while (depth-- > 0)
		rate_Bps = step(tree, path[depth], rate_Bps, now_ns, bytes, random[depth], &drops);
	return drops;
}
