/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_switchrl.h"

#include <penstock/verdict.h>

#include "ref_approx.h"
#include "ref_limiter.h"
#include "ref_red.h"

#define BILLION ((__int128)1000000000)
#define STALE_NS ((__int128)1 << 38)

static __int128 least(__int128 a, __int128 b)
{
	return a < b ? a : b;
}

static __int128 most(__int128 a, __int128 b)
{
	return a > b ? a : b;
}

/* 1 */

void ref_meterrl_start(struct ref_meterrl *limiter)
{
	__int128 refill_nB = (__int128)limiter->rate_Bps * limiter->interval_ns;

	limiter->tokens_nB = most(limiter->burst_bytes * BILLION, refill_nB + 2 * limiter->mtu_bytes * BILLION);
}

void ref_meterrl_refill(struct ref_meterrl *limiter)
{
	__int128 refill_nB = (__int128)limiter->rate_Bps * limiter->interval_ns;
	__int128 burst_nB = most(limiter->burst_bytes * BILLION, refill_nB + 2 * limiter->mtu_bytes * BILLION);

	limiter->tokens_nB = least(burst_nB, limiter->tokens_nB + refill_nB);
}

bool ref_meterrl_take(struct ref_meterrl *limiter, uint32_t bytes)
{
	if (bytes * BILLION > limiter->tokens_nB)
		return false;
	limiter->tokens_nB -= bytes * BILLION;
	return true;
}

/* 2 */

static __int128 packetrl_burst_nB(const struct ref_packetrl *limiter)
{
	return most(limiter->burst_bytes, 2 * (__int128)limiter->mtu_bytes) * BILLION;
}

void ref_packetrl_start(struct ref_packetrl *limiter, __int128 now_ns)
{
	limiter->tokens_nB = packetrl_burst_nB(limiter);
	limiter->prev_ns = now_ns;
}

bool ref_packetrl_take(struct ref_packetrl *limiter, __int128 now_ns, uint32_t bytes)
{
	__int128 burst_nB = packetrl_burst_nB(limiter);
	bool sends;

	if (limiter->prev_ns - now_ns > STALE_NS) {
		limiter->tokens_nB = burst_nB;
		limiter->prev_ns = now_ns;
	}
	now_ns = most(now_ns, limiter->prev_ns);
	limiter->tokens_nB = least(burst_nB, limiter->tokens_nB + (now_ns - limiter->prev_ns) * limiter->rate_Bps);
	sends = bytes * BILLION <= limiter->tokens_nB;
	if (sends)
		limiter->tokens_nB -= bytes * BILLION;
	if (sends || !(limiter->printed & REF_PRINTED_S1))
		limiter->prev_ns = now_ns;
	return sends;
}

/* 3 and 4 */

/* size / CIR out of the ADT: B / (Mbit/s) = 8 us = 8000 * 1024 ticks, from Q32, a half rounded up. */
static __int128 adt_cost(uint64_t rate_Mbps, uint32_t bytes)
{
	struct ref_cut cut = { 1, 10000, 2, 100 };
	__int128 q32 = (__int128)ref_adt_divide_q32(cut, bytes, rate_Mbps) * 8000 * REF_TICKS_PER_NSEC;

	return (q32 + ((__int128)1 << 31)) >> 32;
}

uint64_t ref_switchrl_cost(const struct ref_switchrl *limiter, uint32_t bytes)
{
	if (limiter->rate_Mbps)
		return (uint64_t)adt_cost(limiter->rate_Mbps, bytes);
	return (uint64_t)ref_rate_cost(ref_rate_code(limiter->rate_Bps), bytes);
}

void ref_switchrl_start(struct ref_switchrl *limiter, __int128 now_ns)
{
	__int128 packet = ref_switchrl_cost(limiter, (uint32_t)limiter->mtu_bytes);

	limiter->ctw_ticks = (__int128)limiter->ctw_ns * REF_TICKS_PER_NSEC;
	limiter->etw_ticks = (__int128)limiter->etw_ns * REF_TICKS_PER_NSEC;
	if (!(limiter->printed & REF_PRINTED_S2)) {
		limiter->ctw_ticks = most(limiter->ctw_ticks, packet);
		limiter->etw_ticks = most(limiter->etw_ticks, 2 * packet - limiter->ctw_ticks);
	}
	limiter->accu_ticks = limiter->printed & REF_PRINTED_S3 ? now_ns * REF_TICKS_PER_NSEC : ref_limiter_idle(now_ns);
}

struct ref_switchrl_result ref_switchrl_take(struct ref_switchrl *limiter, __int128 now_ns, uint32_t bytes,
					     uint32_t random)
{
	struct ref_switchrl_result result = { PST_COLOR_GREEN, PST_VERDICT_PASS, PST_REASON_NONE };
	__int128 now = now_ns * REF_TICKS_PER_NSEC;
	__int128 window = limiter->ctw_ticks + limiter->etw_ticks;
	__int128 cost = ref_switchrl_cost(limiter, bytes);
	__int128 base = most(limiter->accu_ticks, now - window);
	__int128 tested = limiter->printed & REF_PRINTED_S2 ? limiter->accu_ticks : base;

	if (limiter->accu_ticks - now > STALE_NS * REF_TICKS_PER_NSEC)
		base = tested = now - window;
	if (tested + cost > now)
		return (struct ref_switchrl_result){ PST_COLOR_RED, PST_VERDICT_DROP, PST_REASON_OVER_RATE };
	if (!limiter->is_algorithm_3 && base > now - limiter->etw_ticks) {
		uint32_t probability = ref_red_probability_q32((uint64_t)(base - (now - window)),
							       (uint64_t)limiter->ctw_ticks, (uint64_t)window,
							       limiter->drop_max_q32);

		result.color = PST_COLOR_YELLOW;
		if (ref_red_drops(probability, random)) {
			result.verdict = PST_VERDICT_DROP;
			result.reason = PST_REASON_EARLY_DROP;
			if (!(limiter->printed & REF_PRINTED_S4))
				return result;
		}
	}
	limiter->accu_ticks = base + cost;
	return result;
}
