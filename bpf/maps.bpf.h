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
#include <penstock/wire.h>

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
ARRAY(links, struct pst_link, 0);
ARRAY(tuples, struct pst_tuple, 0);
ARRAY(rules, struct pst_rule, 0);
ARRAY(classes, struct pst_class, 0);
ARRAY(profiles, struct pst_profile, 0);
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

static __always_inline const struct pst_link *pst_plane_link(const struct pst_plane *plane, __u32 index)
{
	return bpf_map_lookup_elem(&links, &index);
}

static __always_inline const struct pst_tuple *pst_plane_tuple(const struct pst_plane *plane, __u32 index)
{
	return bpf_map_lookup_elem(&tuples, &index);
}

static __always_inline const struct pst_rule *pst_plane_rule(const struct pst_plane *plane, __u32 index)
{
	return bpf_map_lookup_elem(&rules, &index);
}

static __always_inline const struct pst_class *pst_plane_class(const struct pst_plane *plane, __u32 index)
{
	return bpf_map_lookup_elem(&classes, &index);
}

static __always_inline const struct pst_profile *pst_plane_profile(const struct pst_plane *plane, __u32 index)
{
	return bpf_map_lookup_elem(&profiles, &index);
}

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

static __always_inline struct pst_bucket *pst_plane_bucket(const struct pst_plane *plane, __u8 kind, __u32 index)
{
	return kind == PST_TUPLE_LIMITS ? bpf_map_lookup_elem(&limiter_buckets, &index) :
					  bpf_map_lookup_elem(&rule_buckets, &index);
}

static __always_inline const struct pst_hash_secret *pst_plane_secret(const struct pst_plane *plane)
{
	const struct pst_hash_secret *at = (const struct pst_hash_secret *)&constants.secret;

	barrier_var(at); /* else the compiler takes it for the zeros that it is initialised with */
	return at;
}

#endif /* PENSTOCK_MAPS_BPF_H */
