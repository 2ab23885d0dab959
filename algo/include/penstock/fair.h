/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * fair.h: a packet is held to its share: that of its class, or of its user.
 *
 * What         class -> its share of its link (tree.h) ->
 *                  no users, or users with entries    the leaf's limiter, whose rate is the share (H10): pass, mark, drop or hold (window.h)
 *                  users without entries              the sketch's rate of the user (sketch.h), against the limit that divides the class's
 *                                                     share (threshold.h): above half of that it has a limiter with that rate
 *                                                     (limiter_sketch.h), which drops nothing while the user is below it; or, as AHAB
 *                                                     does, drops by chance or at intervals (fairdrop.h), as with limiters where a limit is less
 *                                                     than a packet in tau: there R says of all the same, and no limiter would ever be full
 *              behind the packet's own limit, if it has one: what that drops asks for nothing here. Of two verdicts the stricter one holds.
 * Source       HSDBA Algorithm 1 in the form of H7 to H11; AHAB sections III to V. That a slice's capacity is its class's share by packets, and not
 *              written by a control loop every 10 to 20 ms (AHAB section III-B), is ours: both see to it within an epoch. So are the limiters.
 * Units        tree.h; parts (lpf.h) for users without entries.
 * Ranges       those of the parts.
 * Invariants   I1  what is dropped here is not charged to the leaf's limiter.
 *              I2  with the same nodes, packets, times and random numbers, the decisions are the same bits.
 *              I3  a share in shadow mode drops, marks and holds nothing.
 * Overflow     the code of a share: 10^9 2^34 over 64 or more is below 2^58.
 * Concurrency  tree.h, window.h, sketch.h.
 * Not done     users without entries cannot wait: who shapes them polices.
 */
#ifndef PENSTOCK_FAIR_H
#define PENSTOCK_FAIR_H

#include "fairdrop.h"
#include "limiter_sketch.h"
#include "table.h"
#include "threshold.h"
#include "tree.h"
#include "window.h"

#define PST_FAIR_PROTO_TCP 6
#define PST_FAIR_PROTO_SHIFT 48 /* in word 1 of a key */

/* A packet on its way to its share. It is the host's: a kernel's stack is short. */
struct pst_fair {
	struct pst_tree_walk walk;
	struct pst_arrival arrival;
	struct pst_fairdrop_packet drop;
	struct pst_decision own;       /* what the share says */
	struct pst_sketch_cells cells; /* of a user without entry: hashed once a packet */
	uint32_t limiter;              /* of a user without entry, among the filters; else PST_NONE */
};

/* The rate code of a share, by one division: it is another one with every packet. */
PST_INLINE uint32_t pst_fair_rate(uint64_t share_Bps)
{
	uint64_t least = share_Bps > PST_RATE_MIN_BPS ? share_Bps : PST_RATE_MIN_BPS;
	uint64_t ticks_q24 = (PST_TICKS_PER_SEC << PST_RATE_EXPONENT_BIAS) / (least < PST_RATE_MAX_BPS ? least : PST_RATE_MAX_BPS);
	uint32_t exponent = pst_bit_length(ticks_q24) - PST_RATE_MANTISSA_BITS;

	return (uint32_t)(ticks_q24 >> exponent) | exponent << PST_RATE_MANTISSA_BITS;
}

/* The weight of a user that is known by its row; 1 of all others. */
PST_INLINE uint32_t pst_fair_weight(const struct pst_plane *plane, const struct pst_decision *decision)
{
	const struct pst_profile *profile = (const struct pst_profile *)0;
	const struct pst_bucket *bucket;

	if (decision->slot != PST_NONE) {
		bucket = pst_plane_bucket(plane, PST_TUPLE_LIMITS, decision->slot / PST_BUCKET_SLOTS);
		if (bucket)
			profile = pst_plane_profile(plane, (uint16_t)bucket->keys[pst_slot_bounded(decision->slot % PST_BUCKET_SLOTS)]);
	}
	return profile && profile->weight ? profile->weight : 1;
}

