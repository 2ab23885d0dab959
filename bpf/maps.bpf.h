/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * maps.bpf.h: a generation in BPF maps, and plane.h's functions over them.
 *
 * Sizes here are the least that a map may have; the loader sets them for each generation. The limiter table is an array of
 * buckets that userspace maps and writes with plain stores; so are the limits of classes and the states of meters. Counters of
 * limits are mapped too: userspace reads them without a system call.
 */
#ifndef PENSTOCK_MAPS_BPF_H
#define PENSTOCK_MAPS_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define PST_PLANE_HOST
#include <penstock/plane.h>

/* What a packet is offered to; all else is in maps. */
struct pst_plane {
	__u32 link_first;
	__u32 link_count;
	__u32 shaper;      /* who holds packets of the queue that this one came in by */
	__u32 is_holdable; /* its frame lies in one buffer, and fits in a chunk; no byte of this is padding: stages get it */
};

#define ARRAY(NAME, VALUE, FLAGS)                                                                                             \
	struct {                                                                                                              \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                                             \
		__uint(max_entries, 1);                                                                                       \
		__uint(map_flags, FLAGS);                                                                                     \
		__type(key, __u32);                                                                                           \
		__type(value, VALUE);                                                                                         \
	} NAME SEC(".maps")

ARRAY(ports, struct pst_port, 0);
ARRAY(rule_buckets, struct pst_bucket, BPF_F_MMAPABLE);
ARRAY(limiter_buckets, struct pst_bucket, BPF_F_MMAPABLE);
ARRAY(limits, struct pst_limit, BPF_F_MMAPABLE);
ARRAY(meters, struct pst_meter_state, BPF_F_MMAPABLE);
ARRAY(slot_counters, struct pst_counters, BPF_F_MMAPABLE);  /* by slot of the limiter table */
ARRAY(limit_counters, struct pst_counters, BPF_F_MMAPABLE); /* by limit of a class */

/* Who holds packets, and what waits: shared by all generations, as what waits goes on from one to the next. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PST_SHAPERS_MAX);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct pst_shaper);
} shapers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PST_WAITING_MAX);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64); /* an array's elements lie 8 bytes apart at least */
} waiting SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, PST_SHAPERS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

/* What the generations before this one counted, for who reads counters; the program does not. */
ARRAY(classes_before, struct pst_counters, BPF_F_MMAPABLE);
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PST_REASON_COUNT);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, __u64);
} reasons_before SEC(".maps");

const volatile struct pst_constants constants SEC(".rodata.constants");

struct pst_test test SEC(".data.test");

/*
 * What nobody else writes is an array in one value, in a section of its own that the loader gives its size: an element is a comparison
 * and an addition away, where a look-up in a map stores a key first. The verifier knows both the count and the size. It must see the
 * register that was compared be added, not a copy that the compiler kept of it, and no comparison with 0 that says nothing (both
 * before Linux 5.16); and the compiler must not believe in the one element.
 */
