/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * pipeline.h: the whole per-packet program: classify, limit, verdict.
 *
 * What         packet -> its class (classify.h) -> the class's limiter -> pass | mark | drop(reason) | hold until t (action.h)
 *              -> its class's share, or its user's (fair.h) -> its delay line, if it has one (delay.h). A host that judges packets itself
 *              calls these two, in this order, behind pst_pipeline_judge.
 * Source       SwitchRL section 7 (yellow: random drop); Nimble section 4.1 (congestion manager: CE for ECT packets, RED
 *              for the rest, red dropped).
 * Units        now_ns, bytes, random_u32 uniform in [0, 2^32).
 * Ranges       any index that a table holds is checked before use; one that is out of range leaves a packet unlimited.
 *              A packet longer than PST_LENGTH_MAX, overhead included, is taken for one of that length.
 * Invariants   I1  every packet gets one verdict and one reason; PASS has PST_REASON_NONE, or a malformed reason.
 *              I2  a packet that is dropped by the window meter is not charged (S4).
 *              I3  a packet that is not ECT is never CE-marked.
 *              I4  with the same tables, packets, times and random numbers, the decisions are the same bits.
 *              I5  a shadow limit's decision is what the limit would do; the host lets the packet pass.
 *              I6  HOLD departs at the packet's turn (hold.h).
 * Overflow     PST_LENGTH_MAX bytes at the slowest rate cost 2^54 ticks: with limiter.h's window, depths stay below
 *              2^56.
 * Concurrency  the window meter commits by compare-and-swap on the value that was read last, and only while the bucket's
 *              sequence is that of the find, so many CPUs may decide at once. Who loses reads the limiter anew, since it may
 *              have moved or changed its rate, and decides again; who loses PST_CAS_TRIES times adds the cost of the last
 *              decision (limiter.h). An addition also hits a slot that changed hands at that very moment, be it an RFC
 *              meter's index: it is taken back then, by compare-and-swap, and the packet judged once more. A limiter that is
 *              removed meanwhile is not charged. RFC meters have two words, and go by meter.h.
 * Not done     a window meter whose red action lets packets pass does not charge them: the policy's compiler gives it DROP or HOLD; HOLD
 *              only where pst_plane_shapes.
 */
#ifndef PENSTOCK_PIPELINE_H
#define PENSTOCK_PIPELINE_H

#include "action.h"
#include "classify.h"
#include "delay.h"
#include "fair.h"
#include "srtcm.h"
#include "trtcm.h"
#include "window.h"

#define PST_LENGTH_MAX (UINT32_C(1) << 20) /* bytes: twice what segmentation offload builds */

/*
 * The RFC meters: the meter colours and charges, then the colour's action follows; a packet that the action drops stays
 * charged, because in the RFCs metering and dropping are two components (RFC 2697, section 1). The yellow
 * zone is the bucket that makes packets yellow, and its depth how much of it is used.
 */
PST_RARE_STAGE bool pst_pipeline_rfc(struct pst_decision *decision, const struct pst_profile *profile, uint32_t rate,
				     struct pst_meter_state *state, const struct pst_arrival *arrival)
{
	struct pst_yellow_zone zone = { 0, 0, 0 };
	struct pst_meter_state old;
	struct pst_meter_result result;
	uint8_t color_in;

	if (PST_IS_ABSENT(decision) || PST_IS_ABSENT(profile) || PST_IS_ABSENT(state) || PST_IS_ABSENT(arrival))
		return true;
	color_in = pst_color_from_dscp((uint8_t)(arrival->tos >> 2));
	old = pst_meter_load(state);
	if (profile->meter == PST_METER_RFC2697) {
		struct pst_rfc2697_profile meter;

		pst_rfc2697_resolve(&meter, profile, rate);
		result = pst_rfc2697_meter(&meter, &old, arrival->now_ns, arrival->bytes, color_in);
		zone.depth_ticks = result.state.excess_ticks - result.state.committed_ticks;
		zone.last_ticks = meter.ebs_ticks;
	} else if (profile->meter == PST_METER_RFC2698) {
		struct pst_rfc2698_profile meter;

		pst_rfc2698_resolve(&meter, profile, rate);
		result = pst_rfc2698_meter(&meter, &old, arrival->now_ns, arrival->bytes, color_in);
		zone.depth_ticks = result.state.excess_ticks - pst_clock_ticks(arrival->now_ns);
		zone.last_ticks = meter.pbs_ticks;
	} else {
		struct pst_rfc4115_profile meter;

		pst_rfc4115_resolve(&meter, profile, rate);
		result = pst_rfc4115_meter(&meter, &old, arrival->now_ns, arrival->bytes, color_in);
		zone.depth_ticks = result.state.excess_ticks - pst_clock_ticks(arrival->now_ns);
		zone.last_ticks = meter.ebs_ticks;
	}
	pst_meter_commit(state, &old, &result);
	decision->color = result.color;
	pst_color_apply(decision, profile, &zone, arrival);
	return true;
}

