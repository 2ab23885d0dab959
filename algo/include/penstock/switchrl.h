/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * switchrl.h: SwitchRL's four algorithms, as published and with their errata corrected.
 *
 * What         1 MeterRL      every interval: Tc = min(CBS, Tc + CIR * interval);  packet: size <= Tc: send, Tc -= size
 *              2 PacketRL     Tc = min(CBS, Tc + CIR * (now - prev)), prev = now;  size <= Tc: send, Tc -= size
 *              3 optPacketRL  base = max(now - CTW, accu);        base + size/CIR <= now: send, accu = base + size/CIR
 *              4 SwitchRL     base = max(now - CTW - ETW, accu);  base + size/CIR > now: red, drop
 *                             base > now - ETW: yellow, drop at random, otherwise green;  sent: accu = base + size/CIR
 * Source       SwitchRL, Algorithms 1 and 2 (section 4), 3 (section 5), 4 (section 7). Corrected
 *              (docs/algorithms/switchrl.md): S1 prev moves with Tc, not with a send. S2 clamp first, and no window below two packets. S3
 *              start full. S4 a packet dropped at random is neither sent nor charged; its probability is red.h's.
 * Units        _nB nanobytes, _ticks 1/1024 ns, bytes, rate_Bps bytes per second, _Mbps Mbit/s, _q32 probability.
 * Ranges       1, 2: nanobytes.h.  3, 4: limiter.h; windows up to PST_WINDOW_MAX_TICKS, packets below 2^17 bytes.
 *              Burst and windows are widened: 1 to CIR * interval + two packets, 2 to two, 3 CTW to two,
 *              4 CTW to one and CTW + ETW to two (of mtu_bytes).
 *              Faithful form of 4: the ADT's ranges, size 1..10,000 B and CIR 1..10,000 Mbit/s in the paper.
 * Invariants   I1  in any [s, t] a limiter passes <= burst + rate * (t - s); one packet more is never needed.
 *              I2  a backlogged source gets >= rate * (t - s) - one packet from 2 and 3, and from 4 while its yellow
 *                  drops leave it backlogged; from 1 one interval's refill less.
 *              I3  a packet that is dropped, red or at random, changes no credit.
 *              I4  decisions of 2, 3, 4 depend on now - state only, wraps included.
 *              I5  4 without random drop admits exactly what limiter.h admits with green = CTW, window = CTW + ETW:
 *                  only the border of yellow differs, which the paper tests before this packet and limiter.h after it.
 *              I6  the ADT form charges size/CIR with a relative error of at most 0.0198 + 1e-5 at r = 0.02.
 * Overflow     see nanobytes.h and limiter.h. ADT: entry < 2^46 in Q32, times 8000 < 2^59.
 * Concurrency  plain state: one writer, or a lock. limiter.h is the form for many.
 * Not done     no colour-aware mode; srtcm.h is RFC 2697 (erratum S5: one variable cannot be).
 */
#ifndef PENSTOCK_SWITCHRL_H
#define PENSTOCK_SWITCHRL_H

#include "approx.h"
#include "limiter.h"
#include "nanobytes.h"
#include "red.h"

#define PST_SWITCHRL_CTW_NSEC UINT64_C(17500000) /* section 8: "17.5ms and 25ms respectively" */
#define PST_SWITCHRL_ETW_NSEC UINT64_C(25000000)

/* 1: MeterRL. The host calls pst_meterrl_refill every interval_ns. */

struct pst_meterrl_params {
	uint64_t rate_Bps;
	uint64_t interval_ns; /* "the default (also minimum) value 4ms", section 4.1 */
	uint32_t burst_bytes;
	uint32_t mtu_bytes;
};

struct pst_meterrl_profile {
	uint64_t burst_nB;
	uint64_t refill_nB;
};

struct pst_meterrl_state {
	uint64_t tokens_nB;
};

PST_INLINE void pst_meterrl_compile(struct pst_meterrl_profile *out, const struct pst_meterrl_params *params)
{
	struct pst_flow_profile flow;
	uint64_t least_nB;

	pst_flow_compile(&flow, params->rate_Bps, UINT32_MAX);
	out->refill_nB = pst_flow_nB(&flow, params->interval_ns);
	least_nB = out->refill_nB + 2 * pst_nanobytes(params->mtu_bytes);
	out->burst_nB = pst_nanobytes(params->burst_bytes);
	if (out->burst_nB < least_nB)
		out->burst_nB = least_nB;
}

PST_INLINE struct pst_meterrl_state pst_meterrl_full(const struct pst_meterrl_profile *profile)
{
	struct pst_meterrl_state state;

	state.tokens_nB = profile->burst_nB;
	return state;
}

PST_INLINE void pst_meterrl_refill(const struct pst_meterrl_profile *profile, struct pst_meterrl_state *state)
{
	state->tokens_nB += profile->refill_nB;
	if (state->tokens_nB > profile->burst_nB)
		state->tokens_nB = profile->burst_nB;
}

