/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* vectors.h: what the writers of golden vectors share: repeatable schedules, the profile line (vectors/README.md). */
#ifndef PENSTOCK_REF_VECTORS_H
#define PENSTOCK_REF_VECTORS_H

#include <inttypes.h>
#include <stdio.h>

#include <penstock/wire.h>

#include "ref_fixed.h"

static const char *const vectors_colors[] = { "green", "yellow", "red" };

/* The lengths that schedules draw from: the smallest, the usual, the largest, and odd ones. */
static const uint32_t vectors_bytes[] = { 64, 65, 256, 576, 999, 1500, 1500, 9000 };

/* Uniform below `bound`: the upper half of Knuth's MMIX generator. */
static inline uint32_t vectors_draw(uint64_t *seed, uint32_t bound)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*seed >> 33) % bound;
}

/* The same below a bound of up to 62 bits. */
static inline uint64_t vectors_draw_wide(uint64_t *seed, uint64_t bound)
{
	uint64_t high = vectors_draw(seed, UINT32_C(1) << 31);

	return (high << 31 | vectors_draw(seed, UINT32_C(1) << 31)) % bound;
}

/* Moments of a schedule: packets come at about twice the rate, now and then there is a pause. */
static inline uint64_t vectors_gap_ns(uint64_t *seed, uint32_t rate, uint32_t bytes)
{
	uint64_t gap_ns = (uint64_t)(ref_rate_cost(rate, bytes) / REF_TICKS_PER_NSEC);

	return gap_ns * vectors_draw(seed, 1000) / 1000 * (vectors_draw(seed, 10) == 0 ? 20 : 1);
}

/* The time of 5000 bytes before the ticks wrap. */
static inline ref_int vectors_before_wrap_ns(uint64_t rate_Bps)
{
	return ((ref_int)1 << 54) - ref_rate_cost(ref_rate_code(rate_Bps), 5000) / REF_TICKS_PER_NSEC;
}

static inline void vectors_header(const char *what)
{
	printf("# SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)\n");
	printf("# %s Written by `make -C algo vectors`; the format is in README.md.\n", what);
}

static inline void vectors_field(const char *name, uint64_t value)
{
	if (value)
		printf(" %s=%" PRIu64, name, value);
}

/* The inputs of a profile directive, but for its state; second_rate_Bps 0 when there is none. */
static inline void vectors_profile(const struct pst_profile *profile, uint64_t rate_Bps, uint64_t second_rate_Bps)
{
	static const char *const meters[] = { "window", "rfc2697", "rfc2698", "rfc4115" };

	printf("profile meter=%s rate_Bps=%" PRIu64, meters[profile->meter], rate_Bps);
	vectors_field("second_rate_Bps", second_rate_Bps);
	vectors_field("burst_ticks", profile->burst_ticks);
	vectors_field("burst_bytes", profile->burst_bytes);
	vectors_field("excess_ticks", profile->excess_ticks);
	vectors_field("excess_bytes", profile->excess_bytes);
	vectors_field("mtu_bytes", profile->mtu_bytes);
	vectors_field("shapes", profile->red_action == PST_ACTION_HOLD);
	vectors_field("color_aware", (profile->flags & PST_PROFILE_COLOR_AWARE) != 0);
}

#endif /* PENSTOCK_REF_VECTORS_H */
