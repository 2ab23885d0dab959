/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* classify.h against trying everything one by one, and its way with tables that say nonsense. */
#include "planes.h"

#define POLICIES 2000U
#define KEYS 100U

/* Classifies keys as one batch; *matches has room for PST_BATCH_MAX. */
static void classify_batch(struct pst_match *matches, const struct pst_plane *plane, const struct pst_key *keys,
			   uint32_t count)
{
	struct pst_packet packets[PST_BATCH_MAX] = { { .length = 0 } };
	struct pst_batch batch;
	uint32_t i;

	memset(&batch, 0xa5, sizeof(batch));
	pst_batch_start(&batch, plane);
	for (i = 0; i < count; i++) {
		packets[i].key = keys[i];
		pst_batch_add(&batch, plane, &packets[i]);
	}
	pst_batch_classify(&batch, plane, packets);
	for (i = 0; i < count; i++)
		matches[i] = *pst_batch_match(&batch, plane, i, &keys[i]);
}

static void assert_same(const struct pst_match *match, const struct ref_match *expected)
{
	assert_int_equal(match->link_index, expected->link);
	assert_int_equal(match->class_index, expected->class_index);
	assert_int_equal(match->has_row, expected->row != PST_NONE);
	assert_false(match->is_busy);
	if (match->has_row) {
		assert_int_equal(match->row.state, expected->row);
		assert_int_equal(match->row.rate, expected->row + 1);
		assert_int_equal(match->row.profile, expected->class_index);
	}
}

/* Whether a row is one inside a class with a match: the policies have no other way to it. */
static bool is_inside(const struct planes *p, uint32_t row)
{
	uint32_t i;

	for (i = 0; i < p->policy.candidate_count; i++) {
		if (p->candidates[i].row == row)
			return p->candidates[i].kind == REF_CLASS_ROW;
	}
	return false;
}

/* I1, I2. What was met is counted, so that the policies cannot become too tame to test anything. */
static void test_i1_i2_as_one_by_one(void **state)
{
	uint32_t seed, i, rows = 0, rules = 0, unmatched = 0, later_links = 0, inside = 0, many_tuples = 0;
	struct pst_match matches[PST_BATCH_MAX];
	struct pst_key keys[KEYS];

	(void)state;
	for (seed = 0; seed < POLICIES; seed++) {
		struct planes *p = planes_new(seed);

		many_tuples += p->links[0].tuple_count > 4;
		for (i = 0; i < KEYS; i++)
			keys[i] = planes_key(p);
		for (i = 0; i < KEYS; i++) {
			struct ref_match expected = ref_classify(&p->policy, &keys[i]);
			uint32_t place = i % PST_BATCH_MAX, left = KEYS - (i - place);
			struct pst_match match;

			memset(&match, 0x5a, sizeof(match));
			pst_classify(&match, &p->plane, &keys[i]);
			assert_same(&match, &expected);
			if (place == 0)
				classify_batch(matches, &p->plane, &keys[i], left < PST_BATCH_MAX ? left : PST_BATCH_MAX);
			assert_same(&matches[place], &expected);
			rows += expected.row != PST_NONE;
			rules += expected.row == PST_NONE && expected.class_index != PST_NONE;
			unmatched += expected.class_index == PST_NONE;
			later_links += expected.link > 0;
			inside += expected.row != PST_NONE && is_inside(p, expected.row);
		}
		free(p);
	}
	assert_true(rows > 10000 && rules > 10000 && unmatched > 10000 && later_links > 10000);
	assert_true(inside > 1000 && many_tuples > 500);
}

/* One link, one class a tuple; tuple i looks at the lowest bits of word 0, all of them the same. */
struct ladder {
	struct pst_plane plane;
	struct pst_link link;
	struct pst_tuple tuples[PST_TUPLES_MAX + 1];
	struct pst_rule rules[PST_TUPLES_MAX + 1];
	struct pst_class classes[PST_TUPLES_MAX + 1];
	struct pst_bucket buckets[PLANES_BUCKETS];
};

static struct ladder *ladder_new(uint32_t count)
{
	struct ladder *ladder = calloc(1, sizeof(*ladder));
	uint32_t i;

	assert_non_null(ladder);
	ladder->plane = (struct pst_plane){
		.links = &ladder->link, .link_count = 1, .tuples = ladder->tuples, .tuple_count = count,
		.rules = ladder->rules, .rule_count = count, .classes = ladder->classes, .class_count = count,
		.tables = { { ladder->buckets, PLANES_BUCKETS }, { NULL, 0 } },
	};
	for (i = 0; i < PST_HASH_SECRET_WORDS; i++)
		ladder->plane.secret.words[i] = UINT64_C(0x9e3779b97f4a7c15) * (i + 1);
	ladder->link = (struct pst_link){ .tuple_count = count, .unmatched_class = PST_NONE };
	for (i = 0; i < count; i++) {
		ladder->tuples[i] = (struct pst_tuple){ .salt = i, .specificity_q8 = count - i, .words = 1 };
		ladder->tuples[i].mask.words[0] = 7;
		ladder->rules[i] = (struct pst_rule){ i, count - i };
		ladder->classes[i].limit_index = PST_NONE;
	}
	return ladder;
}

