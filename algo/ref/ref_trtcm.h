/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * ref_trtcm.h: RFC 2698 and RFC 4115 with their two token counters.
 *
 * Each counter is in ticks of its own rate, as in ref_srtcm.h: bucket 0 is C, bucket 1 is P (RFC 2698) or E (RFC 4115).
 */
#ifndef PENSTOCK_REF_TRTCM_H
#define PENSTOCK_REF_TRTCM_H

#include "ref_srtcm.h"

struct ref_trtcm {
	uint8_t meter; /* PST_METER_RFC2698 or PST_METER_RFC4115 */
	bool color_aware;
	uint32_t rate[2];
	ref_int depth[2];
	ref_int tokens[2]; /* at last_ns */
	ref_int last_ns;
	ref_int words[2];  /* when each would be full; as of the last packet that was not red */
};

/* Starts full; profile->meter says which RFC; `word` is both words of the state before the first packet. */
void ref_trtcm_init(struct ref_trtcm *meter, const struct pst_profile *profile, uint32_t rate, ref_int now_ns,
		    ref_int word);
enum pst_color ref_trtcm_take(struct ref_trtcm *meter, ref_int now_ns, uint32_t bytes, enum pst_color color_in);

#endif /* PENSTOCK_REF_TRTCM_H */
