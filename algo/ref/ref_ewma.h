/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* ref_ewma.h: the estimator of ewma.h in real numbers and time without wraps. */
#ifndef REF_EWMA_H
#define REF_EWMA_H

struct ref_ewma {
	__int128 last_ns;
	long double rate_Bps;
	long double gap_ns;      /* mean */
	long double constant_ns; /* 2^20 ns at first, then between `gaps` and four times as many mean gaps where it may */
};

void ref_ewma_add(struct ref_ewma *ewma, __int128 now_ns, long double bytes, int gaps);

long double ref_ewma_rate_Bps(const struct ref_ewma *ewma, __int128 now_ns);

#endif /* REF_EWMA_H */
