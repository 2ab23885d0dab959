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

static void gain(uint32_t gain_q16, uint32_t passed, uint32_t capacity)
{
	printf("gain gain=%" PRIu32 " passed=%" PRIu32 " capacity=%" PRIu32 " -> gain=%" PRIu32 "\n", gain_q16, passed, capacity,
	       ref_threshold_gain_q16(gain_q16, passed, capacity));
}

static void next(uint32_t limit, const struct ref_threshold_epoch *epoch, uint32_t b)
{
	printf("next limit=%" PRIu32 " capacity=%" PRIu32 " demand=%" PRIu32 " largest=%" PRIu32 " f=%" PRIu32 ",%" PRIu32 ",%" PRIu32
	       " passed=%" PRIu32 " limiters=%d gain=%" PRIu32 " epochs=%" PRIu32 " b=%" PRIu32 " -> limit=%" PRIu32 " gain=%" PRIu32 "\n",
	       limit, epoch->capacity, epoch->demand, epoch->largest, epoch->f[0], epoch->f[1], epoch->f[2], epoch->passed, epoch->has_limiters,
	       epoch->gain_q16, epoch->epochs, b, ref_threshold_next(limit, epoch, b),
	       ref_threshold_gain_q16(epoch->gain_q16, epoch->passed, epoch->capacity));
}

/* Of one size, or every number would decide alone: demand around C, what passed around C, f around it. */
static void next_epoch(uint32_t b)
{
	uint32_t limit = draw(28), size = 16 + draw(28);
	struct ref_threshold_epoch epoch = { .capacity = size, .demand = size / 2 + (uint32_t)vectors_draw_wide(&seed, size), .epochs = 1 };

	epoch.largest = (uint32_t)vectors_draw_wide(&seed, size) + limit / 2;
	epoch.f[0] = size / 2 + (uint32_t)vectors_draw_wide(&seed, size / 2);
	epoch.f[1] = epoch.f[0] + (uint32_t)vectors_draw_wide(&seed, size / 2);
	epoch.f[2] = epoch.f[1] + (uint32_t)vectors_draw_wide(&seed, size / 2);
	epoch.has_limiters = vectors_draw(&seed, 4) != 0;
	if (epoch.has_limiters && vectors_draw(&seed, 8)) /* or all of it is forgotten */
		epoch.passed = size / 2 + (uint32_t)vectors_draw_wide(&seed, size);
	if (vectors_draw(&seed, 4))
		epoch.gain_q16 = 32768 + vectors_draw(&seed, 32769);
	if (vectors_draw(&seed, 4) == 0)
		epoch.epochs = draw(20) + 1;
	next(limit < 16 ? 16 : limit, &epoch, b);
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
	gain(0, 0, 1000);
	gain(40000, 0, 1000);    /* nothing is known to have passed */
	gain(0, 1, 1000);        /* 1 at most */
	gain(32768, 2000, 1000); /* 1/2 at least */
	gain(50000, 1000, 1000);
	gain(50000, 1001, 1000);
	gain(50000, 999, 1000);
	gain(50000, UINT32_MAX, 1); /* as twice C */
	gain(50000, 1, 0);
	for (i = 0; i < 40; i++)
		gain(32768 + vectors_draw(&seed, 32769), draw(31), draw(31));
	for (i = 0; i < 160; i++)
		next_epoch(i % 4 ? 0 : 5);
	return 0;
}
