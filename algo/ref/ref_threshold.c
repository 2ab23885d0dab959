/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_threshold.h"

#include <math.h>

#include "ref_approx.h"

double ref_threshold_share(const double *demands, const double *weights, uint32_t count, double capacity)
{
	double low = 0, high = 0, sum = 0;
	uint32_t i, round;

	for (i = 0; i < count; i++) {
		sum += demands[i];
		high = fmax(high, demands[i] / weights[i]);
	}
	if (sum <= capacity)
		return INFINITY;
	for (round = 0; round < 200; round++) {
		double middle = (low + high) / 2;

		for (i = 0, sum = 0; i < count; i++)
			sum += fmin(demands[i], middle * weights[i]);
		if (sum > capacity)
			high = middle;
		else
			low = middle;
	}
	return low;
}

uint64_t ref_threshold_step(uint32_t limit)
{
	uint64_t step = 1;

	while (step * 2 <= limit / 2)
		step *= 2;
	return step;
}

static uint64_t part_of_step(uint64_t part, uint64_t whole, uint64_t step, uint32_t b)
{
	if (b == 0)
		return (uint64_t)((unsigned __int128)part * step / whole);
	return (uint64_t)((unsigned __int128)ref_prefix_divide_q12((uint32_t)part, (uint32_t)whole, b) * step / 4096);
}

uint32_t ref_threshold_interpolate(uint32_t limit, uint32_t capacity, const uint32_t f[3], uint32_t b)
{
	uint64_t step = ref_threshold_step(limit);

	if (capacity >= f[2] && capacity >= f[1])
		return (uint32_t)(limit + step);
	if (capacity >= f[1])
		return (uint32_t)(limit + part_of_step(capacity - f[1], f[2] - f[1], step, b));
	if (capacity <= f[0])
		return (uint32_t)(limit - step);
	return (uint32_t)(limit - part_of_step(f[1] - capacity, f[1] - f[0], step, b));
}

uint32_t ref_threshold_passing(uint32_t length, uint32_t limit, uint32_t user)
{
	if (user <= limit)
		return length;
	return (uint32_t)(((unsigned __int128)length * limit * 2 + user) / ((unsigned __int128)user * 2));
}

static __int128 between(__int128 value, __int128 least, __int128 most)
{
	return value < least ? least : value > most ? most : value;
}

uint32_t ref_threshold_gain_q16(uint32_t gain_q16, uint32_t passed, uint32_t capacity)
{
	__int128 one = 65536, part;

	if (passed == 0)
		return 65536;
	part = between(passed * one / (capacity ? capacity : 1), 0, 2 * one);
	return (uint32_t)between((gain_q16 ? gain_q16 : one) + one / 64 - part / 64, one / 2, one);
}

uint32_t ref_threshold_next(uint32_t limit, const struct ref_threshold_epoch *epoch, uint32_t b)
{
	uint32_t gain_q16 = ref_threshold_gain_q16(epoch->gain_q16, epoch->passed, epoch->capacity);
	__int128 next = (__int128)epoch->largest + epoch->capacity - epoch->demand;

	if (epoch->demand > epoch->capacity) {
		next = ref_threshold_interpolate(limit, (uint32_t)((__int128)epoch->capacity * gain_q16 / 65536), epoch->f, b);
		next = between(next, 0, epoch->largest);
	}
	if (epoch->has_limiters)
		next = between(next, 0, limit + (__int128)limit * epoch->epochs / 8);
	return (uint32_t)between(next, 16, (__int128)1 << 31);
}
