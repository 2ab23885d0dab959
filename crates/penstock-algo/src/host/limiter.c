/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* limiter.h for Rust. The shared profile is resolved anew for each call, as pipeline.h does. */
#include <penstock/limiter.h>

void pst_host_limiter_depths(const struct pst_profile *profile, uint32_t rate, uint64_t *green_ticks,
			     uint64_t *window_ticks);
uint32_t pst_host_limiter_take(const struct pst_profile *profile, uint32_t rate, uint64_t *vft_ticks, uint64_t now_ns,
			       uint32_t bytes, uint64_t *depth_ticks, uint64_t *wait_ticks);
uint64_t pst_host_limiter_convert(const struct pst_profile *profile, uint32_t before_rate, uint32_t after_rate,
				  uint64_t vft_ticks, uint64_t now_ns);
uint32_t pst_host_limiter_packets(const struct pst_profile *profile);
bool pst_host_drops_early(const struct pst_profile *profile);

void pst_host_limiter_depths(const struct pst_profile *profile, uint32_t rate, uint64_t *green_ticks,
			     uint64_t *window_ticks)
{
	struct pst_limiter_profile resolved;

	pst_limiter_resolve(&resolved, profile, rate);
	*green_ticks = resolved.green_ticks;
	*window_ticks = resolved.window_ticks;
}

uint32_t pst_host_limiter_packets(const struct pst_profile *profile)
{
	return pst_limiter_packets(profile);
}

bool pst_host_drops_early(const struct pst_profile *profile)
{
	return pst_profile_drops_early(profile);
}

/* Returns the colour. One writer: Rust lends the state for the call. */
uint32_t pst_host_limiter_take(const struct pst_profile *profile, uint32_t rate, uint64_t *vft_ticks, uint64_t now_ns,
			       uint32_t bytes, uint64_t *depth_ticks, uint64_t *wait_ticks)
{
	struct pst_limiter_profile resolved;
	struct pst_limiter_result result;

	pst_limiter_resolve(&resolved, profile, rate);
	result = pst_limiter_try(&resolved, *vft_ticks, now_ns, bytes);
	*vft_ticks = result.vft_ticks;
	*depth_ticks = result.depth_ticks;
	*wait_ticks = result.wait_ticks;
	return result.color;
}

uint64_t pst_host_limiter_convert(const struct pst_profile *profile, uint32_t before_rate, uint32_t after_rate,
				  uint64_t vft_ticks, uint64_t now_ns)
{
	struct pst_limiter_profile before, after;

	pst_limiter_resolve(&before, profile, before_rate);
	pst_limiter_resolve(&after, profile, after_rate);
	return pst_limiter_convert(&before, &after, vft_ticks, now_ns);
}
