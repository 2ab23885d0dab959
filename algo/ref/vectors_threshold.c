/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of threshold.h. */
#include "ref_threshold.h"
#include "vectors.h"

static uint64_t seed = 1;

static uint32_t draw(uint32_t bits)
{
	return (uint32_t)vectors_draw_wide(&seed, (uint64_t)1 << (1 + vectors_draw(&seed, bits)));
}

static void interpolate(uint32_t limit, uint32_t capacity, uint32_t low, uint32_t middle, uint32_t high, uint32_t b)
{
	uint32_t f[3] = { low, middle, high };

	printf("interpolate limit=%" PRIu32 " capacity=%" PRIu32 " f=%" PRIu32 ",%" PRIu32 ",%" PRIu32 " b=%" PRIu32 " -> limit=%" PRIu32 "\n",
	       limit, capacity, low, middle, high, b, ref_threshold_interpolate(limit, capacity, f, b));
}

static void passing(uint32_t length, uint32_t limit, uint32_t user)
{
	printf("passing length=%" PRIu32 " limit=%" PRIu32 " user=%" PRIu32 " -> parts=%" PRIu32 "\n", length, limit, user,
	       ref_threshold_passing(length, limit, user));
}

int main(void)
{
	uint32_t i, b;

	vectors_header("threshold.h: the next limit, and what passes of a packet.");
	/* Figure 7: (C - f(T)) / (f(T + D) - f(T)) = 1012 / 1690, D = 2^14. */
	interpolate(40000, 101012, 60000, 100000, 101690, 5);
	for (b = 0; b < 7; b += 5) {
		interpolate(16, 0, 0, 0, 0, b);
		interpolate(16, 7, 6, 8, 9, b);
		interpolate(UINT32_C(1) << 31, UINT32_MAX, 1, 2, 3, b);
		interpolate(UINT32_C(1) << 31, UINT32_MAX - 1, 0, UINT32_MAX, UINT32_MAX, b);
		for (i = 0; i < 60; i++) {
			uint32_t limit = draw(31), low = draw(31) / 4, middle = low + draw(30) / 2, high = middle + draw(30) / 2;

			interpolate(limit < 16 ? 16 : limit, low + (uint32_t)vectors_draw_wide(&seed, (uint64_t)(high - low) * 5 / 4 + 2), low, middle,
				    high, b);
		}
	}
	passing(UINT32_MAX, UINT32_MAX - 1, UINT32_MAX);
	passing(1, 16, 33);
	passing(1, 16, 31);
	for (i = 0; i < 60; i++)
		passing(draw(31), draw(31), draw(31));
	return 0;
}
