/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Gives a frame of BPF_PROG_RUN a random user, and goes on in the shipped program; or ends there, which is what the giving costs. Each CPU has
 * users of its own.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define DESTINATION 30 /* in a frame: Ethernet's header, and 16 bytes of IPv4's */
#define FIRST 0x0a000000 /* 10.0.0.0 */
#define CPUS_MAX 256
#define TARGETS_MAX 16

struct task {
	__u32 first; /* user */
	__u32 users;
	__u32 target; /* a program; none: the frame passes */
	__u32 gap_ns; /* between frames; those that come earlier are not judged; 0: all at once */
	__u32 is_timed; /* pauses of this CPU are added up */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CPUS_MAX);
	__type(key, __u32);
	__type(value, struct task);
} tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, TARGETS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} targets SEC(".maps");

/* When a frame is due, when the last one was asked for, and how long nobody asked for one, of pauses of half a millisecond and more. */
struct times {
	__u64 due_ns;
	__u64 asked_ns;
	__u64 away_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct times);
} times SEC(".maps");

/* A frame that is late is sent at once; who was away for long does not send it all. */
static __always_inline int is_early(const struct task *task)
{
	__u64 now_ns = bpf_ktime_get_ns(), pause_ns;
	struct times *at;
	__u32 zero = 0;

	at = bpf_map_lookup_elem(&times, &zero);
	if (!at)
		return 1;
	pause_ns = now_ns - at->asked_ns;
	at->asked_ns = now_ns;
	if (pause_ns >= 500000)
		at->away_ns += pause_ns;
	if (!task->gap_ns)
		return 0;
	if (at->due_ns > now_ns)
		return 1;
	at->due_ns = now_ns - at->due_ns > 1000000 ? now_ns : at->due_ns + task->gap_ns;
	return 0;
}

SEC("xdp.frags")
int give_user(struct xdp_md *context)
{
	__u8 *data = (__u8 *)(long)context->data;
	__u32 cpu = bpf_get_smp_processor_id();
	const struct task *task = bpf_map_lookup_elem(&tasks, &cpu);
	__u32 user;

	if (data + DESTINATION + 4 > (__u8 *)(long)context->data_end || !task)
		return XDP_ABORTED;
	if (task->is_timed && is_early(task))
		return XDP_ABORTED;
	user = task->first + (__u32)((__u64)bpf_get_prandom_u32() * task->users >> 32);
	*(__u32 *)(data + DESTINATION) = __builtin_bswap32(FIRST + user);
	bpf_tail_call(context, &targets, task->target);
	return XDP_PASS;
}
