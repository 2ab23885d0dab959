/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Slow forms of threshold.h, and what it is after: the max-min share. */
#ifndef PENSTOCK_REF_THRESHOLD_H
#define PENSTOCK_REF_THRESHOLD_H

#include <stdbool.h>
#include <stdint.h>

/* Equation 2: the limit, per unit of weight, under which users of these demands use the capacity. Infinite where they ask for less. */
double ref_threshold_share(const double *demands, const double *weights, uint32_t count, double capacity);

/* D: the largest power of two that is no more than half of the limit. */
uint64_t ref_threshold_step(uint32_t limit);
/* Equations 8 and 13, or the ends. f[] at T - D, T, T + D, in order; b = 0: exact division, rounded down. */
uint32_t ref_threshold_interpolate(uint32_t limit, uint32_t capacity, const uint32_t f[3], uint32_t b);
/* length * min(1, limit / user), to the nearest, halves up. */
uint32_t ref_threshold_passing(uint32_t length, uint32_t limit, uint32_t user);

/* What an epoch ends with. */
struct ref_threshold_epoch {
	uint32_t capacity;
	uint32_t demand;
	uint32_t largest;
	uint32_t f[3];
	uint32_t passed;
	bool has_limiters; /* something has been counted as passed, be it all forgotten */
	uint32_t gain_q16; /* before; 0: none yet */
	uint32_t epochs;   /* that have gone by: 1, or more after a pause */
};

/* A 64th of the way from what passed to C, from 1/2 to 1; and 1 where nothing is known to have passed. Rounded up. */
uint32_t ref_threshold_gain_q16(uint32_t gain_q16, uint32_t passed, uint32_t capacity);
/* T after it. */
uint32_t ref_threshold_next(uint32_t limit, const struct ref_threshold_epoch *epoch, uint32_t b);

#endif /* PENSTOCK_REF_THRESHOLD_H */
