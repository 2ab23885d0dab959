/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* fixed.h for Rust: its inline functions under names that can be linked. */
#include <penstock/fixed.h>

uint32_t pst_host_rate_encode(uint64_t rate_Bps);
uint64_t pst_host_rate_cost(uint32_t rate_code, uint32_t bytes);
uint64_t pst_host_rate_bytes_q8(uint32_t rate_code, uint64_t ticks);

uint32_t pst_host_rate_encode(uint64_t rate_Bps)
{
	return pst_rate_encode(rate_Bps);
}

uint64_t pst_host_rate_cost(uint32_t rate_code, uint32_t bytes)
{
	return pst_rate_cost(rate_code, bytes);
}

uint64_t pst_host_rate_bytes_q8(uint32_t rate_code, uint64_t ticks)
{
	return pst_rate_bytes_q8(rate_code, ticks);
}
