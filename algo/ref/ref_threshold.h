/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Slow forms of threshold.h, and what it is after: the max-min share. */
#ifndef PENSTOCK_REF_THRESHOLD_H
#define PENSTOCK_REF_THRESHOLD_H

#include <stdint.h>

/* Equation 2: the limit, per unit of weight, under which users of these demands use the capacity. Infinite where they ask for less. */
double ref_threshold_share(const double *demands, const double *weights, uint32_t count, double capacity);

/* D: the largest power of two that is no more than half of the limit. */
uint64_t ref_threshold_step(uint32_t limit);
/* Equations 8 and 13, or the ends. f[] at T - D, T, T + D, in order; b = 0: exact division, rounded down. */
uint32_t ref_threshold_interpolate(uint32_t limit, uint32_t capacity, const uint32_t f[3], uint32_t b);
/* length * min(1, limit / user), to the nearest, halves up. */
uint32_t ref_threshold_passing(uint32_t length, uint32_t limit, uint32_t user);

#endif /* PENSTOCK_REF_THRESHOLD_H */
