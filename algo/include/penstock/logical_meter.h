/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * logical_meter.h: Nimble's logical meter and what its congestion manager does with a colour.
 *
 * What         A virtual queue in bytes. For a packet of `bytes` at `now`:
 *                  q     = max(0, q - rate * (now - last))      drain and clamp first (erratum N1)
 *                  depth = q + bytes
 *                  depth > red      red: dropped, not counted
 *                  depth > yellow   yellow       otherwise green
 *                  q'    = depth if the packet goes on, else q
 *              The congestion manager, by what the class asks for:
 *                  police   yellow passes
 *                  DCTCP    yellow: CE if the packet is ECN-capable, else dropped with RED's probability
 *                  DCQCN    yellow: CE with RED's probability if it is ECN-capable, else dropped with that probability
 *              Red is always dropped, so a sender that ignores marks is still held to its rate.
 * Source       Nimble sections 3.1.1, 3.1.2 (ECN-shaping), 4.1 (logical meters, congestion manager, Algorithm 1), 4.3.
 * Units        _nB nanobytes, _ns nanoseconds, bytes, rate_Bps bytes per second, _q32 probability.
 * Ranges       as nanobytes.h: the queue holds up to 2^32 - 1 bytes; packets are any u32. Thresholds are widened to one
 *              packet of mtu_bytes (yellow), and two (red, police) or three (red, with early drop): with less, credit
 *              is lost while a packet gathers (S2), or while the queue stands empty after an early drop.
 * Invariants   I1  in any [s, t]: bytes passed <= red + rate * (t - s).
 *              I2  a backlogged source gets >= rate * (t - s) - one packet.
 *              I3  what is dropped, red or early, is not counted; what goes on is counted whole.
 *              I4  decisions depend on now - last only, wraps included.
 *              I5  0 <= q <= red, always.
 *              I6  a change of rate keeps the queue's bytes exactly, unless red itself shrinks below them.
 *              I7  the exact form decides as limiter.h does with green = yellow / rate and window = red / rate, up to
 *                  that limiter's rounding (fixed.h I1 for each packet charged), while time does not step back.
 *              I8  the TCAM form drains each gap with a relative error below 2^-b, so its rate is within 2^-b too.
 * Overflow     q <= red < 2^62 and a packet < 2^62, so depth < 2^63. TCAM: elapsed < fill_ns means
 *              rate * elapsed < red < 2^62, twice the mean is at most 3 * elapsed: below 3 * 2^62.
 * Concurrency  two words that belong together: one writer, or a lock. limiter.h is the form for many.
 * Not done     the two-rate meter (trtcm.h), native meters and real queues of Table 1, and the network-wide part.
 */
#ifndef PENSTOCK_LOGICAL_METER_H
#define PENSTOCK_LOGICAL_METER_H

#include "approx.h"
#include "nanobytes.h"
#include "red.h"
#include "verdict.h"

#define PST_LOGICAL_METER_YELLOW_BYTES UINT32_C(16000)      /* "a low yellow threshold (e.g. 16KB)", section 4.2 */
#define PST_LOGICAL_METER_PORT_BYTES UINT32_C(400000)       /* the paper's buffer of one port, shared by weight */

enum pst_congestion {
	PST_CONGESTION_POLICE = 0,
	PST_CONGESTION_DCTCP = 1,
	PST_CONGESTION_DCQCN = 2,
};

struct pst_logical_meter_params {
	uint64_t rate_Bps;
	uint32_t yellow_bytes;
	uint32_t red_bytes;
	uint32_t mtu_bytes;
	uint32_t red_max_q32; /* largest early-drop or marking probability, at the red threshold */
	uint8_t congestion;   /* enum pst_congestion */
	uint8_t tcam_bits;    /* b of the TCAM form, clamped to 1..24; the exact form ignores it */
};

struct pst_logical_meter_profile {
	struct pst_flow_profile flow; /* full is the red threshold */
	uint64_t yellow_nB;
	uint32_t red_max_q32;
	uint8_t congestion;
	uint8_t tcam_bits;
};

struct pst_logical_meter_state {
	uint64_t queue_nB;
	uint64_t last_ns;
};

struct pst_logical_meter_result {
	struct pst_logical_meter_state drained; /* the state without this packet */
	uint64_t depth_nB;                      /* of the virtual queue, this packet included */
	uint8_t color;                          /* enum pst_color */
	uint8_t verdict;                        /* enum pst_verdict, once settled */
	uint8_t reason;                         /* enum pst_reason, once settled */
};

PST_INLINE void pst_logical_meter_compile(struct pst_logical_meter_profile *out,
					  const struct pst_logical_meter_params *params)
{
	uint32_t mtu_bytes = params->mtu_bytes <= UINT32_MAX / 3 ? params->mtu_bytes : UINT32_MAX / 3;
	uint32_t yellow_bytes = params->yellow_bytes > mtu_bytes ? params->yellow_bytes : mtu_bytes;
	uint32_t red_bytes = (params->congestion == PST_CONGESTION_POLICE ? 2 : 3) * mtu_bytes;

	if (red_bytes < params->red_bytes)
		red_bytes = params->red_bytes;
	if (red_bytes < yellow_bytes)
		red_bytes = yellow_bytes;
	pst_flow_compile(&out->flow, params->rate_Bps, red_bytes);
	out->yellow_nB = pst_nanobytes(yellow_bytes);
	out->red_max_q32 = params->red_max_q32;
	out->congestion = params->congestion;
	out->tcam_bits = params->tcam_bits;
	if (out->tcam_bits < 1)
		out->tcam_bits = 1;
	if (out->tcam_bits > PST_TCAM_BITS_MAX)
		out->tcam_bits = PST_TCAM_BITS_MAX;
}

