/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * hcsfq.h: hierarchical core-stateless fair queueing, the baseline that AHAB and HSDBA compare with; one node of it.
 *
 * What         user       bytes are counted in windows that tumble; at the end of each  R = (7 R + bytes) / 8,  or (R + bytes) / 2
 *              drop       with probability 1 - alpha / (R / weight), decided in sixteenths: pass when U4 R / weight < 16 alpha
 *              alpha      at the end of each window, F being the bytes that passed in it, C the bytes that a window has room for:
 *                         congested and F > C     alpha -= alpha / 2^d, one at least
 *                         otherwise               alpha += min(alpha / 2^i, C / 500), one at least
 * Source       Yu et al., "Twenty years after: hierarchical core-stateless fair queueing", NSDI 2021; facts of its public release:
 *              windows of 204.8 ms ("normal") or about 2 ms ("tcp"), d = 11, i = 13, weights 1, 2, 4 by shifts.
 * Units        bytes in a window, in 2^-8 (_q8): alpha, R and C. Weights are given as shifts.
 * Ranges       windows of 2^10 .. 2^36 ns; rates up to 1 Tbit/s, so C is below 2^43 bytes. Weights up to 2^4; others are cut.
 * Invariants   I1  alpha stays between 1 (2^-8 bytes) and C, and is C after 64 windows that nobody used.
 *              I2  R is that of the last window that ended: a user's first window is not limited.
 *              I3  the decision is exact in sixteenths: ceil(16 alpha weight / R) of the 16 numbers pass: on average 1/32 too much, and of
 *                  R > 16 alpha a sixteenth, however large R is.
 *              I4  windows without a packet count as windows of 0 bytes; time that steps back by less than 2^16 windows counts as none.
 * Overflow     R and alpha < 2^51, times 16 * 2^4 below 2^59; 7 R below 2^54.
 * Concurrency  plain state: one writer, or a lock.
 * Not done     the tree: an inner node is a node whose users are nodes. A state for each user is what the algorithm needs; the host has it.
 *              The constants behind the 42.3 ms of AHAB's figure 8 are not published. With those of the release alpha moves by 2^-11 a window:
 *              halving it takes 1420 of them, 2.9 s even at 2 ms; `fast` is ours (pst_hcsfq_fast).
 */
#ifndef PENSTOCK_HCSFQ_H
#define PENSTOCK_HCSFQ_H

#include "fixed.h"

#define PST_HCSFQ_BYTES_MAX_Q8 (UINT64_C(1) << 51)
#define PST_HCSFQ_BACK_WINDOWS UINT32_C(65536)
#define PST_HCSFQ_STEPS 500 /* C / 500 is the largest step up */
#define PST_HCSFQ_WINDOW_SHIFT_MIN 10
#define PST_HCSFQ_WINDOW_SHIFT_MAX 36
#define PST_HCSFQ_WEIGHT_SHIFT_MAX 4
#define PST_HCSFQ_IDLE_MAX 64 /* windows after which nothing is left of a rate, or nearly: (7/8)^64 = 2 in 10^4 */

struct pst_hcsfq_params {
	uint64_t capacity_Bps;
	uint64_t window_ns;
	uint32_t smooth_shift;   /* 3: (7 R + bytes) / 8; 1: (R + bytes) / 2 */
	uint32_t decrease_shift; /* d */
	uint32_t increase_shift; /* i */
};

struct pst_hcsfq_profile {
	uint64_t capacity_q8; /* bytes in a window */
	uint64_t window_ns;
	uint32_t smooth_shift;
	uint32_t decrease_shift;
	uint32_t increase_shift;
};

struct pst_hcsfq_user {
	uint64_t bytes_q8; /* that came in this window */
	uint64_t rate_q8;  /* R */
	uint32_t window_index;
};

struct pst_hcsfq_node {
	uint64_t alpha_q8;
	uint64_t passed_q8; /* F so far */
	uint32_t window_index;
};

