/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Trees of shares for Rust, beside the packets: kernel programs may work in the same memory, so this is no one-thread host. */
#include <penstock/fair.h>

#define TEND_TRIES 1000

uint64_t pst_host_demand_Bps(const struct pst_ewma *demand, uint64_t now_ns);
uint64_t pst_host_slice_limit_Bps(const struct pst_slice *slice);
bool pst_host_tree_tend(const struct pst_plane *plane, uint32_t place, uint64_t now_ns);
uint64_t pst_host_user(const struct pst_plane *plane, const struct pst_key *key, uint32_t class_index);
uint32_t pst_host_user_entry(const struct pst_plane *plane, uint64_t user, uint32_t class_index);
uint64_t pst_host_user_rate_Bps(const struct pst_plane *plane, uint64_t user, uint32_t class_index, uint64_t now_ns);

uint64_t pst_host_demand_Bps(const struct pst_ewma *demand, uint64_t now_ns)
{
	return pst_ewma_rate_Bps(demand, now_ns);
}

/* What a user of a slice may send, per unit of weight. */
uint64_t pst_host_slice_limit_Bps(const struct pst_slice *slice)
{
	return pst_lpf_rate_Bps(slice->nominal_Bps, pst_threshold_limit_parts(*(const volatile uint64_t *)&slice->threshold.limit));
}

/* A packet is at work for less than a microsecond: often enough the tree is free. */
bool pst_host_tree_tend(const struct pst_plane *plane, uint32_t place, uint64_t now_ns)
{
	int tries;

	for (tries = 0; tries < TEND_TRIES; tries++) {
		if (pst_tree_tend(plane, place, now_ns))
			return true;
	}
	return false;
}

uint64_t pst_host_user(const struct pst_plane *plane, const struct pst_key *key, uint32_t class_index)
{
	struct pst_packet packet = { .key = *key };

	return pst_fair_user(plane, &packet, class_index);
}

/* The node of a user's entry, or PST_NONE. */
uint32_t pst_host_user_entry(const struct pst_plane *plane, uint64_t user, uint32_t class_index)
{
	struct pst_tree_walk walk = { .user = user, .place = class_index };

	return pst_tree_find(plane, &walk);
}

/* What a user without an entry sends, per unit of weight: as the sketch reads it, never less than it is. */
uint64_t pst_host_user_rate_Bps(const struct pst_plane *plane, uint64_t user, uint32_t class_index, uint64_t now_ns)
{
	const struct pst_tree_place *place = pst_plane_place(plane, class_index);
	const struct pst_slice *slice = place ? pst_plane_slice(plane, place->slice) : (const struct pst_slice *)0;
	struct pst_sketch_cells cells;

	if (!slice)
		return 0;
	pst_sketch_find(&cells, plane, user);
	return pst_lpf_rate_Bps(slice->nominal_Bps, pst_sketch_read(plane, &cells, pst_lpf_stamp(now_ns, pst_lpf_tau_shift(slice->tau_shift))));
}
