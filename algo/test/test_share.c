/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* share.h: I1 to I4, against exact water-filling. */
#include "vectors.h"
#include "schedule.h"

#include <math.h>
#include <penstock/share.h>

#include "ref_share.h"

#define CHILDREN_MAX 200

struct family {
	int count;
	uint64_t rate_Bps;
	struct pst_share_sums sums;
	struct pst_share_terms terms[CHILDREN_MAX];
	struct pst_share_part parts[CHILDREN_MAX];
	uint64_t demand_Bps[CHILDREN_MAX];
	uint64_t share_Bps[CHILDREN_MAX];
};

static struct family family;

static uint64_t step(int child)
{
	family.share_Bps[child] = pst_share_step(&family.terms[child], &family.sums, &family.parts[child], family.rate_Bps,
						 family.demand_Bps[child]);
	return family.share_Bps[child];
}

static void assert_sums(void)
{
	struct pst_share_sums sums = { 0, 0, 0, 0 };
	int i;

	for (i = 0; i < family.count; i++) {
		const struct pst_share_part *part = &family.parts[i];

		sums.taken_Bps += part->taken_Bps;
		sums.held_Bps += part->state == PST_SHARE_HELD ? part->taken_Bps : 0;
		sums.weight += part->state == PST_SHARE_UNSATISFIED ? part->weight : 0;
		sums.weight_taken += part->state == PST_SHARE_SATISFIED ? part->weight : 0;
	}
	assert_memory_equal(&family.sums, &sums, sizeof(sums));
}

/* Guarantees that add up to no more than there is. */
static void draw_family(uint64_t *rng)
{
	uint64_t left_Bps, fair_Bps;
	int i;

	memset(&family, 0, sizeof(family));
	family.count = 1 + (int)below(rng, below(rng, 2) ? 8 : CHILDREN_MAX);
	family.rate_Bps = draw_rate_Bps(rng);
	left_Bps = family.rate_Bps;
	fair_Bps = family.rate_Bps / (uint64_t)family.count + 1;
	for (i = 0; i < family.count; i++) {
		struct pst_share_terms *terms = &family.terms[i];

		terms->weight = 1 + below(rng, below(rng, 2) ? 4 : 1000);
		terms->ceiling_Bps = below(rng, 3) ? UINT64_C(1) << 37 : fair_Bps * (1 + below(rng, 40)) / 10 + 1;
		terms->guarantee_Bps = below(rng, 3) ? 0 : fair_Bps * below(rng, 30) / 10;
		if (terms->guarantee_Bps > terms->ceiling_Bps)
			terms->guarantee_Bps = terms->ceiling_Bps;
		if (terms->guarantee_Bps > left_Bps)
			terms->guarantee_Bps = 0;
		left_Bps -= terms->guarantee_Bps;
		family.demand_Bps[i] = below(rng, 8) ? fair_Bps * (1 + below(rng, 50)) / 10 : 0;
	}
}

/* What each child gets is its demand, as far as its share lets it. */
static void assert_as_filled(void)
{
	struct ref_share children[CHILDREN_MAX];
	double tolerance = (double)family.rate_Bps * 1e-6 + 2 * family.count;
	int i;

	for (i = 0; i < family.count; i++) {
		children[i].weight = family.terms[i].weight;
		children[i].guarantee = (double)family.terms[i].guarantee_Bps;
		children[i].ceiling = (double)family.terms[i].ceiling_Bps;
		children[i].demand = (double)family.demand_Bps[i];
	}
	ref_share_fill(children, family.count, (double)family.rate_Bps);
	for (i = 0; i < family.count; i++) {
		double got = fmin((double)family.demand_Bps[i], (double)family.share_Bps[i]);

		if (fabs(got - children[i].share) > tolerance)
			fail_msg("child %d of %d gets %.0f, should %.0f", i, family.count, got, children[i].share);
	}
}

/* Rounds in which each child steps once, in any order: as many as it takes until nothing changes. */
static int settle(uint64_t *rng)
{
	int round, i, changed = 1;

	for (round = 0; changed && round < 1000; round++) {
		int first = (int)below(rng, (uint32_t)family.count);

		changed = 0;
		for (i = 0; i < family.count; i++) {
			int child = (first + i) % family.count;
			struct pst_share_part part = family.parts[child];
			uint64_t share_Bps = family.share_Bps[child];

			changed |= step(child) != share_Bps;
			changed |= memcmp(&part, &family.parts[child], sizeof(part)) != 0;
			assert_sums();
		}
	}
	return round;
}

