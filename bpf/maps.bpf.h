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
 * What does not change is an array in one value, in a section of its own that the loader gives its size: an element is a comparison
 * and an addition away, where a look-up in a map stores a key first. The verifier knows both the count and the size. It must see the
 * register that was compared be added, not a copy that the compiler kept of it, and no comparison with 0 that says nothing (both
 * before Linux 5.16); and the compiler must not believe in the one element.
 */
#define PARTS(NOUN, NAME)                                                                                                     \
	struct pst_##NOUN NAME[1] SEC(".data." #NAME);                                                                        \
	static __always_inline const struct pst_##NOUN *pst_plane_##NOUN(const struct pst_plane *plane, __u64 index)          \
	{                                                                                                                     \
		const struct pst_##NOUN *parts = NAME;                                                                        \
		__u64 count = constants.NOUN##_count;                                                                         \
                                                                                                                              \
		barrier_var(parts);                                                                                           \
		if (!count)                                                                                                   \
			return (const struct pst_##NOUN *)0;                                                                  \
		asm volatile goto("if %[index] >= %[count] goto %l[absent]"                                                   \
				  : [index] "+r"(index) : [count] "r"(count) : : absent);                                     \
		return parts + index;                                                                                         \
	absent:                                                                                                               \
		return (const struct pst_##NOUN *)0;                                                                          \
	}

PARTS(link, links)
PARTS(tuple, tuples)
PARTS(rule, rules)
PARTS(class, classes)
PARTS(profile, profiles)

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

static __always_inline bool pst_plane_shapes(const struct pst_plane *plane)
{
	return constants.shapes;
}

static __always_inline enum pst_holder pst_plane_holder(const struct pst_plane *plane, __u32 bytes, __u64 now_ns)
{
	return constants.is_test ? (enum pst_holder)test.holder : PST_HOLDER_ABSENT;
}

static __always_inline bool pst_plane_is_waiting(const struct pst_plane *plane, __u32 owner)
{
	return constants.is_test && test.is_waiting;
}

static __always_inline const struct pst_hash_secret *pst_plane_secret(const struct pst_plane *plane)
{
	const struct pst_hash_secret *at = (const struct pst_hash_secret *)&constants.secret;

	barrier_var(at); /* else the compiler takes it for the zeros that it is initialised with */
	return at;
}

#endif /* PENSTOCK_MAPS_BPF_H */
