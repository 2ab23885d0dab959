/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_limiter.h"

static ref_int ref_smaller(ref_int a, ref_int b)
{
	return a < b ? a : b;
}

static ref_int ref_larger(ref_int a, ref_int b)
{
	return a > b ? a : b;
}

/* Bytes count up to 1 GiB, the whole up to 73 minutes. */
ref_int ref_depth_ticks(uint32_t rate, uint64_t ticks, uint32_t bytes)
{
	ref_int cost = ref_rate_cost(rate, (uint64_t)ref_smaller(bytes, (1 << 30) - 1));

	return ref_smaller(ticks + cost, REF_WINDOW_MAX_TICKS);
}

struct ref_limiter_profile ref_limiter_resolve(const struct pst_profile *profile, uint32_t rate)
{
	struct ref_limiter_profile out;
	ref_int packet = ref_rate_cost(rate, profile->mtu_bytes);
	int packets = 2;

	if (profile->yellow_action == PST_ACTION_RED || profile->yellow_action == PST_ACTION_MARK)
		packets = 3; /* early drop empties a queue of two now and then */
	out.rate = rate;
	out.shapes = profile->red_action == PST_ACTION_HOLD;
	if (out.shapes)
		packet = 0; /* a limiter that holds keeps its burst as written */
	out.green_ticks = ref_larger(packet, ref_depth_ticks(rate, profile->burst_ticks, profile->burst_bytes));
	out.window_ticks = ref_larger(packets * packet, out.green_ticks + ref_depth_ticks(rate, profile->excess_ticks,
										    profile->excess_bytes));
	return out;
}

ref_int ref_limiter_idle(ref_int now_ns)
{
	return now_ns * REF_TICKS_PER_NSEC - 4 * REF_WINDOW_MAX_TICKS;
}

/* Bytes in the virtual queue, as the time that they take. */
static ref_int ref_queue_ticks(const struct ref_limiter_profile *profile, ref_int vft_ticks, ref_int now_ticks)
{
	bool is_stale = vft_ticks > now_ticks + REF_AHEAD_MAX_TICKS;

	return is_stale ? 0 : ref_larger(vft_ticks - (now_ticks - profile->window_ticks), 0);
}

struct ref_limiter_result ref_limiter_try(const struct ref_limiter_profile *profile, ref_int vft_ticks, ref_int now_ns,
					  uint32_t bytes)
{
	ref_int now = now_ns * REF_TICKS_PER_NSEC;
	ref_int queue = ref_queue_ticks(profile, vft_ticks, now);
	struct ref_limiter_result result;

	result.depth_ticks = queue + ref_rate_cost(profile->rate, bytes);
	result.vft_ticks = now - profile->window_ticks + result.depth_ticks;
	result.wait_ticks = 0;
	if (result.depth_ticks <= profile->green_ticks) {
		result.color = PST_COLOR_GREEN;
	} else if (result.depth_ticks <= profile->window_ticks) {
		result.color = PST_COLOR_YELLOW;
	} else {
		result.color = PST_COLOR_RED;
		if (profile->shapes)
			result.wait_ticks = ref_larger(queue - profile->window_ticks, 0);
		else
			result.vft_ticks = vft_ticks;
	}
	return result;
}

/* What waits for its turn keeps it. Else the queue's bytes, cut to 1/256, are queued again at the new rate, as far as they fit. */
ref_int ref_limiter_convert(const struct ref_limiter_profile *before, const struct ref_limiter_profile *after,
			    ref_int vft_ticks, ref_int now_ns)
{
	ref_int now = now_ns * REF_TICKS_PER_NSEC;
	ref_int bytes_q8 = ref_rate_bytes_q8(before->rate, ref_queue_ticks(before, vft_ticks, now));
	ref_int ticks = ref_rate_cost(after->rate, (uint64_t)(bytes_q8 / 256)) +
			ref_rate_cost(after->rate, (uint64_t)(bytes_q8 % 256)) / 256;

	if (vft_ticks > now && vft_ticks <= now + REF_AHEAD_MAX_TICKS)
		return vft_ticks;
	return now - after->window_ticks + ref_smaller(ticks, after->window_ticks);
}
