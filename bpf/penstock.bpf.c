/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The kernel's host of pipeline.h: one XDP program. It finds memory, asks algo/ what to do with a packet, does it and counts
 * it; it decides nothing itself.
 */
#include "maps.bpf.h"

#include <penstock/delay.h>
#include <penstock/fair.h>
#include <penstock/mark.h>
#include <penstock/packet.h>
#include <penstock/pipeline.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* What leaves a forwarding port: the interface paired with the index that it came in by. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} pairs SEC(".maps");

/* Packets by reason, and by class, of each CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PST_REASON_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} reasons SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pst_counters);
} class_counters SEC(".maps");

/* Packets that were dropped or marked, some of them: room for two seconds of a CPU that has something to tell all the time. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18); /* bytes */
} samples SEC(".maps");

/* Where the parser is between two layers: what a pst_cursor holds beside its pointers. */
struct layer {
	__u32 offset;
	__u32 limit;
	__u32 ethertype;
	__u32 proto;
	__u32 tunnels;
	__u32 is_partial;
	__u32 is_open;
	__u32 reserved;
};

/*
 * What a CPU works on. Not on the stack, which is short, and for the verifier: it takes what it reads back for anything, and does not
 * follow each way through the parser on through all that comes after.
 */
struct work {
	struct pst_packet packet;
	struct pst_match match;
	struct pst_decision decision;
	struct pst_plane plane;
	struct layer layer;
	struct pst_fair fair;
	__u64 now_ns;
	__u64 sampled_ns;   /* when it last told of a packet */
	__u64 samples_lost; /* the ring was full */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct work);
} works SEC(".maps");

static __always_inline __u32 wire_bytes_of(struct xdp_md *context)
{
	if (constants.has_buffer_length)
		return (__u32)bpf_xdp_get_buff_len(context);
	return (__u32)(context->data_end - context->data);
}

static __always_inline bool parse_plain(struct xdp_md *context, struct pst_packet *packet)
{
	return pst_packet_parse_plain(packet, (__u8 *)(long)context->data, (__u8 *)(long)context->data_end,
				      wire_bytes_of(context));
}

static __always_inline void keep(struct layer *layer, const struct pst_cursor *at, bool is_open)
{
	layer->offset = at->offset;
	layer->limit = at->limit;
	layer->ethertype = at->ethertype;
	layer->proto = at->proto;
	layer->tunnels = at->tunnels;
	layer->is_partial = at->is_partial;
	layer->is_open = is_open;
}

static __always_inline void go_on(struct pst_cursor *at, const struct xdp_md *context, const struct layer *layer)
{
	at->data = (__u8 *)(long)context->data;
	at->end = (__u8 *)(long)context->data_end;
	at->offset = layer->offset & 0x7fff; /* pst_cursor_advance */
	at->limit = layer->limit;
	at->ethertype = layer->ethertype;
	at->proto = layer->proto;
	at->tunnels = layer->tunnels;
	at->is_partial = layer->is_partial;
}

/*
 * Frames that turned out not to be plain, in stages (types.h): the verifier looks at each kind of header once, not once for each way
 * through the headers before it.
 */
__noinline int parse_outer(struct xdp_md *context, struct work *work)
{
	struct pst_cursor at;
	bool is_open;

	if (!work)
		return 0;
	is_open = pst_packet_parse_outer(&at, &work->packet, (__u8 *)(long)context->data, (__u8 *)(long)context->data_end,
					 wire_bytes_of(context), PST_LINK_ETHERNET);
	keep(&work->layer, &at, is_open);
	return 0;
}

