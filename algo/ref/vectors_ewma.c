/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of ewma.h. */
#include "ref_ewma.h"
#include "vectors.h"

static uint64_t seed = 1;

/* Packets of about this gap; some come together, after a pause, or from the past. */
static void schedule(uint64_t now_ns, uint64_t rate_Bps_q8, uint64_t gap_ns, uint32_t gaps)
{
	struct ref_ewma_words ewma = { now_ns, rate_Bps_q8, 0, 20, 0, 0 };
	uint32_t i;

	printf("node last=%" PRIu64 " rate_q8=%" PRIu64 "\n", now_ns, rate_Bps_q8);
	for (i = 0; i < 60; i++) {
		uint32_t bytes_q8 = vectors_bytes[vectors_draw(&seed, 8)] * 256 - vectors_draw(&seed, 200);

		switch (vectors_draw(&seed, 12)) {
		case 0:
			break;
		case 1:
			now_ns -= vectors_draw(&seed, 5000);
			break;
		case 2:
			now_ns += vectors_draw_wide(&seed, 40 * gap_ns);
			break;
		default:
			now_ns += gap_ns / 2 + vectors_draw_wide(&seed, gap_ns);
		}
		if (i == 50 || rate_Bps_q8)
			bytes_q8 = (1 << 26) - 1;
		ref_ewma_words_add(&ewma, now_ns, bytes_q8, gaps);
		printf("add now=%" PRIu64 " bytes_q8=%" PRIu32 " gaps=%" PRIu32 " -> rate_q8=%" PRIu64 " gap_q4=%" PRIu64 " more=%" PRIu32 "\n", now_ns,
		       bytes_q8, gaps, ewma.rate_Bps_q8, ewma.gap_ns_q4, ewma.constant_shift - 20);
		if (i % 6 == 5) {
			uint64_t later_ns = now_ns + vectors_draw_wide(&seed, 100 * gap_ns);

			printf("read now=%" PRIu64 " -> rate=%" PRIu64 " stopped=%d\n", later_ns, ref_ewma_words_rate_Bps(&ewma, later_ns),
			       ref_ewma_words_has_stopped(&ewma, later_ns));
		}
	}
}

int main(void)
{
	vectors_header("ewma.h: the rate of a node.");
	schedule(1000000000, 0, 1200, 11);
	schedule((uint64_t)0 - 3000000, 0, 120000, 90);
	schedule(((uint64_t)1 << 63) - 20000000, 0, 1000000, 11);
	schedule(7, 0, 70000000, 11);
	schedule(77777, 0, 20, 90);
	schedule((uint64_t)1 << 50, 0, 600000000, 90);
	schedule(1000000000, ((uint64_t)1 << 45) - 1, 100, 11); /* as fast as can be told */
	return 0;
}
