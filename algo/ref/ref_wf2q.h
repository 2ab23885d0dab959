/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* ref_wf2q.h: DragonKing's groups and entries in fractions, without wraps. */
#ifndef REF_WF2Q_H
#define REF_WF2Q_H

#include "ref_fixed.h"

#define REF_WF2Q_GROUPS 4

struct ref_wf2q {
	ref_int begin_ns;
	ref_int slide_ns;
	ref_int total_ns;
	ref_int window_ns[REF_WF2Q_GROUPS];
};

ref_int ref_wf2q_end_ns(const struct ref_wf2q *groups, int group);
int ref_wf2q_gate(const struct ref_wf2q *groups, ref_int vft_ns);
void ref_wf2q_slide(struct ref_wf2q *groups, ref_int now_ns);
bool ref_wf2q_is_uneven(const uint32_t bandwidth_q16[REF_WF2Q_GROUPS], uint32_t variance_q16);
void ref_wf2q_redistribute(struct ref_wf2q *groups, const uint32_t bandwidth_q16[REF_WF2Q_GROUPS]);
void ref_wf2q_front_window(struct ref_wf2q *groups, ref_int front_delay_ns, ref_int back_delay_ns, ref_int delta_q16,
			   ref_int h_ns);

/* The code's rate, times 4, of the code that is nearest to a rate. */
ref_int ref_compact_rate_q2(uint64_t rate_Bps);

#endif /* REF_WF2Q_H */
