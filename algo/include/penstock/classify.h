/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * classify.h: which class a packet belongs to, and which row of a limits file.
 *
 * What         Tuple space search. A link has tuples, that is masks over the packet's key, most specific first. Each is
 *              one probe of a hash table: the rule table (what match items compile to) or the limiter table (rows of
 *              limits files). The most specific hit wins, and the search stops when no later tuple can be more specific.
 *              Two forms: packet by packet, and tuple by tuple for a batch of packets, whose cache misses then overlap.
 * Source       Srinivasan, Suri, Varghese, "Packet classification using tuple space search", SIGCOMM 1999, section 3.
 * Units        specificity_q8: bits that a match fixes, in 1/256 (a port range of 2^n ports fixes 16 - n bits).
 * Ranges       at most PST_TUPLES_MAX tuples of a link, and of a class, are tried. Every index that a struct or a table
 *              holds is checked before use; what it would lead to is then absent. The host vouches for the plane's
 *              counts and links, and for the order of tuples.
 * Invariants   I1  the result is that of trying every rule and every row, one by one, and keeping the most specific.
 *              I2  a batch has the results that its packets would have one by one.
 *              I3  two matches of equal specificity on one packet do not occur: the policy's compiler refuses them.
 * Overflow     no arithmetic but indices.
 * Concurrency  reads only. An entry that is being written is read whole or counts as busy (table.h): the search goes on
 *              as if it were absent, and is_busy says that the result may not be the true one.
 * Not done     one probe a tuple: a policy with very many different prefix lengths pays for each of them.
 */
#ifndef PENSTOCK_CLASSIFY_H
#define PENSTOCK_CLASSIFY_H

#include "plane.h"
#include "table.h"

#define PST_BATCH_MAX 32

/* What classification found: the class, and the limiter of a row of a limits file if one took the packet. */
struct pst_match {
	uint32_t link_index;
	uint32_t class_index; /* or PST_NONE */
	uint32_t specificity_q8;
	uint32_t row_tuple; /* the tuple that led to the row: how to find it again */
	struct pst_slot_view row;
	bool has_row;
	bool is_busy;
	bool is_closed; /* a malformed packet of a batch: it has no match, and nothing is looked up for it */
};

PST_INLINE struct pst_place pst_tuple_place(const struct pst_plane *plane, const struct pst_tuple *tuple,
					    const struct pst_key *key)
{
	return pst_table_place(pst_hash_key(pst_plane_secret(plane), tuple, key), pst_plane_bucket_count(plane, tuple->kind));
}

/* Looks for a key in a table that has buckets, at its place. */
PST_INLINE enum pst_found pst_place_find(const struct pst_plane *plane, uint8_t kind, struct pst_place place,
					 struct pst_slot_view *out)
{
	const struct pst_bucket *first = pst_plane_bucket(plane, kind, place.first);
	const struct pst_bucket *second = pst_plane_bucket(plane, kind, place.second);

	if (!first || !second)
		return PST_FOUND_ABSENT;
	(void)pst_table_load_u16(&second->sequence); /* its cache miss, if any, beside that of the first */
	place = pst_place_turn(first, place);
	first = pst_plane_bucket(plane, kind, place.first);
	second = pst_plane_bucket(plane, kind, place.second);
	if (!first || !second)
		return PST_FOUND_ABSENT;
	return pst_pair_find(first, second, &place, out);
}

/* Looks for a packet's key under one tuple. */
PST_STAGE enum pst_found pst_tuple_find(const struct pst_plane *plane, const struct pst_tuple *tuple,
					const struct pst_key *key, struct pst_slot_view *out)
{
	if (PST_IS_ABSENT(plane) || PST_IS_ABSENT(tuple) || PST_IS_ABSENT(key) || PST_IS_ABSENT(out))
		return PST_FOUND_ABSENT;
	if (pst_plane_bucket_count(plane, tuple->kind) < 2)
		return PST_FOUND_ABSENT;
	return pst_place_find(plane, tuple->kind, pst_tuple_place(plane, tuple, key), out);
}

PST_INLINE void pst_match_start(struct pst_match *match)
{
	match->class_index = PST_NONE;
	match->specificity_q8 = 0;
	match->row_tuple = 0;
	match->has_row = false;
	match->is_busy = false;
	match->is_closed = false;
}

