/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* ref_wf2q.h: DragonKing's groups and entries in fractions, without wraps. */
#ifndef REF_WF2Q_H
#define REF_WF2Q_H

#include "ref_fixed.h"

#define REF_WF2Q_GROUPS 4

enum ref_wf2q_verdict { REF_WF2Q_SEND, REF_WF2Q_RECIRCULATE, REF_WF2Q_DROP };

struct ref_wf2q {
	ref_int begin_ns;
	ref_int slide_ns;
	ref_int total_ns;
	ref_int window_ns[REF_WF2Q_GROUPS];
};

void ref_wf2q_start(struct ref_wf2q *groups, ref_int slide_ns, ref_int now_ns);
ref_int ref_wf2q_end_ns(const struct ref_wf2q *groups, int group);
int ref_wf2q_gate(const struct ref_wf2q *groups, ref_int vft_ns);
enum ref_wf2q_verdict ref_wf2q_schedule(int group, ref_int vst_ns, ref_int now_ns, bool has_room);
void ref_wf2q_slide(struct ref_wf2q *groups, ref_int now_ns);
void ref_wf2q_span(struct ref_wf2q *groups, ref_int least_vft_ns, ref_int most_vft_ns);
bool ref_wf2q_is_uneven(const uint32_t bandwidth_q16[REF_WF2Q_GROUPS], uint32_t variance_q16);
void ref_wf2q_redistribute(struct ref_wf2q *groups, const uint32_t bandwidth_q16[REF_WF2Q_GROUPS]);

/* X, W0 and d of equations 2 to 4, and equation 6. */
ref_int ref_wf2q_load_q16(ref_int packets_in, ref_int packets_out);
ref_int ref_wf2q_front_delay_ns(ref_int alpha_ns, ref_int load_q16);
ref_int ref_wf2q_back_delay_ns(const struct ref_wf2q *groups, ref_int least_vst_ns, ref_int now_ns);
void ref_wf2q_front_window(struct ref_wf2q *groups, ref_int front_delay_ns, ref_int back_delay_ns, ref_int delta_q16,
			   ref_int h_ns);

/* alpha of `count` samples: one division of exact sums. */
ref_int ref_wf2q_fit_alpha_ns(const uint32_t *load_q16, const uint32_t *front_delay_ns, int count);

/* The code that is nearest to a rate, and the rate of a code, times 4. */
uint16_t ref_compact_code(uint64_t rate_Bps);
ref_int ref_compact_rate_q2(uint16_t code);

/* An entry's last finish time in 64 ns, since the clock began. */
struct ref_compact {
	uint16_t code;
	ref_int lft;
};

/* False when it would be too long. */
bool ref_compact_take(struct ref_compact *entry, ref_int now_ns, ref_int bytes, ref_int *wait_ns);
void ref_compact_age(struct ref_compact *entry, ref_int now_ns);

#endif /* REF_WF2Q_H */
