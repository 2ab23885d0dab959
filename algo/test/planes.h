/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * planes.h: random policies, as a plane for classify.h and as a list of candidates for ref_classify.h.
 *
 * Words of keys come from small alphabets, so that masks and values meet often. Every rule and every tuple of rows has
 * a specificity of its own. Row r lies in the limiter table with state r, rate r + 1 and the profile that its class has
 * the number of: a test that wants limits writes them over these.
 */
#ifndef PENSTOCK_TEST_PLANES_H
#define PENSTOCK_TEST_PLANES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <penstock/classify.h>
#include <penstock/plane.h>
#include <penstock/rng.h>

#include "ref_classify.h"

#define PLANES_LINKS 3U
#define PLANES_CLASSES 8U
#define PLANES_LINK_TUPLES 9U
#define PLANES_CLASS_TUPLES 3U
#define PLANES_TUPLES (PLANES_LINKS * PLANES_LINK_TUPLES + PLANES_CLASSES * PLANES_CLASS_TUPLES)
#define PLANES_TUPLE_ENTRIES 6U
#define PLANES_ENTRIES (PLANES_TUPLES * PLANES_TUPLE_ENTRIES)
#define PLANES_BUCKETS 512U
#define PLANES_LETTERS 3U

struct planes_draft {
	struct pst_tuple tuple;
	struct pst_key values[PLANES_TUPLE_ENTRIES];
	uint32_t specificity_q8[PLANES_TUPLE_ENTRIES];
	uint32_t classes[PLANES_TUPLE_ENTRIES];
	uint32_t count;
};

struct planes {
	struct pst_plane plane;
	struct pst_link links[PLANES_LINKS];
	struct pst_tuple tuples[PLANES_TUPLES];
	struct pst_rule rules[PLANES_ENTRIES];
	struct pst_class classes[PLANES_CLASSES];
	struct pst_profile profiles[PLANES_CLASSES];
	struct pst_bucket rule_buckets[PLANES_BUCKETS];
	struct pst_bucket limiter_buckets[PLANES_BUCKETS];
	struct ref_policy policy;
	struct ref_candidate candidates[PLANES_ENTRIES];
	uint32_t unmatched_classes[PLANES_LINKS];
	uint32_t row_count;
	uint64_t alphabet[PST_KEY_WORDS][PLANES_LETTERS];
	uint64_t rng;
	uint32_t drawn; /* makes specificities differ */
};

static inline uint32_t planes_draw(struct planes *p, uint32_t bound)
{
	return pst_scale_u32(pst_rng_next(&p->rng), bound);
}

static inline uint64_t planes_word(struct planes *p)
{
	return (uint64_t)pst_rng_next(&p->rng) << 32 | pst_rng_next(&p->rng);
}

static inline struct pst_key planes_key(struct planes *p)
{
	struct pst_key key;
	uint32_t i;

	for (i = 0; i < PST_KEY_WORDS; i++)
		key.words[i] = p->alphabet[i][planes_draw(p, PLANES_LETTERS)];
	return key;
}

static inline uint32_t planes_specificity_q8(struct planes *p)
{
	return planes_draw(p, 4) << 16 | ++p->drawn;
}

static inline void planes_mask(struct planes *p, struct pst_tuple *tuple)
{
	uint32_t i;

	tuple->salt = planes_word(p);
	for (i = 0; i < PST_KEY_WORDS; i++) {
		const uint64_t masks[] = { 0, 0, 0, 0, 0, UINT64_MAX, UINT64_MAX << 32, planes_word(p) };

		tuple->mask.words[i] = masks[planes_draw(p, 8)];
		if (tuple->mask.words[i])
			tuple->words |= (uint8_t)(1U << i);
	}
}

/* A tuple of a link (any kind, any of its classes), or of the rows inside one class. */
static inline void planes_tuple(struct planes *p, struct planes_draft *draft, uint32_t link, uint32_t inside)
{
	bool is_inside = inside != PST_NONE;
	uint32_t i, k;

	memset(draft, 0, sizeof(*draft));
	planes_mask(p, &draft->tuple);
	draft->tuple.kind = is_inside || planes_draw(p, 2) ? PST_TUPLE_LIMITS : PST_TUPLE_RULES;
	draft->tuple.specificity_q8 = planes_specificity_q8(p);
	draft->count = planes_draw(p, PLANES_TUPLE_ENTRIES + 1);
	for (i = 0; i < draft->count; i++) {
		uint32_t class_index = inside;

		draft->values[i] = planes_key(p);
		for (k = 0; k < PST_KEY_WORDS; k++)
			draft->values[i].words[k] &= draft->tuple.mask.words[k];
		while (!is_inside && (class_index == PST_NONE || p->classes[class_index].link_index != link))
			class_index = planes_draw(p, p->plane.class_count);
		draft->classes[i] = class_index;
		draft->specificity_q8[i] = draft->tuple.specificity_q8;
		if (draft->tuple.kind == PST_TUPLE_RULES)
			draft->specificity_q8[i] = planes_specificity_q8(p);
	}
	for (i = 0; i < draft->count; i++) {
		if (draft->specificity_q8[i] > draft->tuple.specificity_q8)
			draft->tuple.specificity_q8 = draft->specificity_q8[i];
	}
}

