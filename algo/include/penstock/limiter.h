/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * limiter.h: a limiter whose whole state is one virtual finish time.
 *
 * What         With window = c + e, for a packet of `bytes` at `now`:
 *                  floor = now - window               an idle virtual queue has credit c + e
 *                  base  = max(vft, floor)            clamp first
 *                  depth = base + cost(bytes) - floor
 *                  depth <= c       green             vft' = base + cost
 *                  depth <= c + e   yellow            vft' = base + cost
 *                  above            red               vft unchanged; or, when shaping, hold until base and charge
 * Source       ours, from SwitchRL section 5 (Algorithm 3) with errata S1-S3, and Nimble section 4.1 (virtual queue).
 *              Vocabulary of network calculus: the limiter is a leaky bucket (rate, c + e).
 * Units        _ticks 1/1024 ns, bytes, rate codes (fixed.h).
 * Ranges       rate 512 bit/s .. 1 Tbit/s; bytes up to 2^17; c, e up to PST_WINDOW_MAX_TICKS (73 minutes) each, of
 *              which up to 1 GiB may be written as bytes: resolve cuts what is more.
 *              A limiter that polices needs c + e >= 2 * cost(MTU): with less, credit is lost while a whole packet's
 *              worth gathers (S2). pst_limiter_resolve widens: c to one MTU, c + e to
 *              two, or to three where yellow packets may be dropped early, which empties a queue of two now and then.
 * Invariants   I1  in any [s, t]: bytes passed <= (c+e) * rate + rate * (t-s) + one packet.
 *              I2  a backlogged source gets >= rate * (t-s) - one packet.
 *              I3  red changes nothing; green and yellow charge exactly cost(bytes).
 *              I4  decisions depend on now - vft only: adding a constant to both changes nothing, wraps included.
 *              I5  a vft ahead of now by more than PST_AHEAD_MAX_TICKS is stale (half a wrap, 104 days, idle) and reads
 *                  as idle: so a host that shapes drops what would wait longer, and does not store that result.
 *              I6  after a change of rate the virtual queue holds the same bytes, to within 1/256 byte and two ticks,
 *                  cut to the new window. One that ends after now, as where packets wait, ends when it did, at any rate and under
 *                  any terms: they go when they were told, and nobody who comes later overtakes them.
 *              I7  a limiter that is copied, goes on to be charged, then is charged at the copy, and is caught up, has the
 *                  queue of one that was charged at one place all the time, to within 1/256 byte and two ticks each time; more by
 *                  at most the time since the copy was charged first. While some packets still charge the original, it may be
 *                  caught up again and again.
 * Overflow     window <= 2^53, cost < 2^51 + 2^53 (bytes < 2^17, 2^34 ticks a byte), depth < 2^55: all far below 2^63.
 *              convert: a queue is below 2^54, and what it becomes is cut after it was counted (fixed.h).
 * Concurrency  pure; pst_limiter_take commits by compare-and-swap. A writer that loses the race PST_CAS_TRIES times
 *              adds its cost unconditionally, so nothing is ever uncharged, and at most one packet per other CPU passes
 *              above red.
 * Not done     no colour-aware mode (one variable cannot be RFC 2697, erratum S5: see srtcm.h).
 */
#ifndef PENSTOCK_LIMITER_H
#define PENSTOCK_LIMITER_H

#include "fixed.h"
#include "wire.h"

#define PST_WINDOW_MAX_TICKS (UINT64_C(1) << 52)
#define PST_AHEAD_MAX_TICKS (UINT64_C(1) << 48) /* 275 s: the longest that a shaped packet may wait */
#define PST_CAS_TRIES 4

struct pst_limiter_profile {
	uint64_t green_ticks;  /* c */
	uint64_t window_ticks; /* c + e */
	uint32_t rate;         /* rate code */
	bool shapes;
};

struct pst_limiter_result {
	uint64_t vft_ticks;   /* the state to store; the old one when red */
	uint64_t depth_ticks; /* of the virtual queue, this packet included */
	uint64_t wait_ticks;  /* until its turn; 0 unless held */
	uint8_t color;
};

/* What any number of bytes takes; more than pst_rate_cost knows counts as the most that it does. */
PST_INLINE uint64_t pst_limiter_drain(uint32_t rate, uint32_t bytes)
{
	return pst_rate_cost(rate, bytes < PST_COST_BYTES_MAX ? bytes : PST_COST_BYTES_MAX - 1);
}

/* A depth written as time plus bytes, as time; never above PST_WINDOW_MAX_TICKS, however slow the rate. */
PST_OUTLINE uint64_t pst_limiter_depth(uint32_t rate, uint64_t ticks, uint32_t bytes)
{
	uint64_t more = pst_limiter_drain(rate, bytes);

	if (ticks > PST_WINDOW_MAX_TICKS || more > PST_WINDOW_MAX_TICKS - ticks)
		return PST_WINDOW_MAX_TICKS;
	return ticks + more;
}