static void ladder_add(struct ladder *ladder, uint32_t tuple, uint64_t value)
{
	struct pst_table table = { ladder->buckets, PLANES_BUCKETS };
	struct pst_key key = { { value } };
	struct pst_place place = pst_tuple_place(&ladder->plane, &ladder->tuples[tuple], &key);
	struct pst_table_entry entry = { 0, 0, (uint16_t)tuple };
	struct pst_table_insertion insertion;

	assert_int_equal(pst_table_insert(&table, &place, &entry, &insertion), PST_TABLE_DONE);
}

static uint32_t ladder_class(const struct ladder *ladder, uint64_t value)
{
	struct pst_key key = { { value } };
	struct pst_match match, batched[PST_BATCH_MAX];

	pst_classify(&match, &ladder->plane, &key);
	classify_batch(batched, &ladder->plane, &key, 1);
	assert_int_equal(match.class_index, batched[0].class_index);
	return match.class_index;
}

/* The search ends at the first tuple that cannot be more specific, and not before it. */
static void test_early_exit(void **state)
{
	struct ladder *ladder = ladder_new(3);

	(void)state;
	ladder_add(ladder, 0, 5);
	ladder_add(ladder, 2, 5);
	/* A rule of the first tuple that is less specific than its tuple: the second could still be better, the third is. */
	ladder->rules[0].specificity_q8 = 0;
	assert_int_equal(ladder_class(ladder, 5), 2);
	/* The third cannot: it is not asked, although its rule (against the promise of its tuple) is the best of all. */
	ladder->rules[0].specificity_q8 = 1;
	ladder->rules[2].specificity_q8 = 100;
	assert_int_equal(ladder_class(ladder, 5), 0);
	assert_int_equal(ladder_class(ladder, 4), PST_NONE);
	free(ladder);
}

static void test_tuples_are_bounded(void **state)
{
	struct ladder *ladder = ladder_new(PST_TUPLES_MAX + 1);

	(void)state;
	ladder_add(ladder, PST_TUPLES_MAX, 1);
	assert_int_equal(ladder_class(ladder, 1), PST_NONE);
	ladder_add(ladder, PST_TUPLES_MAX - 1, 1);
	assert_int_equal(ladder_class(ladder, 1), PST_TUPLES_MAX - 1);
	free(ladder);
}

/* An open bucket: the search goes on without it and says so. */
static void test_busy(void **state)
{
	uint32_t seed, i, busy = 0;

	(void)state;
	for (seed = 0; seed < 200; seed++) {
		struct planes *p = planes_new(seed);

		for (i = 0; i < PLANES_BUCKETS; i += 8) {
			p->rule_buckets[i].sequence = 7;
			p->limiter_buckets[i].sequence = 7;
		}
		for (i = 0; i < 100; i++) {
			struct pst_key key = planes_key(p);
			struct ref_match expected = ref_classify(&p->policy, &key);
			struct pst_match match, batched[PST_BATCH_MAX];

			pst_classify(&match, &p->plane, &key);
			busy += match.is_busy;
			if (!match.is_busy)
				assert_same(&match, &expected);
			classify_batch(batched, &p->plane, &key, 1);
			assert_int_equal(batched[0].is_busy, match.is_busy);
			assert_int_equal(batched[0].class_index, match.class_index);
		}
		free(p);
	}
	assert_true(busy > 1000 && busy < 19000);
}

static uint32_t wild(uint64_t *rng, uint32_t count)
{
	static const uint32_t extremes[] = { 0, 1, UINT32_MAX, UINT32_MAX - 1, UINT32_MAX / 2, 65535, 65536 };
	uint32_t drawn = pst_rng_next(rng);

	switch (drawn % 4) {
	case 0:
		return extremes[drawn / 4 % 7];
	case 1:
		return drawn;
	default:
		return drawn / 4 % (count + 2);
	}
}

/* Copies to memory of exactly that size, so that the sanitizer sees one byte too far; NULL when there is nothing. */
static void *exact(const void *from, uint32_t count, size_t bytes)
{
	void *copy = count ? malloc(count * bytes) : NULL;

	if (copy)
		memcpy(copy, from, count * bytes);
	return copy;
}

