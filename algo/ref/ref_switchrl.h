/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Slow form of switchrl.h, and of what the paper prints: each erratum can be put back by its bit in `printed`, so that
 * tests can show what it does.
 */
#ifndef PENSTOCK_REF_SWITCHRL_H
#define PENSTOCK_REF_SWITCHRL_H

#include <stdbool.h>
#include <stdint.h>

#define REF_PRINTED_S1 1U /* prev moves only with a send */
#define REF_PRINTED_S2 2U /* the test uses the unclamped accu, and windows are not widened */
#define REF_PRINTED_S3 4U /* accu starts at init_time: the bucket is empty */
#define REF_PRINTED_S4 8U /* a packet dropped at random is charged all the same */

struct ref_meterrl {
	uint64_t rate_Bps;
	uint64_t interval_ns;
	uint64_t burst_bytes;
	uint64_t mtu_bytes;
	__int128 tokens_nB;
};
void ref_meterrl_start(struct ref_meterrl *limiter);
void ref_meterrl_refill(struct ref_meterrl *limiter);
bool ref_meterrl_take(struct ref_meterrl *limiter, uint32_t bytes);

struct ref_packetrl {
	uint64_t rate_Bps;
	uint64_t burst_bytes;
	uint64_t mtu_bytes;
	unsigned printed;
	__int128 tokens_nB;
	__int128 prev_ns;
};
void ref_packetrl_start(struct ref_packetrl *limiter, __int128 now_ns);
bool ref_packetrl_take(struct ref_packetrl *limiter, __int128 now_ns, uint32_t bytes);

/* Algorithm 4; Algorithm 3 is the same without a yellow zone in its window. */
struct ref_switchrl {
	bool is_algorithm_3;
	uint64_t rate_Bps; /* exact form */
	uint64_t rate_Mbps; /* not 0: the ADT with r = 2/100 over [1, 10000] */
	uint64_t ctw_ns;
	uint64_t etw_ns;
	uint64_t mtu_bytes;
	uint32_t drop_max_q32;
	unsigned printed;
	__int128 ctw_ticks, etw_ticks; /* widened */
	__int128 accu_ticks;
};
struct ref_switchrl_result {
	uint8_t color;
	uint8_t verdict;
	uint8_t reason;
};
void ref_switchrl_start(struct ref_switchrl *limiter, __int128 now_ns);
struct ref_switchrl_result ref_switchrl_take(struct ref_switchrl *limiter, __int128 now_ns, uint32_t bytes,
					     uint32_t random);
uint64_t ref_switchrl_cost(const struct ref_switchrl *limiter, uint32_t bytes);

#endif /* PENSTOCK_REF_SWITCHRL_H */
