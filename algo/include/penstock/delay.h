/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * delay.h: a delay line, as a long wire is one: what a limit let go arrives later, or not at all.
 *
 * What         lost     with probability loss, by the packet's number and the seed
 *              departs  turn + delay + wander(turn), turn being when its limit lets it go
 *              wander   jitter * u, where u is drawn from [-1, 1) at every 4 jitters of time, and goes from one to the next in a
 *                       straight line, rounded to where it comes from
 *              nobody there to hold, or no delay: it goes at once; no memory left: drop, no_room; more than 68 s: drop, horizon
 * Source       ours. tc-netem(8) draws a delay for each packet, which puts packets out of order: a queue that grows and shrinks, which is
 *              where jitter comes from, does not. The delays of a wander lie in the same range, and more of them in its middle.
 * Units        _ns; loss_q32 in 2^-32.
 * Ranges       delay + jitter below 2^62 ns, jitter at most 1 s; a jitter above the delay is taken for the delay.
 * Invariants   I1  delay - jitter <= departure - turn <= delay + jitter.
 *              I2  turns that do not fall have departures that do not fall: the wander falls by half of the time that passes, at most.
 *              I3  the same packets in the same order, with the same seed, lose the same ones; turns at the same times depart at the same.
 *              I4  what is dropped or shadowed is left as it is, and so is what the parser gave up.
 *              I5  marks stay: the reason of a marked packet says so still, though it is held.
 * Overflow     2 jitters times 4 jitters is below 2^63.
 * Concurrency  packets of a line that loses some are numbered by an atomic addition.
 * Not done     who holds (wheel.h), packets that overtake each other, and order over a change of the delay: a turn's delay is the line's at the
 *              time.
 */
#ifndef PENSTOCK_DELAY_H
#define PENSTOCK_DELAY_H

#include "hold.h"
#include "rng.h"

#define PST_DELAY_WANDER_PERIODS 4

/* What all chance of a line follows from: lines have other owners, and so other fates, also where nobody gave them seeds. */
PST_INLINE uint64_t pst_delay_seed(const struct pst_line *line)
{
	return pst_rng_seed(line->seed ^ (uint64_t)line->owner << 32);
}

/* The delay's difference from delay - jitter at the beginning of the nth period: in [0, 2 jitters). */
PST_INLINE uint64_t pst_delay_draw_ns(uint64_t seed, uint64_t nth, uint64_t jitter_ns)
{
	uint64_t u_q31 = pst_rng_seed(~seed + nth) >> 33; /* not the sequence of losses */

	return 2 * jitter_ns * u_q31 >> 31;
}

/* How long a packet is on its way that goes into the line at this time. */
PST_INLINE uint64_t pst_delay_ns(const struct pst_line *line, uint64_t turn_ns)
{
	uint64_t jitter_ns = line->jitter_ns < line->delay_ns ? line->jitter_ns : line->delay_ns;
	uint64_t seed, period_ns, nth, since_ns, from_ns, to_ns;

	if (jitter_ns > PST_DELAY_JITTER_MAX_NSEC)
		jitter_ns = PST_DELAY_JITTER_MAX_NSEC;
	if (jitter_ns == 0)
		return line->delay_ns;
	seed = pst_delay_seed(line);
	period_ns = PST_DELAY_WANDER_PERIODS * jitter_ns;
	nth = turn_ns / period_ns;
	since_ns = turn_ns - nth * period_ns;
	from_ns = pst_delay_draw_ns(seed, nth, jitter_ns);
	to_ns = pst_delay_draw_ns(seed, nth + 1, jitter_ns);
	if (from_ns < to_ns)
		from_ns += (to_ns - from_ns) * since_ns / period_ns;
	else
		from_ns -= (from_ns - to_ns) * since_ns / period_ns;
	return line->delay_ns - jitter_ns + from_ns;
}

/* Is the packet of this number lost? */
PST_INLINE bool pst_delay_loses(const struct pst_line *line, uint64_t number)
{
	return (uint32_t)pst_rng_seed(pst_delay_seed(line) + number) < line->loss_q32;
}

/* The line of a packet that was judged and goes on, or NULL. */
PST_INLINE struct pst_line *pst_delay_line(const struct pst_decision *decision, const struct pst_plane *plane)
{
	const struct pst_class *klass = pst_plane_class(plane, decision->class_index);
	const struct pst_link *link;
	uint32_t index = 0;

	if (decision->verdict == PST_VERDICT_DROP || decision->shadow || pst_reason_is_malformed(decision->reason))
		return (struct pst_line *)0;
	if (klass) {
		index = klass->line;
	} else {
		link = pst_plane_link(plane, decision->link);
		if (link)
			index = link->line;
	}
	return index ? pst_plane_line(plane, index) : (struct pst_line *)0;
}

PST_INLINE void pst_delay_drop(struct pst_decision *decision, uint8_t reason, uint64_t now_ns)
{
	decision->departure_ns = now_ns;
	decision->dscp = 0;
	pst_decide(decision, PST_VERDICT_DROP, reason);
}

/* Has a packet that goes on held for as long as its line delays it. */
PST_RARE_STAGE bool pst_delay_apply(struct pst_decision *decision, const struct pst_plane *plane, uint64_t now_ns)
{
	struct pst_line *line;
	uint32_t holder;

	if (PST_IS_ABSENT(decision) || PST_IS_ABSENT(plane) || !pst_plane_delays(plane))
		return true;
	line = pst_delay_line(decision, plane);
	if (!line)
		return true;
	if (line->loss_q32 && pst_delay_loses(line, __sync_fetch_and_add(&line->packets, 1))) {
		pst_delay_drop(decision, PST_REASON_LOST, now_ns);
		return true;
	}
	if (!line->delay_ns)
		return true;
	if (!decision->owner)
		decision->owner = line->owner;
	if (decision->verdict != PST_VERDICT_HOLD) { /* else its limit has found somebody to hold it */
		holder = pst_plane_holder(plane, decision->length, now_ns);
		if (holder == PST_HOLDER_FULL)
			pst_delay_drop(decision, PST_REASON_NO_ROOM, now_ns);
		else if (holder == PST_HOLDER_LEAVING && pst_plane_is_waiting(plane, decision->owner))
			pst_delay_drop(decision, PST_REASON_NO_SHAPER, now_ns);
		if (holder != PST_HOLDER_READY)
			return true;
		decision->verdict = PST_VERDICT_HOLD;
		if (!pst_reason_is_mark(decision->reason))
			decision->reason = PST_REASON_DELAYED;
	}
	if (decision->reason == PST_REASON_HELD && decision->departure_ns == now_ns)
		decision->reason = PST_REASON_DELAYED; /* behind others on the line: its limit let it go */
	decision->departure_ns += pst_delay_ns(line, decision->departure_ns);
	if (decision->departure_ns - now_ns > PST_HOLD_MAX_NSEC)
		pst_delay_drop(decision, PST_REASON_HORIZON, now_ns);
	return true;
}

#endif /* PENSTOCK_DELAY_H */
