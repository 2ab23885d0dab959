/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * threshold.h: the limit that gives each user of a slice its max-min share.
 *
 * What         f(T) = sum over users of min(T, R): what passes under a limit T. Sought is f(T) = C.
 *              Three candidates T - D, T, T + D with D = 2^floor(log2(T/2)); each has a low-pass filter of what would pass under it. Every
 *              epoch, from the middle outwards:
 *                  f(T) <= C < f(T + D)    T + D (C - f(T)) / (f(T + D) - f(T))
 *                  f(T - D) < C < f(T)     T - D (f(T) - C) / (f(T) - f(T - D))
 *                  else                    T + D or T - D
 *              and where all that came is no more than C, no limit is needed, but a newcomer must find one:
 *                  demand <= C             T = largest user + (C - demand)
 *              which bounds T from above at all other times too. An idle slice needs no more: its filters empty by themselves, so that the first
 *              packet after the pause sets T = C less what is left.
 *              default    a packet adds length * min(1, T / R) to each filter: the expectation, without chance, by exact division; and with T the
 *                         filters move along the curve that they have just drawn, or f would speak of limits that were
 *              faithful   it adds all or nothing, by chance and the prefix divide (approx.h); so does the interpolation, times D by a shift
 *              limiters   where T is the rate of limiters (limiter_sketch.h), `passed` is a filter of what they let through. C is multiplied with a gain
 *                         of 1/2 to 1, which moves by a 64th of what passed too much or too little; and T grows by an eighth in an epoch at most:
 *                         if it rose in each pause of senders that come in bursts, as it may, limiters would forgive all that came in between.
 *              The published form keeps the filters as they are: f(T) then follows T four epochs late, and T swings past its goal by up to a half.
 * Source       AHAB sections V-B, V-C (equations 8, 11, 13), V-D. Errata: A2 tau is that of the rates; A3 shifts to the right are kept; A4 the
 *              rule for idle slices, which the paper does not have: there T grows by half an epoch without end.
 * Units        parts (lpf.h). Limits and users are per unit of weight; lengths, C, f and demand are the slice's, without weights.
 * Ranges       T between PST_THRESHOLD_MIN_PARTS, a millionth of the nominal rate, and 2^31. Epochs of 2^20 ns.
 *              C is to be ten packets in tau or more (30 Mbit/s of 1500 bytes at 4 ms): then shares are right to 2 %. With four packets it is
 *              6 %, with one 16 % and 8 % of C too much; below that nobody can be told from the others. A longer tau helps (test_ahab.c).
 * Invariants   I1  T - D, T, T + D are in order, and D is more than a quarter of T and at most half of it.
 *              I2  T changes by D at most in an epoch in which demand is above C, or down to what is never needed.
 *              I3  default: what passes under a higher limit is no less. Faithful: one number decides for all three.
 *              I4  a slice whose pause was 22 tau and an epoch has T = C at its first packet, whatever T was; with limiters, if that is what it can have
 *                  grown to.
 *              I5  an epoch is turned once, by whoever comes first after its end, packet or host; time that steps back by up to 64 epochs turns none.
 * Overflow     length < 2^32 times T < 2^32, and half of R, is below 2^64. |C - f| < 2^32 times D < 2^31.
 * Concurrency  the epoch and T are one word, changed by compare-and-swap: the loser goes on with what it has read. Filters as lpf.h.
 *              All CPUs of a slice write the same four words.
 * Not done     upper levels of the hierarchy: the control loop reads demand and writes C (section III-B, A5).
 */
#ifndef PENSTOCK_THRESHOLD_H
#define PENSTOCK_THRESHOLD_H

#include "approx.h"
#include "lpf.h"

#define PST_THRESHOLD_EPOCH_SHIFT 20 /* 1.05 ms */
#define PST_THRESHOLD_BACK_EPOCHS 64
#define PST_THRESHOLD_MIN_PARTS UINT32_C(16)
#define PST_THRESHOLD_MAX_PARTS (UINT32_C(1) << 31)
#define PST_THRESHOLD_GROWTH_SHIFT 3
#define PST_THRESHOLD_GAIN_SHIFT 6
#define PST_THRESHOLD_GAIN_ONE_Q16 (UINT32_C(1) << 16)

