/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of hsdba.h. */
#include "ref_hsdba.h"
#include "vectors.h"

#define NO_CEILING ((uint64_t)1 << 36)

static uint64_t seed = 1;
static struct ref_hsdba tree;

static void link_of(uint64_t rate_Bps, uint32_t shift)
{
	tree = (struct ref_hsdba){ .count = 1, .link_Bps = rate_Bps, .shift = shift };
	tree.nodes[0].parent = -1;
	printf("link rate_Bps=%" PRIu64 " shift=%" PRIu32 "\n", rate_Bps, shift);
}

static void children(int parent, int count)
{
	printf("children parent=%d count=%d\n", parent, count);
	for (; count > 0; count--) {
		struct ref_hsdba_node *node = &tree.nodes[tree.count];

		*node = (struct ref_hsdba_node){ .parent = parent, .ceiling_Bps = NO_CEILING, .weight = 1 + vectors_draw(&seed, 3) };
		if (vectors_draw(&seed, 4) == 0)
			node->ceiling_Bps = tree.link_Bps / (2 + vectors_draw(&seed, 10));
		printf("terms node=%d ceiling=%" PRIu64 " weight=%" PRIu64 "\n", tree.count++, node->ceiling_Bps, node->weight);
	}
}

static void packets(const int *leaves, uint32_t count, uint64_t now_ns, int packets)
{
	uint32_t random[REF_HSDBA_DEPTH], i;

	for (; packets > 0; packets--) {
		int leaf = leaves[vectors_draw(&seed, packets % 60 < 20 ? 1 : count)], parent = tree.nodes[leaf].parent;
		uint32_t bytes = vectors_bytes[vectors_draw(&seed, 8)];
		bool drops;

		now_ns += vectors_draw_wide(&seed, (uint64_t)1500 * 1000000000 / tree.link_Bps + 1) + (vectors_draw(&seed, 40) ? 0 : (uint64_t)4 << tree.shift);
		if (vectors_draw(&seed, 25) == 0)
			now_ns -= vectors_draw(&seed, 5000);
		printf("take now=%" PRIu64 " node=%d bytes=%" PRIu32 " random=", now_ns, leaf, bytes);
		for (i = 0; i < REF_HSDBA_DEPTH; i++) {
			random[i] = (uint32_t)vectors_draw_wide(&seed, (uint64_t)1 << 32);
			printf("%s%" PRIu32, i ? "," : "", random[i]);
		}
		drops = ref_hsdba_take(&tree, leaf, now_ns, bytes, random);
		printf(" -> drops=%d rate_q8=%" PRIu64 " alpha=%" PRIu64 " satisfied_q8=%" PRIu64 " unsatisfied=%" PRIu64 "\n", drops,
		       tree.nodes[leaf].rate_Bps_q8, tree.nodes[parent].alpha_Bps, tree.nodes[parent].satisfied_rate_Bps_q8,
		       ref_hsdba_unsatisfied_weight(&tree, parent));
	}
}

int main(void)
{
	static const int flat[] = { 1, 2, 3, 4 }, deep[] = { 1, 3, 5, 6, 7 };

	vectors_header("hsdba.h: HSDBA as published.");
	link_of(12500000, 20);
	children(0, 4);
	packets(flat, 4, (uint64_t)0 - 30000000, 150);
	link_of(UINT64_C(1250000000), 22);
	children(0, 2);
	children(2, 2);
	children(4, 3);
	packets(deep, 5, (uint64_t)1 << 50, 200);
	return 0;
}
