/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One slice of AHAB alone, for Rust, which owns the memory: sketch.h, threshold.h and fairdrop.h as in the plane, or as published. */
#include <penstock/fairdrop.h>
#include <penstock/rng.h>
#include <penstock/sketch.h>
#include <penstock/threshold.h>

#include <stddef.h>

#define ROWS 3

struct pst_host_ahab {
	struct pst_plane plane;
	struct pst_threshold_profile threshold;
	struct pst_threshold_state slice;
	struct pst_fairdrop_profile drops;
	struct pst_lpf_scale scale;
	uint64_t rate_Bps;
	uint64_t words[];
};

size_t pst_host_ahab_bytes(uint32_t column_bits);
void pst_host_ahab_start(struct pst_host_ahab *slice, uint64_t rate_Bps, uint32_t column_bits, uint32_t tau_shift,
			 uint32_t epoch_shift, uint32_t divide_bits, uint64_t seed, uint64_t now_ns);
bool pst_host_ahab_take(struct pst_host_ahab *slice, uint64_t user, uint32_t weight, uint64_t now_ns, uint32_t bytes,
			uint32_t random_u32, uint32_t *user_parts);
uint64_t pst_host_ahab_limit_Bps(const struct pst_host_ahab *slice);
uint32_t pst_host_ahab_divide_q12(uint32_t part, uint32_t whole, uint32_t bits);
uint32_t pst_host_ahab_divide_entries(uint32_t bits);
uint32_t pst_host_ahab_times(uint32_t part_q12, uint32_t shift);

size_t pst_host_ahab_bytes(uint32_t column_bits)
{
	return sizeof(struct pst_host_ahab) + (sizeof(uint64_t) * ROWS << column_bits);
}

/* The memory is zeros. */
void pst_host_ahab_start(struct pst_host_ahab *slice, uint64_t rate_Bps, uint32_t column_bits, uint32_t tau_shift,
			 uint32_t epoch_shift, uint32_t divide_bits, uint64_t seed, uint64_t now_ns)
{
	uint64_t rng = pst_rng_seed(seed);
	uint32_t row;

	slice->rate_Bps = rate_Bps;
	slice->plane.filters = slice->words;
	slice->plane.filter_count = ROWS << column_bits;
	slice->plane.sketch.rows = ROWS;
	slice->plane.sketch.column_bits = column_bits;
	for (row = 0; row < ROWS; row++)
		slice->plane.sketch.seeds[row] = (uint64_t)pst_rng_next(&rng) << 32 | pst_rng_next(&rng);
	slice->threshold.capacity_parts = pst_lpf_parts_of_rate(rate_Bps, rate_Bps);
	slice->threshold.tau_shift = tau_shift;
	slice->threshold.epoch_shift = epoch_shift;
	slice->threshold.divide_bits = divide_bits;
	slice->slice = pst_threshold_start(&slice->threshold, now_ns);
	slice->drops = pst_fairdrop_default(pst_lpf_tau_shift(tau_shift));
	slice->drops.divide_bits = divide_bits;
	pst_lpf_scale_compile(&slice->scale, rate_Bps, 1, tau_shift);
}

/* A packet of a user. Returns whether it passes; `user_parts` is what the sketch reads of its user, of 2^24 at the slice's rate. */
bool pst_host_ahab_take(struct pst_host_ahab *slice, uint64_t user, uint32_t weight, uint64_t now_ns, uint32_t bytes,
			uint32_t random_u32, uint32_t *user_parts)
{
	uint32_t stamp = pst_lpf_stamp(now_ns, slice->threshold.tau_shift);
	struct pst_threshold_packet packet = { pst_lpf_parts(&slice->scale, bytes), 0, random_u32 };
	struct pst_fairdrop_packet decided = { 0, 0, packet.length_parts, random_u32, false };
	struct pst_lpf_scale scale = slice->scale;
	struct pst_sketch_cells cells;

	if (weight > 1) {
		pst_lpf_scale_compile(&scale, slice->rate_Bps, weight, slice->threshold.tau_shift);
		decided.length_parts = pst_lpf_parts(&scale, bytes);
	}
	pst_sketch_find(&cells, &slice->plane, user);
	packet.user_parts = decided.user_parts = pst_sketch_add(&slice->plane, &cells, stamp, decided.length_parts);
	decided.limit_parts = pst_threshold_take(&slice->threshold, &slice->slice, now_ns, &packet);
	*user_parts = packet.user_parts;
	return pst_fairdrop_by_chance(&slice->drops, &decided) == PST_VERDICT_PASS;
}

/* T, for a weight of 1. */
uint64_t pst_host_ahab_limit_Bps(const struct pst_host_ahab *slice)
{
	return pst_lpf_rate_Bps(slice->rate_Bps, pst_threshold_limit_parts(slice->slice.limit));
}

/* Figure 7's divide, and the shift that follows it. */
uint32_t pst_host_ahab_divide_q12(uint32_t part, uint32_t whole, uint32_t bits)
{
	return pst_prefix_divide_q12(part, whole, bits);
}

/* Of its table; bits are 1 or more. */
uint32_t pst_host_ahab_divide_entries(uint32_t bits)
{
	return pst_prefix_entries(bits);
}

uint32_t pst_host_ahab_times(uint32_t part_q12, uint32_t shift)
{
	return pst_prefix_times(part_q12, shift);
}