PST_INLINE struct pst_hcsfq_params pst_hcsfq_normal(uint64_t capacity_Bps)
{
	struct pst_hcsfq_params params = { capacity_Bps, UINT64_C(204800000), 3, 11, 13 };

	return params;
}

PST_INLINE struct pst_hcsfq_params pst_hcsfq_tcp(uint64_t capacity_Bps)
{
	struct pst_hcsfq_params params = { capacity_Bps, UINT64_C(2000000), 1, 11, 13 };

	return params;
}

/* Ours: windows of 1 ms, down by 1/8, up by 1/64 but for the bound of C / 500. */
PST_INLINE struct pst_hcsfq_params pst_hcsfq_fast(uint64_t capacity_Bps)
{
	struct pst_hcsfq_params params = { capacity_Bps, UINT64_C(1000000), 1, 3, 6 };

	return params;
}

PST_INLINE void pst_hcsfq_compile(struct pst_hcsfq_profile *out, const struct pst_hcsfq_params *params)
{
	uint64_t capacity_Bps = params->capacity_Bps < PST_RATE_MAX_BPS ? params->capacity_Bps : PST_RATE_MAX_BPS; /* below 2^37 */
	uint64_t window_ns = params->window_ns, seconds, rest_ns;

	if (window_ns < UINT64_C(1) << PST_HCSFQ_WINDOW_SHIFT_MIN)
		window_ns = UINT64_C(1) << PST_HCSFQ_WINDOW_SHIFT_MIN;
	if (window_ns > UINT64_C(1) << PST_HCSFQ_WINDOW_SHIFT_MAX)
		window_ns = UINT64_C(1) << PST_HCSFQ_WINDOW_SHIFT_MAX;
	seconds = window_ns / PST_NSEC_PER_SEC;
	rest_ns = window_ns % PST_NSEC_PER_SEC; /* below 2^30, as is a rate's rest; 10^9 is a multiple of 2^8 */
	out->capacity_q8 = (capacity_Bps * seconds + capacity_Bps / PST_NSEC_PER_SEC * rest_ns) << 8;
	out->capacity_q8 += capacity_Bps % PST_NSEC_PER_SEC * rest_ns / (PST_NSEC_PER_SEC >> 8);
	if (out->capacity_q8 == 0)
		out->capacity_q8 = 1;
	out->window_ns = window_ns;
	out->smooth_shift = params->smooth_shift == 1 ? 1 : 3;
	out->decrease_shift = params->decrease_shift & 31;
	out->increase_shift = params->increase_shift & 31;
}

PST_INLINE uint32_t pst_hcsfq_window_index(const struct pst_hcsfq_profile *profile, uint64_t now_ns)
{
	return (uint32_t)(now_ns / (profile->window_ns ? profile->window_ns : 1));
}

/* Windows that ended between two. */
PST_INLINE uint32_t pst_hcsfq_ended(uint32_t window_index, uint32_t before_index)
{
	uint32_t ended = window_index - before_index;

	return ended > UINT32_MAX - PST_HCSFQ_BACK_WINDOWS ? 0 : ended;
}

/* R after a window of so many bytes. */
PST_INLINE uint64_t pst_hcsfq_smooth_q8(uint64_t rate_q8, uint64_t bytes_q8, uint32_t smooth_shift)
{
	return (rate_q8 * ((UINT64_C(1) << smooth_shift) - 1) + bytes_q8) >> smooth_shift;
}

/* A user's packet has come. */
PST_INLINE void pst_hcsfq_count(const struct pst_hcsfq_profile *profile, struct pst_hcsfq_user *user, uint32_t window_index, uint32_t bytes)
{
	uint32_t ended = pst_hcsfq_ended(window_index, user->window_index), i;
	uint64_t bytes_q8 = (uint64_t)bytes << 8;

	if (ended) {
		user->rate_q8 = pst_hcsfq_smooth_q8(user->rate_q8, user->bytes_q8, profile->smooth_shift);
		for (i = 1; i < PST_HCSFQ_IDLE_MAX && i < ended; i++)
			user->rate_q8 = pst_hcsfq_smooth_q8(user->rate_q8, 0, profile->smooth_shift);
		if (ended > PST_HCSFQ_IDLE_MAX)
			user->rate_q8 = 0;
		user->bytes_q8 = 0;
		user->window_index = window_index;
	}
	if (user->bytes_q8 < PST_HCSFQ_BYTES_MAX_Q8 - bytes_q8)
		user->bytes_q8 += bytes_q8;
}