/* A number for a packet's user; 0: its class has none. IPv6 users have a tuple of their own, behind the other. */
PST_STAGE uint64_t pst_fair_user(const struct pst_plane *plane, const struct pst_packet *packet, uint32_t class_index)
{
	const struct pst_tree_place *place;
	const struct pst_tuple *tuple;
	uint32_t is_v6;

	if (PST_IS_ABSENT(plane) || PST_IS_ABSENT(packet))
		return 0;
	place = pst_plane_place(plane, class_index);
	if (!place || place->users == PST_NONE)
		return 0;
	is_v6 = (packet->key.words[1] >> PST_KEY_FAMILY_SHIFT & PST_KEY_FAMILY) == 6;
	tuple = pst_plane_tuple(plane, place->users + is_v6);
	return tuple ? (pst_hash_key(pst_plane_secret(plane), tuple, &packet->key).tag ^ pst_hash_mix(class_index)) | 1 : 0;
}

/* Adds what a share says of a packet to what its limit said. */
PST_INLINE void pst_fair_join(struct pst_decision *decision, const struct pst_decision *own, uint64_t now_ns, bool is_shadow)
{
	if (decision->color == PST_COLOR_NONE)
		decision->color = own->color;
	if (own->verdict == PST_VERDICT_PASS)
		return;
	if (is_shadow && decision->verdict != PST_VERDICT_PASS)
		return; /* what is done says more than what would be */
	if (decision->shadow) {
		pst_decide(decision, PST_VERDICT_PASS, PST_REASON_NONE);
		decision->departure_ns = now_ns;
		decision->dscp = 0;
	}
	decision->shadow = is_shadow;
	if (own->verdict == PST_VERDICT_DROP) {
		decision->departure_ns = now_ns;
		decision->dscp = 0;
		pst_decide(decision, PST_VERDICT_DROP, own->reason);
	} else if (own->verdict == PST_VERDICT_MARK) {
		if (decision->verdict == PST_VERDICT_PASS)
			pst_decide(decision, PST_VERDICT_MARK, own->reason);
		else if (decision->reason == PST_REASON_HELD)
			decision->reason = PST_REASON_HELD_CE;
	} else {
		if (own->departure_ns >= decision->departure_ns) { /* at once, too: behind others who are late */
			decision->departure_ns = own->departure_ns;
			decision->cost_ns = own->cost_ns;
		}
		decision->owner = own->owner;
		decision->verdict = PST_VERDICT_HOLD;
		if (!pst_reason_is_mark(decision->reason))
			decision->reason = own->reason;
	}
}

/* Holds a leaf to its share by its limiter. */
PST_RARE_STAGE bool pst_fair_limit(struct pst_decision *decision, const struct pst_plane *plane, struct pst_fair *fair)
{
	const struct pst_tree_place *place;
	const struct pst_profile *profile;
	struct pst_limit_ref limit;
	struct pst_tree_node *leaf;
	int tries;

	if (PST_IS_ABSENT(decision) || PST_IS_ABSENT(plane) || PST_IS_ABSENT(fair))
		return true;
	place = pst_plane_place(plane, fair->walk.place);
	leaf = pst_plane_node(plane, fair->walk.leaf);
	profile = place ? pst_plane_profile(plane, place->profile) : (const struct pst_profile *)0;
	if (!leaf || !profile)
		return true;
	limit.state = fair->limiter == PST_NONE ? &leaf->vft_ticks : pst_plane_filter(plane, fair->limiter);
	if (!limit.state)
		return true;
	limit.rate = pst_fair_rate(fair->walk.share_Bps);
	limit.profile = place->profile;
	for (tries = 0; tries < PST_CAS_TRIES; tries++) {
		limit.old = pst_table_load_u64(limit.state);
		pst_decision_clear(&fair->own, fair->arrival.now_ns);
		fair->own.owner = decision->owner ? decision->owner : place->owner ^ (uint32_t)fair->walk.user;
		if (pst_window_judge(&fair->own, plane, profile, &limit, &fair->arrival))
			break;
	}
	if (tries == PST_CAS_TRIES)
		__sync_fetch_and_add(limit.state, pst_rate_cost(limit.rate, fair->arrival.bytes));
	if (fair->own.verdict == PST_VERDICT_DROP && fair->own.reason == PST_REASON_OVER_RATE)
		fair->own.reason = place->user_count && fair->walk.leaf == pst_tree_crowd(place) ? PST_REASON_NO_ENTRY : PST_REASON_OVER_SHARE;
	if (fair->own.verdict != PST_VERDICT_DROP)
		__sync_fetch_and_add(&leaf->passed_bytes, fair->arrival.bytes);
	return true;
}

