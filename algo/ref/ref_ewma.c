/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_ewma.h"

#include <math.h>

#include "ref_lpf.h"

static long double elapsed(const struct ref_ewma *ewma, __int128 now_ns)
{
	return now_ns > ewma->last_ns ? (long double)(now_ns - ewma->last_ns) : 0;
}

void ref_ewma_add(struct ref_ewma *ewma, __int128 now_ns, long double bytes, int gaps)
{
	long double gap_ns = elapsed(ewma, now_ns), constant_ns = ewma->constant_ns;
	long double left = expl(-gap_ns / constant_ns);
	/* length / T (1 - e^-(T/K)), which is length / K at T = 0. */
	long double over_ns = gap_ns > 0 ? gap_ns / -expm1l(-gap_ns / constant_ns) : constant_ns;

	ewma->rate_Bps = ewma->rate_Bps * left + bytes * 1e9L / over_ns;
	ewma->gap_ns += (fminl(gap_ns, 4 * ewma->gap_ns + 65536) - ewma->gap_ns) / 16;
	ewma->gap_ns = fminl(ewma->gap_ns, 0x1p28L); /* 268 ms */
	if (ewma->constant_ns < 0x1p32L && ewma->constant_ns <= gaps * ewma->gap_ns)
		ewma->constant_ns *= 2;
	else if (ewma->constant_ns > 0x1p20L && ewma->constant_ns > 4 * gaps * ewma->gap_ns)
		ewma->constant_ns /= 2;
	ewma->last_ns = now_ns;
}

long double ref_ewma_rate_Bps(const struct ref_ewma *ewma, __int128 now_ns)
{
	return ewma->rate_Bps * expl(-elapsed(ewma, now_ns) / ewma->constant_ns);
}

typedef unsigned __int128 wide;

uint64_t ref_ewma_words_elapsed_ns(const struct ref_ewma_words *ewma, uint64_t now_ns)
{
	uint64_t elapsed_ns = now_ns - ewma->last_ns;

	return elapsed_ns >= (uint64_t)1 << 63 ? 0 : elapsed_ns;
}

/* e^-(T/K), in 2^-31. */
static uint32_t left_q31(const struct ref_ewma_words *ewma, uint64_t elapsed_ns)
{
	return ref_decay_q31((wide)elapsed_ns * 4294967296 / ((wide)1 << ewma->constant_shift));
}

/* length / T (1 - e^-(T/K)); below K/256 length / K (1 - T/2K), T/K being cut to 2^-16. */
static uint64_t added_q8(const struct ref_ewma_words *ewma, uint64_t elapsed_ns, uint64_t bytes_q8)
{
	wide constant_ns = (wide)1 << ewma->constant_shift, gone_q31 = 2147483648 - left_q31(ewma, elapsed_ns), added;

	if (elapsed_ns < constant_ns / 256) {
		added = (wide)bytes_q8 * 1000000000 / constant_ns;
		return (uint64_t)(added - added * ((wide)elapsed_ns * 65536 / constant_ns) / 131072);
	}
	added = (wide)bytes_q8 * 1000000000 / elapsed_ns;
	return (uint64_t)(added * gone_q31 / 2147483648);
}

/* The power of two above a gap of K or more, 2^32 at most. After each 64 shorter ones it is half of it. */
static void remember(struct ref_ewma_words *ewma, uint64_t elapsed_ns)
{
	uint64_t above_ns = 1;

	if (elapsed_ns < (uint64_t)1 << ewma->constant_shift)
		above_ns = 0;
	while (above_ns != 0 && above_ns <= elapsed_ns && above_ns < (uint64_t)1 << 32)
		above_ns *= 2;
	ewma->packets_since++;
	if (above_ns >= ewma->long_gap_ns) {
		ewma->long_gap_ns = above_ns;
		ewma->packets_since = 0;
	} else if (ewma->packets_since == 64) {
		ewma->long_gap_ns /= 2;
		ewma->packets_since = 0;
	}
}

void ref_ewma_words_add(struct ref_ewma_words *ewma, uint64_t now_ns, uint64_t bytes_q8, uint64_t gaps)
{
	uint64_t elapsed_ns = ref_ewma_words_elapsed_ns(ewma, now_ns), most_ns = ewma->gap_ns_q4 / 4 + 65536, gaps_ns;
	wide rate = (wide)ewma->rate_Bps_q8 * left_q31(ewma, elapsed_ns) / 2147483648 + added_q8(ewma, elapsed_ns, bytes_q8);

	remember(ewma, elapsed_ns);
	ewma->rate_Bps_q8 = rate < (wide)1 << 45 ? (uint64_t)rate : ((uint64_t)1 << 45) - 1;
	/* The mean of 16 gaps in 2^-4: a gap as a number of ns is a sixteenth of itself. */
	ewma->gap_ns_q4 = ewma->gap_ns_q4 - ewma->gap_ns_q4 / 16 + (elapsed_ns < most_ns ? elapsed_ns : most_ns);
	gaps_ns = ewma->gap_ns_q4 * gaps / 16;
	if (ewma->gap_ns_q4 > UINT32_MAX)
		ewma->gap_ns_q4 = UINT32_MAX;
	if (gaps_ns >= (uint64_t)1 << ewma->constant_shift) {
		if (ewma->constant_shift < 32)
			ewma->constant_shift++;
	} else if (gaps_ns < (uint64_t)1 << (ewma->constant_shift - 2)) {
		if (ewma->constant_shift > 20)
			ewma->constant_shift--;
	}
	ewma->last_ns = now_ns;
}

uint64_t ref_ewma_words_rate_Bps(const struct ref_ewma_words *ewma, uint64_t now_ns)
{
	return (uint64_t)((wide)ewma->rate_Bps_q8 * left_q31(ewma, ref_ewma_words_elapsed_ns(ewma, now_ns)) / 2147483648 / 256);
}

int ref_ewma_words_has_stopped(const struct ref_ewma_words *ewma, uint64_t now_ns)
{
	uint64_t patience_ns = (uint64_t)1 << ewma->constant_shift;

	if (ewma->long_gap_ns > patience_ns)
		patience_ns = ewma->long_gap_ns;
	return ref_ewma_words_elapsed_ns(ewma, now_ns) >= 2 * patience_ns;
}
