/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of limiter.h. */
#include "ref_limiter.h"
#include "vectors.h"

#define MSEC_TICKS (UINT64_C(1000000) * REF_TICKS_PER_NSEC)
#define HOUR_NS (UINT64_C(3600) * 1000000000)

struct run {
	struct ref_limiter_profile profile;
	struct pst_profile written;
	ref_int now_ns;
	ref_int vft_ticks;
	uint64_t seed;
};

static void resolved(const struct ref_limiter_profile *profile)
{
	printf(" -> rate=%" PRIu32 " green_ticks=%" PRIu64 " window_ticks=%" PRIu64, profile->rate,
	       (uint64_t)profile->green_ticks, (uint64_t)profile->window_ticks);
}

static void begin(struct run *run, struct pst_profile written, uint64_t rate_Bps, ref_int now_ns, ref_int vft_ticks)
{
	run->written = written;
	run->profile = ref_limiter_resolve(&written, ref_rate_code(rate_Bps));
	run->now_ns = now_ns;
	run->vft_ticks = vft_ticks;
	run->seed = rate_Bps;
	vectors_profile(&written, rate_Bps, 0);
	printf(" state=%" PRIu64, (uint64_t)vft_ticks);
	resolved(&run->profile);
	printf("\n");
}

static void take(struct run *run, uint32_t bytes)
{
	struct ref_limiter_result result = ref_limiter_try(&run->profile, run->vft_ticks, run->now_ns, bytes);

	run->vft_ticks = result.vft_ticks;
	printf("take now=%" PRIu64 " bytes=%" PRIu32 " -> color=%s state=%" PRIu64 " depth=%" PRIu64 " wait=%" PRIu64
	       "\n", (uint64_t)run->now_ns, bytes, vectors_colors[result.color], (uint64_t)result.vft_ticks,
	       (uint64_t)result.depth_ticks, (uint64_t)result.wait_ticks);
}

static void takes(struct run *run, int count)
{
	for (; count > 0; count--) {
		uint32_t bytes = vectors_bytes[vectors_draw(&run->seed, 8)];

		take(run, bytes);
		run->now_ns += vectors_gap_ns(&run->seed, run->profile.rate, bytes);
	}
}

static void change(struct run *run, uint64_t rate_Bps)
{
	struct ref_limiter_profile after = ref_limiter_resolve(&run->written, ref_rate_code(rate_Bps));

	run->vft_ticks = ref_limiter_convert(&run->profile, &after, run->vft_ticks, run->now_ns);
	run->profile = after;
	printf("rate now=%" PRIu64 " rate_Bps=%" PRIu64, (uint64_t)run->now_ns, rate_Bps);
	resolved(&after);
	printf(" state=%" PRIu64 "\n", (uint64_t)run->vft_ticks);
}

static struct pst_profile window(uint64_t burst_ticks, uint32_t burst_bytes, uint64_t excess_ticks,
				 uint32_t excess_bytes, uint8_t red_action)
{
	struct pst_profile profile = {
		.burst_ticks = burst_ticks, .burst_bytes = burst_bytes, .excess_ticks = excess_ticks,
		.excess_bytes = excess_bytes, .mtu_bytes = 1514, .red_action = red_action,
	};

	return profile;
}

int main(void)
{
	static const uint64_t rates_Bps[] = { 1000, 7500, 1250000, 31415926, 12500000000, 125000000000 };
	const struct pst_profile usual = window(35 * MSEC_TICKS / 2, 0, 25 * MSEC_TICKS, 0, PST_ACTION_DROP);
	const struct pst_profile shaping = window(MSEC_TICKS, 0, 0, 3000, PST_ACTION_HOLD);
	const ref_int wraps_ns = (ref_int)1 << 54, ends_ns = (ref_int)1 << 64;
	struct run run;
	size_t i;

	vectors_header("limiter.h: the window meter.");
	for (i = 0; i < sizeof(rates_Bps) / sizeof(rates_Bps[0]); i++) {
		printf("# saturated, then idle for an hour\n");
		begin(&run, usual, rates_Bps[i], 1000, ref_limiter_idle(1000));
		takes(&run, 40);
		run.now_ns += HOUR_NS;
		takes(&run, 10);
		printf("# the same, held\n");
		begin(&run, shaping, rates_Bps[i], 1000, ref_limiter_idle(1000));
		takes(&run, 20);
	}
	printf("# ticks wrap, then nanoseconds\n");
	begin(&run, usual, 1250000, wraps_ns - 5000000, ref_limiter_idle(wraps_ns - 5000000));
	takes(&run, 30);
	begin(&run, window(0, 1514, 0, 6056, PST_ACTION_DROP), 125000, ends_ns - 50000000,
	      ref_limiter_idle(ends_ns - 50000000));
	takes(&run, 30);
	printf("# the rate changes: faster, slower, much slower, up again\n");
	begin(&run, window(0, 15000, 0, 15000, PST_ACTION_DROP), 1250000, HOUR_NS, ref_limiter_idle(HOUR_NS));
	takes(&run, 20);
	change(&run, 125000000);
	takes(&run, 5);
	change(&run, 12500);
	takes(&run, 5);
	change(&run, 64);
	takes(&run, 5);
	change(&run, 31415926535);
	takes(&run, 5);
	printf("# the same, held: the queue stays, up to what a state can tell\n");
	begin(&run, shaping, 125000, HOUR_NS, ref_limiter_idle(HOUR_NS));
	takes(&run, 20);
	change(&run, 12500);
	takes(&run, 5);
	change(&run, 64);
	takes(&run, 2);
	printf("# a state ahead of now: by as much as it may be, and by one tick more, which is stale\n");
	begin(&run, shaping, 125000, HOUR_NS, (ref_int)HOUR_NS * REF_TICKS_PER_NSEC + REF_AHEAD_MAX_TICKS);
	takes(&run, 1);
	begin(&run, shaping, 125000, HOUR_NS, (ref_int)HOUR_NS * REF_TICKS_PER_NSEC + REF_AHEAD_MAX_TICKS + 1);
	takes(&run, 1);
	printf("# seconds of burst at 100 Gbit/s, all used: more bytes than one cost takes\n");
	begin(&run, window(10000 * MSEC_TICKS, 0, 0, 0, PST_ACTION_DROP), 12500000000, HOUR_NS,
	      (ref_int)HOUR_NS * REF_TICKS_PER_NSEC - 3000000);
	takes(&run, 3);
	change(&run, 11250000000);
	takes(&run, 3);
	change(&run, 31415926535);
	takes(&run, 3);
	printf("# depths beyond the range are cut to it\n");
	begin(&run, window(UINT64_MAX, 0, 1, UINT32_MAX, PST_ACTION_DROP), 64, HOUR_NS, ref_limiter_idle(HOUR_NS));
	takes(&run, 5);
	return 0;
}
