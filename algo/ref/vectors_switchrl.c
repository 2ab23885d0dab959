/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of switchrl.h. */
#include "ref_switchrl.h"
#include "vectors.h"

static uint64_t seed = 1;

static const char *const verdicts[] = { "pass", "mark", "drop" };

/* Starts close below a wrap of the clock in ticks, 2^54 ns, so that every schedule crosses it. */
static const __int128 start_ns = ((__int128)1 << 54) - 2000;

/* One packet of an overload: over twice the rate, with a long gap, a very long one and a step back. */
static __int128 next_ns(__int128 now_ns, uint64_t rate_Bps, int i)
{
	now_ns += (__int128)vectors_draw_wide(&seed, 600 * UINT64_C(1000000000) / rate_Bps);
	return now_ns + (i == 20 ? (__int128)1000000000 : i == 40 ? (__int128)3600000000000 : i == 50 ? -1000 : 0);
}

static uint32_t next_bytes(void)
{
	return 64 + vectors_draw(&seed, 1437);
}

static void meterrl(uint64_t rate_Bps, uint64_t burst_bytes)
{
	struct ref_meterrl limiter = { .rate_Bps = rate_Bps, .interval_ns = 4000000, .burst_bytes = burst_bytes,
				       .mtu_bytes = 1500 };
	int i;

	printf("profile algorithm=meterrl rate_Bps=%" PRIu64 " interval_ns=%" PRIu64 " burst_bytes=%" PRIu64
	       " mtu_bytes=%" PRIu64 "\n", limiter.rate_Bps, limiter.interval_ns, limiter.burst_bytes, limiter.mtu_bytes);
	ref_meterrl_start(&limiter);
	for (i = 0; i < 60; i++) {
		uint32_t bytes = next_bytes();

		if (i % 5 == 4) {
			ref_meterrl_refill(&limiter);
			printf("refill -> state=%" PRIu64 "\n", (uint64_t)limiter.tokens_nB);
			continue;
		}
		printf("take bytes=%" PRIu32 " -> color=%s", bytes, ref_meterrl_take(&limiter, bytes) ? "green" : "red");
		printf(" state=%" PRIu64 "\n", (uint64_t)limiter.tokens_nB);
	}
}

static void packetrl(uint64_t rate_Bps, uint64_t burst_bytes)
{
	struct ref_packetrl limiter = { .rate_Bps = rate_Bps, .burst_bytes = burst_bytes, .mtu_bytes = 1500 };
	__int128 now_ns = start_ns;
	int i;

	printf("profile algorithm=packetrl rate_Bps=%" PRIu64 " burst_bytes=%" PRIu64 " mtu_bytes=%" PRIu64
	       " now=%" PRIu64 "\n", limiter.rate_Bps, limiter.burst_bytes, limiter.mtu_bytes, (uint64_t)start_ns);
	ref_packetrl_start(&limiter, now_ns);
	for (i = 0; i < 60; i++) {
		uint32_t bytes = next_bytes();

		now_ns = next_ns(now_ns, rate_Bps, i);
		printf("take now=%" PRIu64 " bytes=%" PRIu32 " -> color=%s", (uint64_t)now_ns, bytes,
		       ref_packetrl_take(&limiter, now_ns, bytes) ? "green" : "red");
		printf(" state=%" PRIu64 ",%" PRIu64 "\n", (uint64_t)limiter.tokens_nB, (uint64_t)limiter.prev_ns);
	}
}

/* optPacketRL (no ETW, no random drop), SwitchRL, and SwitchRL with the ADT. */
static void switchrl(const char *algorithm, struct ref_switchrl limiter)
{
	uint64_t rate_Bps = limiter.rate_Mbps ? limiter.rate_Mbps * 125000 : limiter.rate_Bps;
	__int128 now_ns = start_ns;
	int i;

	printf("profile algorithm=%s rate_Bps=%" PRIu64 " rate_Mbps=%" PRIu64 " ctw_ns=%" PRIu64 " etw_ns=%" PRIu64
	       " mtu_bytes=%" PRIu64 " drop_max=%" PRIu32 " now=%" PRIu64 "\n", algorithm, limiter.rate_Bps,
	       limiter.rate_Mbps, limiter.ctw_ns, limiter.etw_ns, limiter.mtu_bytes, limiter.drop_max_q32,
	       (uint64_t)start_ns);
	ref_switchrl_start(&limiter, now_ns);
	for (i = 0; i < 60; i++) {
		uint32_t bytes = next_bytes();
		uint32_t random = (uint32_t)vectors_draw_wide(&seed, (uint64_t)1 << 32);
		struct ref_switchrl_result result;

		now_ns = next_ns(now_ns, rate_Bps, i);
		result = ref_switchrl_take(&limiter, now_ns, bytes, random);
		printf("take now=%" PRIu64 " bytes=%" PRIu32 " random=%" PRIu32 " -> color=%s verdict=%s reason=%u state=%" PRIu64
		       "\n", (uint64_t)now_ns, bytes, random, vectors_colors[result.color], verdicts[result.verdict], result.reason,
		       (uint64_t)limiter.accu_ticks);
	}
}

int main(void)
{
	static const uint64_t rates[] = { 7500, 12500000, 1250000000 };
	int i;

	vectors_header("switchrl.h.");
	for (i = 0; i < 3; i++) {
		uint64_t packet_ns = 1500 * UINT64_C(1000000000) / rates[i];
		struct ref_switchrl limiter = { .rate_Bps = rates[i], .ctw_ns = 4 * packet_ns, .mtu_bytes = 1500 };

		meterrl(rates[i], 6000);
		packetrl(rates[i], 6000);
		limiter.is_algorithm_3 = true;
		switchrl("optpacketrl", limiter);
		limiter.is_algorithm_3 = false;
		limiter.etw_ns = 3 * packet_ns;
		limiter.drop_max_q32 = UINT32_MAX / 2;
		switchrl("switchrl", limiter);
		limiter.ctw_ns = limiter.etw_ns = 0; /* widened */
		switchrl("switchrl", limiter);
		if (rates[i] < 125000)
			continue;
		limiter.rate_Mbps = rates[i] / 125000;
		limiter.ctw_ns = limiter.etw_ns = 3 * packet_ns;
		switchrl("switchrl_adt", limiter);
	}
	return 0;
}