struct pst_threshold_profile {
	uint32_t capacity_parts; /* C: pst_lpf_parts_of_rate */
	uint32_t tau_shift;      /* the sketch's (A2) */
	uint32_t epoch_shift;
	uint32_t divide_bits; /* faithful: b of the prefix divide; 0: default */
};

/* What limit there is, from pst_threshold_state.limit. */
PST_INLINE uint32_t pst_threshold_limit_parts(uint64_t limit)
{
	uint32_t parts = (uint32_t)limit;

	if (parts < PST_THRESHOLD_MIN_PARTS)
		return PST_THRESHOLD_MIN_PARTS;
	return parts < PST_THRESHOLD_MAX_PARTS ? parts : PST_THRESHOLD_MAX_PARTS;
}

/* log2 of D. */
PST_INLINE uint32_t pst_threshold_step_shift(uint32_t limit_parts)
{
	return pst_bit_length(limit_parts) - 2;
}

/* What passes of a packet of a user, on average, under a limit. */
PST_INLINE uint32_t pst_threshold_passing(uint32_t length_parts, uint32_t limit_parts, uint32_t user_parts)
{
	if (user_parts <= limit_parts)
		return length_parts;
	return (uint32_t)(((uint64_t)length_parts * limit_parts + user_parts / 2) / user_parts);
}

/* The same, by chance: all of it or nothing (equation 7). */
PST_INLINE uint32_t pst_threshold_passing_by_chance(uint32_t length_parts, uint32_t limit_parts, uint32_t user_parts, uint32_t b,
						    uint32_t random_u32)
{
	return random_u32 >> 20 < pst_prefix_divide_q12(limit_parts, user_parts, b) ? length_parts : 0;
}

/* What came, and how its user reads after it. */
struct pst_threshold_packet {
	uint32_t length_parts;
	uint32_t user_parts;
	uint32_t random_u32; /* faithful: the number that decides on the packet itself */
};

/* A packet under one candidate. */
PST_INLINE void pst_threshold_add(const struct pst_threshold_profile *profile, uint64_t *word, uint32_t stamp,
				  const struct pst_threshold_packet *packet, uint32_t limit_parts)
{
	uint32_t parts;

	if (profile->divide_bits)
		parts = pst_threshold_passing_by_chance(packet->length_parts, limit_parts, packet->user_parts, profile->divide_bits,
							packet->random_u32);
	else
		parts = pst_threshold_passing(packet->length_parts, limit_parts, packet->user_parts);
	pst_lpf_add(word, stamp, parts);
}

/* A packet has come: before it is decided on. */
PST_INLINE void pst_threshold_count(const struct pst_threshold_profile *profile, struct pst_threshold_state *state, uint32_t stamp,
				    const struct pst_threshold_packet *packet)
{
	uint32_t limit = pst_threshold_limit_parts(*(volatile uint64_t *)&state->limit);
	uint32_t step = UINT32_C(1) << pst_threshold_step_shift(limit);

	pst_threshold_add(profile, &state->low, stamp, packet, limit - step);
	pst_threshold_add(profile, &state->middle, stamp, packet, limit);
	pst_threshold_add(profile, &state->high, stamp, packet, limit + step);
	pst_lpf_add(&state->demand, stamp, packet->length_parts);
	pst_lpf_raise(&state->largest, stamp, packet->user_parts);
}

/* part / whole of D; part below whole. */
PST_INLINE uint32_t pst_threshold_fraction(uint32_t part, uint32_t whole, uint32_t step_shift, uint32_t divide_bits)
{
	if (divide_bits)
		return pst_prefix_times(pst_prefix_divide_q12(part, whole, divide_bits), step_shift);
	return (uint32_t)(((uint64_t)part << step_shift) / (whole ? whole : 1));
}

/* f under the three candidates. */
struct pst_threshold_curve {
	uint32_t low_parts;
	uint32_t middle_parts;
	uint32_t high_parts;
};

/* Equations 8 and 13, and the ends. */
PST_INLINE uint32_t pst_threshold_interpolate(uint32_t limit_parts, uint32_t capacity_parts, const struct pst_threshold_curve *f,
					      uint32_t divide_bits)
{
	uint32_t shift = pst_threshold_step_shift(limit_parts), step = UINT32_C(1) << shift;

	if (capacity_parts >= f->middle_parts) {
		if (capacity_parts >= f->high_parts)
			return limit_parts + step;
		return limit_parts + pst_threshold_fraction(capacity_parts - f->middle_parts, f->high_parts - f->middle_parts, shift, divide_bits);
	}
	if (capacity_parts <= f->low_parts)
		return limit_parts - step;
	return limit_parts - pst_threshold_fraction(f->middle_parts - capacity_parts, f->middle_parts - f->low_parts, shift, divide_bits);
}

