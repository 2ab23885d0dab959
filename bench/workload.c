/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ZIPF_EXPONENT 1.1

uint64_t bench_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void *must(void *memory)
{
	if (memory)
		return memory;
	fprintf(stderr, "bench: out of memory\n");
	exit(1);
}

/* Picks a flow a frame. Zipf by inversion of the cumulative sum, flow 0 the most popular. */
static void pick_owners(struct bench_workload *workload, enum bench_keys keys, uint64_t *state)
{
	double *sums, total = 0;
	uint32_t i;

	if (keys == BENCH_UNIFORM) {
		for (i = 0; i < BENCH_FRAMES; i++)
			workload->owners[i] = (uint32_t)((draw(state) >> 32) * workload->flow_count >> 32);
		return;
	}
	sums = must(malloc(workload->flow_count * sizeof(*sums)));
	for (i = 0; i < workload->flow_count; i++) {
		total += pow(i + 1, -ZIPF_EXPONENT);
		sums[i] = total;
	}
	for (i = 0; i < BENCH_FRAMES; i++) {
		double point = (double)(draw(state) >> 11) / 9007199254740992.0 * total;
		uint32_t low = 0, high = workload->flow_count - 1;

		while (low < high) {
			uint32_t middle = low + (high - low) / 2;

			if (sums[middle] < point)
				low = middle + 1;
			else
				high = middle;
		}
		workload->owners[i] = low;
	}
	free(sums);
}

static void put_be(uint8_t *at, uint32_t value, int bytes)
{
	while (bytes--) {
		at[bytes] = (uint8_t)value;
		value >>= 8;
	}
}

static void write_frame(uint8_t *frame, const struct bench_flow *flow)
{
	memset(frame, 0, BENCH_FRAME_STRIDE);
	frame[0] = 2;
	frame[6] = 4;
	put_be(frame + 12, 0x0800, 2);
	frame[14] = 0x45;
	put_be(frame + 16, BENCH_WIRE_BYTES - 14, 2);
	frame[22] = 64;
	frame[23] = 17;
	put_be(frame + 26, flow->source, 4);
	put_be(frame + 30, flow->destination, 4);
	put_be(frame + 34, flow->source_port, 2);
	put_be(frame + 36, flow->destination_port, 2);
	put_be(frame + 38, BENCH_WIRE_BYTES - 34, 2);
}

void bench_workload_make(struct bench_workload *workload, uint32_t flow_count, enum bench_keys keys)
{
	uint64_t state = 88172645463325252U;
	uint32_t i;

	workload->flow_count = flow_count;
	workload->flows = must(malloc(flow_count * sizeof(*workload->flows)));
	workload->owners = must(malloc(BENCH_FRAMES * sizeof(*workload->owners)));
	workload->frames = must(aligned_alloc(64, (size_t)BENCH_FRAMES * BENCH_FRAME_STRIDE));
	workload->rate_Bps = UINT64_C(1000000000) / BENCH_GAP_NS * BENCH_WIRE_BYTES / flow_count / 2;
	for (i = 0; i < flow_count; i++) {
		/* The index is in the source address, so that no two flows are the same. */
		workload->flows[i].source = i * UINT32_C(2654435761);
		workload->flows[i].destination = (uint32_t)draw(&state);
		workload->flows[i].source_port = (uint16_t)draw(&state);
		workload->flows[i].destination_port = (uint16_t)draw(&state);
	}
	pick_owners(workload, keys, &state);
	for (i = 0; i < BENCH_FRAMES; i++)
		write_frame(workload->frames + (size_t)i * BENCH_FRAME_STRIDE, &workload->flows[workload->owners[i]]);
}

void bench_workload_free(struct bench_workload *workload)
{
	free(workload->flows);
	free(workload->owners);
	free(workload->frames);
}