/* Does yellow drop at random (RED), be it only what cannot be marked? */
PST_INLINE bool pst_profile_drops_early(const struct pst_profile *profile)
{
	return profile->yellow_action == PST_ACTION_RED || profile->yellow_action == PST_ACTION_MARK;
}

/* The packets of mtu_bytes that a window holds at least: two (S2), or three with early drop. */
PST_INLINE uint32_t pst_limiter_packets(const struct pst_profile *profile)
{
	return pst_profile_drops_early(profile) ? 3 : 2;
}

/*
 * Resolves the shared profile for one rate: bytes become time, and slow limits that police get the packets that they need. One that
 * shapes polices as long as nobody is there to hold packets.
 */
PST_INLINE void pst_limiter_resolve_as(struct pst_limiter_profile *out, const struct pst_profile *profile, uint32_t rate,
				       bool shapes)
{
	uint64_t packet = pst_rate_cost(rate, profile->mtu_bytes);
	uint64_t least = pst_limiter_packets(profile) * packet;
	uint64_t excess = profile->excess_ticks;

	out->rate = rate;
	out->shapes = shapes;
	out->green_ticks = profile->burst_ticks;
	/* Most limits write their depths as times, and sane ones. */
	if ((profile->burst_bytes | profile->excess_bytes) || (out->green_ticks | excess) >= PST_WINDOW_MAX_TICKS) {
		out->green_ticks = pst_limiter_depth(rate, profile->burst_ticks, profile->burst_bytes);
		excess = pst_limiter_depth(rate, profile->excess_ticks, profile->excess_bytes);
	}
	if (!out->shapes && out->green_ticks < packet)
		out->green_ticks = packet;
	out->window_ticks = out->green_ticks + excess;
	if (!out->shapes && out->window_ticks < least)
		out->window_ticks = least;
}

PST_INLINE void pst_limiter_resolve(struct pst_limiter_profile *out, const struct pst_profile *profile, uint32_t rate)
{
	pst_limiter_resolve_as(out, profile, rate, profile->red_action == PST_ACTION_HOLD);
}

/* A state that reads as idle, that is with full credit, whatever the profile (erratum S3: start full). */
PST_INLINE uint64_t pst_limiter_idle(uint64_t now_ns)
{
	return pst_clock_ticks(now_ns) - 4 * PST_WINDOW_MAX_TICKS;
}

/* The virtual finish time, clamped to what it can mean now. Below the floor is, without a sign, far above it. */
PST_INLINE uint64_t pst_limiter_base(const struct pst_limiter_profile *profile, uint64_t vft_ticks, uint64_t now_ticks)
{
	uint64_t floor_ticks = now_ticks - profile->window_ticks;

	if (vft_ticks - floor_ticks > profile->window_ticks + PST_AHEAD_MAX_TICKS)
		return floor_ticks;
	return vft_ticks;
}

/* Decides for one packet that takes `cost_ticks`, without changing anything. The profile's rate is not asked for. */
PST_INLINE struct pst_limiter_result pst_limiter_judge(const struct pst_limiter_profile *profile, uint64_t vft_ticks,
						       uint64_t now_ns, uint64_t cost_ticks)
{
	uint64_t now = pst_clock_ticks(now_ns);
	uint64_t base = pst_limiter_base(profile, vft_ticks, now);
	uint64_t finish = base + cost_ticks;
	struct pst_limiter_result result;
	uint32_t is_red;

	result.depth_ticks = finish - (now - profile->window_ticks);
	is_red = pst_is_above(result.depth_ticks, profile->window_ticks);
	/* No branch on the colour: it is what a CPU cannot predict. GREEN is 0, YELLOW 1, RED 2. */
	result.color = (uint8_t)(pst_is_above(result.depth_ticks, profile->green_ticks) + is_red);
	result.vft_ticks = finish;
	result.wait_ticks = 0;
	if (!profile->shapes)
		result.vft_ticks = pst_select_u64(is_red, vft_ticks, finish);
	else if (is_red && pst_clock_since(base, now) > 0)
		result.wait_ticks = base - now;
	return result;
}

/* Decides for one packet without changing anything. */
PST_INLINE struct pst_limiter_result pst_limiter_try(const struct pst_limiter_profile *profile, uint64_t vft_ticks,
						     uint64_t now_ns, uint32_t bytes)
{
	return pst_limiter_judge(profile, vft_ticks, now_ns, pst_rate_cost(profile->rate, bytes));
}

/*
 * Stores `next` if the state is still `old`; otherwise puts what it is now into `old` and returns false. Under PST_ONE_THREAD
 * (types.h) it always is.
 */
