/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* tree.h with entries for users, and its tending: what is forgotten, and what is put right. */
#include "vectors.h"
#include "forest.h"

/* Every third leaf of a random tree becomes a class with 1 to 12 users of random demands and weights. */
static void plant_with_users(uint64_t seed)
{
	uint32_t node, users, i;

	plant_at_random(seed);
	for (node = 1; node < forest.plane.place_count && forest.user_class_count < USER_CLASSES_MAX; node++) {
		double rate_Bps = forest.sources[node].rate_Bps;

		if (forest.child_counts[node] || below(&forest.rng, 3))
			continue;
		forest.sources[node].rate_Bps = 0;
		settle_users(node);
		users = 1 + below(&forest.rng, 12);
		for (i = 0; i < users; i++)
			send_at(add_user(node, 1 + below(&forest.rng, 4)), rate_Bps / users * exp((below(&forest.rng, 2000) / 1000.0 - 1) * 1.5));
	}
}

/* I1, I2: an entry is a leaf of its user's weight. */
static void test_i1_i2_users_fill_exactly(void **state)
{
	uint32_t users = 0, i;
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 20; seed++) {
		plant_with_users(seed);
		users += forest.user_count;
		measure(0.5e9, 1.5e9);
		for (i = 0; i < forest.user_class_count; i++)
			assert_int_equal(forest.nodes[NODES_MAX + i * (ENTRIES + 1) + ENTRIES].part.state, PST_SHARE_IDLE); /* no crowd */
	}
	assert_true(users > 300);
}

static struct pst_tree_walk walk_of(uint32_t source, uint64_t now_ns)
{
	const struct user *user = &forest.users[source - NODES_MAX];
	struct pst_tree_walk walk = { .now_ns = now_ns, .place = user->place, .user = user->user, .weight = user->weight };

	return walk;
}

/* A link with two classes that have users, and a class that has none. */
static void plant_classes(uint32_t users)
{
	uint32_t node, i;

	plant(3, 12500000);
	grow(0, 3);
	for (node = 1; node <= 2; node++) {
		settle_users(node);
		for (i = 0; i < users; i++)
			send_at(add_user(node, 1 + below(&forest.rng, 4)), 2e6);
	}
	send_at(3, 6e6);
}

/* Two CPUs find no entry for a user, and one after the other is let in: the second one finds what the first one made. */
static void test_nobody_is_admitted_twice(void **state)
{
	struct pst_tree_walk walk;
	uint32_t source, entry;

	(void)state;
	plant_classes(12);
	for (source = NODES_MAX; source < NODES_MAX + forest.user_count; source++) {
		walk = walk_of(source, START_NS);
		assert_int_equal(pst_tree_find(&forest.plane, &walk), PST_NONE);
		pst_tree_share(&forest.plane, &walk, FRAME_BYTES);
		entry = walk.leaf;
		assert_int_equal(pst_tree_admit(&forest.plane, &walk), entry);
		assert_int_equal(pst_tree_find(&forest.plane, &walk), entry);
		assert_int_equal(forest.nodes[entry].weight, walk.weight);
	}
}

