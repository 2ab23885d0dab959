/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* tree.h: packets of many sources through trees of shares and the limiters of their leaves, against exact water-filling. */
#include "vectors.h"
#include "forest.h"

static void test_i1_i2_random_trees_fill_exactly(void **state)
{
	/* Trees that do not fill with a short K for inner nodes (60, 70), or without a least fair share (70, 212, 235). */
	static const uint64_t telling[] = { 60, 70, 212, 235 };
	uint64_t seed;
	size_t i;

	(void)state;
	for (seed = 1; seed <= 40; seed++) {
		plant_at_random(seed);
		measure(0.5e9, 1.5e9);
	}
	for (i = 0; i < sizeof(telling) / sizeof(telling[0]); i++) {
		plant_at_random(telling[i]);
		measure(0.5e9, 1.5e9);
	}
}

/* Figure 12 (H6), a tenth of it: 32 leaves of a binary tree, 12 at 10 Mbit/s, 20 at 50, 1 Gbit/s. */
static void test_figure_12(void **state)
{
	uint32_t node, leaf = 0;

	(void)state;
	plant(1, 125000000);
	grow(0, 2);
	for (node = 1; node < 31; node++)
		grow(node, 2);
	for (node = 31; node < 63; node++, leaf++)
		send_at(node, leaf < 12 ? 1250000 : 6250000);
	measure(0.2e9, 1.2e9);
	for (node = 31; node < 47; node++) /* leaves 1 to 16 are satisfied */
		assert_true(fabs(forest.exact[node].share.share - forest.sources[node].rate_Bps) < 1);
	for (node = 47; node < 63; node++) /* the right half gets 42.5 of its 50 Mbit/s each */
		assert_true(fabs((double)forest.sources[node].passed_bytes * 8 - 42.5e6) < 0.5e6);
}

/* Table 4: four flows of 100 Mbit/s that join at a link of as much, 1024 B. Returns the packets that the one who joins sends until everybody has 1/n. */
static int join(uint32_t leaf, double at_ns, uint32_t flows)
{
	double fair = 12.5e6 / flows;
	int packets, followed = 0;

	run_until(at_ns);
	forest.sources[leaf].next_ns = at_ns;
	forest.sources[leaf].rate_Bps = 12.5e6;
	forest.nodes[leaf].vft_ticks = pst_limiter_idle(START_NS);
	for (packets = 0; packets < 1000;) {
		uint32_t next = next_leaf();
		uint64_t share_Bps = send_one(next, 1024);

		packets += next == leaf;
		if (fabs((double)share_Bps - fair) > 0.1 * fair)
			followed = packets;
	}
	return followed + 1;
}

static void test_table_4_joining_takes_9_packets(void **state)
{
	uint32_t leaf;

	(void)state;
	plant(1, 12500000);
	grow(0, 4);
	for (leaf = 1; leaf <= 4; leaf++)
		assert_in_range(join(leaf, leaf * 300e6, leaf), 1, 9);
}

/* What passes follows at once, too: 3 ms after each joins, everybody sends 1/n to within 10 %, in bins of 5 ms. */
static void test_what_passes_follows(void **state)
{
	uint32_t leaf, other;

	(void)state;
	for (leaf = 1; leaf <= 4; leaf++) {
		double bin_ns;

		plant(1, 12500000);
		grow(0, 4);
		for (other = 1; other <= leaf; other++) {
			forest.sources[other].next_ns = other < leaf ? other * 1000 : 100e6;
			forest.sources[other].rate_Bps = 12.5e6;
			forest.nodes[other].vft_ticks = pst_limiter_idle(START_NS);
		}
		for (bin_ns = 103e6; bin_ns < 130e6; bin_ns += 5e6) {
			run_until(bin_ns);
			forget_passed();
			run_until(bin_ns + 5e6);
			for (other = 1; other <= leaf; other++) {
				double fair = 62500.0 / leaf;

				assert_true(fabs((double)forest.sources[other].passed_bytes - fair) < 0.1 * fair + FRAME_BYTES);
			}
		}
	}
}

/* A leaf that stops leaves its share to the others, one that comes back gets it at once; nothing leaks. */
static void test_i3_who_stops_is_forgotten(void **state)
{
	uint32_t leaf;
	uint64_t share_Bps;

	(void)state;
	plant(1, 12500000);
	grow(0, 3);
	for (leaf = 1; leaf <= 3; leaf++)
		send_at(leaf, 12.5e6);
	run_until(200e6);
	assert_in_range(forest.nodes[1].share_Bps, 4125000, 4208000);
	forest.sources[3].rate_Bps = 0;
	run_until(204e6);
	assert_in_range(forest.nodes[1].share_Bps, 6187000, 6312000);
	assert_int_equal(forest.nodes[3].part.state, PST_SHARE_IDLE);
	assert_sums();
	share_Bps = share_of(3, START_NS + 204 * MS_NS, 1024);
	assert_in_range(share_Bps, 4125000, 4208000);
	assert_sums();
}

