/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* hsdba.h: Algorithm 1 as published: what it is, what it reaches, and what it does not (errata H3, H4, H7 and H8). */
#include "vectors.h"
#include "forest.h"

#include <penstock/hsdba.h>

#define TAU_SHIFT 21 /* 2.1 ms: H3 has about 2 ms */

static struct pst_hsdba_node nodes[NODES_MAX];
static struct pst_hsdba hsdba;

static void start(void)
{
	memset(nodes, 0, sizeof(nodes));
	hsdba = (struct pst_hsdba){ nodes, forest.places, forest.places[0].terms.ceiling_Bps, forest.plane.place_count, TAU_SHIFT };
}

static void run_published(double end_ns, bool one_number)
{
	uint32_t leaf, level, random_u32[PST_TREE_DEPTH_MAX];

	for (leaf = next_leaf(); leaf && forest.sources[leaf].next_ns < end_ns; leaf = next_leaf()) {
		uint64_t now_ns = START_NS + (uint64_t)forest.sources[leaf].next_ns;

		random_u32[0] = pst_rng_next(&forest.rng);
		for (level = 1; level < PST_TREE_DEPTH_MAX; level++)
			random_u32[level] = one_number ? random_u32[0] : pst_rng_next(&forest.rng);
		if (!pst_hsdba_take(&hsdba, leaf, now_ns, FRAME_BYTES, random_u32))
			forest.sources[leaf].passed_bytes += FRAME_BYTES;
		send_later(leaf, FRAME_BYTES);
	}
}

static void assert_weights(void)
{
	uint64_t weights[NODES_MAX] = { 0 };
	uint32_t node;

	for (node = 1; node < forest.plane.place_count; node++)
		weights[forest.places[node].parent] +=
			nodes[node].state == PST_SHARE_UNSATISFIED ? forest.places[node].terms.weight : 0;
	for (node = 0; node < forest.plane.place_count; node++)
		assert_int_equal(nodes[node].unsatisfied_weight, weights[node]);
}

static void test_i2_equation_3(void **state)
{
	uint64_t rng = pst_rng_seed(1), now_ns = START_NS;
	struct pst_hsdba_meter meter = { now_ns, 0 };
	long double rate_Bps = 0;
	int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		uint64_t gap_ns = draw(&rng) >> (38 + below(&rng, 20));
		uint32_t bytes = draw_bytes(&rng);

		now_ns += gap_ns;
		rate_Bps = rate_Bps * expl(-(long double)gap_ns / (1 << TAU_SHIFT)) + bytes * 1e9L / (1 << TAU_SHIFT);
		assert_true(fabsl((long double)pst_hsdba_measure(&meter, TAU_SHIFT, now_ns, bytes) - rate_Bps) <=
			    rate_Bps / 1000 + 1);
	}
}

/* One level, where the paper's Figure 6b has it: weights 1, 1, 2, 1, 1, 2 at 1 Gbit/s, 300 Mbit/s each. */
static void test_figure_6b_one_level_is_fair(void **state)
{
	uint32_t leaf;

	(void)state;
	plant(6, 125000000);
	grow(0, 6);
	for (leaf = 1; leaf <= 6; leaf++)
		send_at(leaf, 37.5e6);
	forest.places[3].terms.weight = forest.places[6].terms.weight = 2;
	start();
	run_published(0.5e9, false);
	forget_passed();
	run_published(1.5e9, false);
	assert_weights();
	for (leaf = 1; leaf <= 6; leaf++) {
		double fair = 125e6 / 8 * forest.places[leaf].terms.weight;

		assert_true(fabs((double)forest.sources[leaf].passed_bytes - fair) < 0.05 * fair);
		
	}
}

/* H7: what can be used and is, in the mean of random trees: with a random number for each level, and with one. */
static double used_of_random_trees(bool one_number)
{
	double used = 0;
	uint64_t seed;

	for (seed = 1; seed <= 20; seed++) {
		plant_at_random(seed);
		start();
		run_published(0.3e9, one_number);
		forget_passed();
		run_published(0.8e9, one_number);
		assert_weights();
		used += used_share(0.5e9) / 20;
	}
	return used;
}

static void test_h7_dropping_at_every_level_wastes(void **state)
{
	double each = used_of_random_trees(false), one = used_of_random_trees(true);

	(void)state;
	assert_true(each > 0.5 && each < 0.7); /* 61 % */
	assert_true(one > 0.7 && one < 0.9);   /* 79 % */
}

static void test_i1_who_is_taken_out_weighs_nothing(void **state)
{
	uint32_t leaf;

	(void)state;
	plant(1, 12500000);
	grow(0, 3);
	for (leaf = 1; leaf <= 3; leaf++)
		send_at(leaf, 12.5e6);
	start();
	run_published(0.1e9, false);
	for (leaf = 1; leaf <= 3; leaf++) {
		pst_hsdba_leave(&nodes[leaf], &nodes[0], forest.places[leaf].terms.weight);
		assert_weights();
	}
	assert_int_equal(nodes[0].unsatisfied_weight, 0);
	run_published(0.2e9, false);
	assert_weights();
}

static void golden_packet(struct vectors *v)
{
	const char *numbers = vectors_in_text(v, "random");
	uint32_t node = (uint32_t)vectors_in(v, "node"), random_u32[PST_TREE_DEPTH_MAX], level;
	const struct pst_hsdba_node *parent = &nodes[forest.places[node].parent];

	for (level = 0; level < PST_TREE_DEPTH_MAX; level++)
		random_u32[level] = (uint32_t)vectors_number(v, numbers, level);
	assert_int_equal(pst_hsdba_take(&hsdba, node, vectors_in(v, "now"), (uint32_t)vectors_in(v, "bytes"), random_u32), vectors_out(v, "drops"));
	assert_int_equal(nodes[node].demand.rate_Bps_q8, vectors_out(v, "rate_q8"));
	assert_int_equal(parent->alpha_Bps, vectors_out(v, "alpha"));
	assert_int_equal(parent->satisfied.rate_Bps_q8, vectors_out(v, "satisfied_q8"));
	assert_int_equal(parent->unsatisfied_weight, vectors_out(v, "unsatisfied"));
}

static void test_golden_vectors(void **state)
{
	struct vectors v;

	(void)state;
	vectors_open(&v, "vectors/hsdba.txt");
	while (vectors_next(&v)) {
		if (vectors_is(&v, "link")) {
			plant(1, vectors_in(&v, "rate_Bps"));
			start();
			hsdba.shift = (uint32_t)vectors_in(&v, "shift");
		} else if (vectors_is(&v, "children")) {
			grow((uint32_t)vectors_in(&v, "parent"), (uint32_t)vectors_in(&v, "count"));
			hsdba.count = forest.plane.place_count;
		} else if (vectors_is(&v, "terms")) {
			forest.places[vectors_in(&v, "node")].terms =
				(struct pst_share_terms){ 0, vectors_in(&v, "ceiling"), (uint32_t)vectors_in(&v, "weight"), 0 };
		} else {
			assert_true(vectors_is(&v, "take"));
			golden_packet(&v);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_i2_equation_3),
		cmocka_unit_test(test_figure_6b_one_level_is_fair),
		cmocka_unit_test(test_h7_dropping_at_every_level_wastes),
		cmocka_unit_test(test_i1_who_is_taken_out_weighs_nothing),
		cmocka_unit_test(test_golden_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
