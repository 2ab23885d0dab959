/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* ref_wf2q_control.h: DragonKing's control plane without wraps; what was seen is a list. */
#ifndef REF_WF2Q_CONTROL_H
#define REF_WF2Q_CONTROL_H

#include "ref_wf2q.h"

#define REF_SEEN_MAX 20000

/* A packet that came (pipeline -1) or ended a pass. */
struct ref_seen {
	int pipeline;
	ref_int vst_ns;
	ref_int vft_ns;
	ref_int bytes;
};

struct ref_control {
	struct ref_wf2q groups;
	ref_int capacity_Bps[REF_WF2Q_GROUPS];
	ref_int monitor_ns;
	ref_int h_ns;
	ref_int alpha_ns;
	ref_int delta_q16;
	uint32_t variance_q16;
	bool redistributes;
	bool schedules;
	ref_int slide_at_ns;
	ref_int monitor_at_ns;
	ref_int monitored_ns;
	struct ref_seen seen[REF_SEEN_MAX];
	int seen_count;
	ref_int front_in;
	ref_int front_out;
	ref_int redistributions;
};

/* All parameters are set; the rest is made here. */
void ref_control_start(struct ref_control *control, ref_int slide_ns, ref_int now_ns);
void ref_control_see(struct ref_control *control, struct ref_seen seen);
bool ref_control_tick(struct ref_control *control, ref_int now_ns);

/* What was seen since the last control. False: nothing was, or not in a back pipeline. */
ref_int ref_control_bytes(const struct ref_control *control, int pipeline);
bool ref_control_most_vft_ns(const struct ref_control *control, ref_int *most_ns);
bool ref_control_least_vst_ns(const struct ref_control *control, ref_int *least_ns);

/* Ages so many entries from one on; where to go on. */
uint32_t ref_control_age(struct ref_compact *entries, uint32_t entry_count, uint32_t from, uint32_t count, ref_int now_ns);

#endif /* REF_WF2Q_CONTROL_H */