/*
 * Judges one packet by the limit that was found for it. An index that no table has leaves the packet unlimited. False
 * when the limiter must be read again, since another CPU charged it meanwhile.
 */
PST_INLINE bool pst_pipeline_limit(struct pst_decision *decision, const struct pst_plane *plane,
				   const struct pst_limit_ref *limit, const struct pst_arrival *arrival)
{
	const struct pst_profile *profile;
	struct pst_meter_state *meter;

	if (limit->rate == 0)
		return true;
	profile = pst_plane_profile(plane, limit->profile);
	if (!profile)
		return true;
	decision->shadow = (profile->flags & PST_PROFILE_SHADOW) != 0;
	if (profile->meter == PST_METER_WINDOW)
		return pst_window_judge(decision, plane, profile, limit, arrival);
	meter = pst_plane_meter(plane, limit->old);
	return !meter || pst_pipeline_rfc(decision, profile, limit->rate, meter, arrival);
}

/* Finds the row of a match anew. */
PST_OUTLINE enum pst_found pst_row_find(struct pst_match *match, const struct pst_plane *plane, const struct pst_key *key)
{
	const struct pst_tuple *tuple = pst_plane_tuple(plane, match->row_tuple);

	return tuple ? pst_tuple_find(plane, tuple, key, &match->row) : PST_FOUND_ABSENT;
}

/*
 * The limiter that a match leads to, as it is now: a row of a limits file, the class's own limit, or none (rate 0). The row
 * is found anew if the writer has been in its bucket since.
 */
PST_INLINE struct pst_limit_ref pst_match_limit(struct pst_match *match, const struct pst_plane *plane,
						const struct pst_key *key, struct pst_decision *decision)
{
	struct pst_limit_ref ref = { (uint64_t *)0, 0, 0, PST_NONE };
	const struct pst_class *klass;
	struct pst_bucket *bucket;
	struct pst_limit *limit;

	if (match->has_row) {
		bucket = pst_plane_bucket(plane, PST_TUPLE_LIMITS, match->row.bucket);
		if (!bucket)
			return ref;
		if (!pst_bucket_refresh(bucket, &match->row)) {
			enum pst_found found = pst_row_find(match, plane, key);

			match->is_busy |= found == PST_FOUND_BUSY;
			match->has_row = found == PST_FOUND_ENTRY;
			if (!match->has_row)
				return ref;
			bucket = pst_plane_bucket(plane, PST_TUPLE_LIMITS, match->row.bucket);
			if (!bucket)
				return ref;
		}
		decision->slot = pst_table_slot(&match->row);
		ref.state = &bucket->states[pst_slot_bounded(match->row.slot)];
		ref.old = match->row.state;
		ref.rate = match->row.rate;
		ref.profile = match->row.profile;
		if (pst_hold_is_asked(plane, pst_plane_profile(plane, ref.profile)))
			decision->owner = pst_hold_owner(pst_plane_tuple(plane, match->row_tuple), key);
		return ref;
	}
	klass = pst_plane_class(plane, match->class_index);
	limit = klass ? pst_plane_limit(plane, klass->limit_index) : (struct pst_limit *)0;
	if (limit) {
		decision->limit_index = klass->limit_index;
		ref.state = &limit->state;
		ref.old = pst_table_load_u64(&limit->state);
		ref.rate = limit->rate;
		ref.profile = limit->profile;
		if (pst_hold_is_asked(plane, pst_plane_profile(plane, ref.profile)))
			decision->owner = limit->owner;
	}
	return ref;
}

/*
 * Judges a packet by the limiter of its match, as it is now. False when another CPU was faster: come again. What was said before is
 * forgotten: the limiter may be gone since, or another one.
 */
