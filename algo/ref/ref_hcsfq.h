/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Slow form of hcsfq.h: one window at a time, every quantity a fraction that is cut where the header says so. */
#ifndef PENSTOCK_REF_HCSFQ_H
#define PENSTOCK_REF_HCSFQ_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes that a window has room for, in 2^-8, cut; 1 at least. */
uint64_t ref_hcsfq_capacity_q8(uint64_t capacity_Bps, uint64_t window_ns);
/* R after `windows` windows, the first with these bytes and the rest empty. */
uint64_t ref_hcsfq_rate_q8(uint64_t rate_q8, uint64_t bytes_q8, uint64_t windows, bool halves);
/* alpha after as many. */
uint64_t ref_hcsfq_alpha_q8(uint64_t capacity_q8, uint64_t alpha_q8, uint64_t passed_q8, uint64_t windows, const uint32_t shifts[2], bool congested);
/* How many of the sixteen numbers pass. */
uint32_t ref_hcsfq_sixteenths(uint64_t alpha_q8, uint64_t rate_q8, uint32_t weight);

/* A node and its users, packet by packet. */
#define REF_HCSFQ_USERS 4
struct ref_hcsfq {
	uint64_t capacity_q8, window_ns;
	uint32_t shifts[2];
	bool halves;
	uint64_t alpha_q8, passed_q8, window;
	struct {
		uint64_t rate_q8, bytes_q8, window;
	} users[REF_HCSFQ_USERS];
};
bool ref_hcsfq_take(struct ref_hcsfq *node, uint32_t user, uint64_t now_ns, uint32_t bytes, uint32_t weight, uint32_t sixteenth, bool congested);

#endif /* PENSTOCK_REF_HCSFQ_H */
