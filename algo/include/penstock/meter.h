/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * meter.h: what the RFC meters share: a bucket as a finish time, the result, the pre-colour.
 *
 * What         A token bucket of depth d is kept as the moment at which it would be full again, in the time of its own
 *              rate: tokens(now) = d - max(0, finish - now). A packet takes its tokens by finish += cost.
 * Source       SwitchRL section 5 (a token bucket in the time domain); RFC 2697, RFC 2698 and RFC 4115, section 3 each,
 *              for buckets that start full; RFC 2597 section 6 for the code points.
 * Units        _ticks 1/1024 ns, bytes, rate codes (fixed.h).
 * Ranges       depths up to PST_WINDOW_MAX_TICKS, mtu up to 2^16 bytes.
 * Invariants   I1  an idle bucket is full; a finish that cannot be a bucket's own (stale by up to half a wrap) reads as
 *                  idle.
 *              I2  no credit spills while more is offered than passes, so the rate is kept. For, when a bucket refuses,
 *                  it holds less than 1 MTU. Asked for every packet, it is asked again after one gap, which brings at
 *                  most 1 MTU: 2 MTU suffice. Asked only for what another bucket passes (or refuses), it is asked at
 *                  its own rate on average, but the other may be 1 MTU behind (or ahead) meanwhile: 3 MTU suffice.
 *              I3  after a change of rate or depth each bucket has used as many bytes as before, to within 1/256 byte and
 *                  two ticks, or all that it holds now.
 * Overflow     least <= 3 * 2^34 * 2^16 < 2^52; finish - now <= depth + PST_AHEAD_MAX_TICKS < 2^54.
 * Concurrency  The meters themselves are pure. pst_meter_load and pst_meter_commit let many CPUs use one state, without a lock and
 *              in a bounded number of steps: a packet is judged on what was loaded, then charged to each word by
 *              compare-and-swap, or by an addition when another CPU has changed the word meanwhile.
 *              Nothing is lost: a swap succeeds on the very value that the decision was based on; an addition keeps what is there.
 *              With N CPUs a bucket is overdrawn by N - 1 packets at most. For, of all packets that a bucket took until some moment, look
 *              at the one that loaded last, and that fitted in. What was charged after its load was loaded before it, by packets
 *              on their way through load and commit: one for each other CPU. They are charged in full, so the overdraft is not
 *              there again. RFC 2697's E is what `excess` is ahead of `committed`: loaded in the order committed, excess and
 *              charged in the other, it is never taken for emptier than that.
 *              Who adds, adds to what another CPU made current a moment ago: its `now`, not ours, was the floor of an idle bucket.
 */
#ifndef PENSTOCK_METER_H
#define PENSTOCK_METER_H

#include "limiter.h"

struct pst_meter_result {
	struct pst_meter_state state; /* to store; the old one when red */
	uint64_t committed_cost_ticks; /* that each word was charged, or 0: it was at most brought up to now */
	uint64_t excess_cost_ticks;
	uint8_t color;
};

/* The state as other CPUs leave it; `committed` first (Concurrency). */
PST_INLINE struct pst_meter_state pst_meter_load(const struct pst_meter_state *state)
{
	struct pst_meter_state loaded;

#if defined(__bpf__) || defined(PST_ONE_THREAD)
	loaded.committed_ticks = *(const volatile uint64_t *)&state->committed_ticks; /* x86 orders loads */
#else
	loaded.committed_ticks = __atomic_load_n(&state->committed_ticks, __ATOMIC_ACQUIRE);
#endif
	loaded.excess_ticks = *(const volatile uint64_t *)&state->excess_ticks;
	return loaded;
}

/* Charges one word. When another CPU was faster, what it left is current, and only the cost is missing. */
PST_INLINE void pst_meter_charge(uint64_t *word, uint64_t old, uint64_t next, uint64_t cost)
{
	if (next != old && !pst_limiter_commit(word, &old, next) && cost)
		(void)__sync_fetch_and_add(word, cost);
}

/* Stores what was decided on `old`; `excess` first (Concurrency). */
PST_INLINE void pst_meter_commit(struct pst_meter_state *state, const struct pst_meter_state *old,
				 const struct pst_meter_result *result)
{
#ifdef PST_ONE_THREAD
	(void)old;
	*state = result->state;
#else
	pst_meter_charge(&state->excess_ticks, old->excess_ticks, result->state.excess_ticks, result->excess_cost_ticks);
	pst_meter_charge(&state->committed_ticks, old->committed_ticks, result->state.committed_ticks,
			 result->committed_cost_ticks);
#endif
}

/* A state whose buckets are all full, whatever the profile. */
PST_INLINE struct pst_meter_state pst_meter_idle(uint64_t now_ns)
{
	struct pst_meter_state idle;

	idle.committed_ticks = pst_limiter_idle(now_ns);
	idle.excess_ticks = idle.committed_ticks;
	return idle;
}

/* The finish time, clamped to what it can mean now for a bucket that deep. Before now is, without a sign, far ahead. */
PST_INLINE uint64_t pst_meter_base(uint64_t finish_ticks, uint64_t now_ticks, uint64_t depth_ticks)
{
	if (finish_ticks - now_ticks > depth_ticks + PST_AHEAD_MAX_TICKS)
		return now_ticks;
	return finish_ticks;
}

/* A bucket's depth in the time of its rate, widened to `packets` packets of `mtu_bytes` (I2). */
PST_INLINE uint64_t pst_meter_depth(uint32_t rate, uint64_t depth_ticks, uint32_t depth_bytes, uint32_t packets,
				    uint32_t mtu_bytes)
{
	uint64_t depth = pst_limiter_depth(rate, depth_ticks, depth_bytes);
	uint64_t least = packets * pst_rate_cost(rate, mtu_bytes);

	return depth < least ? least : depth;
}

/* What is used of a bucket after its rate or depth changed (I3). */
PST_INLINE uint64_t pst_meter_convert(uint32_t before_rate, uint32_t after_rate, uint64_t used_ticks, uint64_t depth_ticks)
{
	uint64_t used = pst_rate_convert(before_rate, after_rate, used_ticks);

	return used < depth_ticks ? used : depth_ticks;
}

/* The pre-colour of colour-aware mode: drop precedence of AF11..AF43 (RFC 2597); every other code point is green. */
PST_INLINE uint8_t pst_color_from_dscp(uint8_t dscp)
{
	uint32_t af_class = (uint32_t)dscp >> 3, precedence = ((uint32_t)dscp >> 1) & 3;

	if ((dscp & 1) || af_class < 1 || af_class > 4 || precedence == 0)
		return PST_COLOR_GREEN;
	return (uint8_t)(PST_COLOR_GREEN + precedence - 1);
}

#endif /* PENSTOCK_METER_H */
