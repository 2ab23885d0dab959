/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of red.h. */
#include "ref_red.h"
#include "vectors.h"

static uint64_t seed = 1;

static void probability(uint64_t depth, uint64_t green, uint64_t window, uint32_t max_q32)
{
	printf("probability depth=%" PRIu64 " green=%" PRIu64 " window=%" PRIu64 " max=%" PRIu32 " -> p=%" PRIu32 "\n",
	       depth, green, window, max_q32, ref_red_probability_q32(depth, green, window, max_q32));
}

static void drops(uint32_t p, uint32_t random)
{
	printf("drops p=%" PRIu32 " random=%" PRIu32 " -> drops=%d\n", p, random, ref_red_drops(p, random));
}

int main(void)
{
	int i;

	vectors_header("red.h: the probability of an early drop, and the draw.");
	probability(0, 0, 0, UINT32_MAX);
	probability(1, 0, 0, UINT32_MAX);
	probability(UINT64_MAX, 0, UINT64_MAX, UINT32_MAX);
	probability(UINT64_MAX - 1, 0, UINT64_MAX, UINT32_MAX);
	probability(UINT32_MAX, 0, (uint64_t)UINT32_MAX + 1, UINT32_MAX);
	probability(UINT32_MAX - 1, 0, UINT32_MAX, UINT32_MAX);
	/* 17.5 ms and 25 ms in ticks, 10 %. */
	for (i = 0; i <= 20; i++)
		probability(17920000 + (uint64_t)i * 1280000, 17920000, 17920000 + 25600000, 429496730);
	for (i = 0; i < 200; i++) {
		uint64_t window = vectors_draw_wide(&seed, (uint64_t)1 << (1 + vectors_draw(&seed, 54))) + 1;
		uint64_t green = vectors_draw_wide(&seed, window);
		uint64_t depth = green + vectors_draw_wide(&seed, window - green + 1);

		probability(depth, green, window, (uint32_t)vectors_draw_wide(&seed, (uint64_t)1 << 32));
	}
	drops(0, 0);
	drops(1, 0);
	drops(1, 1);
	drops(UINT32_MAX, UINT32_MAX);
	drops(UINT32_MAX, UINT32_MAX - 1);
	for (i = 0; i < 20; i++) {
		uint32_t p = (uint32_t)vectors_draw_wide(&seed, (uint64_t)1 << 32);

		drops(p, (uint32_t)vectors_draw_wide(&seed, (uint64_t)1 << 32));
	}
	return 0;
}