/* An empty queue: full credit. */
PST_INLINE struct pst_logical_meter_state pst_logical_meter_idle(uint64_t now_ns)
{
	struct pst_logical_meter_state state;

	state.queue_nB = 0;
	state.last_ns = now_ns;
	return state;
}

/* Colours one packet after `drain_nB` have left the queue. */
PST_INLINE struct pst_logical_meter_result pst_logical_meter_color(const struct pst_logical_meter_profile *profile,
								   struct pst_logical_meter_state state,
								   uint64_t drain_nB, uint32_t bytes)
{
	struct pst_logical_meter_result result;

	state.queue_nB = state.queue_nB > drain_nB ? state.queue_nB - drain_nB : 0;
	result.drained = state;
	result.depth_nB = state.queue_nB + pst_nanobytes(bytes);
	result.verdict = PST_VERDICT_PASS;
	result.reason = PST_REASON_NONE;
	if (result.depth_nB > profile->flow.full_nB)
		result.color = PST_COLOR_RED;
	else if (result.depth_nB > profile->yellow_nB)
		result.color = PST_COLOR_YELLOW;
	else
		result.color = PST_COLOR_GREEN;
	return result;
}

/* The exact form: colours one packet without changing anything. */
PST_INLINE struct pst_logical_meter_result pst_logical_meter_try(const struct pst_logical_meter_profile *profile,
								 struct pst_logical_meter_state state,
								 uint64_t now_ns, uint32_t bytes)
{
	uint64_t elapsed_ns = pst_flow_elapsed_ns(now_ns, state.last_ns);

	if (elapsed_ns > 0)
		state.last_ns = now_ns;
	return pst_logical_meter_color(profile, state, pst_flow_nB(&profile->flow, elapsed_ns), bytes);
}

/* The faithful form: "matching only on the b most significant bits" of the gap (section 4.1). */
PST_INLINE struct pst_logical_meter_result pst_logical_meter_try_tcam(const struct pst_logical_meter_profile *profile,
								      struct pst_logical_meter_state state,
								      uint64_t now_ns, uint32_t bytes)
{
	uint64_t elapsed_ns = pst_flow_elapsed_ns(now_ns, state.last_ns);
	uint64_t drain_nB = profile->flow.full_nB;

	if (elapsed_ns > 0)
		state.last_ns = now_ns;
	if (elapsed_ns < profile->flow.fill_ns)
		drain_nB = pst_tcam_multiply(profile->flow.rate_Bps, elapsed_ns, profile->tcam_bits);
	return pst_logical_meter_color(profile, state, drain_nB, bytes);
}

/* The congestion manager: turns the colour into verdict and reason, and stores the state that follows. */
PST_INLINE void pst_logical_meter_settle(const struct pst_logical_meter_profile *profile,
					 struct pst_logical_meter_state *state,
					 struct pst_logical_meter_result *result, bool is_ect, uint32_t random_u32)
{
	if (result->color == PST_COLOR_RED) {
		result->verdict = PST_VERDICT_DROP;
		result->reason = PST_REASON_OVER_RATE;
	} else if (result->color == PST_COLOR_YELLOW && profile->congestion != PST_CONGESTION_POLICE) {
		enum pst_red_marking marking =
			profile->congestion == PST_CONGESTION_DCTCP ? PST_RED_MARK_ALL : PST_RED_MARK_RANDOM;
		uint32_t probability_q32 = pst_red_probability_q32(result->depth_nB, profile->yellow_nB,
								   profile->flow.full_nB, profile->red_max_q32);

		if (is_ect && pst_red_marks(marking, probability_q32, random_u32)) {
			result->verdict = PST_VERDICT_MARK;
			result->reason = PST_REASON_CE_MARK;
		} else if (!is_ect && pst_red_drops(probability_q32, random_u32)) {
			result->verdict = PST_VERDICT_DROP;
			result->reason = PST_REASON_EARLY_DROP;
		}
	}
	*state = result->drained;
	if (result->verdict != PST_VERDICT_DROP)
		state->queue_nB = result->depth_nB;
}

/* The state after the limit changed from `before` to `after`: drained at the old rate up to now, its bytes kept. */
PST_INLINE struct pst_logical_meter_state pst_logical_meter_convert(const struct pst_logical_meter_profile *before,
								    const struct pst_logical_meter_profile *after,
								    struct pst_logical_meter_state state,
								    uint64_t now_ns)
{
	state = pst_logical_meter_try(before, state, now_ns, 0).drained;
	if (state.queue_nB > after->flow.full_nB)
		state.queue_nB = after->flow.full_nB;
	return state;
}

#endif /* PENSTOCK_LOGICAL_METER_H */
