/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_ewma.h"

#include <math.h>

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
