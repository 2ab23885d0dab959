/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * wf2q_control.h: DragonKing's control plane: what the pipelines did since the last time goes in, where the groups end comes out.
 *
 * What         every T_slide   T_beg and all D[i] go on (packet sliding)
 *              every T_b       T      = from T_beg to the last finish time that was seen                    (D7)
 *                              beta   = W0 - d, T[0] += delta * beta when |beta| > h                         packet schedule control
 *                              B[i]   = bytes of pipeline i / (T_b * capacity)
 *                              some B[i] far from the mean: T[i] = (T - T[0]) (1 - B[i]) / sum (1 - B[j])    packet group control
 *              when called     each compact entry that lies behind now is taken along                        limiter control (D5)
 * Source       DragonKing (wf2q.h), section III-C, III-D and IV ("the Packet Schedule Control module first performs the VST-aware T0 window
 *              optimization, and the Packet Group Control module subsequently ..."). Where the paper is silent or cannot be followed:
 *              D7  T is "the difference between the minimal VFT and the max VFT", but windows are laid from T_beg on. A limit whose packets take
 *                  longer than T (1500 B at 60 kbit/s: 200 ms) has finish times that all lie far behind T_beg, close together: T[0], which is
 *                  below T, would never reach them. So T is measured from T_beg, and to N ns behind the last of them: T[0] can reach it, too.
 *              D8  "we replace estimation of T0": the other windows share what T[0] leaves of T. Without scheduling, equation 1 is for all; without
 *                  redistribution they share alike.
 *              D9  Without a packet since the last time, T stays: nothing seen is no news.
 * Units        _ns; _q16 1/65536; bytes; rates in bytes a second.
 * Ranges       as wf2q.h. A pipeline passes less than 2^32 bytes in a T_b: 100 Gbit/s and 343 ms. T_b and T_slide are 1 ns at least.
 * Invariants   I1  each timer is due a period after it last went off; one that is late goes off once.
 *              I2  after a control with scheduling 1 <= T[0] <= T - (N - 1); when windows were shared, they sum to T, to within N ns.
 *              I3  without scheduling T[0] is equation 1's; without redistribution the other windows are alike, to within 1 ns.
 *              I4  the reading is empty after it was used, and unchanged before.
 *              I5  only differences of times matter, wraps included.
 * Overflow     T < 2^46 times 2^16 is below 2^62; bytes < 2^32 times 10^9 are below 2^62 (nanobytes.h).
 * Concurrency  none: one control loop owns the state; the data plane may count into another reading meanwhile, as long as it is handed over whole.
 * Not done     limits are added, changed and removed by the host's table. There is no timer for compact entries: their host calls
 *              pst_wf2q_control_age so that each of them is aged within 68 s.
 */
#ifndef PENSTOCK_WF2Q_CONTROL_H
#define PENSTOCK_WF2Q_CONTROL_H

#include "nanobytes.h"
#include "wf2q.h"

struct pst_wf2q_control_params {
	uint64_t capacity_Bps[PST_WF2Q_GROUPS]; /* B_cap */
	uint64_t monitor_ns;                    /* T_b */
	uint64_t slide_ns;                      /* T_slide */
	uint64_t h_ns;
	uint32_t variance_q16;
	uint32_t alpha_ns;
	int32_t delta_q16;
	bool redistributes; /* the ablations of section V-G switch one of them off */
	bool schedules;
};

struct pst_wf2q_control_profile {
	struct pst_flow_profile capacity[PST_WF2Q_GROUPS];
	uint64_t monitor_ns;
	uint64_t slide_ns;
	uint64_t h_ns;
	uint32_t variance_q16;
	uint32_t alpha_ns;
	int32_t delta_q16;
	bool redistributes;
	bool schedules;
};

/* statis_table: what was counted since the last control. Zeroed memory is an empty one. */
struct pst_wf2q_reading {
	uint64_t least_vst_ns;           /* of what passed a back pipeline; when has_back */
	uint64_t most_vft_ns;            /* of what came or passed anywhere; when has_any */
	uint32_t bytes[PST_WF2Q_GROUPS]; /* that passed each pipeline */
	uint32_t front_in;               /* packets that the front pipeline received */
	uint32_t front_out;              /* packets that it sent */
	bool has_back;
	bool has_any;
};

struct pst_wf2q_control_state {
	struct pst_wf2q groups;
	uint64_t slide_at_ns;   /* when the timers go off next */
	uint64_t monitor_at_ns;
	uint64_t monitored_ns;  /* since when the reading counts */
	uint64_t redistributions;
};

/* ---- the data plane's side ---- */

/* A packet came, or passed pipeline `group`: which of them says who calls. */
PST_INLINE void pst_wf2q_reading_see(struct pst_wf2q_reading *reading, uint64_t vft_ns)
{
	if (!reading->has_any || (int64_t)(vft_ns - reading->most_vft_ns) > 0)
		reading->most_vft_ns = vft_ns;
	reading->has_any = true;
}

PST_INLINE void pst_wf2q_reading_pass(struct pst_wf2q_reading *reading, uint32_t group, uint64_t vst_ns, uint32_t bytes)
{
	reading->bytes[group] += bytes < UINT32_MAX - reading->bytes[group] ? bytes : UINT32_MAX - reading->bytes[group];
	if (group == 0)
		return;
	if (!reading->has_back || (int64_t)(vst_ns - reading->least_vst_ns) < 0)
		reading->least_vst_ns = vst_ns;
	reading->has_back = true;
}

/* ---- the control plane's side ---- */

PST_INLINE void pst_wf2q_control_compile(struct pst_wf2q_control_profile *out, const struct pst_wf2q_control_params *params)
{
	uint32_t i;

	for (i = 0; i < PST_WF2Q_GROUPS; i++)
		pst_flow_compile(&out->capacity[i], params->capacity_Bps[i], UINT32_MAX);
	out->monitor_ns = params->monitor_ns ? params->monitor_ns : 1;
	out->slide_ns = params->slide_ns ? params->slide_ns : 1;
	out->h_ns = params->h_ns;
	out->variance_q16 = params->variance_q16;
	out->alpha_ns = params->alpha_ns;
	out->delta_q16 = params->delta_q16;
	out->redistributes = params->redistributes;
	out->schedules = params->schedules;
}

PST_INLINE void pst_wf2q_control_start(const struct pst_wf2q_control_profile *profile, struct pst_wf2q_control_state *state,
				       uint64_t now_ns)
{
	pst_wf2q_start(&state->groups, profile->slide_ns, now_ns);
	state->slide_at_ns = now_ns + profile->slide_ns;
	state->monitor_at_ns = now_ns + profile->monitor_ns;
	state->monitored_ns = now_ns;
	state->redistributions = 0;
}

/* When there is something to do next. */
PST_INLINE uint64_t pst_wf2q_control_next_ns(const struct pst_wf2q_control_state *state)
{
	return (int64_t)(state->slide_at_ns - state->monitor_at_ns) < 0 ? state->slide_at_ns : state->monitor_at_ns;
}

/* B[i], normalised. */
PST_INLINE uint32_t pst_wf2q_bandwidth_q16(const struct pst_flow_profile *capacity, uint32_t bytes, uint64_t elapsed_ns)
{
	uint64_t full_nB = pst_flow_nB(capacity, elapsed_ns) / PST_Q16_ONE;
	uint64_t bandwidth_q16 = full_nB ? pst_nanobytes(bytes) / full_nB : PST_Q16_ONE;

	return bandwidth_q16 < PST_Q16_ONE ? (uint32_t)bandwidth_q16 : PST_Q16_ONE;
}

/* Equation 1 for the back windows: they share what T[0] leaves of T (D8). */
PST_INLINE void pst_wf2q_control_share(struct pst_wf2q *groups, const uint32_t *bandwidth_q16)
{
	uint64_t rest_ns = groups->total_ns - groups->window_ns[0], sum_q16 = 0, window_ns;
	uint32_t i;

	for (i = 1; i < PST_WF2Q_GROUPS; i++)
		sum_q16 += PST_Q16_ONE - bandwidth_q16[i];
	for (i = 1; i < PST_WF2Q_GROUPS; i++) {
		window_ns = rest_ns / (PST_WF2Q_GROUPS - 1);
		if (sum_q16)
			window_ns = rest_ns * (PST_Q16_ONE - bandwidth_q16[i]) / sum_q16;
		groups->window_ns[i] = window_ns ? window_ns : 1;
	}
	pst_wf2q_lay(groups);
}

/* Packet schedule control: equations 2-6. T[0] stays within T also when T became less. */
PST_INLINE void pst_wf2q_control_front(const struct pst_wf2q_control_profile *profile, struct pst_wf2q *groups,
				       const struct pst_wf2q_reading *reading, uint64_t now_ns)
{
	uint64_t most_ns = groups->total_ns - (PST_WF2Q_GROUPS - 1), front_ns, back_ns;

	if (groups->window_ns[0] > most_ns)
		groups->window_ns[0] = most_ns;
	if (!profile->schedules)
		return;
	front_ns = pst_wf2q_front_delay_ns(profile->alpha_ns, pst_wf2q_load_q16(reading->front_in, reading->front_out));
	back_ns = reading->has_back ? pst_wf2q_back_delay_ns(groups, reading->least_vst_ns, now_ns) : 0;
	pst_wf2q_front_window(groups, front_ns, back_ns, profile->delta_q16, profile->h_ns);
}

/* Packet group control: Algorithm 1, or windows that are alike. */
PST_INLINE void pst_wf2q_control_back(const struct pst_wf2q_control_profile *profile, struct pst_wf2q_control_state *state,
				      const struct pst_wf2q_reading *reading, uint64_t elapsed_ns)
{
	uint32_t bandwidth_q16[PST_WF2Q_GROUPS] = { 0 }, i;

	for (i = 0; i < PST_WF2Q_GROUPS && profile->redistributes; i++)
		bandwidth_q16[i] = pst_wf2q_bandwidth_q16(&profile->capacity[i], reading->bytes[i], elapsed_ns);
	if (profile->redistributes && !pst_wf2q_is_uneven(bandwidth_q16, profile->variance_q16)) {
		pst_wf2q_lay(&state->groups);
		return;
	}
	if (profile->redistributes)
		state->redistributions++;
	if (profile->schedules)
		pst_wf2q_control_share(&state->groups, bandwidth_q16);
	else
		pst_wf2q_redistribute(&state->groups, bandwidth_q16);
}

/* Does what is due by now. Returns whether the reading was used; then it is empty. */
PST_INLINE bool pst_wf2q_control_tick(const struct pst_wf2q_control_profile *profile, struct pst_wf2q_control_state *state,
				      struct pst_wf2q_reading *reading, uint64_t now_ns)
{
	static const struct pst_wf2q_reading none = { 0, 0, { 0 }, 0, 0, false, false };
	struct pst_wf2q *groups = &state->groups;

	if ((int64_t)(now_ns - state->slide_at_ns) >= 0) {
		pst_wf2q_slide(groups, now_ns);
		state->slide_at_ns = now_ns + profile->slide_ns;
	}
	if ((int64_t)(now_ns - state->monitor_at_ns) < 0)
		return false;
	if (reading->has_any)
		pst_wf2q_span(groups, groups->begin_ns, reading->most_vft_ns + PST_WF2Q_GROUPS);
	pst_wf2q_control_front(profile, groups, reading, now_ns);
	pst_wf2q_control_back(profile, state, reading, now_ns - state->monitored_ns);
	state->monitored_ns = now_ns;
	state->monitor_at_ns = now_ns + profile->monitor_ns;
	*reading = none;
	return true;
}

/* Limiter control: entries `from` and on, at most `count` of them, are aged. Returns where to go on; 0 when all were. */
PST_INLINE uint32_t pst_wf2q_control_age(struct pst_compact_entry *entries, uint32_t entry_count, uint32_t from, uint32_t count,
					 uint64_t now_ns)
{
	for (; count > 0 && from < entry_count; count--)
		pst_compact_age(&entries[from++], now_ns);
	return from < entry_count ? from : 0;
}

#endif /* PENSTOCK_WF2Q_CONTROL_H */
