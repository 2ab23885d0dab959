/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_wf2q.h"

static ref_int ref_one(uint32_t bandwidth_q16)
{
	return bandwidth_q16 < 65536 ? bandwidth_q16 : 65536;
}

void ref_wf2q_start(struct ref_wf2q *groups, ref_int slide_ns, ref_int now_ns)
{
	*groups = (struct ref_wf2q){ now_ns, slide_ns, 4 * slide_ns, { slide_ns, slide_ns, slide_ns, slide_ns } };
}

ref_int ref_wf2q_end_ns(const struct ref_wf2q *groups, int group)
{
	return groups->window_ns[group] + (group ? ref_wf2q_end_ns(groups, group - 1) : groups->begin_ns);
}

/* From the last group on: as long as the window before it ends after the finish time, it is not this one. */
int ref_wf2q_gate(const struct ref_wf2q *groups, ref_int vft_ns)
{
	int group = REF_WF2Q_GROUPS - 1;

	while (group > 0 && vft_ns < ref_wf2q_end_ns(groups, group - 1))
		group--;
	return group;
}

/* Sent, or what there is room for. */
enum ref_wf2q_verdict ref_wf2q_schedule(int group, ref_int vst_ns, ref_int now_ns, bool has_room)
{
	bool is_sent = group == 0 && vst_ns <= now_ns;

	return is_sent ? REF_WF2Q_SEND : has_room ? REF_WF2Q_RECIRCULATE : REF_WF2Q_DROP;
}

void ref_wf2q_slide(struct ref_wf2q *groups, ref_int now_ns)
{
	groups->begin_ns += groups->slide_ns;
	if (groups->begin_ns < now_ns)
		groups->begin_ns = now_ns;
	if (groups->begin_ns > now_ns + groups->slide_ns)
		groups->begin_ns = now_ns + groups->slide_ns;
}

void ref_wf2q_span(struct ref_wf2q *groups, ref_int least_vft_ns, ref_int most_vft_ns)
{
	ref_int span = most_vft_ns - least_vft_ns;

	if (span < 4 * groups->slide_ns)
		span = 4 * groups->slide_ns;
	groups->total_ns = span < (ref_int)1 << 46 ? span : (ref_int)1 << 46;
}

/* |4 B - sum| >= 4 variance: the mean without a division. */
bool ref_wf2q_is_uneven(const uint32_t b[REF_WF2Q_GROUPS], uint32_t variance_q16)
{
	ref_int sum = ref_one(b[0]) + ref_one(b[1]) + ref_one(b[2]) + ref_one(b[3]);
	bool is_uneven = false;
	int i;

	for (i = 0; i < REF_WF2Q_GROUPS; i++) {
		ref_int away = 4 * ref_one(b[i]) - sum;

		is_uneven |= away >= 4 * (ref_int)variance_q16 || -away >= 4 * (ref_int)variance_q16;
	}
	return is_uneven;
}

void ref_wf2q_redistribute(struct ref_wf2q *groups, const uint32_t b[REF_WF2Q_GROUPS])
{
	ref_int busy = ref_one(b[0]) + ref_one(b[1]) + ref_one(b[2]) + ref_one(b[3]), left = 4 * 65536 - busy;
	int i;

	for (i = 0; i < REF_WF2Q_GROUPS; i++) {
		groups->window_ns[i] = left ? groups->total_ns * (65536 - ref_one(b[i])) / left : groups->total_ns / 4;
		if (groups->window_ns[i] == 0)
			groups->window_ns[i] = 1;
	}
}

/* rho is cut to 1 - 1/256; each step is rounded down to 1/65536 as published figures are compared. */
ref_int ref_wf2q_load_q16(ref_int packets_in, ref_int packets_out)
{
	ref_int rho = packets_out ? packets_in * 65536 / packets_out : 65535;

	if (packets_in == 0)
		rho = 0;
	if (rho > 65536 - 256)
		rho = 65536 - 256;
	return rho * 65536 / (65536 - rho);
}

ref_int ref_wf2q_front_delay_ns(ref_int alpha_ns, ref_int load_q16)
{
	return alpha_ns * load_q16 / 65536;
}

ref_int ref_wf2q_back_delay_ns(const struct ref_wf2q *groups, ref_int least_vst_ns, ref_int now_ns)
{
	ref_int late = now_ns + groups->slide_ns - least_vst_ns;

	return late > 0 ? late : 0;
}

/* Steps round towards 0, as the product of the magnitudes does. */
void ref_wf2q_front_window(struct ref_wf2q *groups, ref_int front_delay_ns, ref_int back_delay_ns, ref_int delta_q16,
			   ref_int h_ns)
{
	const ref_int most = (ref_int)1 << 40;
	ref_int beta = (front_delay_ns < most ? front_delay_ns : most) - (back_delay_ns < most ? back_delay_ns : most);

	if (beta <= h_ns && -beta <= h_ns)
		return;
	groups->window_ns[0] += beta * delta_q16 / 65536;
	if (groups->window_ns[0] > groups->total_ns - 3)
		groups->window_ns[0] = groups->total_ns - 3;
	if (groups->window_ns[0] < 1)
		groups->window_ns[0] = 1;
}

/* Loads count in 1/4096. */
ref_int ref_wf2q_fit_alpha_ns(const uint32_t *load_q16, const uint32_t *front_delay_ns, int count)
{
	ref_int xw = 0, xx = 0, alpha;
	int i;

	for (i = 0; i < count; i++) {
		ref_int load_q12 = load_q16[i] / 16;

		xw += load_q12 * front_delay_ns[i];
		xx += load_q12 * load_q12;
	}
	alpha = xx ? 4096 * xw / xx : 0;
	return alpha < UINT32_MAX ? alpha : UINT32_MAX;
}

ref_int ref_compact_rate_q2(uint16_t code)
{
	return (ref_int)(2048 + code % 2048) << code / 2048;
}

/* All codes, one after the other. Of two that are equally near, the higher. */
uint16_t ref_compact_code(uint64_t rate_Bps)
{
	ref_int wanted = (ref_int)rate_Bps * 4, nearest = -1;
	int code, best = 0;

	for (code = 0; code <= UINT16_MAX; code++) {
		ref_int rate = ref_compact_rate_q2((uint16_t)code);
		ref_int off = rate < wanted ? wanted - rate : rate - wanted;

		if (nearest < 0 || off <= nearest) {
			best = code;
			nearest = off;
		}
	}
	return (uint16_t)best;
}

/* 64 ns are 1 / 15625000 of a second. A packet's time is rounded up to whole ones. */
bool ref_compact_take(struct ref_compact *entry, ref_int now_ns, ref_int bytes, ref_int *wait_ns)
{
	ref_int now = now_ns / 64, start = entry->lft > now ? entry->lft : now;
	ref_int cost = -ref_divide_down(-4 * bytes * 15625000, ref_compact_rate_q2(entry->code));

	if (start - now > 1 << 30 || cost > 1 << 30)
		return false;
	*wait_ns = (start - now) * 64;
	entry->lft = start + cost;
	return true;
}

void ref_compact_age(struct ref_compact *entry, ref_int now_ns)
{
	if (entry->lft < now_ns / 64)
		entry->lft = now_ns / 64;
}
