/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_lpf.h"

#include <math.h>

double ref_lpf_read(const struct ref_lpf *lpf, double now_ns, double tau_ns)
{
	double elapsed_ns = now_ns - lpf->last_ns;

	if (!lpf->any)
		return 0;
	return lpf->value * exp(-(elapsed_ns > 0 ? elapsed_ns : 0) / tau_ns);
}

void ref_lpf_add(struct ref_lpf *lpf, double now_ns, double tau_ns, double parts)
{
	lpf->value = parts + ref_lpf_read(lpf, now_ns, tau_ns);
	if (!lpf->any || now_ns > lpf->last_ns)
		lpf->last_ns = now_ns;
	lpf->any = true;
}

double ref_lpf_parts_per_byte(double nominal_Bps, double weight, double tau_ns)
{
	return 16777216.0 * 1e9 / (nominal_Bps * tau_ns * weight);
}

/* 2^31 2^-(i/64), rounded: the table's entry, by its definition. */
static int64_t entry_q31(int i)
{
	return llround(ldexp(exp2(-i / 64.0), 31));
}

uint32_t ref_decay_q31(unsigned __int128 x_q32)
{
	unsigned __int128 halvings_q56;
	int64_t above, below, rest_q26, rest_q16, bend_q31;

	if (x_q32 >= (unsigned __int128)22 << 32)
		return 0;
	halvings_q56 = x_q32 * 24204406; /* log2 e in 2^-24 */
	above = entry_q31((int)(halvings_q56 >> 50 & 63));
	below = entry_q31((int)(halvings_q56 >> 50 & 63) + 1);
	rest_q26 = (int64_t)(halvings_q56 >> 24 & 0x3ffffff);
	/* How far the curve hangs below the line between two entries: (ln 2 / 64)^2 / 2 of the upper one, times rest (1 - rest). */
	rest_q16 = rest_q26 / 1024;
	bend_q31 = above * (rest_q16 * (65536 - rest_q16) / 65536) / 65536 * 251899 / 4294967296;
	return (uint32_t)((above - (above - below) * rest_q26 / 67108864 - bend_q31) >> (int)(halvings_q56 >> 56));
}

uint32_t ref_lpf_left_q31(uint64_t stamps)
{
	return ref_decay_q31((unsigned __int128)stamps << 22);
}

/* The moment as a stamp, told from the word's: how many stamps have passed. */
static uint64_t passed(uint64_t word, uint64_t now_ns, uint32_t tau_shift)
{
	uint64_t turn = (uint64_t)1 << 32;
	uint64_t elapsed = (now_ns / ((uint64_t)1 << (tau_shift - 10)) % turn + turn - word % turn) % turn;

	return elapsed >= turn - 4096 ? 0 : elapsed;
}

uint32_t ref_lpf_value(uint64_t word, uint64_t now_ns, uint32_t tau_shift)
{
	unsigned __int128 product = (unsigned __int128)(word >> 32) * ref_lpf_left_q31(passed(word, now_ns, tau_shift));

	return (uint32_t)((product + ((uint64_t)1 << 30)) / ((uint64_t)1 << 31));
}

uint64_t ref_lpf_next(uint64_t word, uint64_t now_ns, uint32_t tau_shift, uint32_t parts)
{
	uint64_t sum = (uint64_t)ref_lpf_value(word, now_ns, tau_shift) + parts;
	uint64_t stamp = passed(word, now_ns, tau_shift) ? now_ns / ((uint64_t)1 << (tau_shift - 10)) : word;

	return (sum > UINT32_MAX ? UINT32_MAX : sum) * ((uint64_t)1 << 32) + stamp % ((uint64_t)1 << 32);
}