/* The filters now; in order, which chance may not have left them in. */
PST_INLINE void pst_threshold_read(struct pst_threshold_curve *f, const struct pst_threshold_state *state, uint32_t stamp)
{
	f->low_parts = pst_lpf_read(state->low, stamp);
	f->middle_parts = pst_lpf_read(state->middle, stamp);
	f->high_parts = pst_lpf_read(state->high, stamp);
	if (f->middle_parts < f->low_parts)
		f->middle_parts = f->low_parts;
	if (f->high_parts < f->middle_parts)
		f->high_parts = f->middle_parts;
}

/*
 * What C is multiplied with, in the next epoch. A sender that comes in bursts is above T and below it by turns, and min(1, T / R) passes less of it than a
 * limiter does, which forgives a burst what was saved before: CUBIC flows were measured to pass 1.15 C. By small steps, or it would answer to what is forgiven in a moment.
 */
PST_INLINE uint32_t pst_threshold_gain_q16(const struct pst_threshold_profile *profile, const struct pst_threshold_state *state, uint32_t stamp)
{
	uint32_t gain = state->gain_q16 ? state->gain_q16 : PST_THRESHOLD_GAIN_ONE_Q16, passed = pst_lpf_read(state->passed, stamp);
	uint64_t part_q16;

	if (passed == 0)
		return PST_THRESHOLD_GAIN_ONE_Q16;
	part_q16 = ((uint64_t)passed << 16) / (profile->capacity_parts ? profile->capacity_parts : 1);
	part_q16 = part_q16 < 2 * PST_THRESHOLD_GAIN_ONE_Q16 ? part_q16 : 2 * PST_THRESHOLD_GAIN_ONE_Q16;
	gain = (uint32_t)(gain + (PST_THRESHOLD_GAIN_ONE_Q16 >> PST_THRESHOLD_GAIN_SHIFT) - (part_q16 >> PST_THRESHOLD_GAIN_SHIFT));
	if (gain < PST_THRESHOLD_GAIN_ONE_Q16 / 2)
		return PST_THRESHOLD_GAIN_ONE_Q16 / 2;
	return gain < PST_THRESHOLD_GAIN_ONE_Q16 ? gain : PST_THRESHOLD_GAIN_ONE_Q16;
}

/* T for the next epoch. */
PST_INLINE uint32_t pst_threshold_next(const struct pst_threshold_profile *profile, const struct pst_threshold_state *state,
				       uint32_t limit_parts, uint32_t stamp, uint32_t epochs, uint32_t gain_q16)
{
	uint32_t demand = pst_lpf_read(state->demand, stamp), capacity = profile->capacity_parts;
	uint64_t most = pst_lpf_read(state->largest, stamp), next = most + capacity - demand;

	if (demand > capacity) {
		struct pst_threshold_curve f;

		pst_threshold_read(&f, state, stamp);
		capacity = (uint32_t)((uint64_t)capacity * gain_q16 >> 16);
		next = pst_threshold_interpolate(limit_parts, capacity, &f, profile->divide_bits);
		next = next < most ? next : most;
	}
	if (state->passed) {
		uint64_t most_grown = limit_parts + ((uint64_t)limit_parts * epochs >> PST_THRESHOLD_GROWTH_SHIFT);

		next = next < most_grown ? next : most_grown;
	}
	if (next < PST_THRESHOLD_MIN_PARTS)
		return PST_THRESHOLD_MIN_PARTS;
	return next < PST_THRESHOLD_MAX_PARTS ? (uint32_t)next : PST_THRESHOLD_MAX_PARTS;
}

