/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * MeterRL, the comparator of SwitchRL's experiments: a token bucket whose tokens come by a timer, every 4 ms at best.
 *
 * What         every interval: C += CIR * interval up to CBS, and what C cannot hold goes to E, up to EBS
 *              packet: it fits C: green, pass;  it fits E: yellow, dropped at random;  otherwise: red, drop
 * Source       SwitchRL, Algorithm 1 and section 4.1 (the interval), section 7 (what colours mean), Table 1 (EBS = CBS / 4).
 *              Without E it is Algorithm 1 to the letter.
 * How          srtcm.h meters in the time domain: tokens are the distance of a finish time from now. Here "now" is the moment of the
 *              timer's last tick, so that all tokens of an interval come at its end, as with counters that a timer fills.
 *              The paper gives no probability of the random drop: as for SwitchRL's own (red.h) it rises over the depth of E.
 * Concurrency  a spin lock a limit.
 *
 * It forwards between two interfaces as Penstock's program does, so that both are compared on the same path. A port without limits
 * only forwards: that is the baseline without any limit.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <linux/types.h>

#include <penstock/red.h>
#include <penstock/srtcm.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define LIMITS_MAX 64
#define PORTS_MAX 4096
#define ETHERNET_BYTES 14
#define ETHERTYPE_IPV4_BE 0x0008
#define CLOCK_MONOTONIC 1

struct limit {
	struct pst_profile profile;
	__u64 interval_ns; /* 0: no timer, tokens come with time */
	__u64 tick_ns;
	struct pst_meter_state state;
	__u64 offered_packets;
	__u64 offered_bytes;
	__u64 dropped_packets;
	__u64 dropped_bytes;
	__u32 rate; /* rate code; 0: not in use */
	__u32 drop_max_q32;
	struct bpf_spin_lock lock;
	__u32 reserved;
	struct bpf_timer timer;
};

/* Where packets of an interface go; without an entry, into the kernel. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, PORTS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} pairs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PORTS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} forwards SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LIMITS_MAX);
	__type(key, __u32);
	__type(value, struct limit);
} limits SEC(".maps");

/* IPv4 destination, network order: the index of a limit. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LIMITS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} destinations SEC(".maps");

static int tick(void *map, __u32 *index, struct limit *limit)
{
	limit->tick_ns = bpf_ktime_get_ns();
	bpf_timer_start(&limit->timer, limit->interval_ns, 0);
	return 0;
}

/* Starts the timer of a limit. Called by the lab, once for each. */
SEC("syscall")
int start_timer(__u32 *index)
{
	__u32 key = *index;
	struct limit *limit = bpf_map_lookup_elem(&limits, &key);

	if (!limit || !limit->interval_ns)
		return 1;
	limit->tick_ns = bpf_ktime_get_ns();
	bpf_timer_init(&limit->timer, &limits, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&limit->timer, tick);
	bpf_timer_start(&limit->timer, limit->interval_ns, 0);
	return 0;
}

/* How deep in E a yellow packet lies decides about its random drop. E starts where `committed` ends. */
static __always_inline bool drops_yellow(const struct limit *limit, const struct pst_rfc2697_profile *profile,
					 const struct pst_meter_state *next, __u32 random_u32)
{
	__u64 depth = next->excess_ticks - next->committed_ticks;

	return pst_red_drops(pst_red_probability_q32(depth, 0, profile->ebs_ticks, limit->drop_max_q32), random_u32);
}

static __always_inline bool admits(struct limit *limit, __u32 bytes)
{
	__u64 now_ns = limit->interval_ns ? limit->tick_ns : bpf_ktime_get_ns();
	__u32 random_u32 = bpf_get_prandom_u32();
	struct pst_rfc2697_profile profile;
	struct pst_meter_result result;
	bool passes;

	pst_rfc2697_resolve(&profile, &limit->profile, limit->rate);
	bpf_spin_lock(&limit->lock);
	result = pst_rfc2697_meter(&profile, &limit->state, now_ns, bytes, PST_COLOR_GREEN);
	passes = result.color == PST_COLOR_GREEN ||
		 (result.color == PST_COLOR_YELLOW && !drops_yellow(limit, &profile, &result.state, random_u32));
	if (passes)
		limit->state = result.state;
	limit->offered_packets++;
	limit->offered_bytes += bytes;
	if (!passes) {
		limit->dropped_packets++;
		limit->dropped_bytes += bytes;
	}
	bpf_spin_unlock(&limit->lock);
	return passes;
}

static __always_inline struct limit *limit_of(const __u8 *data, const __u8 *end)
{
	__u32 address, *index;

	if (data + ETHERNET_BYTES + 20 > end || *(const __u16 *)(data + 12) != ETHERTYPE_IPV4_BE)
		return (struct limit *)0;
	__builtin_memcpy(&address, data + ETHERNET_BYTES + 16, sizeof(address));
	index = bpf_map_lookup_elem(&destinations, &address);
	return index ? bpf_map_lookup_elem(&limits, index) : (struct limit *)0;
}

SEC("xdp")
int meter(struct xdp_md *context)
{
	const __u8 *data = (const __u8 *)(long)context->data, *end = (const __u8 *)(long)context->data_end;
	__u32 ingress = context->ingress_ifindex, *forward;
	__u64 bytes = end - data;
	struct limit *limit;

	barrier_var(bytes); /* else the compiler keeps half of a pointer over a call, which the verifier refuses */
	limit = limit_of(data, end);
	if (limit && limit->rate && !admits(limit, (__u32)bytes))
		return XDP_DROP;
	forward = bpf_map_lookup_elem(&forwards, &ingress);
	if (forward && *forward)
		return bpf_redirect_map(&pairs, ingress, XDP_DROP);
	return XDP_PASS;
}
