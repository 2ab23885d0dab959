/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * ref_pipeline.h: the per-packet program as tables of what must happen, over the other references.
 */
#ifndef PENSTOCK_REF_PIPELINE_H
#define PENSTOCK_REF_PIPELINE_H

#include "ref_classify.h"
#include "ref_trtcm.h"

/* A limit with the state of whichever meter it has. */
struct ref_limit {
	struct pst_profile profile;
	uint32_t rate;
	ref_int vft_ticks;
	struct ref_rfc2697 srtcm;
	struct ref_trtcm trtcm;
};

/* A packet and its moment; `now_ns` never wraps. */
struct ref_arrival {
	ref_int now_ns;
	uint32_t length; /* of the IP packet */
	uint32_t random;
	uint8_t tos;
	bool is_ip;
	uint8_t malformed; /* reason, or PST_REASON_NONE */
	/* Of whoever holds packets: */
	bool is_absent;
	bool is_full;
	bool is_waiting; /* packets of this limit are there still */
};

/* Limits are numbered; a class has one or PST_NONE, and a row of the policy (ref_classify.h) is the number of one. */
struct ref_plane {
	struct ref_policy policy;
	const struct pst_link *links; /* overhead and actions */
	const uint32_t *class_limits;
	struct ref_limit *limits;
};

/* A limit whose meter was never used; `word` is every word of its state. */
void ref_limit_init(struct ref_limit *limit, const struct pst_profile *profile, uint32_t rate, ref_int now_ns,
		    ref_int word);

/* The words of the state as a host stores them. The window has one: the second is 0. */
void ref_limit_words(const struct ref_limit *limit, uint64_t words[2]);

/* Decides, and charges. `slot` and `limit_index` of the decision are both the number of the limit. */
struct pst_decision ref_pipeline_decide(struct ref_plane *plane, const struct pst_key *key,
					const struct ref_arrival *arrival);

#endif /* PENSTOCK_REF_PIPELINE_H */
