/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Slow form of red.h. */
#ifndef PENSTOCK_REF_RED_H
#define PENSTOCK_REF_RED_H

#include <stdbool.h>
#include <stdint.h>

/* What red.h promises, bit for bit: both lengths are halved together until the excess fits 32 bits. */
uint32_t ref_red_probability_q32(uint64_t depth, uint64_t green, uint64_t window, uint32_t max_q32);

/* The same without the cut to 32 bits, in 2^-64 (Q64), rounded down. Only for green < depth < window. */
unsigned __int128 ref_red_exact_q64(uint64_t depth, uint64_t green, uint64_t window, uint32_t max_q32);

bool ref_red_drops(uint32_t probability_q32, uint32_t random);

#endif /* PENSTOCK_REF_RED_H */
