/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * hold.h: what becomes of a packet that a limit shapes: it goes at once, waits for its turn, or finds no room to wait.
 *
 * What         start = max(vft, now - window)                               limiter.h: its turn
 *              start <= now, and nobody of its limit waits    pass
 *              start <= now, but somebody of its limit waits  hold, due now  the one who waits is late: stay behind it
 *              start - now > max(horizon, MTU / rate), 68 s   drop, horizon  (S2: with less, turns pass that nobody waits for)
 *              start + cost - now > max(hold_bytes, 2 MTU) / rate
 *                                                             drop, backlog  the virtual queue is as long as the real one
 *              no memory left                                 drop, no_room
 *              else                                           hold until start; CE when it waits longer than ce_ns and can be marked
 *              nobody there to hold                           red is dropped, no_shaper; the rest passes, unless somebody of its
 *                                                             limit waits with one who is leaving
 * Source       DragonKing sections III-A and III-B: vst = max(lft, now), vft = vst + length / rate, and a bounded buffer. The threshold for
 *              CE is that of Linux's fq and CoDel (RFC 8289; tc-fq(8), ce_threshold); Nimble Table 1: a queue that shapes may mark.
 * Units        as limiter.h; owners are numbers of 32 bits; memory in pieces of PST_HOLD_CHUNK_BYTES.
 * Ranges       as limiter.h.
 * Invariants   I1  a packet that is held departs at its turn, never before; one that is dropped is not charged.
 *              I2  packets of one limit that are held have departures that do not fall.
 *              I3  while packets of a limit wait, all that come to it are held or dropped: none overtakes.
 *              I4  what waits of one limit is at most hold_bytes, and waits for at most hold_ticks, or what an MTU takes; beside those
 *                  who join a packet that is late. After a rate went up, time that was given before counts at the new rate.
 * Overflow     as limiter.h.
 * Concurrency  pure. The host counts what waits by owner: raised before a packet is on its way to who holds it, lowered after it left.
 * Not done     who holds: wheel.h, and the host around it.
 */
#ifndef PENSTOCK_HOLD_H
#define PENSTOCK_HOLD_H

#include "action.h"
#include "plane.h"

#define PST_HOLD_OWNER_FACTOR UINT64_C(0x9e3779b97f4a7c15) /* 2^64 over the golden ratio: odd, and no pattern in its bits */
#define PST_HOLD_MAX_NSEC (UINT64_C(68) * PST_NSEC_PER_SEC) /* what a wheel reaches */
#define PST_HOLD_MAX_TICKS (PST_HOLD_MAX_NSEC * PST_TICKS_PER_NSEC)

/* The limit that judged a packet, and what it said. */
struct pst_hold_limit {
	uint64_t vft_ticks;  /* after the packet */
	uint64_t wait_ticks; /* before it */
	uint32_t rate;       /* rate code */
	uint32_t holder;     /* enum pst_holder, asked once for a limit: it may change while that judges a packet */
};

/* Does a profile shape, on a plane where some do? There is none for an index that no table has. */
PST_INLINE bool pst_hold_is_asked(const struct pst_plane *plane, const struct pst_profile *profile)
{
	return pst_plane_shapes(plane) && profile && profile->red_action == PST_ACTION_HOLD;
}

/*
 * Who a row is to those that count what waits: it follows from the row's key alone, so that it is the same wherever the row lies, and in
 * the next generation. Rows that share a number only make each other's packets take the longer way.
 */
PST_INLINE uint32_t pst_hold_owner(const struct pst_tuple *tuple, const struct pst_key *key)
{
	uint64_t sum = 0;
	uint32_t i;

	if (!tuple)
		return 0;
	for (i = 0; i < PST_KEY_WORDS; i++) {
		sum = (sum ^ (key->words[i] & tuple->mask.words[i])) * PST_HOLD_OWNER_FACTOR;
		sum ^= sum >> 32;
	}
	return (uint32_t)sum;
}