/* Can a tuple of this specificity improve a match? */
PST_INLINE bool pst_match_is_open(const struct pst_match *match, uint32_t specificity_q8)
{
	return match->class_index == PST_NONE || specificity_q8 > match->specificity_q8;
}

/* Takes what was found under a tuple: a better match than what `match` has replaces it. */
PST_INLINE void pst_match_offer(struct pst_match *match, const struct pst_plane *plane, uint32_t tuple_index,
				const struct pst_tuple *tuple, const struct pst_slot_view *view)
{
	bool is_row = tuple->kind == PST_TUPLE_LIMITS;
	uint32_t class_index, specificity_q8 = tuple->specificity_q8;

	if (is_row) {
		const struct pst_profile *profile = pst_plane_profile(plane, view->profile);

		if (!profile)
			return;
		class_index = profile->class_index;
	} else {
		const struct pst_rule *rule = pst_plane_rule(plane, view->profile);

		if (!rule)
			return;
		class_index = rule->class_index;
		specificity_q8 = rule->specificity_q8;
	}
	if (!pst_plane_class(plane, class_index) || !pst_match_is_open(match, specificity_q8))
		return;
	match->class_index = class_index;
	match->specificity_q8 = specificity_q8;
	match->row_tuple = tuple_index;
	match->row = *view;
	match->has_row = is_row;
}

/* Looks for a row of the class that took the packet by its match. The first, most specific, hit counts. */
PST_OUTLINE void pst_classify_row(struct pst_match *match, const struct pst_plane *plane, const struct pst_class *klass,
				  const struct pst_key *key)
{
	uint64_t i; /* before Linux 5.16 the verifier forgets what it knows of a shorter one across a call */

	for (i = 0; i < klass->tuple_count && i < pst_plane_tuples_max(plane); i++) {
		uint32_t index = klass->tuple_first + (uint32_t)i;
		const struct pst_tuple *tuple = pst_plane_tuple(plane, index);
		enum pst_found found;

		if (!tuple || tuple->kind != PST_TUPLE_LIMITS)
			return;
		found = pst_tuple_find(plane, tuple, key, &match->row);
		match->is_busy |= found == PST_FOUND_BUSY;
		match->has_row = found == PST_FOUND_ENTRY;
		match->row_tuple = index;
		if (match->has_row)
			return;
	}
}

/* After all links: a packet that none of them took stays on the first. Then the rows inside of the class. */
PST_INLINE void pst_match_finish(struct pst_match *match, const struct pst_plane *plane, const struct pst_key *key)
{
	const struct pst_class *klass;

	if (match->class_index == PST_NONE) {
		const struct pst_link *link = pst_plane_link(plane, plane->link_first);

		match->link_index = plane->link_first;
		if (link)
			match->class_index = link->unmatched_class;
	}
	if (match->has_row)
		return;
	klass = pst_plane_class(plane, match->class_index);
	if (!klass)
		match->class_index = PST_NONE;
	else if (klass->tuple_count > 0)
		pst_classify_row(match, plane, klass, key);
}

/* Finds the class of a packet on one link: the most specific of all matches. Returns whether it has one. */
PST_STAGE bool pst_classify_link(struct pst_match *match, const struct pst_plane *plane, uint32_t link_index,
				 const struct pst_key *key)
{
	const struct pst_link *link;
	uint64_t i; /* as in pst_classify_row */

	if (PST_IS_ABSENT(match) || PST_IS_ABSENT(plane) || PST_IS_ABSENT(key))
		return false;
	link = pst_plane_link(plane, link_index);
	match->link_index = link_index;
	for (i = 0; link && i < link->tuple_count && i < pst_plane_tuples_max(plane); i++) {
		uint32_t index = link->tuple_first + (uint32_t)i;
		const struct pst_tuple *tuple = pst_plane_tuple(plane, index);
		struct pst_slot_view view = { 0, 0, 0, 0, 0, 0 };
		enum pst_found found;

		/* Tuples are sorted: none that follows can be more specific than this one. */
		if (!tuple || !pst_match_is_open(match, tuple->specificity_q8))
			break;
		found = pst_tuple_find(plane, tuple, key, &view);
		match->is_busy |= found == PST_FOUND_BUSY;
		if (found == PST_FOUND_ENTRY)
			pst_match_offer(match, plane, index, tuple, &view);
	}
	return match->class_index != PST_NONE;
}