/* Now and then a wild number, else the one that was there: most packets must get as far as the tables. */
static uint32_t perhaps(uint64_t *rng, uint32_t number, uint32_t count)
{
	return pst_rng_next(rng) % 4 ? number : wild(rng, count);
}

static uint32_t fewer(uint64_t *rng, uint32_t count)
{
	return pst_rng_next(rng) % 4 ? count : pst_rng_next(rng) % (count + 1);
}

static void make_wild(struct planes *p, uint64_t *rng)
{
	uint32_t i;

	for (i = 0; i < p->plane.tuple_count; i++)
		p->tuples[i].kind = (uint8_t)perhaps(rng, p->tuples[i].kind, 2);
	for (i = 0; i < p->plane.rule_count; i++)
		p->rules[i].class_index = perhaps(rng, p->rules[i].class_index, p->plane.class_count);
	for (i = 0; i < p->plane.class_count; i++) {
		struct pst_class *class = &p->classes[i];

		class->tuple_first = perhaps(rng, class->tuple_first, p->plane.tuple_count);
		class->tuple_count = perhaps(rng, class->tuple_count, p->plane.tuple_count);
		p->profiles[i].class_index = perhaps(rng, i, p->plane.class_count);
	}
	for (i = 0; i < p->plane.link_count; i++) {
		struct pst_link *link = &p->links[i];

		link->tuple_first = perhaps(rng, link->tuple_first, p->plane.tuple_count);
		link->tuple_count = perhaps(rng, link->tuple_count, p->plane.tuple_count);
		link->unmatched_class = perhaps(rng, link->unmatched_class, p->plane.class_count);
	}
	p->plane.tuple_count = fewer(rng, p->plane.tuple_count);
	p->plane.rule_count = fewer(rng, p->plane.rule_count);
	p->plane.class_count = fewer(rng, p->plane.class_count);
	p->plane.profile_count = fewer(rng, p->plane.profile_count);
	if (pst_rng_next(rng) % 4 == 0)
		p->plane.tables[PST_TUPLE_RULES].bucket_count = wild(rng, 2) % (PLANES_BUCKETS + 1);
	if (pst_rng_next(rng) % 4 == 0)
		p->plane.tables[PST_TUPLE_LIMITS].bucket_count = wild(rng, 2) % (PLANES_BUCKETS + 1);
}

/* "Every index found in a table is checked": nothing outside the arrays is read, whatever stands in them. */
static void test_wild_indices(void **state)
{
	uint64_t rng = pst_rng_seed(9);
	uint32_t round, i;

	(void)state;
	for (round = 0; round < 3000; round++) {
		struct planes *p = planes_new(round);
		struct pst_plane plane;

		make_wild(p, &rng);
		plane = p->plane;
		plane.links = exact(p->links, plane.link_count, sizeof(*plane.links));
		plane.tuples = exact(p->tuples, plane.tuple_count, sizeof(*plane.tuples));
		plane.rules = exact(p->rules, plane.rule_count, sizeof(*plane.rules));
		plane.classes = exact(p->classes, plane.class_count, sizeof(*plane.classes));
		plane.profiles = exact(p->profiles, plane.profile_count, sizeof(*plane.profiles));
		for (i = 0; i < PST_TUPLE_KINDS; i++)
			plane.tables[i].buckets =
				exact(plane.tables[i].buckets, plane.tables[i].bucket_count, sizeof(struct pst_bucket));
		for (i = 0; i < 20; i++) {
			struct pst_key key = planes_key(p);
			struct pst_match match, batched[PST_BATCH_MAX];

			pst_classify(&match, &plane, &key);
			classify_batch(batched, &plane, &key, 1); /* tuples are out of order here: its results may differ */
			assert_true(batched[0].class_index < plane.class_count || batched[0].class_index == PST_NONE);
			if (batched[0].has_row)
				assert_true(batched[0].row.bucket < plane.tables[PST_TUPLE_LIMITS].bucket_count);
			assert_true(match.class_index < plane.class_count || match.class_index == PST_NONE);
			assert_true(match.link_index < plane.link_count);
			if (match.has_row)
				assert_true(match.row.bucket < plane.tables[PST_TUPLE_LIMITS].bucket_count);
		}
		free((void *)plane.links);
		free((void *)plane.tuples);
		free((void *)plane.rules);
		free((void *)plane.classes);
		free((void *)plane.profiles);
		for (i = 0; i < PST_TUPLE_KINDS; i++)
			free(plane.tables[i].buckets);
		free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_i1_i2_as_one_by_one), cmocka_unit_test(test_early_exit),
		cmocka_unit_test(test_tuples_are_bounded),  cmocka_unit_test(test_busy),
		cmocka_unit_test(test_wild_indices),
	};

	return cmocka_run_group_tests_name("classify", tests, NULL, NULL);
}
