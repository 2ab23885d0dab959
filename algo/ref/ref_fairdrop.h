/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Slow forms of fairdrop.h. */
#ifndef PENSTOCK_REF_FAIRDROP_H
#define PENSTOCK_REF_FAIRDROP_H

#include <stdbool.h>
#include <stdint.h>

/* U < limit / user, U = random / 2^32, as fractions. b > 0: U cut to 12 bits, the quotient the table's. */
bool ref_fairdrop_passes(uint32_t limit, uint32_t user, uint32_t b, uint32_t random);

/* Periodic drops, told by what has passed since the last drop and the last mark. */
struct ref_fairdrop {
	uint64_t times; /* const, in tau */
	uint64_t since_drop;
	uint64_t drop_after; /* 0: at once */
	uint64_t since_mark;
	uint64_t mark_after;
};
/* 0 pass, 1 mark, 2 drop. */
int ref_fairdrop_periodic(struct ref_fairdrop *flow, uint32_t limit, uint32_t user, uint32_t length, bool can_be_marked);

#endif /* PENSTOCK_REF_FAIRDROP_H */
