/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include <stdlib.h>

#include "ref_wf2q_control.h"

void ref_control_start(struct ref_control *control, ref_int slide_ns, ref_int now_ns)
{
	int i;

	control->groups = (struct ref_wf2q){ now_ns, slide_ns, 4 * slide_ns, { 0 } };
	for (i = 0; i < REF_WF2Q_GROUPS; i++)
		control->groups.window_ns[i] = slide_ns;
	control->slide_at_ns = now_ns + slide_ns;
	control->monitor_at_ns = now_ns + control->monitor_ns;
	control->monitored_ns = now_ns;
	control->seen_count = 0;
	control->front_in = 0;
	control->front_out = 0;
}

void ref_control_see(struct ref_control *control, struct ref_seen seen)
{
	if (control->seen_count == REF_SEEN_MAX)
		abort();
	control->seen[control->seen_count++] = seen;
}

static void ref_span(struct ref_control *control)
{
	ref_int span = 4 * control->groups.slide_ns;
	int i;

	for (i = 0; i < control->seen_count; i++) {
		if (control->seen[i].vft_ns + REF_WF2Q_GROUPS - control->groups.begin_ns > span)
			span = control->seen[i].vft_ns + REF_WF2Q_GROUPS - control->groups.begin_ns;
	}
	control->groups.total_ns = span < (ref_int)1 << 46 ? span : (ref_int)1 << 46;
}

/* W0 by section IV, with rho cut to 1 - 1/256, each step rounded down to 1/65536 as published figures are compared. */
static ref_int ref_front_delay(const struct ref_control *control)
{
	ref_int rho = control->front_out ? control->front_in * 65536 / control->front_out : 65535;

	if (control->front_in == 0)
		rho = 0;
	if (rho > 65536 - 256)
		rho = 65536 - 256;
	return control->alpha_ns * (rho * 65536 / (65536 - rho)) / 65536;
}

/* How late the first that passed a back pipeline will be at the next slide. */
static ref_int ref_back_delay(const struct ref_control *control, ref_int now_ns)
{
	ref_int late = 0;
	int i;

	for (i = 0; i < control->seen_count; i++) {
		ref_int by = now_ns + control->groups.slide_ns - control->seen[i].vst_ns;

		if (control->seen[i].pipeline > 0 && by > late)
			late = by;
	}
	return late;
}

static uint32_t ref_bandwidth(const struct ref_control *control, int pipeline, ref_int elapsed_ns)
{
	ref_int bytes = 0, full_nB = control->capacity_Bps[pipeline] * elapsed_ns, share;
	int i;

	for (i = 0; i < control->seen_count; i++)
		bytes += control->seen[i].pipeline == pipeline ? control->seen[i].bytes : 0;
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
	int i;

	if (now_ns >= control->slide_at_ns) {
		ref_wf2q_slide(groups, now_ns);
		control->slide_at_ns = now_ns + groups->slide_ns;
	}
	if (now_ns < control->monitor_at_ns)
		return false;
	if (control->seen_count)
		ref_span(control);
	if (groups->window_ns[0] > groups->total_ns - 3)
		groups->window_ns[0] = groups->total_ns - 3;
	if (control->schedules)
		ref_wf2q_front_window(groups, ref_front_delay(control), ref_back_delay(control, now_ns), control->delta_q16,
				      control->h_ns);
	for (i = 0; i < REF_WF2Q_GROUPS && control->redistributes; i++)
		b[i] = ref_bandwidth(control, i, now_ns - control->monitored_ns);
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