/* Why a packet whose turn is yet to come may not wait for it, or PST_REASON_HELD. */
PST_INLINE uint8_t pst_hold_bound(const struct pst_profile *profile, const struct pst_hold_limit *limit,
				  const struct pst_arrival *arrival)
{
	uint64_t packet = pst_limiter_drain(limit->rate, profile->mtu_bytes);
	int64_t ahead = pst_clock_since(limit->vft_ticks, pst_clock_ticks(arrival->now_ns));

	/* A state further ahead would read as stale, and forgive the whole backlog (limiter.h I5). */
	if (ahead > (int64_t)PST_AHEAD_MAX_TICKS || limit->wait_ticks > PST_HOLD_MAX_TICKS)
		return PST_REASON_HORIZON;
	if (profile->hold_ticks && limit->wait_ticks > profile->hold_ticks && limit->wait_ticks > packet)
		return PST_REASON_HORIZON;
	if (profile->hold_bytes && ahead > 0 && (uint64_t)ahead > 2 * packet &&
	    (uint64_t)ahead > pst_limiter_drain(limit->rate, profile->hold_bytes))
		return PST_REASON_BACKLOG;
	return PST_REASON_HELD;
}

/* What a packet takes at its limit's rate: from its turn to its virtual finish time. */
PST_INLINE uint32_t pst_hold_cost_ns(const struct pst_hold_limit *limit, uint64_t now_ns)
{
	int64_t cost_ticks = pst_clock_since(limit->vft_ticks, pst_clock_ticks(now_ns)) - (int64_t)limit->wait_ticks;
	uint64_t cost_ns = cost_ticks > 0 ? (uint64_t)cost_ticks >> PST_TICK_BITS : 0;

	return cost_ns < UINT32_MAX ? (uint32_t)cost_ns : UINT32_MAX;
}

/* Decides for a packet of a profile that shapes, when its colour is known, and its departure. */
PST_RARE_STAGE bool pst_hold_apply(struct pst_decision *decision, const struct pst_plane *plane,
				   const struct pst_profile *profile, const struct pst_hold_limit *limit,
				   const struct pst_arrival *arrival)
{
	uint8_t reason = PST_REASON_HELD;
	uint64_t wait_ns;

	if (PST_IS_ABSENT(decision) || PST_IS_ABSENT(plane) || PST_IS_ABSENT(profile) || PST_IS_ABSENT(limit) ||
	    PST_IS_ABSENT(arrival))
		return true;
	wait_ns = decision->departure_ns - arrival->now_ns;
	if (limit->holder >= PST_HOLDER_ABSENT) {
		if (decision->color == PST_COLOR_RED ||
		    (limit->holder == PST_HOLDER_LEAVING && pst_plane_is_waiting(plane, decision->owner)))
			pst_decide(decision, PST_VERDICT_DROP, PST_REASON_NO_SHAPER);
		return true;
	}
	if (decision->verdict == PST_VERDICT_DROP || (wait_ns == 0 && !pst_plane_is_waiting(plane, decision->owner)))
		return true;
	if (wait_ns)
		reason = pst_hold_bound(profile, limit, arrival);
	if (reason == PST_REASON_HELD && limit->holder != PST_HOLDER_READY)
		reason = PST_REASON_NO_ROOM;
	decision->dscp = 0; /* a meter's business, and this is none */
	if (reason != PST_REASON_HELD) {
		decision->departure_ns = arrival->now_ns;
		pst_decide(decision, PST_VERDICT_DROP, reason);
		return true;
	}
	if (profile->ce_ns && wait_ns > profile->ce_ns && arrival->is_ip && pst_tos_is_ect(arrival->tos))
		reason = PST_REASON_HELD_CE;
	decision->cost_ns = pst_hold_cost_ns(limit, arrival->now_ns);
	pst_decide(decision, PST_VERDICT_HOLD, reason);
	return true;
}

#endif /* PENSTOCK_HOLD_H */