/* The packet in parts, and its user's rate with it; the limit of its slice, which is turned if it is time. */
PST_RARE_STAGE bool pst_fair_read(const struct pst_plane *plane, struct pst_fair *fair)
{
	struct pst_threshold_profile profile = { 0, 0, 0, 0 };
	const struct pst_tree_place *place;
	struct pst_threshold_packet packet;
	struct pst_slice *slice;
	uint32_t stamp, weight;

	if (PST_IS_ABSENT(plane) || PST_IS_ABSENT(fair))
		return false;
	place = pst_plane_place(plane, fair->walk.place);
	slice = place ? pst_plane_slice(plane, place->slice) : (struct pst_slice *)0;
	if (!slice)
		return false;
	weight = fair->walk.weight ? fair->walk.weight : 1;
	profile.tau_shift = pst_lpf_tau_shift(slice->tau_shift);
	stamp = pst_lpf_stamp(fair->walk.now_ns, profile.tau_shift);
	pst_sketch_find(&fair->cells, plane, fair->walk.user);
	packet.length_parts = pst_lpf_parts(&slice->scale, fair->arrival.bytes);
	fair->drop.length_parts = packet.length_parts / weight ? packet.length_parts / weight : 1;
	fair->drop.user_parts = packet.user_parts = pst_sketch_add(plane, &fair->cells, stamp, fair->drop.length_parts);
	fair->drop.random_u32 = packet.random_u32 = fair->walk.random_u32;
	pst_threshold_count(&profile, &slice->threshold, stamp, &packet);
	fair->drop.limit_parts = pst_threshold_limit_parts(*(volatile uint64_t *)&slice->threshold.limit);
	return true;
}

/* Turns the epoch of a packet's slice, if it is over: its capacity is the class's share now. */
PST_RARE_STAGE bool pst_fair_turn(const struct pst_plane *plane, const struct pst_fair *fair)
{
	struct pst_threshold_profile profile = { 0, 0, 0, 0 };
	const struct pst_tree_place *place;
	struct pst_slice *slice;

	if (PST_IS_ABSENT(plane) || PST_IS_ABSENT(fair))
		return false;
	place = pst_plane_place(plane, fair->walk.place);
	slice = place ? pst_plane_slice(plane, place->slice) : (struct pst_slice *)0;
	if (!slice)
		return false;
	profile.tau_shift = pst_lpf_tau_shift(slice->tau_shift);
	profile.epoch_shift = slice->epoch_shift;
	if (!pst_threshold_is_over(*(volatile uint64_t *)&slice->threshold.limit, pst_threshold_epoch(&profile, fair->walk.now_ns)))
		return false;
	profile.capacity_parts = pst_lpf_parts_of_rate(slice->nominal_Bps, fair->walk.share_Bps);
	return pst_threshold_turn(&profile, &slice->threshold, fair->walk.now_ns);
}

/* Where a TCP flow's countdown is. */
PST_INLINE uint32_t pst_fair_flow(const struct pst_key *key, uint64_t user)
{
	return (uint32_t)(pst_hash_mix(pst_hash_mix(key->words[0] ^ user) + key->words[1]) >> 32);
}

