/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* ref_ewma.h: the estimator of ewma.h in real numbers and time without wraps. */
#ifndef REF_EWMA_H
#define REF_EWMA_H

#include <stdint.h>

struct ref_ewma {
	__int128 last_ns;
	long double rate_Bps;
	long double gap_ns;      /* mean */
	long double constant_ns; /* 2^20 ns at first, then between `gaps` and four times as many mean gaps where it may */
};

void ref_ewma_add(struct ref_ewma *ewma, __int128 now_ns, long double bytes, int gaps);

long double ref_ewma_rate_Bps(const struct ref_ewma *ewma, __int128 now_ns);

/* The same in whole numbers that are cut where ewma.h says so: what it promises bit for bit. Time wraps here. */
struct ref_ewma_words {
	uint64_t last_ns;
	uint64_t rate_Bps_q8;
	uint64_t gap_ns_q4;
	uint32_t constant_shift; /* K is 2^this ns */
	uint64_t long_gap_ns;    /* the longest gap of late, as the power of two above it, of those that were K or more; 0: none */
	int packets_since;
};

void ref_ewma_words_add(struct ref_ewma_words *ewma, uint64_t now_ns, uint64_t bytes_q8, uint64_t gaps);
uint64_t ref_ewma_words_rate_Bps(const struct ref_ewma_words *ewma, uint64_t now_ns);
/* Whether it has sent nothing for 2 K, or for twice its longest gap of late, both being powers of two. */
int ref_ewma_words_has_stopped(const struct ref_ewma_words *ewma, uint64_t now_ns);
/* Time since the last packet; none where the clock stepped back. */
uint64_t ref_ewma_words_elapsed_ns(const struct ref_ewma_words *ewma, uint64_t now_ns);

#endif /* REF_EWMA_H */
