/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include <stdlib.h>

#include "ref_wf2q_control.h"

void ref_control_start(struct ref_control *control, ref_int slide_ns, ref_int now_ns)
{
	ref_wf2q_start(&control->groups, slide_ns, now_ns);
	control->slide_at_ns = now_ns + slide_ns;
	control->monitor_at_ns = now_ns + control->monitor_ns;
	control->monitored_ns = now_ns;
	control->seen_count = 0;
	control->front_in = 0;
	control->front_out = 0;
	control->redistributions = 0;
}

void ref_control_see(struct ref_control *control, struct ref_seen seen)
{
	if (control->seen_count == REF_SEEN_MAX)
		abort();
	control->seen[control->seen_count++] = seen;
}

ref_int ref_control_bytes(const struct ref_control *control, int pipeline)
{
	ref_int bytes = 0;
	int i;

	for (i = 0; i < control->seen_count; i++)
		bytes += control->seen[i].pipeline == pipeline ? control->seen[i].bytes : 0;
	return bytes;
}

bool ref_control_most_vft_ns(const struct ref_control *control, ref_int *most_ns)
{
	int i;

	for (i = 0; i < control->seen_count; i++)
		*most_ns = i == 0 || control->seen[i].vft_ns > *most_ns ? control->seen[i].vft_ns : *most_ns;
	return control->seen_count > 0;
}

bool ref_control_least_vst_ns(const struct ref_control *control, ref_int *least_ns)
{
	bool has_back = false;
	int i;

	for (i = 0; i < control->seen_count; i++) {
		if (control->seen[i].pipeline <= 0)
			continue;
		*least_ns = !has_back || control->seen[i].vst_ns < *least_ns ? control->seen[i].vst_ns : *least_ns;
		has_back = true;
	}
	return has_back;
}

/* Packet schedule control. T[0] stays within T also where nothing is scheduled. */
static void ref_front(struct ref_control *control, ref_int now_ns)
{
	struct ref_wf2q *groups = &control->groups;
	ref_int front, back = 0, least;

	if (groups->window_ns[0] > groups->total_ns - 3)
		groups->window_ns[0] = groups->total_ns - 3;
	if (!control->schedules)
		return;
	front = ref_wf2q_front_delay_ns(control->alpha_ns, ref_wf2q_load_q16(control->front_in, control->front_out));
	if (ref_control_least_vst_ns(control, &least))
		back = ref_wf2q_back_delay_ns(groups, least, now_ns);
	ref_wf2q_front_window(groups, front, back, control->delta_q16, control->h_ns);
}

static uint32_t ref_bandwidth(const struct ref_control *control, int pipeline, ref_int elapsed_ns)
{
	ref_int bytes = ref_control_bytes(control, pipeline), full_nB = control->capacity_Bps[pipeline] * elapsed_ns, share;

	full_nB = full_nB < (ref_int)UINT32_MAX * 1000000000 ? full_nB : (ref_int)UINT32_MAX * 1000000000;
	share = full_nB / 65536 ? bytes * 1000000000 / (full_nB / 65536) : 65536;
	return share < 65536 ? (uint32_t)share : 65536;
}

static void ref_share(struct ref_wf2q *groups, const uint32_t b[REF_WF2Q_GROUPS])
{
	ref_int rest = groups->total_ns - groups->window_ns[0], unused = 3 * 65536 - b[1] - b[2] - b[3];
	int i;

	for (i = 1; i < REF_WF2Q_GROUPS; i++) {
		groups->window_ns[i] = unused ? rest * (65536 - b[i]) / unused : rest / 3;
		if (groups->window_ns[i] < 1)
			groups->window_ns[i] = 1;
	}
}

bool ref_control_tick(struct ref_control *control, ref_int now_ns)
{
	struct ref_wf2q *groups = &control->groups;
	uint32_t b[REF_WF2Q_GROUPS] = { 0 };
	ref_int most;
	int i;

	if (now_ns >= control->slide_at_ns) {
		ref_wf2q_slide(groups, now_ns);
		control->slide_at_ns = now_ns + groups->slide_ns;
	}
	if (now_ns < control->monitor_at_ns)
		return false;
	if (ref_control_most_vft_ns(control, &most))
		ref_wf2q_span(groups, groups->begin_ns, most + REF_WF2Q_GROUPS);
	ref_front(control, now_ns);
	for (i = 0; i < REF_WF2Q_GROUPS && control->redistributes; i++)
		b[i] = ref_bandwidth(control, i, now_ns - control->monitored_ns);
	control->redistributions += control->redistributes && ref_wf2q_is_uneven(b, control->variance_q16);
	if (!control->redistributes || ref_wf2q_is_uneven(b, control->variance_q16)) {
		if (control->schedules)
			ref_share(groups, b);
		else
			ref_wf2q_redistribute(groups, b);
	}
	control->monitored_ns = now_ns;
	control->monitor_at_ns = now_ns + control->monitor_ns;
	control->seen_count = 0;
	control->front_in = 0;
	control->front_out = 0;
	return true;
}

uint32_t ref_control_age(struct ref_compact *entries, uint32_t entry_count, uint32_t from, uint32_t count, ref_int now_ns)
{
	uint32_t i;

	for (i = 0; i < entry_count; i++) {
		if (i >= from && i - from < count)
			ref_compact_age(&entries[i], now_ns);
	}
	return (ref_int)from + count < entry_count ? from + count : 0;
}