PST_INLINE uint8_t pst_meterrl_take(struct pst_meterrl_state *state, uint32_t bytes)
{
	if (pst_nanobytes(bytes) > state->tokens_nB)
		return PST_COLOR_RED;
	state->tokens_nB -= pst_nanobytes(bytes);
	return PST_COLOR_GREEN;
}

/* 2: PacketRL. */

struct pst_packetrl_params {
	uint64_t rate_Bps;
	uint32_t burst_bytes;
	uint32_t mtu_bytes;
};

struct pst_packetrl_profile {
	struct pst_flow_profile flow; /* full is CBS */
};

struct pst_packetrl_state {
	uint64_t tokens_nB;
	uint64_t prev_ns;
};

PST_INLINE void pst_packetrl_compile(struct pst_packetrl_profile *out, const struct pst_packetrl_params *params)
{
	uint64_t burst_bytes = 2 * (uint64_t)params->mtu_bytes;

	if (burst_bytes < params->burst_bytes)
		burst_bytes = params->burst_bytes;
	if (burst_bytes > UINT32_MAX)
		burst_bytes = UINT32_MAX;
	pst_flow_compile(&out->flow, params->rate_Bps, (uint32_t)burst_bytes);
}

PST_INLINE struct pst_packetrl_state pst_packetrl_full(const struct pst_packetrl_profile *profile, uint64_t now_ns)
{
	struct pst_packetrl_state state;

	state.tokens_nB = profile->flow.full_nB;
	state.prev_ns = now_ns;
	return state;
}

PST_INLINE uint8_t pst_packetrl_take(const struct pst_packetrl_profile *profile, struct pst_packetrl_state *state,
				     uint64_t now_ns, uint32_t bytes)
{
	uint64_t elapsed_ns = pst_flow_elapsed_ns(now_ns, state->prev_ns);

	if (elapsed_ns > 0)
		state->prev_ns = now_ns; /* S1: as printed, only a send moves it, and a drop is credited twice */
	state->tokens_nB += pst_flow_nB(&profile->flow, elapsed_ns);
	if (state->tokens_nB > profile->flow.full_nB)
		state->tokens_nB = profile->flow.full_nB;
	if (pst_nanobytes(bytes) > state->tokens_nB)
		return PST_COLOR_RED;
	state->tokens_nB -= pst_nanobytes(bytes);
	return PST_COLOR_GREEN;
}

/* 3: optPacketRL, and 4: SwitchRL. Both keep accuCons, the time up to which budget is spent, and nothing else. */

struct pst_switchrl_params {
	uint64_t rate_Bps;
	uint64_t ctw_ns;
	uint64_t etw_ns; /* optPacketRL has none: 0 */
	uint32_t mtu_bytes;
	uint32_t drop_max_q32; /* largest random-drop probability, at the end of ETW (S4) */
};

struct pst_switchrl_profile {
	struct pst_limiter_profile limiter; /* green is CTW, window is CTW + ETW */
	uint32_t drop_max_q32;
};

struct pst_switchrl_state {
	uint64_t accu_ticks;
};

struct pst_switchrl_result {
	uint8_t color;   /* enum pst_color */
	uint8_t verdict; /* PST_VERDICT_PASS or PST_VERDICT_DROP */
	uint8_t reason;  /* enum pst_reason */
};

PST_INLINE uint64_t pst_switchrl_window_ticks(uint64_t window_ns)
{
	uint64_t most_ns = PST_WINDOW_MAX_TICKS >> PST_TICK_BITS;

	return pst_clock_ticks(window_ns < most_ns ? window_ns : most_ns);
}

/* Sets the windows, widened for packets that take `packet_ticks` (S2). */
PST_INLINE void pst_switchrl_widen(struct pst_limiter_profile *out, const struct pst_switchrl_params *params,
				   uint64_t packet_ticks)
{
	out->green_ticks = pst_switchrl_window_ticks(params->ctw_ns);
	if (out->green_ticks < packet_ticks)
		out->green_ticks = packet_ticks;
	out->window_ticks = out->green_ticks + pst_switchrl_window_ticks(params->etw_ns);
	if (out->window_ticks < 2 * packet_ticks)
		out->window_ticks = 2 * packet_ticks;
	out->shapes = false;
}

PST_INLINE void pst_switchrl_compile(struct pst_switchrl_profile *out, const struct pst_switchrl_params *params)
{
	out->limiter.rate = pst_rate_encode(params->rate_Bps);
	pst_switchrl_widen(&out->limiter, params, pst_rate_cost(out->limiter.rate, params->mtu_bytes));
	out->drop_max_q32 = params->drop_max_q32;
}

/* Full credit (S3). */
PST_INLINE struct pst_switchrl_state pst_switchrl_full(uint64_t now_ns)
{
	struct pst_switchrl_state state;

	state.accu_ticks = pst_limiter_idle(now_ns);
	return state;
}