PST_STAGE bool pst_pipeline_try(struct pst_decision *decision, const struct pst_plane *plane, struct pst_match *match,
				const struct pst_key *key, const struct pst_arrival *arrival)
{
	struct pst_limit_ref limit;

	if (PST_IS_ABSENT(decision) || PST_IS_ABSENT(plane) || PST_IS_ABSENT(match) || PST_IS_ABSENT(key) ||
	    PST_IS_ABSENT(arrival))
		return true;
	pst_decision_clear(decision, arrival->now_ns);
	limit = pst_match_limit(match, plane, key, decision);
	return pst_pipeline_limit(decision, plane, &limit, arrival);
}

/* Is the row of a match still where it was found? The limit of a class always is. */
PST_INLINE bool pst_match_is_still(const struct pst_match *match, const struct pst_plane *plane)
{
	const struct pst_bucket *bucket;

	if (!match->has_row)
		return true;
	bucket = pst_plane_bucket(plane, PST_TUPLE_LIMITS, match->row.bucket);
	return bucket && pst_bucket_is_still(bucket, match->row.sequence);
}

/*
 * Charges a packet that lost every race and passes as it was last judged: by an addition, since one more swap may be lost as well, and
 * the packet go uncharged. False when there is no such limiter any more, or another one was hit, which then is as it was. An addition
 * that cannot be taken back has been carried along by the writer, or charged to a window in the same slot.
 */
PST_STAGE bool pst_pipeline_charge(struct pst_decision *decision, const struct pst_plane *plane, struct pst_match *match,
				   const struct pst_key *key, uint32_t bytes)
{
	const struct pst_profile *profile;
	struct pst_limit_ref limit;
	uint64_t cost, charged;

	if (PST_IS_ABSENT(decision) || PST_IS_ABSENT(plane) || PST_IS_ABSENT(match) || PST_IS_ABSENT(key))
		return false;
	limit = pst_match_limit(match, plane, key, decision);
	profile = limit.rate ? pst_plane_profile(plane, limit.profile) : (const struct pst_profile *)0;
	if (!profile || profile->meter != PST_METER_WINDOW)
		return false;
	cost = pst_rate_cost(limit.rate, bytes);
	charged = __sync_fetch_and_add(limit.state, cost) + cost;
	return pst_match_is_still(match, plane) || !pst_limiter_commit(limit.state, &charged, charged - cost);
}

/* Judges a packet by the limiter of its match, anew as long as other CPUs are faster. */
PST_INLINE void pst_pipeline_match(struct pst_decision *decision, const struct pst_plane *plane,
				   struct pst_match *match, const struct pst_key *key, const struct pst_arrival *arrival)
{
	int tries;

	for (tries = 0; tries < PST_CAS_TRIES; tries++) {
		if (pst_pipeline_try(decision, plane, match, key, arrival))
			return;
	}
	if (!pst_pipeline_charge(decision, plane, match, key, arrival->bytes))
		pst_pipeline_try(decision, plane, match, key, arrival);
}

/* What a link charges for a packet. */
PST_INLINE uint32_t pst_link_length(const struct pst_link *link, const struct pst_packet *packet)
{
	uint64_t length = (uint64_t)packet->length + link->overhead_bytes;

	return length < PST_LENGTH_MAX ? (uint32_t)length : PST_LENGTH_MAX;
}

/*
 * A link that drops what it does not know drops what it cannot tell, too, since the writer was in the way. Asked for few packets, and
 * the link is not looked at for the others.
 */
PST_INLINE bool pst_link_drops_unknown(const struct pst_plane *plane, uint32_t link_index)
{
	const struct pst_link *link = pst_plane_link(plane, link_index);

	return link && link->unmatched_action == PST_ACTION_DROP;
}

/* What can be said of a packet on a link before its limiter and the time are known. True when there is more to say. */
PST_INLINE bool pst_pipeline_open(struct pst_decision *decision, const struct pst_plane *plane,
				  const struct pst_packet *packet, uint32_t link_index)
{
	const struct pst_link *link = pst_plane_link(plane, link_index);

	pst_decision_start(decision, link_index);
	if (!link)
		return false;
	decision->length = pst_link_length(link, packet);
	if (packet->reason == PST_REASON_NONE)
		return true;
	pst_decide(decision, link->malformed_action == PST_ACTION_DROP ? PST_VERDICT_DROP : PST_VERDICT_PASS,
		   packet->reason);
	return false;
}

