/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of tree.h. */
#include "ref_tree.h"
#include "vectors.h"

#define NO_CEILING ((uint64_t)1 << 36)
#define USERS 24

static uint64_t seed = 1, users[USERS];
static struct ref_tree tree;

static void link_of(uint64_t rate_Bps)
{
	int i;

	ref_tree_start(&tree, rate_Bps);
	printf("link rate_Bps=%" PRIu64 "\n", rate_Bps);
	for (i = 0; i < USERS; i++)
		users[i] = (vectors_draw_wide(&seed, (uint64_t)1 << 62) << 2) | 1;
}

static void children(int parent, int count)
{
	int i;

	printf("children parent=%d count=%d\n", parent, count);
	for (i = 0; i < count; i++) {
		struct ref_share_child child = { 0, NO_CEILING, 1 + vectors_draw(&seed, 4), REF_SHARE_IDLE, 0 };
		int node;

		if (vectors_draw(&seed, 3) == 0)
			child.ceiling_Bps = tree.rate_Bps / (2 + vectors_draw(&seed, 10));
		else if (vectors_draw(&seed, 3) == 0)
			child.guarantee_Bps = tree.rate_Bps / (8 + vectors_draw(&seed, 10));
		node = ref_tree_grow(&tree, parent, &child);
		printf("terms node=%d guarantee=%" PRIu64 " ceiling=%" PRIu64 " weight=%" PRIu32 "\n", node, child.guarantee_Bps, child.ceiling_Bps,
		       child.weight);
	}
}

static void settle(int node, int entries)
{
	printf("users node=%d entries=%d\n", node, entries);
	ref_tree_settle(&tree, node, entries);
}

static void sums_of(int node)
{
	struct ref_share_sums sums = ref_share_sums(tree.nodes[node].children, tree.nodes[node].count);

	printf(" sums=%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, sums.taken_Bps, sums.held_Bps, sums.weight, sums.weight_taken);
}

/* Entries are told by their numbers among their class's. */
static void packet(uint64_t now_ns, int node, uint32_t bytes, bool misses)
{
	struct ref_tree_packet packet = { now_ns, node, 0, 1, bytes };
	const struct ref_tree_node *leaf;
	uint64_t share_Bps;

	printf("%s now=%" PRIu64 " node=%d bytes=%" PRIu32, misses ? "miss" : "take", now_ns, node, bytes);
	if (tree.nodes[node].has_users) {
		uint32_t user = vectors_draw(&seed, USERS);

		packet.user = users[user % (1 + vectors_draw(&seed, USERS))]; /* some often */
		packet.weight = 1 + user % 5;
		printf(" user=%" PRIu64 " weight=%" PRIu32, packet.user, packet.weight);
	}
	share_Bps = misses ? ref_tree_miss(&tree, &packet) : ref_tree_take(&tree, &packet);
	leaf = &tree.nodes[packet.node];
	printf(" -> share=%" PRIu64, share_Bps);
	if (leaf->is_entry)
		printf(" entry=%d", leaf->nth);
	printf(" late=%" PRIu64, leaf->late_bytes);
	if (!misses) {
		printf(" demand_q8=%" PRIu64 " vft=%" PRIu64, leaf->demand.rate_Bps_q8, leaf->vft_ticks);
		sums_of(leaf->parent);
	}
	printf("\n");
}

/* Packets of these leaves; some stop for a while, some find another CPU at work, and now and then a host looks. */
static void schedule(const int *leaves, int count, uint64_t now_ns, uint64_t gap_ns, int packets)
{
	uint32_t bytes;
	int i, inner;

	for (i = 0; i < packets; i++) {
		int quiet = i / 20 % (count + 1), leaf = (int)vectors_draw(&seed, (uint32_t)count);

		now_ns += vectors_draw_wide(&seed, vectors_draw(&seed, 30) ? 2 * gap_ns : 60 * gap_ns);
		if (vectors_draw(&seed, 20) == 0)
			now_ns -= vectors_draw_wide(&seed, gap_ns);
		bytes = vectors_bytes[vectors_draw(&seed, 8)];
		if (vectors_draw(&seed, 30) == 0)
			bytes = 1U << (16 + vectors_draw(&seed, 16));
		packet(now_ns, leaves[leaf == quiet ? (leaf + 1) % count : leaf], bytes, vectors_draw(&seed, 8) == 0);
		if (i % 50 == 49) {
			inner = tree.nodes[leaves[leaf]].has_users ? leaves[leaf] : tree.nodes[leaves[leaf]].parent;
			now_ns += vectors_draw_wide(&seed, 20 * gap_ns);
			ref_tree_tend(&tree, inner, now_ns);
			printf("tend now=%" PRIu64 " node=%d ->", now_ns, inner);
			sums_of(inner);
			printf("\n");
		}
	}
}

int main(void)
{
	static const int flat[] = { 1, 2, 3, 4 }, deep[] = { 1, 3, 5, 6, 7, 8 }, classes[] = { 1, 2 };

	vectors_header("tree.h: packets on their ways through trees.");
	link_of(12500000);
	children(0, 4);
	schedule(flat, 4, (uint64_t)1 << 50, 100000, 150);
	link_of(UINT64_C(12500000000));
	children(0, 2);
	children(2, 2);
	children(4, 4);
	schedule(deep, 6, (uint64_t)0 - 300000, 1000, 150);
	link_of(12500000);
	children(0, 2);
	settle(1, 8);
	settle(2, 16);
	schedule(classes, 2, ((uint64_t)1 << 54) - 10000000, 150000, 300);
	return 0;
}