/* The curve at another limit: straight from 0 to T - D to T to T + D and on, up to all that came. */
PST_INLINE uint32_t pst_threshold_at(const struct pst_threshold_curve *f, uint32_t limit_parts, uint32_t at_parts, uint32_t demand_parts)
{
	uint32_t shift = pst_threshold_step_shift(limit_parts), low = limit_parts - (UINT32_C(1) << shift);
	uint64_t value;

	if (at_parts <= low)
		value = (uint64_t)f->low_parts * at_parts / (low ? low : 1);
	else if (at_parts <= limit_parts)
		value = f->low_parts + ((uint64_t)(f->middle_parts - f->low_parts) * (at_parts - low) >> shift);
	else
		value = f->middle_parts + ((uint64_t)(f->high_parts - f->middle_parts) * (at_parts - limit_parts) >> shift);
	return value < demand_parts ? (uint32_t)value : demand_parts;
}

/* Moves the filters along the curve, from the candidates around one limit to those around the next. */
PST_RARE_STAGE bool pst_threshold_follow(struct pst_threshold_state *state, uint32_t stamp, uint32_t before_parts, uint32_t after_parts)
{
	struct pst_threshold_curve f;
	uint32_t step, demand;

	if (PST_IS_ABSENT(state))
		return true;
	step = UINT32_C(1) << (pst_threshold_step_shift(after_parts) & 31);
	demand = pst_lpf_read(state->demand, stamp);
	pst_threshold_read(&f, state, stamp);
	pst_lpf_move(&state->low, stamp, f.low_parts, pst_threshold_at(&f, before_parts, after_parts - step, demand));
	pst_lpf_move(&state->middle, stamp, f.middle_parts, pst_threshold_at(&f, before_parts, after_parts, demand));
	pst_lpf_move(&state->high, stamp, f.high_parts, pst_threshold_at(&f, before_parts, after_parts + step, demand));
	return true;
}

/* Has the epoch ended that this limit is of? */
PST_INLINE bool pst_threshold_is_over(uint64_t limit, uint32_t epoch)
{
	uint32_t elapsed = epoch - (uint32_t)(limit >> 32);

	return elapsed != 0 && elapsed <= UINT32_MAX - PST_THRESHOLD_BACK_EPOCHS;
}

PST_INLINE uint32_t pst_threshold_epoch(const struct pst_threshold_profile *profile, uint64_t now_ns)
{
	return (uint32_t)(now_ns >> (profile->epoch_shift & 63));
}

/*
 * Turns the epoch if it is over: whoever comes first, a packet or the host. True if it was this call. Filters are read at the end of the
 * epoch: just before a packet they are too low by half a gap, and C would be exceeded by as much.
 */
PST_INLINE bool pst_threshold_turn(const struct pst_threshold_profile *profile, struct pst_threshold_state *state, uint64_t now_ns)
{
	uint64_t old = *(volatile uint64_t *)&state->limit;
	uint32_t epoch = pst_threshold_epoch(profile, now_ns), shift = profile->epoch_shift & 63;
	uint32_t stamp = pst_lpf_stamp(now_ns >> shift << shift, profile->tau_shift);
	uint32_t before = pst_threshold_limit_parts(old), after, gain;

	if (!pst_threshold_is_over(old, epoch))
		return false;
	gain = pst_threshold_gain_q16(profile, state, stamp);
	after = pst_threshold_next(profile, state, before, stamp, epoch - (uint32_t)(old >> 32), gain);
	if (!pst_limiter_commit(&state->limit, &old, (uint64_t)epoch << 32 | after))
		return false;
	state->gain_q16 = gain;
	if (!profile->divide_bits)
		pst_threshold_follow(state, stamp, before, after);
	return true;
}

/* A slice that nobody has used yet. */
PST_INLINE struct pst_threshold_state pst_threshold_start(const struct pst_threshold_profile *profile, uint64_t now_ns)
{
	struct pst_threshold_state state;

	state.limit = (uint64_t)pst_threshold_epoch(profile, now_ns) << 32 | profile->capacity_parts;
	state.low = state.middle = state.high = state.demand = state.largest = state.passed = 0;
	state.gain_q16 = state.reserved = 0;
	return state;
}

/* All of it for one packet: the limit that it is to be decided by. */
PST_INLINE uint32_t pst_threshold_take(const struct pst_threshold_profile *profile, struct pst_threshold_state *state, uint64_t now_ns,
				       const struct pst_threshold_packet *packet)
{
	pst_threshold_turn(profile, state, now_ns);
	pst_threshold_count(profile, state, pst_lpf_stamp(now_ns, profile->tau_shift), packet);
	return pst_threshold_limit_parts(*(volatile uint64_t *)&state->limit);
}

#endif /* PENSTOCK_THRESHOLD_H */
