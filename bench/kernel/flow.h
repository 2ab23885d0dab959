/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Flow i of the kernel bench: the same for the program that makes frames and for the loader that fills tables. */
#ifndef PENSTOCK_BENCH_FLOW_H
#define PENSTOCK_BENCH_FLOW_H

#include <penstock/types.h>

#define BENCH_FRAME_BYTES 114
#define BENCH_BURST_BYTES 20000U

/* Of an HTB, which names 65,534 at most. The kernel's time to add one grows with their number: all of them take ten minutes. */
#ifndef BENCH_CLASSES
#define BENCH_CLASSES 10000U
#endif

/* As it stands in a frame, from the source address on; padded with zeros for a key. */
struct bench_tuple {
	uint32_t source, destination;
	uint16_t source_port, destination_port;
	uint32_t pad;
};

PST_INLINE void bench_flow_tuple(struct bench_tuple *tuple, uint32_t flow)
{
	/* A bijection in the source address: no two flows are the same. */
	tuple->source = flow * UINT32_C(2654435761);
	tuple->destination = (flow ^ 0x5bd1e995U) * UINT32_C(2246822519);
	tuple->source_port = (uint16_t)(tuple->destination >> 16);
	tuple->destination_port = (uint16_t)((tuple->source >> 16 & 0xff00) | 0x40); /* 0x40xx on the wire: no tunnel */
	tuple->pad = 0;
}

#endif /* PENSTOCK_BENCH_FLOW_H */
