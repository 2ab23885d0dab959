/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * classify.h: which class a packet belongs to, and which row of a limits file.
 *
 * What         Tuple space search. A link has tuples, that is masks over the packet's key, most specific first. Each is
 *              one probe of a hash table: the rule table (what match items compile to) or the limiter table (rows of
 *              limits files). The most specific hit wins, and the search stops when no later tuple can be more specific.
 * Source       Srinivasan, Suri, Varghese, "Packet classification using tuple space search", SIGCOMM 1999, section 3.
 * Units        specificity_q8: bits that a match fixes, in 1/256 (a port range of 2^n ports fixes 16 - n bits).
 * Ranges       at most PST_TUPLES_MAX tuples of a link, and of a class, are tried. Every index that a struct or a table
 *              holds is checked before use; what it would lead to is then absent. The host vouches for the plane's
 *              counts and links.
 * Invariants   I1  the result is that of trying every rule and every row, one by one, and keeping the most specific.
 *              I2  what pst_pipeline_prepare computed changes the speed, never the result.
 *              I3  two matches of equal specificity on one packet do not occur: the policy's compiler refuses them.
 * Overflow     no arithmetic but indices.
 * Concurrency  reads only. An entry that is being written is read whole or counts as busy (table.h): the search goes on
 *              as if it were absent, and is_busy says that the result may not be the true one.
 * Not done     one probe a tuple: a policy with very many different prefix lengths pays for each of them.
 */
#ifndef PENSTOCK_CLASSIFY_H
#define PENSTOCK_CLASSIFY_H

#include "table.h"

#define PST_TUPLES_MAX 256
#define PST_PREPARED_TUPLES 4

/* Places of a packet's keys under the first tuples, computed ahead so that a batch can prefetch their buckets. */
struct pst_prepared {
	struct pst_place places[PST_PREPARED_TUPLES];
	uint32_t first; /* the tuple that places[0] belongs to */
	uint32_t count;
};

/* An entry, and where to look for it again. */
struct pst_entry {
	struct pst_place place;
	struct pst_slot_view view;
};

/* What classification found: the class, and the limiter of a row of a limits file if one took the packet. */
struct pst_match {
	uint32_t link_index;
	uint32_t class_index; /* or PST_NONE */
	uint32_t specificity_q8;
	bool has_row;
	bool is_busy;
	struct pst_entry row;
};

/* The table that a tuple's keys lie in. */
PST_INLINE struct pst_table pst_plane_table(const struct pst_plane *plane, const struct pst_tuple *tuple)
{
	struct pst_table table;

	if (tuple->kind == PST_TUPLE_LIMITS) {
		table.buckets = plane->limiter_buckets;
		table.bucket_count = plane->limiter_bucket_count;
	} else {
		table.buckets = plane->rule_buckets;
		table.bucket_count = plane->rule_bucket_count;
	}
	return table;
}

PST_INLINE struct pst_place pst_tuple_place(const struct pst_plane *plane, const struct pst_tuple *tuple,
					    const struct pst_key *key)
{
	struct pst_hash hash = pst_hash_key(&plane->secret, tuple, key);
	struct pst_table table = pst_plane_table(plane, tuple);

	return pst_table_place(hash, table.bucket_count);
}

/* Computes the places of a packet's keys under the first tuples of the first link, and asks for their cache lines. */
PST_INLINE void pst_pipeline_prepare(struct pst_prepared *prepared, const struct pst_plane *plane,
				     const struct pst_packet *packet)
{
	const struct pst_link *link = &plane->links[plane->link_first];
	uint32_t i;

	prepared->first = link->tuple_first;
	for (i = 0; i < PST_PREPARED_TUPLES && i < link->tuple_count; i++) {
		uint32_t index = link->tuple_first + i;
		const struct pst_tuple *tuple;
		struct pst_table table;

		if (index >= plane->tuple_count)
			break;
		tuple = &plane->tuples[index];
		table = pst_plane_table(plane, tuple);
		if (table.bucket_count < 2)
			break;
		prepared->places[i] = pst_tuple_place(plane, tuple, &packet->key);
		pst_table_prefetch(&table, &prepared->places[i]);
	}
	prepared->count = i;
}

