/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_logical_meter.h"

#include <penstock/verdict.h>

#include "ref_approx.h"
#include "ref_red.h"

#define BILLION ((__int128)1000000000)
#define STALE_NS ((__int128)1 << 38)

static __int128 red_nB(const struct ref_logical_meter *meter)
{
	return (__int128)meter->red_bytes * BILLION;
}

/* What drains in a gap. A whole red threshold's worth and more empties any queue, so the table is not asked then. */
static __int128 drain_nB(const struct ref_logical_meter *meter, __int128 gap_ns)
{
	__int128 exact = gap_ns * meter->rate_Bps;

	if (exact >= red_nB(meter) || meter->tcam_bits == 0)
		return exact;
	return ref_tcam_multiply(meter->rate_Bps, (uint64_t)gap_ns, meter->tcam_bits);
}

static void drain(struct ref_logical_meter *meter, __int128 now_ns)
{
	if (meter->last_ns - now_ns > STALE_NS) {
		meter->queue_nB = 0;
		meter->last_ns = now_ns;
	}
	if (now_ns <= meter->last_ns)
		return;
	meter->queue_nB -= drain_nB(meter, now_ns - meter->last_ns);
	if (meter->queue_nB < 0)
		meter->queue_nB = 0;
	meter->last_ns = now_ns;
}

void ref_logical_meter_start(struct ref_logical_meter *meter, __int128 now_ns)
{
	uint64_t packets = meter->congestion == REF_POLICE ? 2 : 3;

	if (meter->yellow_bytes < meter->mtu_bytes)
		meter->yellow_bytes = meter->mtu_bytes;
	if (meter->red_bytes < packets * meter->mtu_bytes)
		meter->red_bytes = packets * meter->mtu_bytes;
	if (meter->red_bytes < meter->yellow_bytes)
		meter->red_bytes = meter->yellow_bytes;
	meter->queue_nB = 0;
	meter->last_ns = now_ns;
}

struct ref_logical_meter_result ref_logical_meter_take(struct ref_logical_meter *meter, __int128 now_ns, uint32_t bytes,
						       bool is_ect, uint32_t random)
{
	struct ref_logical_meter_result pass = { PST_COLOR_GREEN, PST_VERDICT_PASS, PST_REASON_NONE };
	__int128 depth, yellow = (__int128)meter->yellow_bytes * BILLION;
	uint32_t probability;
	bool chosen;

	drain(meter, now_ns);
	depth = meter->queue_nB + bytes * BILLION;
	if (depth > red_nB(meter))
		return (struct ref_logical_meter_result){ PST_COLOR_RED, PST_VERDICT_DROP, PST_REASON_OVER_RATE };
	if (depth > yellow) {
		pass.color = PST_COLOR_YELLOW;
		probability = ref_red_probability_q32((uint64_t)depth, (uint64_t)yellow, (uint64_t)red_nB(meter),
						      meter->red_max_q32);
		chosen = ref_red_drops(probability, random);
		if (meter->congestion == REF_DCTCP && is_ect)
			chosen = true;
		if (meter->congestion == REF_POLICE)
			chosen = false;
		if (chosen && is_ect) {
			pass.verdict = PST_VERDICT_MARK;
			pass.reason = PST_REASON_CE_MARK;
		} else if (chosen) {
			pass.verdict = PST_VERDICT_DROP;
			pass.reason = PST_REASON_EARLY_DROP;
			return pass;
		}
	}
	meter->queue_nB = depth;
	return pass;
}

void ref_logical_meter_change(struct ref_logical_meter *meter, __int128 now_ns, uint64_t rate_Bps,
			      uint64_t yellow_bytes, uint64_t red_bytes)
{
	uint32_t tcam_bits = meter->tcam_bits;

	meter->tcam_bits = 0; /* the control plane multiplies exactly */
	drain(meter, now_ns);
	meter->tcam_bits = tcam_bits;
	meter->rate_Bps = rate_Bps;
	meter->yellow_bytes = yellow_bytes;
	meter->red_bytes = red_bytes;
	if (meter->queue_nB > red_nB(meter))
		meter->queue_nB = red_nB(meter);
}
