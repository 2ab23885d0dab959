/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of logical_meter.h. */
#include "ref_logical_meter.h"
#include "vectors.h"

static uint64_t seed = 1;

static const char *const verdicts[] = { "pass", "mark", "drop" };
static const char *const congestions[] = { "police", "dctcp", "dcqcn" };

/* Starts close below a wrap of the u64 clock, so that every schedule crosses it. */
static const __int128 start_ns = ((__int128)1 << 64) - 2000;

static void profile(const struct ref_logical_meter *meter)
{
	printf("profile rate_Bps=%" PRIu64 " yellow_bytes=%" PRIu64 " red_bytes=%" PRIu64 " mtu_bytes=%" PRIu64
	       " red_max=%" PRIu32 " congestion=%s tcam_bits=%" PRIu32 " now=%" PRIu64 "\n", meter->rate_Bps,
	       meter->yellow_bytes, meter->red_bytes, meter->mtu_bytes, meter->red_max_q32,
	       congestions[meter->congestion], meter->tcam_bits, (uint64_t)start_ns);
}

static void state(const struct ref_logical_meter *meter)
{
	printf(" state=%" PRIu64 ",%" PRIu64 "\n", (uint64_t)meter->queue_nB, (uint64_t)meter->last_ns);
}

static void run(struct ref_logical_meter meter)
{
	__int128 now_ns = start_ns;
	int i;

	profile(&meter);
	ref_logical_meter_start(&meter, now_ns);
	for (i = 0; i < 60; i++) {
		uint32_t bytes = 64 + vectors_draw(&seed, 1437);
		uint32_t random = (uint32_t)vectors_draw_wide(&seed, (uint64_t)1 << 32);
		bool is_ect = vectors_draw(&seed, 2);
		struct ref_logical_meter_result result;

		/* Over twice the rate on average, with one long gap, one very long one, and one step back. */
		now_ns += (__int128)vectors_draw_wide(&seed, 600 * UINT64_C(1000000000) / meter.rate_Bps);
		now_ns += i == 20 ? (__int128)1000000000 : i == 40 ? (__int128)3600000000000 : i == 50 ? -1000 : 0;
		result = ref_logical_meter_take(&meter, now_ns, bytes, is_ect, random);
		printf("take now=%" PRIu64 " bytes=%" PRIu32 " random=%" PRIu32 " ect=%d -> color=%s verdict=%s reason=%u",
		       (uint64_t)now_ns, bytes, random, is_ect, vectors_colors[result.color], verdicts[result.verdict],
		       result.reason);
		state(&meter);
	}
	ref_logical_meter_change(&meter, now_ns + 1000, meter.rate_Bps / 3, 3000, 6000);
	printf("change now=%" PRIu64 " rate_Bps=%" PRIu64 " yellow_bytes=3000 red_bytes=6000 ->", (uint64_t)now_ns + 1000,
	       meter.rate_Bps);
	state(&meter);
}

int main(void)
{
	static const uint64_t rates[] = { 7500, 12500000, 12500000000 };
	int congestion, rate;

	vectors_header("logical_meter.h.");
	for (rate = 0; rate < 3; rate++) {
		for (congestion = REF_POLICE; congestion <= REF_DCQCN; congestion++) {
			struct ref_logical_meter meter = { .rate_Bps = rates[rate], .yellow_bytes = 4000, .red_bytes = 12000,
							   .mtu_bytes = 1500, .red_max_q32 = UINT32_MAX / 2,
							   .congestion = (enum ref_congestion)congestion };

			run(meter);
			meter.tcam_bits = 4 + (uint32_t)congestion;
			run(meter);
		}
	}
	return 0;
}
