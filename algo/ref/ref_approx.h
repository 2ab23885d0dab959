/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Slow form of approx.h: everything by listing and linear search. */
#ifndef PENSTOCK_REF_APPROX_H
#define PENSTOCK_REF_APPROX_H

#include <stdint.h>

/* The first and last value of the interval that holds `value`, in [low, high] cut by r = numerator / denominator. */
struct ref_interval {
	uint64_t first;
	uint64_t last;
};
struct ref_cut {
	uint32_t low;
	uint32_t high;
	uint32_t numerator;
	uint32_t denominator;
};
struct ref_interval ref_approx_interval(struct ref_cut cut, uint64_t value);
uint32_t ref_approx_count(struct ref_cut cut);

/* The table's entries for x and y, both cut alike. */
uint64_t ref_adt_divide_q32(struct ref_cut cut, uint64_t x, uint64_t y);
uint64_t ref_amt_multiply_x2(struct ref_cut cut, uint64_t x, uint64_t y);

/* Algorithm 1 of Nimble, repaired: writes the first value and the size of each group; returns how many there are. */
struct ref_group {
	uint64_t first;
	uint64_t size;
};
uint32_t ref_tcam_groups(struct ref_group *groups, uint32_t room, uint32_t operand_bits, uint32_t b);
/* factor times the mean of the group that holds `operand`, rounded down. */
uint64_t ref_tcam_multiply(uint64_t factor, uint64_t operand, uint32_t b);

/* AHAB's divide: x and y written in binary, and cut after b digits of y. In real numbers, and that to the nearest 2^-12. */
double ref_prefix_quotient(uint32_t x, uint32_t y, uint32_t b);
uint32_t ref_prefix_divide_q12(uint32_t x, uint32_t y, uint32_t b);

#endif /* PENSTOCK_REF_APPROX_H */
