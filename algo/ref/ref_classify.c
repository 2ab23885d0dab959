/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_classify.h"

#include <stdbool.h>
#include <stddef.h>

static bool ref_takes(const struct ref_candidate *candidate, const struct pst_key *key)
{
	int i;

	for (i = 0; i < PST_KEY_WORDS; i++) {
		if ((key->words[i] ^ candidate->value.words[i]) & candidate->mask.words[i])
			return false;
	}
	return true;
}

/* The most specific of a link's rules and rows, or of the rows inside a class. */
static const struct ref_candidate *ref_best(const struct ref_policy *policy, const struct pst_key *key,
					    bool is_inside, uint32_t owner)
{
	const struct ref_candidate *best = NULL;
	uint32_t i;

	for (i = 0; i < policy->candidate_count; i++) {
		const struct ref_candidate *candidate = &policy->candidates[i];

		if ((candidate->kind == REF_CLASS_ROW) != is_inside)
			continue;
		if ((is_inside ? candidate->class_index : candidate->link) != owner)
			continue;
		if (ref_takes(candidate, key) && (!best || candidate->specificity_q8 > best->specificity_q8))
			best = candidate;
	}
	return best;
}

struct ref_match ref_classify(const struct ref_policy *policy, const struct pst_key *key)
{
	struct ref_match match = { 0, policy->unmatched_classes[0], PST_NONE };
	const struct ref_candidate *best = NULL;
	uint32_t link;

	for (link = 0; link < policy->link_count && !best; link++) {
		best = ref_best(policy, key, false, link);
		if (best)
			match = (struct ref_match){ link, best->class_index, best->row };
	}
	if (match.class_index != PST_NONE && match.row == PST_NONE) {
		best = ref_best(policy, key, true, match.class_index);
		if (best)
			match.row = best->row;
	}
	return match;
}
