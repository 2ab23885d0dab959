/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * action.h: what a colour means for a packet.
 *
 * What         a colour and the limit's profile -> pass | mark | drop | hold, with one reason.
 * Source       SwitchRL section 7 (yellow: random drop); Nimble section 4.1 (congestion manager: CE for ECT packets, RED
 *              for the rest, red dropped).
 * Units        now_ns, bytes, random_u32 uniform in [0, 2^32), probabilities in 1/2^32.
 * Ranges       an action that is none passes the packet.
 * Invariants   I1  every packet gets one verdict and one reason; PASS has PST_REASON_NONE.
 *              I3  a packet that is not ECT is never CE-marked.
 * Overflow     none: no arithmetic but red.h's.
 * Concurrency  pure.
 * Not done     the average queue of RED (red.h).
 */
#ifndef PENSTOCK_ACTION_H
#define PENSTOCK_ACTION_H

#include "limiter.h"
#include "red.h"

/* What is said of a packet that no limit has judged. */
PST_INLINE void pst_decision_clear(struct pst_decision *decision, uint64_t now_ns)
{
	decision->departure_ns = now_ns;
	decision->slot = PST_NONE;
	decision->limit_index = PST_NONE;
	decision->verdict = PST_VERDICT_PASS;
	decision->color = PST_COLOR_NONE;
	decision->reason = PST_REASON_NONE;
	decision->dscp = 0;
	decision->shadow = 0;
	decision->owner = 0;
	decision->cost_ns = 0;
}

PST_INLINE void pst_decision_start(struct pst_decision *decision, uint32_t link_index)
{
	pst_decision_clear(decision, 0);
	decision->length = 0;
	decision->class_index = PST_NONE;
	decision->reserved = 0;
	decision->link = (uint16_t)link_index;
}

/* What a packet brings to a limiter. */
struct pst_arrival {
	uint64_t now_ns;
	uint32_t bytes;
	uint32_t random_u32;
	uint8_t tos; /* of the outermost IP header */
	bool is_ip;
	uint8_t reserved[6]; /* kernels before 5.19 want every byte of what a stage is handed set */
};

PST_INLINE bool pst_tos_is_ect(uint8_t tos)
{
	return (tos & 3U) != 0; /* ECT(1), ECT(0), or CE already (RFC 3168, section 5) */
}

PST_INLINE void pst_decide(struct pst_decision *decision, uint8_t verdict, uint8_t reason)
{
	decision->verdict = verdict;
	decision->reason = reason;
}

/* Random drop on the way to red; red itself is dropped. */
PST_INLINE void pst_red_apply(struct pst_decision *decision, uint32_t drop_q32, uint32_t random_u32)
{
	if (decision->color == PST_COLOR_RED)
		pst_decide(decision, PST_VERDICT_DROP, PST_REASON_OVER_RATE);
	else if (pst_red_drops(drop_q32, random_u32))
		pst_decide(decision, PST_VERDICT_DROP, PST_REASON_EARLY_DROP);
	else
		pst_decide(decision, PST_VERDICT_PASS, PST_REASON_NONE);
}

/*
 * Turns an action other than PASS and DROP into a verdict. `drop_q32` is the RED probability at this depth. Nimble's
 * congestion manager: ECT packets are marked, the rest take their chance with RED; above red whatever cannot be marked is
 * dropped.
 */
PST_OUTLINE void pst_action_apply(struct pst_decision *decision, uint8_t action, uint8_t dscp, uint32_t drop_q32,
				 const struct pst_arrival *arrival)
{
	pst_decide(decision, PST_VERDICT_PASS, PST_REASON_NONE);
	switch (action) {
	case PST_ACTION_MARK:
		if (arrival->is_ip && pst_tos_is_ect(arrival->tos))
			pst_decide(decision, PST_VERDICT_MARK, PST_REASON_CE_MARK);
		else
			pst_red_apply(decision, drop_q32, arrival->random_u32);
		break;
	case PST_ACTION_RED:
		pst_red_apply(decision, drop_q32, arrival->random_u32);
		break;
	case PST_ACTION_DSCP:
		if (arrival->is_ip) {
			decision->dscp = dscp;
			pst_decide(decision, PST_VERDICT_MARK, PST_REASON_DSCP_MARK);
		}
		break;
	case PST_ACTION_HOLD:
		if (decision->departure_ns != arrival->now_ns)
			pst_decide(decision, PST_VERDICT_HOLD, PST_REASON_HELD);
		break;
	default:
		break;
	}
}

/* How deep the queue is that makes packets yellow: what RED's probability follows. */
struct pst_yellow_zone {
	uint64_t depth_ticks;
	uint64_t first_ticks; /* where yellow begins, and where it ends */
	uint64_t last_ticks;
};

/* Few packets need it, and it finds a length by six branches: what the verifier would follow at each place that asks. */
PST_RARE_STAGE uint32_t pst_zone_drop_q32(uint64_t depth_ticks, uint64_t first_ticks, uint64_t last_ticks, uint32_t max_q32)
{
	return pst_red_probability_q32(depth_ticks, first_ticks, last_ticks, max_q32);
}

/*
 * Applies the action of the decision's colour. Passing and dropping alternate as no CPU can predict: for them there is
 * arithmetic in the place of branches.
 */
PST_INLINE void pst_color_apply(struct pst_decision *decision, const struct pst_profile *profile,
				const struct pst_yellow_zone *zone, const struct pst_arrival *arrival)
{
	/* A byte a colour; that of GREEN is 0, PASS. */
	uint32_t actions = (uint32_t)profile->yellow_action << 8 | (uint32_t)profile->red_action << 16;
	uint8_t action = (uint8_t)(actions >> 8 * decision->color);
	uint32_t is_red = pst_is_same(decision->color, PST_COLOR_RED), drop_q32 = 0;

	if (action <= PST_ACTION_DROP) { /* 0 or 1 */
		decision->verdict = (uint8_t)(action * PST_VERDICT_DROP);
		decision->reason = (uint8_t)(action * pst_select_u64(is_red, PST_REASON_OVER_RATE, PST_REASON_YELLOW));
		return;
	}
	if (!is_red && pst_profile_drops_early(profile)) /* the probability costs a division */
		drop_q32 = pst_zone_drop_q32(zone->depth_ticks, zone->first_ticks, zone->last_ticks, profile->red_max_q32);
	pst_action_apply(decision, action, is_red ? profile->red_dscp : profile->yellow_dscp, drop_q32, arrival);
}

#endif /* PENSTOCK_ACTION_H */