PST_INLINE void pst_fair_say(struct pst_decision *own, uint8_t verdict, uint64_t now_ns)
{
	pst_decision_clear(own, now_ns);
	own->color = PST_COLOR_GREEN;
	if (verdict == PST_VERDICT_DROP) {
		own->color = PST_COLOR_RED;
		pst_decide(own, PST_VERDICT_DROP, PST_REASON_OVER_SHARE);
	} else if (verdict == PST_VERDICT_MARK) {
		own->color = PST_COLOR_YELLOW;
		pst_decide(own, PST_VERDICT_MARK, PST_REASON_CE_MARK);
	}
}

/* A user below half of its share needs no limiter: those who do need one are no more than twice as many as there are shares. */
PST_INLINE bool pst_fair_is_busy(const struct pst_fairdrop_packet *drop)
{
	return drop->user_parts > drop->limit_parts / 2;
}

/* A limit of less than a packet in tau, below which nobody reads, is no user's rate: a limiter of that rate would hold nobody (lpf.h, Ranges). */
PST_INLINE bool pst_fair_can_tell(const struct pst_fairdrop_packet *drop)
{
	return drop->limit_parts >= drop->length_parts;
}

/* Finds the share of a user without an entry, and its limiter; or decides, by chance or at intervals. */
PST_RARE_STAGE bool pst_fair_sketch(const struct pst_plane *plane, struct pst_fair *fair, const struct pst_packet *packet)
{
	struct pst_fairdrop_profile drops;
	const struct pst_tree_place *place;
	const struct pst_profile *profile;
	const struct pst_slice *slice;
	uint64_t *countdown = (uint64_t *)0;

	if (PST_IS_ABSENT(plane) || PST_IS_ABSENT(fair) || PST_IS_ABSENT(packet))
		return true;
	place = pst_plane_place(plane, fair->walk.place);
	slice = place ? pst_plane_slice(plane, place->slice) : (const struct pst_slice *)0;
	profile = place ? pst_plane_profile(plane, place->profile) : (const struct pst_profile *)0;
	if (!slice || !profile)
		return true;
	if (!pst_fair_read(plane, fair))
		return true;
	if (slice->flags & PST_SLICE_LIMITERS && pst_fair_can_tell(&fair->drop)) {
		if (!pst_fair_is_busy(&fair->drop))
			return true;
		fair->limiter = pst_limiter_sketch_find(plane, &fair->cells, fair->arrival.now_ns);
		fair->walk.share_Bps = pst_lpf_rate_Bps(slice->nominal_Bps, fair->drop.limit_parts) * (fair->walk.weight ? fair->walk.weight : 1);
		return true;
	}
	drops = pst_fairdrop_default(pst_lpf_tau_shift(slice->tau_shift));
	fair->drop.can_be_marked = profile->yellow_action == PST_ACTION_MARK && packet->network_family && pst_tos_is_ect(packet->network_tos);
	if (slice->flags & PST_SLICE_PERIODIC && (uint8_t)(packet->key.words[1] >> PST_FAIR_PROTO_SHIFT) == PST_FAIR_PROTO_TCP)
		countdown = pst_plane_countdown(plane, pst_fair_flow(&packet->key, fair->walk.user));
	pst_fair_say(&fair->own,
		     countdown ? pst_fairdrop_periodic(&drops, &fair->drop, countdown) : pst_fairdrop_by_chance_or_mark(&drops, &fair->drop),
		     fair->arrival.now_ns);
	return true;
}