#define PARSE_STAGE(NAME)                                                               \
	__noinline int parse_##NAME(struct xdp_md *context, struct work *work)          \
	{                                                                               \
		struct pst_cursor at;                                                   \
                                                                                        \
		if (!work || !work->layer.is_open)                                      \
			return 0;                                                       \
		go_on(&at, context, &work->layer);                                      \
		keep(&work->layer, &at, pst_packet_parse_##NAME(&at, &work->packet));   \
		return 0;                                                               \
	}

PARSE_STAGE(network)
PARSE_STAGE(payload)
PARSE_STAGE(shims)

__noinline int parse_layers(struct xdp_md *context, struct work *work)
{
	__u32 layer;

	if (!work)
		return 0;
	parse_outer(context, work);
	for (layer = 0; layer <= PST_PACKET_TUNNELS_MAX && work->layer.is_open; layer++) {
		parse_network(context, work);
		parse_payload(context, work);
		parse_shims(context, work);
	}
	return 0;
}

static __always_inline void count_class(const struct pst_decision *decision)
{
	__u32 index = decision->class_index;
	struct pst_counters *counters = bpf_map_lookup_elem(&class_counters, &index);
	__u64 dropped;

	if (!counters)
		return;
	dropped = pst_is_same(decision->verdict, PST_VERDICT_DROP);
	counters->offered_packets++;
	counters->offered_bytes += decision->length;
	counters->dropped_packets += dropped;
	counters->dropped_bytes += dropped * decision->length;
	counters->green_packets += pst_is_same(decision->color, PST_COLOR_GREEN);
	counters->yellow_packets += pst_is_same(decision->color, PST_COLOR_YELLOW);
	counters->marked_packets += pst_reason_is_mark(decision->reason);
	counters->held_packets += pst_is_same(decision->verdict, PST_VERDICT_HOLD);
}

static __always_inline void add(uint64_t *word, uint64_t amount)
{
	__sync_fetch_and_add(word, amount);
}

/*
 * Counts at the limit that judged: one place for all CPUs, so each addition is atomic, and each costs more than a branch that
 * was guessed wrong. Green and yellow are neighbours: which of them it is needs no branch.
 */
PST_STATIC_ASSERT(__builtin_offsetof(struct pst_counters, yellow_packets) ==
			  __builtin_offsetof(struct pst_counters, green_packets) + sizeof(__u64),
		  "green and yellow are neighbours");

static __always_inline void count_limit(const struct pst_decision *decision)
{
	__u32 slot = decision->slot, limit = decision->limit_index;
	struct pst_counters *counters = bpf_map_lookup_elem(&slot_counters, &slot);

	if (!counters) /* PST_NONE is no slot */
		counters = bpf_map_lookup_elem(&limit_counters, &limit);
	if (!counters)
		return;
	add(&counters->offered_packets, 1);
	add(&counters->offered_bytes, decision->length);
	if (decision->color <= PST_COLOR_YELLOW)
		add(&counters->green_packets + (decision->color & PST_COLOR_YELLOW), 1);
	if (decision->verdict == PST_VERDICT_DROP) {
		add(&counters->dropped_packets, 1);
		add(&counters->dropped_bytes, decision->length);
		return;
	}
	if (pst_reason_is_mark(decision->reason))
		add(&counters->marked_packets, 1);
	if (decision->verdict == PST_VERDICT_HOLD)
		add(&counters->held_packets, 1);
}

static __always_inline void count(const struct pst_decision *decision)
{
	__u32 reason = decision->reason;
	__u64 *packets = bpf_map_lookup_elem(&reasons, &reason);

	if (packets)
		(*packets)++;
	if (decision->class_index != PST_NONE)
		count_class(decision);
	if (constants.counts_limits)
		count_limit(decision);
}

/* Tells of a packet. Userspace comes for samples when it likes: nobody is woken. */
static __always_inline void tell(struct work *work, __u32 ifindex, __u64 now_ns)
{
	struct pst_sample *sample = bpf_ringbuf_reserve(&samples, sizeof(*sample), 0);

	work->sampled_ns = now_ns;
	if (!sample) {
		work->samples_lost++;
		return;
	}
	sample->time_ns = now_ns;
	sample->key = work->packet.key;
	sample->decision = work->decision;
	sample->ifindex = ifindex;
	sample->reserved = 0;
	bpf_ringbuf_submit(sample, BPF_RB_NO_WAKEUP);
}

/* No branch on the verdict alone: nobody can predict it, but that the last sample was a moment ago. */
static __always_inline void sample(struct work *work, __u32 ifindex, __u64 now_ns)
{
	__u32 is_told = pst_is_same(work->decision.verdict, PST_VERDICT_DROP) | pst_reason_is_mark(work->decision.reason);

	if (is_told & (now_ns - work->sampled_ns >= PST_SAMPLE_GAP_NSEC))
		tell(work, ifindex, now_ns);
}

static __always_inline void mark(struct xdp_md *context, const struct pst_packet *packet, const struct pst_decision *decision)
{
	__u8 *data = (__u8 *)(long)context->data, *end = (__u8 *)(long)context->data_end;

	if (decision->reason == PST_REASON_CE_MARK || decision->reason == PST_REASON_HELD_CE)
		pst_packet_mark_ce(data, end, packet);
	else
		pst_packet_set_dscp(data, end, packet, decision->dscp);
}

static __always_inline __u32 draw(void)
{
	if (constants.is_test)
		return test.random_u32;
	return constants.uses_random ? bpf_get_prandom_u32() : 0;
}

/* Lets a packet on: out by the paired port, or into the kernel. */
static __always_inline int pass(struct xdp_md *context, const struct pst_port *port)
{
	return port->flags & PST_PORT_FORWARD ? bpf_redirect_map(&pairs, context->ingress_ifindex, XDP_DROP) : XDP_PASS;
}

/*
 * Sends a packet to who holds it. It is counted first, so that the one after it, on this CPU or another, finds it waiting. Who is not
 * there after all has not got it: he was when he was last seen, not so long ago.
 */
static __always_inline int hold(struct xdp_md *context, const struct pst_plane *plane, const struct pst_decision *decision,
				__u64 now_ns)
{
	__u32 index = plane->shaper, owner = decision->owner & (PST_WAITING_MAX - 1), chunks = pst_hold_chunks(decision->length);
	struct pst_shaper *shaper = bpf_map_lookup_elem(&shapers, &index);
	__u64 *count = bpf_map_lookup_elem(&waiting, &owner);
	struct pst_held *held;

	if (!shaper || !count || bpf_xdp_adjust_head(context, -(int)sizeof(*held)))
		return XDP_DROP;
	held = (struct pst_held *)(long)context->data;
	if ((void *)(held + 1) > (void *)(long)context->data_end)
		return XDP_DROP;
	/* Field by field: the stack is short. */
	held->due_ns = decision->departure_ns;
	held->came_ns = now_ns;
	held->owner = decision->owner;
	held->class_index = decision->class_index;
	held->length = decision->length;
	held->cost_ns = decision->cost_ns;
	__sync_fetch_and_add(count, 1);
	__sync_fetch_and_add(&shaper->chunks, chunks);
	if (bpf_redirect_map(&sockets, index, XDP_DROP) == XDP_REDIRECT)
		return XDP_REDIRECT;
	__sync_fetch_and_add(count, -1);
	__sync_fetch_and_add(&shaper->chunks, -chunks);
	return XDP_DROP;
}

/*
 * Has a packet held that is to be held. XDP_REDIRECT when it is on its way; else it is decided about now. A stage: the stack of the
 * program itself has no room left.
 */
__noinline int try_hold(struct xdp_md *context, struct work *work)
{
	struct pst_decision *decision;

	if (!work)
		return XDP_PASS;
	decision = &work->decision;
	if (decision->verdict != PST_VERDICT_HOLD || decision->shadow)
		return XDP_PASS;
	if (pst_reason_is_mark(decision->reason))
		mark(context, &work->packet, decision);
	if (hold(context, &work->plane, decision, work->now_ns) == XDP_REDIRECT)
		return XDP_REDIRECT;
	pst_decide(decision, PST_VERDICT_DROP, PST_REASON_NO_SHAPER);
	return XDP_DROP;
}

/* Who would hold this packet, and whether its frame is one that can be held. Asked only where some are: the length is a call. */
static __always_inline void find_holder(struct xdp_md *context, const struct pst_port *port, struct pst_plane *plane)
{
	__u64 bytes = context->data_end - context->data;

	plane->shaper = context->rx_queue_index < PST_SHAPER_QUEUES ? port->shaper_first + context->rx_queue_index
								    : PST_SHAPERS_MAX;
	plane->is_holdable = bytes == wire_bytes_of(context) && bytes <= PST_HOLD_CHUNK_ROOM;
}

/* Does what was decided. No branch on pass or drop: nobody can predict it. */
static __always_inline int act(struct xdp_md *context, const struct pst_port *port, const struct pst_packet *packet,
			       const struct pst_decision *decision)
{
	__u32 drops = pst_is_same(decision->verdict, PST_VERDICT_DROP) & !decision->shadow;

	if (decision->verdict == PST_VERDICT_MARK && !decision->shadow)
		mark(context, packet, decision);
	if (port->flags & PST_PORT_FORWARD)
		return drops ? XDP_DROP : pass(context, port);
	return XDP_PASS - (int)drops; /* XDP_DROP is one less */
}

static __always_inline __u64 clock_ns(void)
{
	return constants.is_test ? test.now_ns : bpf_ktime_get_ns();
}

/*
 * The clock waits for all loads before it, so it is read in front of the one that may miss the cache, and in front of it is done
 * what can be: a CPU that waits for memory goes on only until its stores, which wait too, are too many.
 */
static __always_inline void decide(struct work *work, const struct pst_plane *plane)
{
	struct pst_question question = { .tuple = 0 };
	__u64 now_ns;
	bool is_open;

	if (work->packet.reason == PST_REASON_NONE)
		pst_classify_ask(&question, plane, &work->packet.key);
	is_open = pst_pipeline_open(&work->decision, plane, &work->packet, plane->link_first);
	now_ns = clock_ns();
	work->now_ns = now_ns;
	if (!is_open) { /* all is said; what is left of the packet before must not be asked */
		work->decision.departure_ns = now_ns;
		return;
	}
	if (pst_pipeline_answer(&work->decision, plane, &work->packet, &question, now_ns, draw()))
		return;
	pst_classify(&work->match, plane, &work->packet.key);
	pst_pipeline_judge(&work->decision, plane, &work->packet, &work->match, now_ns, draw());
}

static __always_inline int judge(struct xdp_md *context)
{
	__u32 ingress = context->ingress_ifindex, zero = 0;
	const struct pst_port *port = bpf_map_lookup_elem(&ports, &ingress);
	struct work *work = bpf_map_lookup_elem(&works, &zero);
	bool holds = constants.shapes || constants.line_count > 1, is_held;

	if (!work || !port || !(port->flags & PST_PORT_ACTIVE))
		return XDP_PASS;
	if (!port->link_count) /* no link leads from here: nobody has a say about its packets */
		return pass(context, port);
	work->plane.link_first = port->link_first;
	work->plane.link_count = port->link_count;
	if (holds)
		find_holder(context, port, &work->plane);
	if (!parse_plain(context, &work->packet))
		parse_layers(context, work);
	decide(work, &work->plane);
	if (pst_plane_has_shares(&work->plane))
		pst_fair_apply(&work->decision, &work->plane, &work->packet, &work->fair, work->now_ns, draw());
	if (pst_plane_delays(&work->plane))
		pst_delay_apply(&work->decision, &work->plane, work->now_ns);
	is_held = holds && !constants.is_test && try_hold(context, work) == XDP_REDIRECT;
	sample(work, context->ingress_ifindex, work->now_ns);
	count(&work->decision);
	if (constants.is_test)
		test.decision = work->decision;
	return is_held ? XDP_REDIRECT : act(context, port, &work->packet, &work->decision);
}

/* The loader says whether it takes frames in several buffers: kernels before 5.18 refuse a program that does. */
SEC("xdp")
int penstock(struct xdp_md *context)
{
	return judge(context);
}