PST_INLINE enum pst_found pst_tuple_find(const struct pst_plane *plane, uint32_t index, const struct pst_key *key,
					 const struct pst_prepared *prepared, struct pst_entry *out)
{
	const struct pst_tuple *tuple = &plane->tuples[index];
	struct pst_table table = pst_plane_table(plane, tuple);

	if (table.bucket_count < 2) /* no table at all */
		return PST_FOUND_ABSENT;
	if (prepared && index - prepared->first < prepared->count)
		out->place = prepared->places[index - prepared->first];
	else
		out->place = pst_tuple_place(plane, tuple, key);
	return pst_table_find(&table, &out->place, &out->view);
}

/* Tries one tuple; a better match than what `match` has replaces it. */
PST_INLINE void pst_classify_tuple(struct pst_match *match, const struct pst_plane *plane, uint32_t index,
				   const struct pst_key *key, const struct pst_prepared *prepared)
{
	const struct pst_tuple *tuple = &plane->tuples[index];
	uint32_t class_index, specificity_q8 = tuple->specificity_q8;
	struct pst_entry entry;
	enum pst_found found = pst_tuple_find(plane, index, key, prepared, &entry);

	if (found == PST_FOUND_BUSY)
		match->is_busy = true;
	if (found != PST_FOUND_ENTRY)
		return;
	if (tuple->kind == PST_TUPLE_LIMITS) {
		if (entry.view.profile >= plane->profile_count)
			return;
		class_index = plane->profiles[entry.view.profile].class_index;
	} else {
		if (entry.view.profile >= plane->rule_count)
			return;
		class_index = plane->rules[entry.view.profile].class_index;
		specificity_q8 = plane->rules[entry.view.profile].specificity_q8;
	}
	if (class_index >= plane->class_count)
		return;
	if (match->class_index != PST_NONE && specificity_q8 <= match->specificity_q8)
		return;
	match->class_index = class_index;
	match->specificity_q8 = specificity_q8;
	match->has_row = tuple->kind == PST_TUPLE_LIMITS;
	match->row = entry;
}

/* Looks for a row of the class that took the packet by its match. The first, most specific, hit counts. */
PST_INLINE void pst_classify_row(struct pst_match *match, const struct pst_plane *plane, const struct pst_class *klass,
				 const struct pst_key *key)
{
	uint32_t i;

	for (i = 0; i < klass->tuple_count && i < PST_TUPLES_MAX; i++) {
		uint32_t index = klass->tuple_first + i;
		enum pst_found found;

		if (index >= plane->tuple_count || plane->tuples[index].kind != PST_TUPLE_LIMITS)
			return;
		found = pst_tuple_find(plane, index, key, (const struct pst_prepared *)0, &match->row);
		match->is_busy |= found == PST_FOUND_BUSY;
		match->has_row = found == PST_FOUND_ENTRY;
		if (match->has_row)
			return;
	}
}

/* Finds the class of a packet on one link: the most specific of all matches. Returns whether there is one. */
PST_INLINE bool pst_classify_link(struct pst_match *match, const struct pst_plane *plane, uint32_t link_index,
				  const struct pst_key *key, const struct pst_prepared *prepared)
{
	const struct pst_link *link = &plane->links[link_index];
	uint32_t i;

	match->link_index = link_index;
	match->class_index = PST_NONE;
	match->specificity_q8 = 0;
	match->has_row = false;
	for (i = 0; i < link->tuple_count && i < PST_TUPLES_MAX; i++) {
		uint32_t index = link->tuple_first + i;

		if (index >= plane->tuple_count)
			break;
		/* Tuples are sorted: none that follows can be more specific than this one. */
		if (match->class_index != PST_NONE && plane->tuples[index].specificity_q8 <= match->specificity_q8)
			break;
		pst_classify_tuple(match, plane, index, key, prepared);
	}
	return match->class_index != PST_NONE;
}

/* Offers a packet to the links in turn; the first that has a class takes it, else it stays unmatched on the first. */
PST_INLINE void pst_classify(struct pst_match *match, const struct pst_plane *plane, const struct pst_key *key,
			     const struct pst_prepared *prepared)
{
	bool is_found = false;
	uint32_t i;

	match->is_busy = false;
	for (i = 0; i < plane->link_count && !is_found; i++)
		is_found = pst_classify_link(match, plane, plane->link_first + i, key, prepared);
	if (!is_found) {
		match->link_index = plane->link_first;
		match->has_row = false;
		match->class_index = plane->links[plane->link_first].unmatched_class;
		if (match->class_index >= plane->class_count) {
			match->class_index = PST_NONE;
			return;
		}
	}
	if (!match->has_row)
		pst_classify_row(match, plane, &plane->classes[match->class_index], key);
}

#endif /* PENSTOCK_CLASSIFY_H */