/*
 * Offers a packet to the links in turn; the first that has a class takes it, else it stays unmatched on the first. Returns
 * whether it has a class.
 */
PST_STAGE bool pst_classify(struct pst_match *match, const struct pst_plane *plane, const struct pst_key *key)
{
	bool is_taken = false;
	uint64_t i; /* as in pst_classify_row */

	if (PST_IS_ABSENT(match) || PST_IS_ABSENT(plane) || PST_IS_ABSENT(key))
		return false;
	pst_match_start(match);
	match->row = (struct pst_slot_view){ 0, 0, 0, 0, 0, 0 }; /* written to by a stage: the verifier wants it whole */
	for (i = 0; i < plane->link_count && i < pst_plane_links_max(plane) && !is_taken; i++)
		is_taken = pst_classify_link(match, plane, plane->link_first + (uint32_t)i, key);
	pst_match_finish(match, plane, key);
	return match->class_index != PST_NONE;
}

/* ---- the short way: a row under the first tuple of the first link is the most specific match, and the end of the search ---- */

/* Where such a row may be. Without a tuple there is none. */
struct pst_question {
	const struct pst_tuple *tuple;
	struct pst_place place;
};

/*
 * Asks for it. Nothing waits for memory before pst_pipeline_answer: what a host has to do anyway, and what would else wait for that
 * memory, it does in between. Reading the clock is such a thing.
 */
PST_INLINE void pst_classify_ask(struct pst_question *question, const struct pst_plane *plane, const struct pst_key *key)
{
	const struct pst_link *link = pst_plane_link(plane, plane->link_first);
	const struct pst_tuple *tuple;

	*question = (struct pst_question){ (const struct pst_tuple *)0, { 0, 0, 0 } };
	tuple = link && link->tuple_count ? pst_plane_tuple(plane, link->tuple_first) : question->tuple;
	if (!tuple || tuple->kind != PST_TUPLE_LIMITS || pst_plane_bucket_count(plane, PST_TUPLE_LIMITS) < 2)
		return;
	question->tuple = tuple;
	question->place = pst_table_place(pst_hash_key(pst_plane_secret(plane), tuple, key),
					  pst_plane_bucket_count(plane, PST_TUPLE_LIMITS));
	pst_plane_ask(plane, question->place.first);
	pst_plane_ask(plane, question->place.second);
}

/* ---- batches: the same, tuple by tuple, for hosts with arrays ---- */

#ifndef PST_PLANE_HOST

/* Has no earlier link taken the packet, and may this tuple still improve its match? */
PST_INLINE bool pst_match_wants(const struct pst_match *match, uint32_t link_index, const struct pst_tuple *tuple)
{
	if (match->is_closed)
		return false;
	return match->class_index == PST_NONE ||
	       (match->link_index == link_index && tuple->specificity_q8 > match->specificity_q8);
}

/* A tuple as a batch uses it: what is the same for all packets, read once. */
struct pst_probe {
	struct pst_tuple tuple;
	struct pst_table table;
	uint32_t link_index;
	uint32_t tuple_index;
};

/* Packets on their way through classification. */
struct pst_batch {
	struct pst_probe first; /* the first tuple of the first link: asked for while packets are added */
	struct pst_match matches[PST_BATCH_MAX];
	struct pst_place places[PST_BATCH_MAX];
	uint32_t count;
	bool has_first; /* there is such a tuple, and a table */
};

/* Sets the nth probe of a link up. False when there is no such tuple or no table for it. */
PST_INLINE bool pst_probe_make(struct pst_probe *probe, const struct pst_plane *plane, uint32_t link_index, uint32_t nth)
{
	const struct pst_link *link = &plane->links[link_index];

	probe->link_index = link_index;
	probe->tuple_index = link->tuple_first + nth;
	if (probe->tuple_index >= plane->tuple_count)
		return false;
	probe->tuple = plane->tuples[probe->tuple_index];
	probe->table = plane->tables[probe->tuple.kind == PST_TUPLE_LIMITS];
	return nth < link->tuple_count && probe->table.bucket_count >= 2;
}