/* Writes down what came of a packet of a user without entry. Whoever sends no more than its share loses nothing, whoever shares its limiter. */
PST_RARE_STAGE bool pst_fair_settle(const struct pst_plane *plane, struct pst_fair *fair)
{
	const struct pst_tree_place *place;
	struct pst_slice *slice;

	if (PST_IS_ABSENT(plane) || PST_IS_ABSENT(fair))
		return true;
	place = pst_plane_place(plane, fair->walk.place);
	slice = place ? pst_plane_slice(plane, place->slice) : (struct pst_slice *)0;
	if (!slice || !(slice->flags & PST_SLICE_LIMITERS))
		return true;
	if (fair->own.verdict != PST_VERDICT_DROP && fair->limiter != PST_NONE)
		pst_limiter_sketch_raise(plane, &fair->cells, fair->limiter, fair->arrival.now_ns);
	if (fair->drop.user_parts <= fair->drop.limit_parts)
		pst_fair_say(&fair->own, PST_VERDICT_PASS, fair->arrival.now_ns);
	if (fair->own.verdict != PST_VERDICT_DROP)
		pst_lpf_add(&slice->threshold.passed, pst_lpf_stamp(fair->arrival.now_ns, pst_lpf_tau_shift(slice->tau_shift)),
			    pst_lpf_parts(&slice->scale, fair->arrival.bytes));
	return true;
}

/* Another number than the limit's own action went by. */
PST_INLINE uint32_t pst_fair_random(uint32_t random_u32)
{
	return (uint32_t)(pst_hash_mix(pst_hash_mix((uint64_t)random_u32 + 1)) >> 32);
}

/* Finds the share of a packet that was judged. False when it goes on as it is: it is dropped, or its link shares nothing. */
PST_RARE_STAGE bool pst_fair_find(const struct pst_decision *decision, const struct pst_plane *plane, const struct pst_packet *packet,
				  struct pst_fair *fair)
{
	const struct pst_tree_place *place;

	if (PST_IS_ABSENT(decision) || PST_IS_ABSENT(plane) || PST_IS_ABSENT(packet) || PST_IS_ABSENT(fair))
		return false;
	if (decision->verdict == PST_VERDICT_DROP && !decision->shadow)
		return false;
	place = pst_plane_place(plane, decision->class_index); /* no class: no place */
	if (!place || !pst_place_is_in_tree(place))
		return false;
	fair->walk.place = decision->class_index;
	fair->walk.user = pst_fair_user(plane, packet, decision->class_index);
	fair->walk.weight = fair->walk.user ? pst_fair_weight(plane, decision) : 1;
	fair->walk.share_Bps = pst_tree_share(plane, &fair->walk, decision->length);
	return fair->walk.share_Bps != 0;
}

/* Holds a packet that was judged, and goes on, to its share. For a plane that has shares. */
PST_INLINE void pst_fair_apply(struct pst_decision *decision, const struct pst_plane *plane, const struct pst_packet *packet,
			       struct pst_fair *fair, uint64_t now_ns, uint32_t random_u32)
{
	const struct pst_tree_place *place;
	const struct pst_profile *profile;

	fair->walk.now_ns = now_ns;
	fair->walk.random_u32 = pst_fair_random(random_u32);
	if (!pst_fair_find(decision, plane, packet, fair))
		return;
	place = pst_plane_place(plane, fair->walk.place);
	if (!place)
		return;
	fair->arrival = pst_packet_arrival(packet, decision, now_ns, fair->walk.random_u32);
	pst_fair_say(&fair->own, PST_VERDICT_PASS, now_ns);
	fair->limiter = PST_NONE;
	if (place->slice != PST_NONE) {
		pst_fair_turn(plane, fair);
		pst_fair_sketch(plane, fair, packet);
	}
	if (place->slice == PST_NONE || fair->limiter != PST_NONE)
		pst_fair_limit(decision, plane, fair);
	if (place->slice != PST_NONE)
		pst_fair_settle(plane, fair);
	profile = pst_plane_profile(plane, place->profile);
	pst_fair_join(decision, &fair->own, now_ns, profile && (profile->flags & PST_PROFILE_SHADOW));
}

#endif /* PENSTOCK_FAIR_H */
