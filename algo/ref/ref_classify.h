/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * ref_classify.h: classification without tuples or tables: every match item and every row is tried, one by one.
 */
#ifndef PENSTOCK_REF_CLASSIFY_H
#define PENSTOCK_REF_CLASSIFY_H

#include <penstock/wire.h>

/* A match item of a class, a row of a limits file that stands for itself, or a row of a class with a match as well. */
enum ref_kind {
	REF_RULE,
	REF_LINK_ROW,
	REF_CLASS_ROW,
};

struct ref_candidate {
	struct pst_key mask;
	struct pst_key value;
	enum ref_kind kind;
	uint32_t link;
	uint32_t class_index;
	uint32_t specificity_q8;
	uint32_t row; /* what the caller calls it; PST_NONE for a rule */
};

struct ref_policy {
	const struct ref_candidate *candidates;
	uint32_t candidate_count;
	const uint32_t *unmatched_classes; /* of each link, or PST_NONE */
	uint32_t link_count;
};

struct ref_match {
	uint32_t link;
	uint32_t class_index; /* or PST_NONE */
	uint32_t row;         /* or PST_NONE */
};

struct ref_match ref_classify(const struct ref_policy *policy, const struct pst_key *key);

#endif /* PENSTOCK_REF_CLASSIFY_H */
