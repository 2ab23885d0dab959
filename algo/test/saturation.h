/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * saturation.h: what a meter lets through when more is offered than it allows.
 *
 * The matrix: 60 kbit/s to 100 Gbit/s, 64 to 9000 bytes, the default windows and windows of 1 ms, 1.01 to 10 times what
 * may pass offered. Each case starts with empty buckets and measures the steady part.
 */
#ifndef PENSTOCK_TEST_SATURATION_H
#define PENSTOCK_TEST_SATURATION_H

#include "vectors.h"

#include <penstock/clock.h>
#include <penstock/wire.h>

#define SATURATION_PACKETS 4000 /* at which one packet more or less at either end is 0.05 % */
#define MSEC_TICKS (UINT64_C(1000000) * PST_TICKS_PER_NSEC)

static const uint64_t saturation_rates_Bps[] = {
	7500, 125000, 1250000, 12500000, 125000000, 1250000000, 12500000000,
};
static const uint32_t saturation_bytes[] = { 64, 200, 512, 1500, 9000 };
static const uint64_t saturation_windows_ticks[][2] = {
	{ 35 * MSEC_TICKS / 2, 25 * MSEC_TICKS }, { MSEC_TICKS, MSEC_TICKS },
};
static const uint32_t saturation_loads_percent[] = { 101, 130, 170, 200, 1000 };

struct saturation {
	uint8_t (*take)(void *meter, uint64_t now_ns, uint32_t bytes);
	void *meter;
	uint64_t start_ns;
	uint64_t offered_Bps;
	uint32_t bytes;
	uint8_t rare; /* the colour that is counted to SATURATION_PACKETS */
};

struct saturation_result {
	uint64_t packets[3]; /* by colour, in the steady part */
	uint64_t duration_ns;
};

/* Offers packets evenly; the steady part begins after 100 of the rare colour, and ends at one of them. */
static inline struct saturation_result saturation_run(const struct saturation *run)
{
	struct saturation_result result;
	uint64_t packet, rare = 0, begin_ns = 0;

	memset(&result, 0, sizeof(result));
	for (packet = 0; rare < 100 + SATURATION_PACKETS; packet++) {
		uint64_t gaps_ns = (uint64_t)((unsigned __int128)packet * run->bytes * 1000000000 / run->offered_Bps);
		uint8_t color = run->take(run->meter, run->start_ns + gaps_ns, run->bytes);

		result.packets[color]++;
		result.duration_ns = gaps_ns - begin_ns;
		if (color == run->rare && ++rare == 100) {
			memset(&result, 0, sizeof(result));
			begin_ns = gaps_ns;
		}
		if (packet > UINT64_C(40) * SATURATION_PACKETS + 1000)
			break; /* too little passes: let the rate tell */
	}
	return result;
}

/* Parts in a million that `packets` of the run are above (below: negative) a rate. */
static inline int64_t saturation_error_ppm(const struct saturation *run, const struct saturation_result *result,
					   uint64_t packets, uint64_t rate_Bps)
{
	__int128 passed = (__int128)packets * run->bytes * 1000000000;
	__int128 allowed = (__int128)rate_Bps * result->duration_ns;

	return allowed ? (int64_t)((passed - allowed) * 1000000 / allowed) : -1000000;
}

/* Within 0.1 %, or the case is named. */
static inline void saturation_check(const struct saturation *run, const struct saturation_result *result,
				    const char *what, uint64_t packets, uint64_t rate_Bps)
{
	int64_t error_ppm = saturation_error_ppm(run, result, packets, rate_Bps);

	if (error_ppm < -1000 || error_ppm > 1000) {
		fail_msg("%s: %" PRId64 " ppm off %" PRIu64 " B/s with %" PRIu32 " B packets, %" PRIu64 " B/s offered",
			 what, error_ppm, rate_Bps, run->bytes, run->offered_Bps);
	}
}

#endif /* PENSTOCK_TEST_SATURATION_H */
