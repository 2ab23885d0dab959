/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What every contestant of a bench run gets: the same limiters, and the same frames in the same order. */
#ifndef PENSTOCK_BENCH_WORKLOAD_H
#define PENSTOCK_BENCH_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_FRAMES (UINT32_C(1) << 20)
#define BENCH_FRAME_STRIDE 64U /* Ethernet, IPv4 and UDP headers: 42 bytes, one cache line a frame */
#define BENCH_FRAME_BYTES 42U
#define BENCH_WIRE_BYTES 114U
#define BENCH_GAP_NS 50U /* 20 M packets/s offered */

struct bench_flow {
	uint32_t source;
	uint32_t destination;
	uint16_t source_port;
	uint16_t destination_port;
};

struct bench_workload {
	struct bench_flow *flows; /* one a limiter */
	uint32_t flow_count;
	uint64_t rate_Bps;        /* of each limiter: half of what it is offered when keys are uniform */
	uint8_t *frames;          /* BENCH_FRAMES of them, BENCH_FRAME_STRIDE apart */
	uint32_t *owners;         /* index of the flow of each frame */
};

enum bench_keys { BENCH_UNIFORM, BENCH_ZIPF };

void bench_workload_make(struct bench_workload *workload, uint32_t flow_count, enum bench_keys keys);
void bench_workload_free(struct bench_workload *workload);
uint64_t bench_now_ns(void);

/* The peer: DPDK's rte_hash bulk look-up and rte_meter. Both return false when DPDK is not there. */
bool bench_peer_start(void);
bool bench_peer_load(const struct bench_workload *workload);
void bench_peer_unload(void);
uint64_t bench_peer_frames(const struct bench_workload *workload); /* ns of: parse, look up, meter, count */
uint64_t bench_peer_decide(const struct bench_workload *workload); /* ns of: look up, meter; keys ready */

#endif /* PENSTOCK_BENCH_WORKLOAD_H */