static inline int planes_compare(const void *a, const void *b)
{
	const struct planes_draft *left = a, *right = b;

	return left->tuple.specificity_q8 > right->tuple.specificity_q8 ? -1 : 1;
}

static inline void planes_insert(struct planes *p, const struct planes_draft *draft, uint32_t i, uint32_t link,
				 bool is_inside)
{
	bool is_row = draft->tuple.kind == PST_TUPLE_LIMITS;
	struct pst_table table = p->plane.tables[draft->tuple.kind];
	struct pst_place place = pst_tuple_place(&p->plane, &draft->tuple, &draft->values[i]);
	struct pst_table_entry entry = { 0, 0, (uint16_t)p->plane.rule_count };
	struct pst_table_insertion insertion;
	enum pst_table_result result;

	if (is_row)
		entry = (struct pst_table_entry){ p->row_count, p->row_count + 1, (uint16_t)draft->classes[i] };
	result = pst_table_insert(&table, &place, &entry, &insertion);
	assert_int_not_equal(result, PST_TABLE_FULL);
	if (result == PST_TABLE_TAKEN) /* the draft has the same value twice */
		return;
	p->candidates[p->policy.candidate_count++] = (struct ref_candidate){
		draft->tuple.mask, draft->values[i],
		is_inside ? REF_CLASS_ROW : is_row ? REF_LINK_ROW : REF_RULE,
		link, draft->classes[i], draft->specificity_q8[i], is_row ? p->row_count : PST_NONE,
	};
	if (is_row)
		p->row_count++;
	else
		p->rules[p->plane.rule_count++] =
			(struct pst_rule){ draft->classes[i], draft->specificity_q8[i] };
}

/* Up to `most` tuples of a link, or of a class's rows, in order. Returns how many. */
static inline uint32_t planes_tuples(struct planes *p, uint32_t most, uint32_t link, uint32_t inside)
{
	struct planes_draft drafts[PLANES_LINK_TUPLES];
	uint32_t count = planes_draw(p, most + 1), i, k;

	for (i = 0; i < count; i++)
		planes_tuple(p, &drafts[i], link, inside);
	qsort(drafts, count, sizeof(drafts[0]), planes_compare);
	for (i = 0; i < count; i++) {
		p->tuples[p->plane.tuple_count++] = drafts[i].tuple;
		for (k = 0; k < drafts[i].count; k++)
			planes_insert(p, &drafts[i], k, link, inside != PST_NONE);
	}
	return count;
}

static inline void planes_connect(struct planes *p)
{
	p->plane.links = p->links;
	p->plane.tuples = p->tuples;
	p->plane.rules = p->rules;
	p->plane.classes = p->classes;
	p->plane.profiles = p->profiles;
	p->plane.tables[PST_TUPLE_RULES].buckets = p->rule_buckets;
	p->plane.tables[PST_TUPLE_LIMITS].buckets = p->limiter_buckets;
	p->plane.tables[PST_TUPLE_RULES].bucket_count = PLANES_BUCKETS;
	p->plane.tables[PST_TUPLE_LIMITS].bucket_count = PLANES_BUCKETS;
	p->policy.candidates = p->candidates;
	p->policy.unmatched_classes = p->unmatched_classes;
}

/* A random policy. Free it with free(). */
static inline struct planes *planes_new(uint64_t seed)
{
	struct planes *p = calloc(1, sizeof(*p));
	uint32_t i, k;

	assert_non_null(p);
	p->rng = pst_rng_seed(seed);
	planes_connect(p);
	for (i = 0; i < PST_HASH_SECRET_WORDS; i++)
		p->plane.secret.words[i] = planes_word(p);
	for (i = 0; i < PST_KEY_WORDS; i++) {
		for (k = 0; k < PLANES_LETTERS; k++)
			p->alphabet[i][k] = planes_word(p);
	}
	p->plane.link_count = 1 + planes_draw(p, PLANES_LINKS);
	p->plane.class_count = PLANES_CLASSES;
	p->plane.profile_count = PLANES_CLASSES;
	p->policy.link_count = p->plane.link_count;
	for (i = 0; i < PLANES_CLASSES; i++) {
		p->classes[i] = (struct pst_class){ PST_NONE, 0, 0, (uint16_t)(i % p->plane.link_count), 0 };
		p->profiles[i].class_index = i;
	}
	for (i = 0; i < p->plane.link_count; i++) {
		p->links[i].tuple_first = p->plane.tuple_count;
		p->links[i].tuple_count = planes_tuples(p, PLANES_LINK_TUPLES, i, PST_NONE);
		p->unmatched_classes[i] = planes_draw(p, 2) ? i : PST_NONE;
		p->links[i].unmatched_class = p->unmatched_classes[i];
	}
	for (i = 0; i < PLANES_CLASSES; i += 2) {
		p->classes[i].tuple_first = p->plane.tuple_count;
		p->classes[i].tuple_count = planes_tuples(p, PLANES_CLASS_TUPLES, p->classes[i].link_index, i);
	}
	return p;
}

#endif /* PENSTOCK_TEST_PLANES_H */