/* Decides for a parsed packet that was classified. A malformed one needs no match. */
PST_INLINE void pst_pipeline_judge(struct pst_decision *decision, const struct pst_plane *plane,
				   const struct pst_packet *packet, struct pst_match *match, uint64_t now_ns,
				   uint32_t random_u32)
{
	bool is_sound = packet->reason == PST_REASON_NONE;
	bool is_open = pst_pipeline_open(decision, plane, packet, is_sound ? match->link_index : plane->link_first);
	struct pst_arrival arrival;

	decision->departure_ns = now_ns;
	if (!is_open)
		return;
	decision->class_index = match->class_index;
	arrival = pst_packet_arrival(packet, decision, now_ns, random_u32);
	if (match->class_index != PST_NONE &&
	    !(match->is_busy && pst_link_drops_unknown(plane, match->link_index)))
		pst_pipeline_match(decision, plane, match, &packet->key, &arrival);
	if ((match->class_index == PST_NONE || match->is_busy) && pst_link_drops_unknown(plane, match->link_index))
		pst_decide(decision, PST_VERDICT_DROP,
			   match->is_busy ? PST_REASON_TABLE_BUSY : PST_REASON_UNMATCHED);
}

/*
 * The short way, for an open decision: the row that was asked for is there, and nobody is in the way. False, and then the decision is
 * worth nothing: it takes pst_classify and pst_pipeline_judge. What this one decides is what they would have.
 */
PST_INLINE bool pst_pipeline_answer(struct pst_decision *decision, const struct pst_plane *plane,
				    const struct pst_packet *packet, const struct pst_question *question, uint64_t now_ns,
				    uint32_t random_u32)
{
	struct pst_slot_view view = { 0, 0, 0, 0, 0, 0 };
	const struct pst_profile *profile;
	struct pst_arrival arrival;
	struct pst_limit_ref limit;
	struct pst_bucket *bucket;

	if (!question->tuple || pst_place_find(plane, PST_TUPLE_LIMITS, question->place, &view) != PST_FOUND_ENTRY)
		return false;
	profile = pst_plane_profile(plane, view.profile);
	bucket = pst_plane_bucket(plane, PST_TUPLE_LIMITS, view.bucket);
	if (!profile || !bucket || !pst_plane_class(plane, profile->class_index))
		return false;
	decision->departure_ns = now_ns;
	decision->class_index = profile->class_index;
	decision->slot = pst_table_slot(&view);
	limit.state = &bucket->states[pst_slot_bounded(view.slot)];
	limit.old = view.state;
	limit.rate = view.rate;
	limit.profile = view.profile;
	if (pst_hold_is_asked(plane, profile))
		decision->owner = pst_hold_owner(question->tuple, &packet->key);
	arrival = pst_packet_arrival(packet, decision, now_ns, random_u32);
	return pst_pipeline_limit(decision, plane, &limit, &arrival);
}

/* What comes behind a packet's limit. */
PST_INLINE void pst_pipeline_end(struct pst_decision *decision, const struct pst_plane *plane, const struct pst_packet *packet, uint64_t now_ns,
				 uint32_t random_u32)
{
	if (pst_plane_has_shares(plane)) {
		struct pst_fair fair;

		pst_fair_apply(decision, plane, packet, &fair, now_ns, random_u32);
	}
	pst_delay_apply(decision, plane, now_ns);
}

/*
 * Decides for one parsed packet. The plane has at least one link. The host draws random_u32 for every packet, used or not, so
 * that a sequence of draws fits a sequence of packets; or for none, when no profile drops early. A host with many packets
 * at hand calls pst_batch_classify and pst_pipeline_judge itself.
 */
PST_INLINE void pst_pipeline_decide(struct pst_decision *decision, const struct pst_plane *plane,
				    const struct pst_packet *packet, uint64_t now_ns, uint32_t random_u32)
{
	struct pst_question question;
	struct pst_match match;

	if (packet->reason == PST_REASON_NONE) {
		pst_classify_ask(&question, plane, &packet->key);
		if (pst_pipeline_open(decision, plane, packet, plane->link_first) &&
		    pst_pipeline_answer(decision, plane, packet, &question, now_ns, random_u32)) {
			pst_pipeline_end(decision, plane, packet, now_ns, random_u32);
			return;
		}
		pst_classify(&match, plane, &packet->key);
	}
	pst_pipeline_judge(decision, plane, packet, &match, now_ns, random_u32);
	pst_pipeline_end(decision, plane, packet, now_ns, random_u32);
}

#endif /* PENSTOCK_PIPELINE_H */
