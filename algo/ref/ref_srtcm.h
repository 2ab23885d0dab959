/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * ref_srtcm.h: RFC 2697 with its two token counters.
 *
 * Tokens are counted in ticks (the time in which CIR brings them), so that both refill and packets are whole numbers.
 * The counters are turned into finish times only to be compared: `words` is what a host would have stored.
 */
#ifndef PENSTOCK_REF_SRTCM_H
#define PENSTOCK_REF_SRTCM_H

#include "ref_limiter.h"

struct ref_rfc2697 {
	uint32_t rate;
	bool color_aware;
	ref_int cbs, ebs;
	ref_int tc, te;    /* tokens at last_ns */
	ref_int last_ns;
	ref_int words[2];  /* when C, and when C and E, would be full; as of the last packet that was not red */
};

/* Starts full; `word` is both words of the state before the first packet. */
void ref_rfc2697_init(struct ref_rfc2697 *meter, const struct pst_profile *profile, uint32_t rate, ref_int now_ns,
		      ref_int word);
enum pst_color ref_rfc2697_take(struct ref_rfc2697 *meter, ref_int now_ns, uint32_t bytes, enum pst_color color_in);

/* The depth of a bucket, at least so many packets. */
ref_int ref_bucket_depth(uint32_t rate, uint64_t ticks, uint32_t bytes, int packets, uint32_t mtu_bytes);

#endif /* PENSTOCK_REF_SRTCM_H */