PST_INLINE bool pst_limiter_commit(uint64_t *state, uint64_t *old, uint64_t next)
{
#ifdef PST_ONE_THREAD
	uint64_t seen = *old;

	*state = next;
#else
	uint64_t seen = __sync_val_compare_and_swap(state, *old, next);
#endif

	if (seen == *old)
		return true;
	*old = seen;
	return false;
}

/* Commits a decision. One that charged nothing has nothing to store, and takes no bus lock for it. */
PST_INLINE bool pst_limiter_charge(uint64_t *state, uint64_t *old, uint64_t next)
{
#ifndef PST_ONE_THREAD
	if (next == *old)
		return true;
#endif
	return pst_limiter_commit(state, old, next);
}

/* Polices one packet on a state that other CPUs use too. Returns its colour; red is not charged. */
PST_INLINE uint8_t pst_limiter_take(const struct pst_limiter_profile *profile, uint64_t *vft_ticks, uint64_t now_ns,
				    uint32_t bytes)
{
	uint64_t old = *(volatile uint64_t *)vft_ticks;
	uint8_t color = PST_COLOR_GREEN;
	int tries;

	for (tries = 0; tries < PST_CAS_TRIES; tries++) {
		struct pst_limiter_result result = pst_limiter_try(profile, old, now_ns, bytes);

		color = result.color;
		if (color == PST_COLOR_RED || pst_limiter_commit(vft_ticks, &old, result.vft_ticks))
			return color;
	}
	__sync_fetch_and_add(vft_ticks, pst_rate_cost(profile->rate, bytes));
	return color;
}

/* The depth of the virtual queue now. */
PST_INLINE uint64_t pst_limiter_queue(const struct pst_limiter_profile *profile, uint64_t vft_ticks, uint64_t now_ns)
{
	uint64_t now = pst_clock_ticks(now_ns);

	return pst_limiter_base(profile, vft_ticks, now) - (now - profile->window_ticks);
}

/* The state after a limit changed from `before` to `after`: the virtual queue keeps its bytes (Nimble section 4.1), or its end (I6). */
PST_INLINE uint64_t pst_limiter_convert(const struct pst_limiter_profile *before,
					const struct pst_limiter_profile *after, uint64_t vft_ticks, uint64_t now_ns)
{
	uint64_t now = pst_clock_ticks(now_ns), base = pst_limiter_base(before, vft_ticks, now), ticks;

	if (pst_clock_since(base, now) > 0)
		return base;
	ticks = pst_rate_convert(before->rate, after->rate, base - (now - before->window_ticks));
	return now - after->window_ticks + (ticks < after->window_ticks ? ticks : after->window_ticks);
}

/*
 * The copy's state with what the original had more in its queue, when packets went over to the copy, than the copy had (I7). It is added
 * where the copy stood, not where it is now: while the copy was idle, its queue would have drained.
 */
PST_INLINE uint64_t pst_limiter_catch_up(const struct pst_limiter_profile *before,
					 const struct pst_limiter_profile *after, const struct pst_limiter_copy *copy,
					 uint64_t vft_ticks, uint64_t now_ns)
{
	uint64_t switched = pst_clock_ticks(copy->switched_ns), most, ahead, next;
	int64_t late = pst_clock_since(pst_limiter_base(before, copy->last_ticks, switched),
				       pst_limiter_base(before, copy->copied_ticks, switched));

	if (copy->last_ticks == copy->copied_ticks || late <= 0)
		return vft_ticks;
	/* A window, and what the original was charged after that, by packets that went over later. */
	most = after->window_ticks + pst_clock_ticks(now_ns - copy->switched_ns) + (after->shapes ? PST_AHEAD_MAX_TICKS : 0);
	late = (int64_t)pst_rate_convert(before->rate, after->rate, (uint64_t)late);
	next = pst_limiter_base(after, vft_ticks, switched) + ((uint64_t)late < most ? (uint64_t)late : most);
	ahead = pst_clock_ticks(now_ns) + PST_AHEAD_MAX_TICKS; /* more would read as stale */
	return pst_clock_since(next, ahead) > 0 ? ahead : next;
}

/* The same of a limit that shapes: not before the end of what the original has told packets to wait for (I6). */
PST_INLINE uint64_t pst_limiter_catch_up_behind(const struct pst_limiter_profile *before,
						const struct pst_limiter_profile *after,
						const struct pst_limiter_copy *copy, uint64_t vft_ticks, uint64_t now_ns)
{
	uint64_t now = pst_clock_ticks(now_ns), next = pst_limiter_catch_up(before, after, copy, vft_ticks, now_ns);
	uint64_t held_until = pst_limiter_base(before, copy->last_ticks, now);

	if (pst_clock_since(held_until, now) > 0 && pst_clock_since(held_until, next) > 0)
		return held_until;
	return next;
}

#endif /* PENSTOCK_LIMITER_H */
