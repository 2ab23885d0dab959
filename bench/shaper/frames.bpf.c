/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Frames for the bench of the shaper. send_frame runs all the time: when one is due it is made for the next limiter, round robin in an order
 * that memory does not follow; else it spins, and how often says what this CPU had to spare. class_frame tells HTB its class; count_frame
 * is where a frame ends.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define DESTINATION 30	/* in a frame: Ethernet's header, and 16 bytes of IPv4's */
#define FIRST 0x0a000000 /* 10.0.0.0 */
#define STEP 7368787	/* a prime: the order of limiters is a permutation */
#define SHOT 2		/* TC_ACT_SHOT */
#define BEHIND_NSEC 20000000 /* what was not sent so long ago never is */

enum { MADE, CAME, SPINS, DUE, COUNTS };

struct settings {
	__u32 limiters;
	__u32 send_ifindex; /* where frames enter */
	__u32 out_ifindex;  /* where HTB is */
	__u32 gap_q4;	    /* between frames, 1/16 ns; 0: none is made */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

/* Frames that came out, by the lowest bits of where they go to. */
#define LEAVES 64
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, LEAVES);
	__type(key, __u32);
	__type(value, __u64);
} arrived SEC(".maps");

static __always_inline const struct settings *told(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&settings, &zero);
}

static __always_inline __u64 count(__u32 what)
{
	__u64 *number = bpf_map_lookup_elem(&counts, &what);

	return number ? (*number)++ : 0;
}

static __always_inline bool is_due(const struct settings *set)
{
	__u64 now_q4 = bpf_ktime_get_ns() << 4, *due_q4;
	__u32 due = DUE;

	due_q4 = bpf_map_lookup_elem(&counts, &due);
	if (!due_q4 || !set->gap_q4 || *due_q4 > now_q4)
		return false;
	if (now_q4 - *due_q4 > (__u64)BEHIND_NSEC << 4)
		*due_q4 = now_q4;
	*due_q4 += set->gap_q4;
	return true;
}

SEC("xdp")
int send_frame(struct xdp_md *context)
{
	__u8 *data = (__u8 *)(long)context->data;
	const struct settings *set = told();

	if (data + DESTINATION + 4 > (__u8 *)(long)context->data_end || !set || !set->limiters)
		return XDP_ABORTED;
	if (!is_due(set)) {
		count(SPINS);
		return XDP_DROP;
	}
	*(__u32 *)(data + DESTINATION) = __builtin_bswap32(FIRST + (__u32)(count(MADE) * STEP % set->limiters));
	return bpf_redirect(set->send_ifindex, 0);
}

/* Frames go on as packets of the kernel. */
SEC("xdp")
int pass_frame(struct xdp_md *context)
{
	(void)context;
	return XDP_PASS;
}

SEC("tc")
int class_frame(struct __sk_buff *skb)
{
	const struct settings *set = told();
	__u32 destination = 0;

	if (!set || bpf_skb_load_bytes(skb, DESTINATION, &destination, sizeof(destination)))
		return SHOT;
	skb->priority = 1U << 16 | (1 + __builtin_bswap32(destination) - FIRST); /* class 1:1 and on */
	return bpf_redirect(set->out_ifindex, 0);
}

SEC("tc")
int count_frame(struct __sk_buff *skb)
{
	__u32 destination = 0;
	__u64 *number;

	count(CAME);
	if (bpf_skb_load_bytes(skb, DESTINATION, &destination, sizeof(destination)))
		return SHOT;
	destination = __builtin_bswap32(destination) % LEAVES;
	number = bpf_map_lookup_elem(&arrived, &destination);
	if (number)
		(*number)++;
	return SHOT;
}