/* Longer than any packet, at once and at the slowest: nothing wraps. */
static void test_lengths_are_cut(void **state)
{
	(void)state;
	plant(1, UINT64_C(125000000000));
	grow(0, 2);
	forest.places[1].terms.ceiling_Bps = 1;
	share_of(1, START_NS, UINT32_MAX);
	share_of(1, START_NS + 4096, UINT32_MAX);
	assert_in_range(pst_tree_demand_Bps(&forest.nodes[1]), UINT64_C(249000000), UINT64_C(251000000));
	assert_int_equal(share_of(1, START_NS + 4097, UINT32_MAX), 1);
}

static void test_what_is_no_leaf_has_no_share(void **state)
{
	(void)state;
	plant(1, 12500000);
	grow(0, 2);
	assert_int_equal(share_of(0, START_NS, 1024), 0);
	assert_int_equal(share_of(3, START_NS, 1024), 0);
	assert_int_equal(share_of(PST_NONE, START_NS, 1024), 0);
	forest.places[1].parent = 1; /* a ring, which no policy makes */
	share_of(1, START_NS, 1024);
}

static void assert_golden_sums(struct vectors *v, uint32_t node)
{
	const struct pst_share_sums *children = &forest.nodes[node].children;
	const char *sums = vectors_out_text(v, "sums");

	assert_int_equal(children->taken_Bps, vectors_number(v, sums, 0));
	assert_int_equal(children->held_Bps, vectors_number(v, sums, 1));
	assert_int_equal(children->weight, vectors_number(v, sums, 2));
	assert_int_equal(children->weight_taken, vectors_number(v, sums, 3));
}

/* A packet, or one that finds another CPU at work. */
static void golden_packet(struct vectors *v, bool misses)
{
	struct pst_tree_walk walk = { .now_ns = vectors_in(v, "now"), .place = (uint32_t)vectors_in(v, "node"), .user = vectors_in_or(v, "user", 0),
				      .weight = (uint32_t)vectors_in_or(v, "weight", 1) };
	const struct pst_tree_place *place = &forest.places[walk.place];
	const struct pst_tree_node *leaf;

	forest.nodes[0].lock = misses ? (uint32_t)(walk.now_ns >> PST_TREE_LOCK_SHIFT) | 1 : 0;
	assert_int_equal(pst_tree_share(&forest.plane, &walk, (uint32_t)vectors_in(v, "bytes")), vectors_out(v, "share"));
	forest.nodes[0].lock = 0;
	leaf = &forest.nodes[walk.leaf];
	if (place->user_count)
		assert_int_equal(walk.leaf - place->first_user, vectors_out(v, "entry"));
	assert_int_equal(leaf->late_bytes, vectors_out(v, "late"));
	if (misses)
		return;
	assert_int_equal(leaf->demand.rate_Bps_q8, vectors_out(v, "demand_q8"));
	assert_int_equal(leaf->vft_ticks, vectors_out(v, "vft"));
	assert_golden_sums(v, place->user_count ? walk.place : place->parent);
}

static void golden_start(struct vectors *v)
{
	uint32_t node;

	if (vectors_is(v, "link")) {
		plant(1, vectors_in(v, "rate_Bps"));
	} else if (vectors_is(v, "children")) {
		grow((uint32_t)vectors_in(v, "parent"), (uint32_t)vectors_in(v, "count"));
	} else if (vectors_is(v, "terms")) {
		forest.places[vectors_in(v, "node")].terms = (struct pst_share_terms){ vectors_in(v, "guarantee"), vectors_in(v, "ceiling"),
										       (uint32_t)vectors_in(v, "weight"), 0 };
	} else {
		assert_true(vectors_is(v, "users"));
		node = (uint32_t)vectors_in(v, "node");
		settle_users(node);
		forest.places[node].user_count = (uint32_t)vectors_in(v, "entries");
	}
}

static void test_golden_vectors(void **state)
{
	struct vectors v;

	(void)state;
	vectors_open(&v, "vectors/tree.txt");
	while (vectors_next(&v)) {
		if (vectors_is(&v, "take") || vectors_is(&v, "miss")) {
			golden_packet(&v, vectors_is(&v, "miss"));
		} else if (vectors_is(&v, "tend")) {
			assert_true(pst_tree_tend(&forest.plane, (uint32_t)vectors_in(&v, "node"), vectors_in(&v, "now")));
			assert_golden_sums(&v, (uint32_t)vectors_in(&v, "node"));
		} else {
			golden_start(&v);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_i1_i2_random_trees_fill_exactly),
		cmocka_unit_test(test_figure_12),
		cmocka_unit_test(test_table_4_joining_takes_9_packets),
		cmocka_unit_test(test_what_passes_follows),
		cmocka_unit_test(test_i3_who_stops_is_forgotten),
		cmocka_unit_test(test_lengths_are_cut),
		cmocka_unit_test(test_what_is_no_leaf_has_no_share),
		cmocka_unit_test(test_golden_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
