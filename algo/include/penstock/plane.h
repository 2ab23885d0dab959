/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * plane.h: the parts of a generation by index: a pointer, or NULL when there is no such part.
 *
 * What         Every index that a struct or a table holds goes through here before it is used. In userspace the parts lie in
 *              arrays (struct pst_plane). A host that has them elsewhere, as BPF has them in maps, defines PST_PLANE_HOST
 *              and brings these functions itself.
 * Source       ours.
 * Units        indices; PST_TUPLE_* for kinds.
 * Ranges       any index. For links the host vouches: link_first and link_count lie inside of its links.
 * Invariants   I1  what is returned may be read, and a limiter's state written, until the generation ends.
 * Overflow     none.
 * Concurrency  none: parts other than states do not change while a generation lives.
 */
#ifndef PENSTOCK_PLANE_H
#define PENSTOCK_PLANE_H

#include "wire.h"

#define PST_TUPLES_MAX 256

/* What the part of a host says that holds packets back until they may go (hold.h). */
enum pst_holder {
	PST_HOLDER_READY = 0,
	PST_HOLDER_FULL = 1,
	PST_HOLDER_ABSENT = 2,
	PST_HOLDER_LEAVING = 3, /* takes nothing any more, and lets go what waits */
};

/* The memory that a packet takes while it waits, in pieces that have PST_HOLD_CHUNK_ROOM bytes for it. */
PST_INLINE uint32_t pst_hold_chunks(uint32_t bytes)
{
	return bytes <= PST_HOLD_CHUNK_ROOM ? 1 : (bytes + PST_HOLD_CHUNK_ROOM - 1) / PST_HOLD_CHUNK_ROOM;
}

#ifndef PST_PLANE_HOST

PST_INLINE const struct pst_link *pst_plane_link(const struct pst_plane *plane, uint32_t index)
{
	return &plane->links[index];
}

PST_INLINE const struct pst_tuple *pst_plane_tuple(const struct pst_plane *plane, uint32_t index)
{
	return index < plane->tuple_count ? &plane->tuples[index] : (const struct pst_tuple *)0;
}

PST_INLINE const struct pst_rule *pst_plane_rule(const struct pst_plane *plane, uint32_t index)
{
	return index < plane->rule_count ? &plane->rules[index] : (const struct pst_rule *)0;
}

PST_INLINE const struct pst_class *pst_plane_class(const struct pst_plane *plane, uint32_t index)
{
	return index < plane->class_count ? &plane->classes[index] : (const struct pst_class *)0;
}

PST_INLINE const struct pst_profile *pst_plane_profile(const struct pst_plane *plane, uint32_t index)
{
	return index < plane->profile_count ? &plane->profiles[index] : (const struct pst_profile *)0;
}

PST_INLINE struct pst_limit *pst_plane_limit(const struct pst_plane *plane, uint32_t index)
{
	return index < plane->limit_count ? &plane->limits[index] : (struct pst_limit *)0;
}

PST_INLINE struct pst_meter_state *pst_plane_meter(const struct pst_plane *plane, uint64_t index)
{
	return index < plane->meter_count ? &plane->meters[index] : (struct pst_meter_state *)0;
}

PST_INLINE struct pst_line *pst_plane_line(const struct pst_plane *plane, uint32_t index)
{
	return index < plane->line_count ? &plane->lines[index] : (struct pst_line *)0;
}

PST_INLINE const struct pst_tree_place *pst_plane_place(const struct pst_plane *plane, uint32_t index)
{
	return index < plane->place_count ? &plane->places[index] : (const struct pst_tree_place *)0;
}

PST_INLINE struct pst_tree_node *pst_plane_node(const struct pst_plane *plane, uint32_t index)
{
	return index < plane->node_count ? &plane->nodes[index] : (struct pst_tree_node *)0;
}

PST_INLINE struct pst_slice *pst_plane_slice(const struct pst_plane *plane, uint32_t index)
{
	return index < plane->slice_count ? &plane->slices[index] : (struct pst_slice *)0;
}

PST_INLINE uint64_t *pst_plane_filter(const struct pst_plane *plane, uint32_t index)
{
	return index < plane->filter_count ? &plane->filters[index] : (uint64_t *)0;
}

PST_INLINE const struct pst_sketch *pst_plane_sketch(const struct pst_plane *plane)
{
	return &plane->sketch;
}

PST_INLINE uint64_t *pst_plane_countdown(const struct pst_plane *plane, uint32_t index)
{
	return plane->countdown_count ? &plane->countdowns[index & (plane->countdown_count - 1)] : (uint64_t *)0;
}

/* The most that a packet may be put to: links it is offered to, tuples tried of a link or of a class. */
PST_INLINE uint32_t pst_plane_links_max(const struct pst_plane *plane)
{
	return plane->link_count;
}

PST_INLINE uint32_t pst_plane_tuples_max(const struct pst_plane *plane)
{
	(void)plane;
	return PST_TUPLES_MAX;
}

/* Buckets of the table that a kind of tuple looks into; below 2 there is no table at all. */
PST_INLINE uint32_t pst_plane_bucket_count(const struct pst_plane *plane, uint8_t kind)
{
	return plane->tables[kind == PST_TUPLE_LIMITS].bucket_count;
}

PST_INLINE struct pst_bucket *pst_plane_bucket(const struct pst_plane *plane, uint8_t kind, uint32_t index)
{
	return &plane->tables[kind == PST_TUPLE_LIMITS].buckets[index];
}

/*
 * Asks the memory for a bucket of limiters that is looked into soon. Where there is no instruction for that, as in BPF, a host stores to `asked`:
 * a store fetches its line, and neither the program nor a clock that waits for loads waits for a store.
 */
PST_INLINE void pst_plane_ask(const struct pst_plane *plane, uint32_t index)
{
	__builtin_prefetch(pst_plane_bucket(plane, PST_TUPLE_LIMITS, index));
}

PST_INLINE const struct pst_hash_secret *pst_plane_secret(const struct pst_plane *plane)
{
	return &plane->secret;
}

/* Whether some limit may hold packets at all: what follows is not asked otherwise. */
PST_INLINE bool pst_plane_shapes(const struct pst_plane *plane)
{
	return plane->shapes;
}

/* Whether some link shares its rate among its classes. */
PST_INLINE bool pst_plane_has_shares(const struct pst_plane *plane)
{
	return plane->place_count > 0;
}

/* Whether there are delay lines, beside the one that is nobody's. */
PST_INLINE bool pst_plane_delays(const struct pst_plane *plane)
{
	return plane->line_count > 1;
}

/* Whether a packet of `bytes` could be held now. */
PST_INLINE enum pst_holder pst_plane_holder(const struct pst_plane *plane, uint32_t bytes, uint64_t now_ns)
{
	(void)now_ns;
	if (plane->is_holder_absent)
		return plane->is_holder_leaving ? PST_HOLDER_LEAVING : PST_HOLDER_ABSENT;
	return pst_hold_chunks(bytes) <= plane->room_chunks ? PST_HOLDER_READY : PST_HOLDER_FULL;
}

/* Whether packets of this owner wait still, be it because they are late. Owners may share a number: then more wait than must. */
PST_INLINE bool pst_plane_is_waiting(const struct pst_plane *plane, uint32_t owner)
{
	return plane->waiting && *(const volatile uint64_t *)&plane->waiting[owner & plane->waiting_mask] > 0;
}

#endif /* PST_PLANE_HOST */

#endif /* PENSTOCK_PLANE_H */
