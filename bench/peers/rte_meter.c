/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The peer: what a DPDK program does today for the same job. rte_hash finds 32 five-tuples at a time (rte_hash_lookup_bulk),
 * rte_meter's srTCM colours each packet, and where ours counts for each limiter, this does: offered, dropped, by colour, in one
 * cache line a limiter that is asked for ahead, as ours is. The hash is rte_hash's default, the CRC of the CPU where there is one.
 */
#include "../workload.h"

#ifdef HAVE_DPDK

#include <rte_byteorder.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_ip.h>
#include <rte_malloc.h>
#include <rte_meter.h>
#include <rte_prefetch.h>
#include <rte_udp.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BURST 32

/* 16 bytes, which is rte_hash's fastest comparison; the pad is zero. */
struct peer_key {
	uint32_t source;
	uint32_t destination;
	uint16_t source_port;
	uint16_t destination_port;
	uint32_t proto;
};

struct peer_counters {
	uint64_t offered_packets, offered_bytes, dropped_packets, dropped_bytes, colors[RTE_COLORS], pad;
} __attribute__((aligned(64)));

static struct rte_hash *table;
static struct peer_counters *counters;
static uint64_t decided[RTE_COLORS]; /* keeps what nobody counts from being optimised away */
static struct rte_meter_srtcm *meters;
static struct rte_meter_srtcm_profile profile;
static struct peer_key *keys;

bool bench_peer_start(void)
{
	char *arguments[] = { "bench", "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry", "-m", "3072",
			      "-l",    "0",	    "--log-level", "error",	   NULL };

	return rte_eal_init(sizeof(arguments) / sizeof(*arguments) - 1, arguments) >= 0;
}

static struct peer_key key_of(const struct bench_flow *flow)
{
	struct peer_key key = { rte_cpu_to_be_32(flow->source), rte_cpu_to_be_32(flow->destination),
				rte_cpu_to_be_16(flow->source_port), rte_cpu_to_be_16(flow->destination_port), 17 };

	return key;
}

bool bench_peer_load(const struct bench_workload *workload)
{
	struct rte_hash_parameters parameters = {
		.name = "limiters",
		.entries = workload->flow_count < 8 ? 8 : workload->flow_count,
		.key_len = sizeof(struct peer_key),
		.hash_func = rte_hash_crc,
		.socket_id = 0,
		.extra_flag = RTE_HASH_EXTRA_FLAGS_EXT_TABLE,
	};
	struct rte_meter_srtcm_params srtcm = { .cir = workload->rate_Bps, .cbs = 20000, .ebs = 20000 };
	uint32_t i;

	table = rte_hash_create(&parameters);
	meters = aligned_alloc(64, ((size_t)workload->flow_count * sizeof(*meters) + 63) & ~(size_t)63);
	counters = aligned_alloc(64, workload->flow_count * sizeof(*counters));
	keys = malloc(BENCH_FRAMES * sizeof(*keys));
	if (!table || !meters || !counters || !keys || rte_meter_srtcm_profile_config(&profile, &srtcm)) {
		fprintf(stderr, "bench: rte_hash of %u entries: %s\n", workload->flow_count, rte_strerror(rte_errno));
		return false;
	}
	memset(counters, 0, workload->flow_count * sizeof(*counters));
	for (i = 0; i < workload->flow_count; i++) {
		struct peer_key key = key_of(&workload->flows[i]);
		int32_t position = rte_hash_add_key_data(table, &key, (void *)(uintptr_t)i);

		if (position < 0)
			return false;
		rte_meter_srtcm_config(&meters[i], &profile);
	}
	for (i = 0; i < BENCH_FRAMES; i++)
		keys[i] = key_of(&workload->flows[workload->owners[i]]);
	return true;
}

void bench_peer_unload(void)
{
	rte_hash_free(table);
	free(meters);
	free(counters);
	free(keys);
}