/* Algorithm 3: one window, whose length is the profile's whole CTW + ETW. */
PST_INLINE uint8_t pst_optpacketrl_take(const struct pst_switchrl_profile *profile, struct pst_switchrl_state *state,
					uint64_t now_ns, uint32_t bytes)
{
	uint64_t now = pst_clock_ticks(now_ns);
	uint64_t base = pst_limiter_base(&profile->limiter, state->accu_ticks, now);
	uint64_t finish = base + pst_rate_cost(profile->limiter.rate, bytes);

	if (pst_clock_before(now, finish))
		return PST_COLOR_RED;
	state->accu_ticks = finish;
	return PST_COLOR_GREEN;
}

/* Algorithm 4, given what the packet consumes. */
PST_INLINE struct pst_switchrl_result pst_switchrl_consume(const struct pst_switchrl_profile *profile,
							   struct pst_switchrl_state *state, uint64_t now_ns,
							   uint64_t cost_ticks, uint32_t random_u32)
{
	const struct pst_limiter_profile *limiter = &profile->limiter;
	uint64_t now = pst_clock_ticks(now_ns);
	uint64_t base = pst_limiter_base(limiter, state->accu_ticks, now);
	uint64_t spent = base - (now - limiter->window_ticks); /* of the window, before this packet */
	struct pst_switchrl_result result;

	result.color = PST_COLOR_GREEN;
	result.verdict = PST_VERDICT_PASS;
	result.reason = PST_REASON_NONE;
	if (spent + cost_ticks > limiter->window_ticks) {
		result.color = PST_COLOR_RED;
		result.verdict = PST_VERDICT_DROP;
		result.reason = PST_REASON_OVER_RATE;
		return result;
	}
	if (spent > limiter->green_ticks) {
		uint32_t probability_q32 = pst_red_probability_q32(spent, limiter->green_ticks, limiter->window_ticks,
								   profile->drop_max_q32);

		result.color = PST_COLOR_YELLOW;
		if (pst_red_drops(probability_q32, random_u32)) {
			result.verdict = PST_VERDICT_DROP;
			result.reason = PST_REASON_EARLY_DROP;
			return result; /* S4: as printed, falls through, so what is dropped is charged */
		}
	}
	state->accu_ticks = base + cost_ticks;
	return result;
}

/* Algorithm 4, exact. */
PST_INLINE struct pst_switchrl_result pst_switchrl_take(const struct pst_switchrl_profile *profile,
							struct pst_switchrl_state *state, uint64_t now_ns,
							uint32_t bytes, uint32_t random_u32)
{
	return pst_switchrl_consume(profile, state, now_ns, pst_rate_cost(profile->limiter.rate, bytes), random_u32);
}

/*
 * Algorithm 4, faithful: size/CIR comes out of the ADT (lines 9 to 11). CIR does not change from packet to packet, so
 * its interval is looked up once ("pre-compute operations with fixed operands", section 6).
 */
struct pst_switchrl_adt_profile {
	struct pst_switchrl_profile switchrl;
	const struct pst_approx_table *table; /* x: size in bytes, y: CIR in Mbit/s */
	uint32_t rate_index;
};

/* B / (Mbit/s) = 8 us = 8000 * 1024 ticks. */
PST_INLINE uint64_t pst_switchrl_adt_ticks(const struct pst_switchrl_adt_profile *profile, uint32_t bytes)
{
	uint32_t size_index = pst_approx_axis_index(&profile->table->x, bytes);
	uint64_t microseconds8_q32 = pst_approx_entry(profile->table, size_index, profile->rate_index);

	return (microseconds8_q32 * 8000 + (UINT64_C(1) << (31 - PST_TICK_BITS))) >> (32 - PST_TICK_BITS);
}

/* params->rate_Bps is ignored: the paper's CIR is a whole number of Mbit/s. */
PST_INLINE void pst_switchrl_adt_compile(struct pst_switchrl_adt_profile *out, const struct pst_switchrl_params *params,
					 const struct pst_approx_table *table, uint32_t rate_Mbps)
{
	out->table = table;
	out->rate_index = pst_approx_axis_index(&table->y, rate_Mbps);
	out->switchrl.limiter.rate = 0;
	pst_switchrl_widen(&out->switchrl.limiter, params, pst_switchrl_adt_ticks(out, params->mtu_bytes));
	out->switchrl.drop_max_q32 = params->drop_max_q32;
}

PST_INLINE struct pst_switchrl_result pst_switchrl_adt_take(const struct pst_switchrl_adt_profile *profile,
							    struct pst_switchrl_state *state, uint64_t now_ns,
							    uint32_t bytes, uint32_t random_u32)
{
	uint64_t cost_ticks = pst_switchrl_adt_ticks(profile, bytes);

	return pst_switchrl_consume(&profile->switchrl, state, now_ns, cost_ticks, random_u32);
}

#endif /* PENSTOCK_SWITCHRL_H */
