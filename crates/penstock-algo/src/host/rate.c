/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rate codes for Rust: the inline functions of fixed.h and limiter.h under names that can be linked. */
#include <penstock/limiter.h>

uint32_t pst_host_rate_encode(uint64_t rate_Bps);
uint64_t pst_host_rate_cost(uint32_t rate_code, uint32_t bytes);
void pst_host_limiter_resolve(struct pst_limiter_profile *out, const struct pst_profile *profile, uint32_t rate);

uint32_t pst_host_rate_encode(uint64_t rate_Bps)
{
	return pst_rate_encode(rate_Bps);
}

uint64_t pst_host_rate_cost(uint32_t rate_code, uint32_t bytes)
{
	return pst_rate_cost(rate_code, bytes);
}

void pst_host_limiter_resolve(struct pst_limiter_profile *out, const struct pst_profile *profile, uint32_t rate)
{
	pst_limiter_resolve(out, profile, rate);
}