static void count(struct peer_counters *counter, enum rte_color color)
{
	bool is_dropped = color == RTE_COLOR_RED;

	counter->offered_packets++;
	counter->offered_bytes += BENCH_WIRE_BYTES;
	counter->dropped_packets += is_dropped;
	counter->dropped_bytes += is_dropped ? BENCH_WIRE_BYTES : 0;
	counter->colors[color]++;
}

static inline __attribute__((always_inline)) void meter_burst(const void **wanted, uint64_t tsc, bool counts)
{
	enum rte_color colors[BURST];
	void *found[BURST];
	uint64_t hits;
	uint32_t i;

	rte_hash_lookup_bulk_data(table, wanted, BURST, &hits, found);
	for (i = 0; i < BURST; i++)
		if (hits >> i & 1)
			rte_prefetch0(&meters[(uintptr_t)found[i]]);
	for (i = 0; i < BURST; i++) {
		if (!(hits >> i & 1))
			continue;
		colors[i] = rte_meter_srtcm_color_blind_check(&meters[(uintptr_t)found[i]], &profile, tsc, BENCH_WIRE_BYTES);
		if (counts)
			rte_prefetch0(&counters[(uintptr_t)found[i]]);
		else
			decided[colors[i]]++;
	}
	for (i = 0; counts && i < BURST; i++) {
		if (!(hits >> i & 1))
			continue;
		count(&counters[(uintptr_t)found[i]], colors[i]);
	}
}

uint64_t bench_peer_frames(const struct bench_workload *workload)
{
	uint64_t step = rte_get_tsc_hz() * BENCH_GAP_NS / 1000000000U, tsc = rte_rdtsc(), start = bench_now_ns();
	struct peer_key burst[BURST];
	const void *wanted[BURST];
	uint32_t i, done;

	for (done = 0; done < BENCH_FRAMES; done += BURST) {
		for (i = 0; i < BURST; i++) {
			const uint8_t *frame = workload->frames + (size_t)(done + i) * BENCH_FRAME_STRIDE;
			const struct rte_ether_hdr *ether = (const void *)frame;
			const struct rte_ipv4_hdr *ip = (const void *)(ether + 1);
			const struct rte_udp_hdr *udp;

			memset(&burst[i], 0, sizeof(burst[i]));
			wanted[i] = &burst[i];
			if (ether->ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV4))
				continue;
			udp = (const void *)((const uint8_t *)ip + rte_ipv4_hdr_len(ip));
			burst[i].source = ip->src_addr;
			burst[i].destination = ip->dst_addr;
			burst[i].source_port = udp->src_port;
			burst[i].destination_port = udp->dst_port;
			burst[i].proto = ip->next_proto_id;
		}
		tsc += step * BURST;
		meter_burst(wanted, tsc, true);
	}
	return bench_now_ns() - start;
}

uint64_t bench_peer_decide(const struct bench_workload *workload)
{
	uint64_t step = rte_get_tsc_hz() * BENCH_GAP_NS / 1000000000U, tsc = rte_rdtsc(), start = bench_now_ns();
	const void *wanted[BURST];
	uint32_t i, done;

	(void)workload;
	for (done = 0; done < BENCH_FRAMES; done += BURST) {
		for (i = 0; i < BURST; i++)
			wanted[i] = &keys[done + i];
		tsc += step * BURST;
		meter_burst(wanted, tsc, false);
	}
	return bench_now_ns() - start;
}

#else /* no DPDK */

bool bench_peer_start(void)
{
	return false;
}

bool bench_peer_load(const struct bench_workload *workload)
{
	(void)workload;
	return false;
}

void bench_peer_unload(void)
{
}

uint64_t bench_peer_frames(const struct bench_workload *workload)
{
	(void)workload;
	return 0;
}

uint64_t bench_peer_decide(const struct bench_workload *workload)
{
	(void)workload;
	return 0;
}

#endif
