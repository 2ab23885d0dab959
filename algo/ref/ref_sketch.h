/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Slow form of sketch.h: every user has a filter of its own, in real numbers, and rows are sums over users that are told to meet. */
#ifndef PENSTOCK_REF_SKETCH_H
#define PENSTOCK_REF_SKETCH_H

#include <stdint.h>

#include "ref_lpf.h"

#define REF_SKETCH_USERS 4096
#define REF_SKETCH_ROWS 4

struct ref_sketch {
	struct ref_lpf users[REF_SKETCH_USERS];
	uint32_t columns[REF_SKETCH_ROWS][REF_SKETCH_USERS]; /* where the code under test puts each user */
	uint32_t rows;
	uint32_t count;
};

void ref_sketch_add(struct ref_sketch *sketch, uint32_t user, double now_ns, double tau_ns, double parts);
/* What the user sends, and what all do. */
double ref_sketch_user(const struct ref_sketch *sketch, uint32_t user, double now_ns, double tau_ns);
double ref_sketch_all(const struct ref_sketch *sketch, double now_ns, double tau_ns);
/* The least over the rows of what those who share its column send together. */
double ref_sketch_read(const struct ref_sketch *sketch, uint32_t user, double now_ns, double tau_ns);

/* Fold and multiply (hash.h). */
uint64_t ref_sketch_mix(uint64_t x);
/* Where a user lies in a row of 2^bits columns: NH over its two halves, mixed. */
uint32_t ref_sketch_column(uint64_t user, uint64_t seed, uint32_t bits);

#endif /* PENSTOCK_REF_SKETCH_H */