#define PARTS_OF(TYPE, NOUN, NAME)                                                                                            \
	TYPE NAME[1] SEC(".data." #NAME);                                                                                     \
	static __always_inline TYPE *pst_plane_##NOUN(const struct pst_plane *plane, __u64 index)                             \
	{                                                                                                                     \
		TYPE *parts = NAME;                                                                                           \
		__u64 count = constants.NOUN##_count;                                                                         \
                                                                                                                              \
		barrier_var(parts);                                                                                           \
		if (!count)                                                                                                   \
			return (TYPE *)0;                                                                                     \
		asm volatile goto("if %[index] >= %[count] goto %l[absent]"                                                   \
				  : [index] "+r"(index) : [count] "r"(count) : : absent);                                     \
		return parts + index;                                                                                         \
	absent:                                                                                                               \
		return (TYPE *)0;                                                                                             \
	}
#define PARTS(NOUN, NAME) PARTS_OF(struct pst_##NOUN, NOUN, NAME)

PARTS(link, links)
PARTS(tuple, tuples)
PARTS(rule, rules)
PARTS(class, classes)
PARTS(profile, profiles)
PARTS(line, lines)
PARTS_OF(struct pst_tree_place, place, places)
PARTS_OF(struct pst_tree_node, node, nodes)
PARTS(slice, slices)
PARTS_OF(uint64_t, filter, filters)
PARTS_OF(uint64_t, countdown_part, countdowns)

static __always_inline struct pst_limit *pst_plane_limit(const struct pst_plane *plane, __u32 index)
{
	return bpf_map_lookup_elem(&limits, &index);
}

static __always_inline struct pst_meter_state *pst_plane_meter(const struct pst_plane *plane, __u64 index)
{
	__u32 key = index;

	return index >> 32 ? (struct pst_meter_state *)0 : bpf_map_lookup_elem(&meters, &key);
}

static __always_inline __u32 pst_plane_links_max(const struct pst_plane *plane)
{
	return constants.links_max;
}

static __always_inline __u32 pst_plane_tuples_max(const struct pst_plane *plane)
{
	return constants.tuples_max;
}

static __always_inline __u32 pst_plane_bucket_count(const struct pst_plane *plane, __u8 kind)
{
	return constants.bucket_counts[kind == PST_TUPLE_LIMITS];
}

/*
 * Two look-ups, and a word in each that is not in the other: else the compiler makes one of them, in a map that depends, and the
 * kernel an indirect call of what it otherwise inlines. That cost 20 ns a look-up.
 */
static __always_inline struct pst_bucket *pst_plane_bucket(const struct pst_plane *plane, __u8 kind, __u32 index)
{
	struct pst_bucket *bucket;

	if (kind == PST_TUPLE_LIMITS) {
		bucket = bpf_map_lookup_elem(&limiter_buckets, &index);
		__asm__ volatile("" : "+r"(bucket) : "i"(PST_TUPLE_LIMITS));
	} else {
		bucket = bpf_map_lookup_elem(&rule_buckets, &index);
		__asm__ volatile("" : "+r"(bucket) : "i"(PST_TUPLE_RULES));
	}
	return bucket;
}

static __always_inline void pst_plane_ask(const struct pst_plane *plane, __u32 index)
{
	struct pst_bucket *bucket;

	if (!constants.asks_ahead)
		return;
	bucket = bpf_map_lookup_elem(&limiter_buckets, &index);
	if (bucket)
		*(volatile __u16 *)&bucket->asked = 0;
}

static __always_inline uint64_t *pst_plane_countdown(const struct pst_plane *plane, __u32 index)
{
	return pst_plane_countdown_part(plane, index & (constants.countdown_part_count - 1));
}

static __always_inline const struct pst_sketch *pst_plane_sketch(const struct pst_plane *plane)
{
	const struct pst_sketch *at = (const struct pst_sketch *)&constants.sketch;

	barrier_var(at);
	return at;
}

static __always_inline bool pst_plane_has_shares(const struct pst_plane *plane)
{
	return constants.place_count;
}

static __always_inline bool pst_plane_delays(const struct pst_plane *plane)
{
	return constants.line_count > 1;
}

static __always_inline bool pst_plane_shapes(const struct pst_plane *plane)
{
	return constants.shapes;
}

static __always_inline enum pst_holder pst_plane_holder(const struct pst_plane *plane, __u32 bytes, __u64 now_ns)
{
	__u32 index = plane->shaper;
	const struct pst_shaper *shaper;
	__u64 alive_ns;

	if (constants.is_test)
		return (enum pst_holder)test.holder;
	shaper = bpf_map_lookup_elem(&shapers, &index);
	if (!shaper)
		return PST_HOLDER_ABSENT;
	alive_ns = *(volatile __u64 *)&shaper->alive_ns;
	/* It may have been seen a moment after this packet's time was read. Without a socket it has died while it was leaving. */
	if ((__s64)(now_ns - alive_ns) > PST_SHAPER_STALL_NSEC)
		return alive_ns == PST_SHAPER_LEAVING && bpf_map_lookup_elem(&sockets, &index) ? PST_HOLDER_LEAVING
											       : PST_HOLDER_ABSENT;
	if (!plane->is_holdable || *(volatile __u32 *)&shaper->chunks + pst_hold_chunks(bytes) > shaper->chunks_max)
		return PST_HOLDER_FULL;
	return PST_HOLDER_READY;
}

static __always_inline bool pst_plane_is_waiting(const struct pst_plane *plane, __u32 owner)
{
	const __u64 *count;

	if (constants.is_test)
		return test.is_waiting;
	owner &= PST_WAITING_MAX - 1;
	count = bpf_map_lookup_elem(&waiting, &owner);
	return count && *(volatile __u64 *)count;
}

static __always_inline const struct pst_hash_secret *pst_plane_secret(const struct pst_plane *plane)
{
	const struct pst_hash_secret *at = (const struct pst_hash_secret *)&constants.secret;

	barrier_var(at); /* else the compiler takes it for the zeros that it is initialised with */
	return at;
}

#endif /* PENSTOCK_MAPS_BPF_H */
