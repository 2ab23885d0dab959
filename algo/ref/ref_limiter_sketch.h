/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Slow form of limiter_sketch.h: every user's last finish time is known, and a word is the latest of all who are told to meet in it. Beside it, a
 * limiter for each user alone, charged with what passed of that user, and nothing else. Times never wrap (ref_limiter.h).
 */
#ifndef PENSTOCK_REF_LIMITER_SKETCH_H
#define PENSTOCK_REF_LIMITER_SKETCH_H

#include "ref_limiter.h"

#define REF_LIMITER_SKETCH_USERS 64
#define REF_LIMITER_SKETCH_ROWS 4

struct ref_limiter_sketch {
	ref_int last[REF_LIMITER_SKETCH_USERS];  /* where its last packet that passed brought its limiter to */
	ref_int alone[REF_LIMITER_SKETCH_USERS]; /* a limiter of its own */
	uint32_t columns[REF_LIMITER_SKETCH_ROWS][REF_LIMITER_SKETCH_USERS]; /* where the code under test puts each user */
	uint32_t rows;
	uint32_t count;
};

/* Nobody has sent yet: all are idle. */
void ref_limiter_sketch_start(struct ref_limiter_sketch *sketch, uint32_t rows, uint32_t count, ref_int now_ns);
/* The finish time of a user's limiter: the least over the rows of the latest of all who meet it there. */
ref_int ref_limiter_sketch_vft(const struct ref_limiter_sketch *sketch, uint32_t user);
/* Is a user met in each row by somebody else whose limiter is fuller than the user's own packets make it, and than an idle one? */
bool ref_limiter_sketch_is_crowded(const struct ref_limiter_sketch *sketch, uint32_t user, ref_int idle_ticks);
/* A packet of a user. */
struct ref_limiter_result ref_limiter_sketch_take(struct ref_limiter_sketch *sketch, const struct ref_limiter_profile *profile, uint32_t user,
						  ref_int now_ns, uint32_t bytes);

#endif /* PENSTOCK_REF_LIMITER_SKETCH_H */
