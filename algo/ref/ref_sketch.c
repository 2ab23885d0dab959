/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_sketch.h"

#include <math.h>

void ref_sketch_add(struct ref_sketch *sketch, uint32_t user, double now_ns, double tau_ns, double parts)
{
	ref_lpf_add(&sketch->users[user], now_ns, tau_ns, parts);
}

double ref_sketch_user(const struct ref_sketch *sketch, uint32_t user, double now_ns, double tau_ns)
{
	return ref_lpf_read(&sketch->users[user], now_ns, tau_ns);
}

double ref_sketch_all(const struct ref_sketch *sketch, double now_ns, double tau_ns)
{
	double sum = 0;
	uint32_t user;

	for (user = 0; user < sketch->count; user++)
		sum += ref_sketch_user(sketch, user, now_ns, tau_ns);
	return sum;
}

double ref_sketch_read(const struct ref_sketch *sketch, uint32_t user, double now_ns, double tau_ns)
{
	double least = INFINITY;
	uint32_t row, other;

	for (row = 0; row < sketch->rows; row++) {
		double sum = 0;

		for (other = 0; other < sketch->count; other++) {
			if (sketch->columns[row][other] == sketch->columns[row][user])
				sum += ref_sketch_user(sketch, other, now_ns, tau_ns);
		}
		least = fmin(least, sum);
	}
	return least;
}

uint64_t ref_sketch_mix(uint64_t x)
{
	const uint64_t half = (uint64_t)1 << 32;

	return ((x / half) * half + (x / half ^ x % half)) * UINT64_C(0x9e3779b97f4a7c15);
}

uint32_t ref_sketch_column(uint64_t user, uint64_t seed, uint32_t bits)
{
	const uint64_t half = (uint64_t)1 << 32;
	uint64_t low = (user % half + seed % half) % half, high = (user / half + seed / half) % half;
	unsigned __int128 scaled = (unsigned __int128)ref_sketch_mix((low * high) ^ seed) << bits;

	return (uint32_t)(scaled >> 64);
}