/* Whoever comes gets the entry of whoever is gone, with other weights: sums are right after each packet, and at the end nothing is left of those. */
static void test_entries_change_hands(void **state)
{
	uint64_t rng = pst_rng_seed(1), now_ns = START_NS;
	uint32_t i, crowded = 0;

	(void)state;
	plant_classes(1);
	for (i = 0; i < 30000; i++) {
		struct pst_tree_walk walk = { .place = 1 + below(&rng, 2), .user = (i / 1000 * 10 + below(&rng, 20) + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1,
					      .weight = 1 + below(&rng, 1000) };

		now_ns += below(&rng, 100000);
		walk.now_ns = now_ns;
		assert_true(pst_tree_share(&forest.plane, &walk, 64 + below(&rng, 1500)) > 0);
		crowded += walk.leaf == pst_tree_crowd(&forest.places[walk.place]);
		assert_sums();
	}
	assert_in_range(crowded, 0, 3000); /* some 40 users at a time have 64 entries */
}

/* I3's other half: where nobody sends, nobody looks. */
static void test_tend_forgets_who_is_gone(void **state)
{
	uint32_t node, i;

	(void)state;
	plant_classes(12);
	run_until(100e6);
	assert_true(forest.nodes[1].children.weight + forest.nodes[1].children.weight_taken > 12);
	for (node = 0; node <= 2; node++)
		assert_true(pst_tree_tend(&forest.plane, node, START_NS + 100 * MS_NS)); /* everybody is there still */
	assert_sums();
	assert_true(forest.nodes[1].children.weight + forest.nodes[1].children.weight_taken > 12);
	for (node = 0; node <= 2; node++)
		assert_true(pst_tree_tend(&forest.plane, node, START_NS + 3000 * MS_NS));
	assert_sums();
	for (node = 0; node <= 2; node++) {
		const struct pst_share_sums *sums = &forest.nodes[node].children;

		assert_int_equal(sums->taken_Bps | sums->held_Bps | sums->weight | sums->weight_taken, 0);
	}
	for (i = 1; i < forest.plane.node_count; i++)
		assert_int_equal(forest.nodes[i].part.state, PST_SHARE_IDLE);
}

/* Somebody was killed in the middle: sums and parts are anything. Tending puts them right, and shares are as they should be again. */
static void test_tend_puts_sums_right(void **state)
{
	uint32_t node, i;

	(void)state;
	plant_classes(5);
	run_until(200e6);
	for (node = 0; node <= 2; node++) {
		uint64_t *words = &forest.nodes[node].children.taken_Bps;

		for (i = 0; i < sizeof(struct pst_share_sums) / sizeof(*words); i++)
			words[i] += draw(&forest.rng) >> below(&forest.rng, 64);
	}
	memset(&forest.nodes[2].part, 0, sizeof(forest.nodes[2].part)); /* it had just left, and not joined yet */
	for (node = 0; node <= 2; node++)
		assert_true(pst_tree_tend(&forest.plane, node, START_NS + 200 * MS_NS));
	assert_sums();
	measure(0.5e9, 1.5e9);
}

/* A packet's CPU is at work, or was killed at work: then its lock ends as it does for packets. */
static void test_tend_waits_for_nobody(void **state)
{
	uint32_t stamp = (uint32_t)(START_NS >> PST_TREE_LOCK_SHIFT) | 1;
	struct pst_share_sums before;

	(void)state;
	plant_classes(5);
	run_until(100e6);
	before = forest.nodes[1].children;
	forest.nodes[0].lock = stamp;
	assert_false(pst_tree_tend(&forest.plane, 1, START_NS + 3000 * MS_NS));
	assert_memory_equal(&forest.nodes[1].children, &before, sizeof(before));
	assert_int_equal(forest.nodes[0].lock, stamp);
	assert_true(pst_tree_tend(&forest.plane, 1, START_NS + 5000 * MS_NS));
	assert_int_equal(forest.nodes[0].lock, 0);
	assert_int_equal(forest.nodes[1].children.weight, 0);
}

static void test_tend_of_what_is_not_there(void **state)
{
	(void)state;
	plant_classes(5);
	run_until(50e6);
	assert_true(pst_tree_tend(&forest.plane, PST_NONE, START_NS + 50 * MS_NS));
	assert_true(pst_tree_tend(&forest.plane, forest.plane.place_count, START_NS + 50 * MS_NS));
	assert_true(pst_tree_tend(&forest.plane, 3, START_NS + 50 * MS_NS)); /* a leaf has no children */
	assert_sums();
	forest.places[1].link = PST_NONE;
	assert_true(pst_tree_tend(&forest.plane, 1, START_NS + 50 * MS_NS));
	forest.places[1].link = 0;
	forest.places[1].next_sibling = 77; /* beyond: what comes before it counts */
	assert_true(pst_tree_tend(&forest.plane, 0, START_NS + 50 * MS_NS));
	assert_true(forest.nodes[0].children.weight + forest.nodes[0].children.weight_taken <= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_i1_i2_users_fill_exactly), cmocka_unit_test(test_nobody_is_admitted_twice),
		cmocka_unit_test(test_entries_change_hands),     cmocka_unit_test(test_tend_forgets_who_is_gone),
		cmocka_unit_test(test_tend_puts_sums_right),     cmocka_unit_test(test_tend_waits_for_nobody),
		cmocka_unit_test(test_tend_of_what_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
