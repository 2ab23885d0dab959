/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* red.h for Rust. */
#include <penstock/red.h>

uint32_t pst_host_red_probability(uint64_t depth, uint64_t green, uint64_t window, uint32_t max_q32);
bool pst_host_red_drops(uint32_t probability_q32, uint32_t random_u32);

uint32_t pst_host_red_probability(uint64_t depth, uint64_t green, uint64_t window, uint32_t max_q32)
{
	return pst_red_probability_q32(depth, green, window, max_q32);
}

bool pst_host_red_drops(uint32_t probability_q32, uint32_t random_u32)
{
	return pst_red_drops(probability_q32, random_u32);
}