/* Asks for the buckets of one packet's key. */
PST_INLINE void pst_probe_ask(const struct pst_probe *probe, const struct pst_plane *plane, const struct pst_key *key,
			      struct pst_place *place)
{
	*place = pst_table_place(pst_hash_key(&plane->secret, &probe->tuple, key), probe->table.bucket_count);
	__builtin_prefetch(&probe->table.buckets[place->first]);
}

/* The first bucket is here: asks for the second if the key is not in it. */
PST_INLINE void pst_probe_turn(const struct pst_probe *probe, struct pst_place *place)
{
	*place = pst_place_turn(&probe->table.buckets[place->first], *place);
	__builtin_prefetch(&probe->table.buckets[place->first]);
}

/* Looks into them. */
PST_INLINE void pst_probe_look(const struct pst_probe *probe, const struct pst_plane *plane,
			       const struct pst_place *place, struct pst_match *match)
{
	struct pst_slot_view view;
	enum pst_found found = pst_table_find(&probe->table, place, &view);

	match->is_busy |= found == PST_FOUND_BUSY;
	match->link_index = probe->link_index;
	if (found == PST_FOUND_ENTRY)
		pst_match_offer(match, plane, probe->tuple_index, &probe->tuple, &view);
}

PST_INLINE void pst_batch_start(struct pst_batch *batch, const struct pst_plane *plane)
{
	batch->count = 0;
	batch->has_first = pst_probe_make(&batch->first, plane, plane->link_first, 0);
}

/* Adds a packet, and asks for what it is looked up by first. That there are PST_BATCH_MAX at most is the host's word. */
PST_INLINE void pst_batch_add(struct pst_batch *batch, const struct pst_plane *plane, const struct pst_packet *packet)
{
	uint32_t i = batch->count++;

	pst_match_start(&batch->matches[i]);
	batch->matches[i].is_closed = packet->reason != PST_REASON_NONE;
	if (batch->has_first && packet->reason == PST_REASON_NONE)
		pst_probe_ask(&batch->first, plane, &packet->key, &batch->places[i]);
}

/* pst_classify for the packets that were added. */
PST_INLINE void pst_batch_classify(struct pst_batch *batch, const struct pst_plane *plane,
				   const struct pst_packet *packets)
{
	struct pst_match *matches = batch->matches;
	uint32_t asked = batch->has_first ? batch->count : 0, i, link, nth;

	for (i = 0; i < asked; i++)
		if (!matches[i].is_closed)
			pst_probe_turn(&batch->first, &batch->places[i]);
	for (i = 0; i < asked; i++)
		if (!matches[i].is_closed)
			pst_probe_look(&batch->first, plane, &batch->places[i], &matches[i]);
	for (link = plane->link_first; link - plane->link_first < plane->link_count; link++) {
		struct pst_probe probe;

		for (nth = link == plane->link_first; nth < plane->links[link].tuple_count && nth < PST_TUPLES_MAX; nth++) {
			if (!pst_probe_make(&probe, plane, link, nth))
				continue;
			for (i = 0; i < batch->count; i++)
				if (pst_match_wants(&matches[i], link, &probe.tuple))
					pst_probe_ask(&probe, plane, &packets[i].key, &batch->places[i]);
			for (i = 0; i < batch->count; i++)
				if (pst_match_wants(&matches[i], link, &probe.tuple))
					pst_probe_turn(&probe, &batch->places[i]);
			for (i = 0; i < batch->count; i++)
				if (pst_match_wants(&matches[i], link, &probe.tuple))
					pst_probe_look(&probe, plane, &batch->places[i], &matches[i]);
		}
	}
}

/* The match of a packet of the batch, by the order of adding, after pst_batch_classify. */
PST_INLINE struct pst_match *pst_batch_match(struct pst_batch *batch, const struct pst_plane *plane, uint32_t i,
					     const struct pst_key *key)
{
	if (!batch->matches[i].is_closed)
		pst_match_finish(&batch->matches[i], plane, key);
	return &batch->matches[i];
}

#endif /* PST_PLANE_HOST */

#endif /* PENSTOCK_CLASSIFY_H */