/* alpha after a window. */
PST_INLINE uint64_t pst_hcsfq_alpha_q8(const struct pst_hcsfq_profile *profile, uint64_t alpha_q8, uint64_t passed_q8, bool is_congested)
{
	uint64_t step, most = profile->capacity_q8 / PST_HCSFQ_STEPS;

	if (is_congested && passed_q8 > profile->capacity_q8) {
		step = alpha_q8 >> profile->decrease_shift;
		step = step ? step : 1;
		return alpha_q8 > step ? alpha_q8 - step : 1;
	}
	step = alpha_q8 >> profile->increase_shift;
	step = step < most ? step : most;
	step = step ? step : 1;
	return alpha_q8 < profile->capacity_q8 && step < profile->capacity_q8 - alpha_q8 ? alpha_q8 + step : profile->capacity_q8;
}

/* Ends the node's windows that are over. */
PST_INLINE void pst_hcsfq_turn(const struct pst_hcsfq_profile *profile, struct pst_hcsfq_node *node, uint32_t window_index, bool is_congested)
{
	uint32_t ended = pst_hcsfq_ended(window_index, node->window_index), i;

	if (ended == 0)
		return;
	node->alpha_q8 = pst_hcsfq_alpha_q8(profile, node->alpha_q8, node->passed_q8, is_congested);
	for (i = 1; i < PST_HCSFQ_IDLE_MAX && i < ended; i++)
		node->alpha_q8 = pst_hcsfq_alpha_q8(profile, node->alpha_q8, 0, false);
	if (ended > PST_HCSFQ_IDLE_MAX)
		node->alpha_q8 = profile->capacity_q8;
	node->passed_q8 = 0;
	node->window_index = window_index;
}

/* In sixteenths: the four highest bits of a random number decide. */
PST_INLINE bool pst_hcsfq_passes(uint64_t alpha_q8, uint64_t rate_q8, uint32_t weight_shift, uint32_t random_u32)
{
	uint32_t shift = weight_shift < PST_HCSFQ_WEIGHT_SHIFT_MAX ? weight_shift : PST_HCSFQ_WEIGHT_SHIFT_MAX;

	return (random_u32 >> 28) * rate_q8 < alpha_q8 << (4 + shift);
}

PST_INLINE struct pst_hcsfq_node pst_hcsfq_start(const struct pst_hcsfq_profile *profile, uint64_t now_ns)
{
	struct pst_hcsfq_node node = { profile->capacity_q8, 0, pst_hcsfq_window_index(profile, now_ns) };

	return node;
}

struct pst_hcsfq_packet {
	uint32_t bytes; /* below 2^17 */
	uint32_t weight_shift;
	uint32_t random_u32;
	bool is_congested; /* does the link's queue say so? */
};

/* One packet: does it pass? */
PST_INLINE bool pst_hcsfq_take(const struct pst_hcsfq_profile *profile, struct pst_hcsfq_node *node, struct pst_hcsfq_user *user,
			       const struct pst_hcsfq_packet *packet, uint64_t now_ns)
{
	uint32_t window_index = pst_hcsfq_window_index(profile, now_ns);

	pst_hcsfq_turn(profile, node, window_index, packet->is_congested);
	pst_hcsfq_count(profile, user, window_index, packet->bytes);
	if (!pst_hcsfq_passes(node->alpha_q8, user->rate_q8, packet->weight_shift, packet->random_u32))
		return false;
	if (node->passed_q8 < PST_HCSFQ_BYTES_MAX_Q8)
		node->passed_q8 += (uint64_t)packet->bytes << 8;
	return true;
}

#endif /* PENSTOCK_HCSFQ_H */
