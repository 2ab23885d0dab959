/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* ref_circulation.h: circulating packets as one list, in the order in which they began their passes; every question searches all of it. */
#ifndef REF_CIRCULATION_H
#define REF_CIRCULATION_H

#include "ref_wf2q_control.h"

#define REF_CIRCULATING_MAX 512

struct ref_circulating {
	ref_int vst_ns;
	ref_int vft_ns;
	ref_int end_ns;
	ref_int bytes;
	int pipeline;
	int tag;
};

struct ref_circulation {
	struct ref_control control;
	ref_int loop_ns;
	ref_int room_bytes[REF_WF2Q_GROUPS];
	int packets_max;
	ref_int busy_q24[REF_WF2Q_GROUPS]; /* until when a pipeline's capacity is taken, in 2^-24 ns */
	ref_int passed_bytes[REF_WF2Q_GROUPS];
	struct ref_circulating packets[REF_CIRCULATING_MAX];
	int count;
};

/* Parameters are set, and the control is started. */
void ref_circulation_start(struct ref_circulation *circulation, ref_int now_ns);
bool ref_circulation_put(struct ref_circulation *circulation, struct ref_circulating packet, ref_int now_ns);

/* True and what was sent, at its end_ns; false when nothing is until then. */
bool ref_circulation_run(struct ref_circulation *circulation, ref_int until_ns, struct ref_circulating *sent);

ref_int ref_circulation_held(const struct ref_circulation *circulation, int pipeline);

#endif /* REF_CIRCULATION_H */
