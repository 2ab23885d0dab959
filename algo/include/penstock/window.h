/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * window.h: the one-number limiter with its actions: a packet's verdict, and its charge.
 *
 * What         the limiter's colour (limiter.h) -> the profile's action (action.h) -> what waits (hold.h) -> the state, unless it is dropped (S4)
 * Source       SwitchRL section 7; Nimble section 4.1; DragonKing section 4.2.
 * Units        limiter.h.
 * Ranges       limiter.h.
 * Invariants   those of pipeline.h: I2, I3, I6.
 * Overflow     limiter.h.
 * Concurrency  commits by compare-and-swap. False when another CPU was faster, and the decision is of an old state.
 */
#ifndef PENSTOCK_WINDOW_H
#define PENSTOCK_WINDOW_H

#include "hold.h"
#include "limiter.h"

PST_INLINE struct pst_arrival pst_packet_arrival(const struct pst_packet *packet, const struct pst_decision *decision,
						 uint64_t now_ns, uint32_t random_u32)
{
	return (struct pst_arrival){ now_ns, decision->length, random_u32, packet->network_tos,
				     packet->network_family != 0, { 0 } };
}

/* Where a limiter lies and what it is: a table slot and the limit of a class look alike from here. */
struct pst_limit_ref {
	uint64_t *state;
	uint64_t old; /* what *state was when rate and profile were read */
	uint32_t rate;
	uint32_t profile;
};

/* The one-number limiter: decide, then commit. False when another CPU was faster, and the decision is of an old state. */
PST_INLINE bool pst_window_judge(struct pst_decision *decision, const struct pst_plane *plane,
				    const struct pst_profile *profile, const struct pst_limit_ref *limit,
				    const struct pst_arrival *arrival)
{
	bool shapes = pst_hold_is_asked(plane, profile);
	uint32_t holder = shapes ? pst_plane_holder(plane, arrival->bytes, arrival->now_ns) : PST_HOLDER_ABSENT;
	struct pst_limiter_profile window;
	struct pst_limiter_result result;
	struct pst_yellow_zone zone;
	uint64_t old = limit->old;

	pst_limiter_resolve_as(&window, profile, limit->rate, holder < PST_HOLDER_ABSENT); /* else it polices */
	result = pst_limiter_try(&window, old, arrival->now_ns, arrival->bytes);
	decision->color = result.color;
	decision->departure_ns = arrival->now_ns + ((result.wait_ticks + PST_TICKS_PER_NSEC - 1) >> PST_TICK_BITS);
	zone.depth_ticks = result.depth_ticks;
	zone.first_ticks = window.green_ticks;
	zone.last_ticks = window.window_ticks;
	pst_color_apply(decision, profile, &zone, arrival);
	if (shapes) {
		const struct pst_hold_limit held = { result.vft_ticks, result.wait_ticks, limit->rate, holder };

		pst_hold_apply(decision, plane, profile, &held, arrival);
	}
	return pst_limiter_charge(limit->state, &old,
				  pst_select_u64(pst_is_same(decision->verdict, PST_VERDICT_DROP), old,
						 result.vft_ticks));
}

#endif /* PENSTOCK_WINDOW_H */
