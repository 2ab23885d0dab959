/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * schedule.h: random limits and arrivals, and the envelope that they are measured against.
 *
 * Time is kept without wraps in 128 bits; a meter sees it modulo 2^64. Amounts are measured without rate codes: a
 * packet of n bytes is n / rate_Bps seconds, in units of 2^-24 tick, give or take what fixed.h I1 allows.
 */
#ifndef PENSTOCK_TEST_SCHEDULE_H
#define PENSTOCK_TEST_SCHEDULE_H

#include <penstock/fixed.h>
#include <penstock/rng.h>

#include "ref_fixed.h"

#define SCHEDULES 4000
#define PACKETS 250
#define MTU_BYTES 9000
#define DAY_NS ((ref_int)86400 * 1000000000)

static inline uint64_t draw(uint64_t *rng)
{
	return (uint64_t)pst_rng_next(rng) << 32 | pst_rng_next(rng);
}

static inline uint32_t below(uint64_t *rng, uint32_t bound)
{
	return pst_scale_u32(pst_rng_next(rng), bound);
}

/* Near each place where a clock may wrap or start. */
static inline ref_int draw_start_ns(uint64_t *rng)
{
	static const int bits[] = { 0, 53, 54, 55, 63, 64 };
	ref_int start_ns = ((ref_int)1 << bits[below(rng, 6)]) - (ref_int)(draw(rng) >> (34 + below(rng, 20)));

	return start_ns < 0 ? 0 : start_ns;
}

/* 8 kbit/s to 400 Gbit/s, evenly over orders of magnitude. */
static inline uint64_t draw_rate_Bps(uint64_t *rng)
{
	uint64_t rate_Bps = draw(rng) >> (28 + below(rng, 26));

	return rate_Bps < 1000 ? 1000 : rate_Bps > UINT64_C(50000000000) ? UINT64_C(50000000000) : rate_Bps;
}

static inline uint32_t draw_bytes(uint64_t *rng)
{
	static const uint32_t usual[] = { 64, 1500, MTU_BYTES };

	return below(rng, 2) ? usual[below(rng, 3)] : 64 + below(rng, MTU_BYTES - 63);
}

/* Together, close, as the rate has it, after the whole window, and now and then after hours or days. */
static inline ref_int draw_gap_ns(uint64_t *rng, uint64_t rate_Bps, uint64_t window_ticks)
{
	uint64_t packet_ns = MTU_BYTES * PST_NSEC_PER_SEC / rate_Bps + 1;
	uint64_t window_ns = window_ticks / PST_TICKS_PER_NSEC;

	switch (below(rng, 64)) {
	case 0:
		return (ref_int)(draw(rng) % (2 * window_ns + 2));
	case 1:
		return below(rng, 8) ? 0 : (ref_int)(draw(rng) % (uint64_t)(50 * DAY_NS));
	default:
		return below(rng, 3) ? (ref_int)(draw(rng) % packet_ns) : 0;
	}
}

/*
 * The largest excess of bytes passed over rate * (t - s), over all s up to now, and the largest lack: both are queues.
 * A packet counts as little (as much) as its rounded cost may have been.
 */
struct envelope {
	ref_int excess_units;
	ref_int lack_units;
};

static inline ref_int packet_units(uint64_t rate_Bps, uint32_t bytes)
{
	return REF_TICKS_PER_SEC * REF_UNITS_PER_TICK * bytes / rate_Bps;
}

static inline ref_int rounding_units(ref_int units)
{
	return (units >> 27) + REF_UNITS_PER_TICK / 2 + 2;
}

static inline void envelope_advance(struct envelope *envelope, ref_int gap_ns)
{
	ref_int units = gap_ns * REF_TICKS_PER_NSEC * REF_UNITS_PER_TICK;

	envelope->excess_units = envelope->excess_units > units ? envelope->excess_units - units : 0;
	envelope->lack_units += units;
}

static inline void envelope_pass(struct envelope *envelope, uint64_t rate_Bps, uint32_t bytes)
{
	ref_int units = packet_units(rate_Bps, bytes), most = units + rounding_units(units);

	envelope->excess_units += units - rounding_units(units);
	envelope->lack_units = envelope->lack_units > most ? envelope->lack_units - most : 0;
}

#endif /* PENSTOCK_TEST_SCHEDULE_H */
