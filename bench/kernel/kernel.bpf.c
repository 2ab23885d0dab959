/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The kernel program and its peers on the same frames: each program first gives the frame the five-tuple of a random flow, then
 * does its work. `bench_empty` does nothing else, so what another costs is its time less that one's.
 */
#include "../../bpf/penstock.bpf.c"

#include "flow.h"

const volatile struct {
	__u32 flow_count;
	__u32 send_ifindex;
	__u32 out_ifindex;
	__u32 pad;
	__u64 rate_Bps;
} settings = { .flow_count = 1 };

/* A token bucket as XDP examples have it: a lock, tokens in bytes, the time of the last refill. */
struct bucket {
	struct bpf_spin_lock lock;
	__u32 tokens;
	__u64 last_ns;
};

/* An LRU map takes no lock: CPUs race there. */
struct open_bucket {
	__u32 unused;
	__u32 tokens;
	__u64 last_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct bench_tuple);
	__type(value, struct bucket);
} hash_buckets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct bench_tuple);
	__type(value, struct open_bucket);
} lru_buckets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u64);
} verdicts SEC(".maps");

static __always_inline bool give_flow(struct xdp_md *context)
{
	__u8 *data = (__u8 *)(long)context->data;
	struct bench_tuple tuple;

	if (data + BENCH_FRAME_BYTES > (__u8 *)(long)context->data_end)
		return false;
	bench_flow_tuple(&tuple, pst_scale_u32(bpf_get_prandom_u32(), settings.flow_count));
	*(__u32 *)(data + 26) = tuple.source;
	*(__u32 *)(data + 30) = tuple.destination;
	*(__u16 *)(data + 34) = tuple.source_port;
	*(__u16 *)(data + 36) = tuple.destination_port;
	return true;
}

SEC("xdp")
int bench_empty(struct xdp_md *context)
{
	return give_flow(context) ? XDP_PASS : XDP_ABORTED;
}

SEC("xdp")
int bench_penstock(struct xdp_md *context)
{
	return give_flow(context) ? judge(context) : XDP_ABORTED;
}

static __always_inline bool take(__u32 *tokens, __u64 *last_ns, __u64 now_ns)
{
	__u64 earned = (now_ns - *last_ns) * settings.rate_Bps / 1000000000 + *tokens;
	bool passes;

	*tokens = earned < BENCH_BURST_BYTES ? earned : BENCH_BURST_BYTES;
	*last_ns = now_ns;
	passes = *tokens >= BENCH_FRAME_BYTES;
	if (passes)
		*tokens -= BENCH_FRAME_BYTES;
	return passes;
}

static __always_inline bool read_tuple(struct xdp_md *context, struct bench_tuple *tuple)
{
	__u8 *data = (__u8 *)(long)context->data;

	if (data + BENCH_FRAME_BYTES > (__u8 *)(long)context->data_end)
		return false;
	if (data[12] != 0x08 || data[13] != 0x00 || data[14] != 0x45 || data[23] != 17)
		return false;
	tuple->source = *(__u32 *)(data + 26);
	tuple->destination = *(__u32 *)(data + 30);
	tuple->source_port = *(__u16 *)(data + 34);
	tuple->destination_port = *(__u16 *)(data + 36);
	tuple->pad = 0;
	return true;
}

static __always_inline int conclude(bool passes)
{
	__u32 index = passes;
	__u64 *packets = bpf_map_lookup_elem(&verdicts, &index);

	if (packets)
		(*packets)++;
	return passes ? XDP_PASS : XDP_DROP;
}

static __always_inline int judge_by_hash(struct xdp_md *context)
{
	struct bench_tuple tuple;
	struct bucket *bucket;
	__u64 now_ns;
	bool passes;

	if (!read_tuple(context, &tuple))
		return XDP_ABORTED;
	bucket = bpf_map_lookup_elem(&hash_buckets, &tuple);
	if (!bucket)
		return XDP_PASS;
	now_ns = bpf_ktime_get_ns();
	bpf_spin_lock(&bucket->lock);
	passes = take(&bucket->tokens, &bucket->last_ns, now_ns);
	bpf_spin_unlock(&bucket->lock);
	return conclude(passes);
}

static __always_inline int judge_by_lru(struct xdp_md *context)
{
	struct bench_tuple tuple;
	struct open_bucket *bucket;

	if (!read_tuple(context, &tuple))
		return XDP_ABORTED;
	bucket = bpf_map_lookup_elem(&lru_buckets, &tuple);
	return bucket ? conclude(take(&bucket->tokens, &bucket->last_ns, bpf_ktime_get_ns())) : XDP_PASS;
}

SEC("xdp")
int bench_hash(struct xdp_md *context)
{
	return give_flow(context) ? judge_by_hash(context) : XDP_ABORTED;
}

SEC("xdp")
int bench_lru(struct xdp_md *context)
{
	return give_flow(context) ? judge_by_lru(context) : XDP_ABORTED;
}

/* ---- live frames: what sends them, and what takes them at the other end. Whatever is decided, a frame is dropped there: what is measured
 * is the way to the decision, and counted is what came. ---- */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} received SEC(".maps");

static __always_inline int receive(void)
{
	__u32 zero = 0;
	__u64 *packets = bpf_map_lookup_elem(&received, &zero);

	if (packets)
		(*packets)++;
	return XDP_DROP;
}

SEC("xdp")
int bench_send(struct xdp_md *context)
{
	return give_flow(context) ? bpf_redirect(settings.send_ifindex, 0) : XDP_ABORTED;
}

SEC("xdp")
int live_empty(struct xdp_md *context)
{
	return receive();
}

SEC("xdp")
int live_penstock(struct xdp_md *context)
{
	return judge(context) >= 0 ? receive() : XDP_ABORTED;
}

SEC("xdp")
int live_hash(struct xdp_md *context)
{
	return judge_by_hash(context) >= 0 ? receive() : XDP_ABORTED;
}

SEC("xdp")
int live_lru(struct xdp_md *context)
{
	return judge_by_lru(context) >= 0 ? receive() : XDP_ABORTED;
}

/* In front of a qdisc, or of none. */
SEC("xdp")
int pass_all(struct xdp_md *context)
{
	return XDP_PASS;
}

SEC("xdp")
int pass_penstock(struct xdp_md *context)
{
	return judge(context);
}

/* Gives each packet the class of its flow, which HTB takes from the priority, and sends it out by the interface that has the qdisc. */
SEC("tc")
int bench_class(struct __sk_buff *skb)
{
	__u32 source = 0;

	if (bpf_skb_load_bytes(skb, 26, &source, sizeof(source)))
		return -1;
	/* bench_flow_tuple backwards: its factor's inverse modulo 2^32 */
	skb->priority = (1 << 16) | (1 + (source * UINT32_C(244002641)) % BENCH_CLASSES);
	return bpf_redirect(settings.out_ifindex, 0);
}

SEC("tc")
int bench_end(struct __sk_buff *skb)
{
	receive();
	return 2; /* TC_ACT_SHOT */
}