static void test_i1_i2_still_rates_reach_exact_shares(void **state)
{
	uint64_t rng = pst_rng_seed(5);
	int i, change, most = 0;

	(void)state;
	for (i = 0; i < SCHEDULES / 4; i++) {
		draw_family(&rng);
		for (change = 0; change < 4; change++) {
			int rounds = settle(&rng), child = (int)below(&rng, (uint32_t)family.count);

			most = rounds > most ? rounds : most;
			assert_as_filled();
			/* One asks for something else, one is forgotten until it comes again. */
			family.demand_Bps[child] = family.rate_Bps * below(&rng, 100) / 50;
			child = (int)below(&rng, (uint32_t)family.count);
			pst_share_leave(&family.sums, &family.parts[child]);
			assert_sums();
		}
	}
	assert_in_range(most, 3, 100);
}

/* Section 3.1's example: 50 among rates of 10, 20 and 30. */
static void test_the_example_of_section_4_4(void **state)
{
	uint64_t rng = pst_rng_seed(1);
	int i;

	(void)state;
	memset(&family, 0, sizeof(family));
	family.count = 3;
	family.rate_Bps = 50;
	for (i = 0; i < 3; i++) {
		family.terms[i].ceiling_Bps = UINT64_C(1) << 37;
		family.demand_Bps[i] = 10 * (uint64_t)(i + 1);
	}
	settle(&rng);
	assert_int_equal(family.share_Bps[2], 20);
	assert_int_equal(family.parts[0].taken_Bps, 10);
	assert_int_equal(family.parts[1].taken_Bps, 20);
	assert_int_equal(family.parts[2].state, PST_SHARE_UNSATISFIED);
}

static void test_i4_who_is_forgotten_is_a_child_again_at_once(void **state)
{
	(void)state;
	memset(&family, 0, sizeof(family));
	family.count = 2;
	family.rate_Bps = 1000000;
	family.terms[0].ceiling_Bps = family.terms[1].ceiling_Bps = UINT64_C(1) << 37;
	family.terms[1].weight = 3;
	family.demand_Bps[0] = family.demand_Bps[1] = 2000000;
	assert_int_equal(step(0), 1000000);
	assert_int_equal(step(1), 750000);
	assert_int_equal(step(0), 250000);
	pst_share_leave(&family.sums, &family.parts[1]);
	assert_int_equal(step(0), 1000000);
	assert_int_equal(step(1), 750000);
	assert_sums();
}

/* Somebody was killed between taking a part out and forgetting it: the part is taken out twice. */
static void test_wrong_sums_divide_by_no_zero(void **state)
{
	(void)state;
	memset(&family, 0, sizeof(family));
	family.count = 1;
	family.rate_Bps = 1000000;
	family.terms[0] = (struct pst_share_terms){ 0, UINT64_C(1) << 37, 3, 0 };
	family.demand_Bps[0] = 2000000;
	step(0);
	family.sums.weight = 0;
	step(0);
	assert_int_equal(family.share_Bps[0], 0);
}

static void assert_golden_sums(struct vectors *v)
{
	const char *sums = vectors_out_text(v, "sums");

	assert_int_equal(family.sums.taken_Bps, vectors_number(v, sums, 0));
	assert_int_equal(family.sums.held_Bps, vectors_number(v, sums, 1));
	assert_int_equal(family.sums.weight, vectors_number(v, sums, 2));
	assert_int_equal(family.sums.weight_taken, vectors_number(v, sums, 3));
}

static void golden_step(struct vectors *v)
{
	static const char *const states[] = { "idle", "satisfied", "unsatisfied", "held" };
	uint32_t child = (uint32_t)vectors_in(v, "child");
	struct pst_share_part *part = &family.parts[child];

	assert_int_equal(pst_share_step(&family.terms[child], &family.sums, part, vectors_in(v, "rate_Bps"), vectors_in(v, "demand_Bps")),
			 vectors_out(v, "share"));
	assert_int_equal(part->state, vectors_name(v, vectors_out_text(v, "state"), states, 4));
	assert_int_equal(part->taken_Bps, vectors_out(v, "taken"));
	assert_golden_sums(v);
}

static void test_golden_vectors(void **state)
{
	struct vectors v;

	(void)state;
	vectors_open(&v, "vectors/share.txt");
	while (vectors_next(&v)) {
		if (vectors_is(&v, "parent")) {
			memset(&family, 0, sizeof(family));
		} else if (vectors_is(&v, "child")) {
			family.terms[vectors_in(&v, "index")] = (struct pst_share_terms){ vectors_in(&v, "guarantee"), vectors_in(&v, "ceiling"),
											  (uint32_t)vectors_in(&v, "weight"), 0 };
		} else if (vectors_is(&v, "leave")) {
			pst_share_leave(&family.sums, &family.parts[vectors_in(&v, "child")]);
			assert_golden_sums(&v);
		} else {
			assert_true(vectors_is(&v, "step"));
			golden_step(&v);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_i1_i2_still_rates_reach_exact_shares),
		cmocka_unit_test(test_the_example_of_section_4_4),
		cmocka_unit_test(test_i4_who_is_forgotten_is_a_child_again_at_once),
		cmocka_unit_test(test_wrong_sums_divide_by_no_zero),
		cmocka_unit_test(test_golden_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
