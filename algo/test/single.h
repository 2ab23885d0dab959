/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* single.h: the smallest plane: one link, one class, one limit. */
#ifndef PENSTOCK_TEST_SINGLE_H
#define PENSTOCK_TEST_SINGLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <penstock/pipeline.h>

/* One link, one class that takes everything, its limit. Points into itself: it must stay where it is. */
struct single {
	struct pst_plane plane;
	struct pst_link link;
	struct pst_class class;
	struct pst_profile profile;
	struct pst_limit limit;
	struct pst_meter_state meter;
};

/* Hours apart, so that each round finds an idle limiter. */
static inline uint64_t single_round_ns(uint32_t round)
{
	return (UINT64_C(1) + round) * 3600 * PST_NSEC_PER_SEC;
}

static inline void single_init(struct single *one, const struct pst_profile *profile, uint32_t rate)
{
	memset(one, 0, sizeof(*one));
	one->profile = *profile;
	one->limit.rate = rate;
	one->limit.state = profile->meter == PST_METER_WINDOW ? pst_limiter_idle(single_round_ns(0)) : 0;
	one->meter = pst_meter_idle(single_round_ns(0));
	one->plane = (struct pst_plane){
		.links = &one->link, .link_count = 1, .classes = &one->class, .class_count = 1,
		.profiles = &one->profile, .profile_count = 1, .limits = &one->limit, .limit_count = 1,
		.meters = &one->meter, .meter_count = 1, .room_chunks = UINT32_MAX, .shapes = true,
	};
}

static inline struct pst_decision single_decide(struct single *one, const struct pst_packet *packet, uint32_t random)
{
	struct pst_decision decision;

	memset(&decision, 0x5a, sizeof(decision));
	pst_pipeline_decide(&decision, &one->plane, packet, single_round_ns(0), random);
	return decision;
}

#endif /* PENSTOCK_TEST_SINGLE_H */
