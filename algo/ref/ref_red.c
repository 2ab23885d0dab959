/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_red.h"

uint32_t ref_red_probability_q32(uint64_t depth, uint64_t green, uint64_t window, uint32_t max_q32)
{
	uint64_t rise, excess;

	if (depth <= green)
		return 0;
	if (depth >= window)
		return max_q32;
	rise = depth - green;
	excess = window - green;
	while (excess > UINT32_MAX) {
		rise /= 2;
		excess /= 2;
	}
	return (uint32_t)((unsigned __int128)rise * max_q32 / excess);
}

unsigned __int128 ref_red_exact_q64(uint64_t depth, uint64_t green, uint64_t window, uint32_t max_q32)
{
	unsigned __int128 product = (unsigned __int128)(depth - green) * max_q32;
	uint64_t excess = window - green;

	/* Two steps, for product << 32 need not fit: the whole part below 2^32, then the remainder's 32 fraction bits. */
	return ((product / excess) << 32) + (((product % excess) << 32) / excess);
}

bool ref_red_drops(uint32_t probability_q32, uint32_t random)
{
	return (double)random / 4294967296.0 < (double)probability_q32 / 4294967296.0;
}
