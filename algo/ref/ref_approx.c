/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_approx.h"

static uint64_t last_of(struct ref_cut cut, uint64_t first)
{
	return first * (cut.denominator + (uint64_t)cut.numerator) / cut.denominator;
}

struct ref_interval ref_approx_interval(struct ref_cut cut, uint64_t value)
{
	struct ref_interval interval = { cut.low, last_of(cut, cut.low) };

	while (interval.last < value && interval.last < cut.high) {
		interval.first = interval.last + 1;
		interval.last = last_of(cut, interval.first);
	}
	return interval;
}

uint32_t ref_approx_count(struct ref_cut cut)
{
	uint64_t first;
	uint32_t count = 0;

	for (first = cut.low; first <= cut.high; first = last_of(cut, first) + 1)
		count++;
	return count;
}

/* a / b in Q32, rounded down. */
static uint64_t quotient_q32(uint64_t a, uint64_t b)
{
	return (uint64_t)(((unsigned __int128)a << 32) / b);
}

uint64_t ref_adt_divide_q32(struct ref_cut cut, uint64_t x, uint64_t y)
{
	struct ref_interval xs = ref_approx_interval(cut, x), ys = ref_approx_interval(cut, y);

	/* The mean of the two bounds, a half rounded up. */
	return (quotient_q32(xs.first, ys.last) + quotient_q32(xs.last, ys.first) + 1) / 2;
}

uint64_t ref_amt_multiply_x2(struct ref_cut cut, uint64_t x, uint64_t y)
{
	struct ref_interval xs = ref_approx_interval(cut, x), ys = ref_approx_interval(cut, y);

	return xs.first * ys.first + xs.last * ys.last;
}

uint32_t ref_tcam_groups(struct ref_group *groups, uint32_t room, uint32_t operand_bits, uint32_t b)
{
	uint64_t end = (uint64_t)1 << operand_bits;
	uint64_t first, size = 1;
	uint32_t count = 0;

	for (first = 0; first < end; first += size) {
		/* A group starts with b significant bits: once it would start with one more, groups get twice as wide. */
		if (first / size == (uint64_t)1 << b)
			size *= 2;
		if (count < room)
			groups[count] = (struct ref_group){ first, size };
		count++;
	}
	return count;
}

uint64_t ref_tcam_multiply(uint64_t factor, uint64_t operand, uint32_t b)
{
	uint64_t size = 1, first, last;

	while (operand / size >= (uint64_t)1 << b)
		size *= 2;
	first = operand / size * size;
	last = first + (size - 1);
	return (uint64_t)((unsigned __int128)factor * ((unsigned __int128)first + last) / 2);
}

double ref_prefix_quotient(uint32_t x, uint32_t y, uint32_t b)
{
	uint64_t i = x, j = y;

	if (x >= y)
		return 1;
	while (j >= (uint64_t)1 << b) {
		i /= 2;
		j /= 2;
	}
	while (j < (uint64_t)1 << (b - 1)) {
		i *= 2;
		j *= 2;
	}
	return ((double)i + 0.5) / ((double)j + 0.5);
}

uint32_t ref_prefix_divide_q12(uint32_t x, uint32_t y, uint32_t b)
{
	return (uint32_t)(ref_prefix_quotient(x, y, b) * 4096 + 0.5);
}
