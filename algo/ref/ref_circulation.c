/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include <string.h>

#include "ref_circulation.h"

#define NS_Q24 ((ref_int)1 << 24)

void ref_circulation_start(struct ref_circulation *circulation, ref_int now_ns)
{
	int i;

	for (i = 0; i < REF_WF2Q_GROUPS; i++) {
		circulation->busy_q24[i] = now_ns * NS_Q24;
		circulation->passed_bytes[i] = 0;
	}
	circulation->count = 0;
}

ref_int ref_circulation_held(const struct ref_circulation *circulation, int pipeline)
{
	ref_int bytes = 0;
	int i;

	for (i = 0; i < circulation->count; i++)
		bytes += circulation->packets[i].pipeline == pipeline ? circulation->packets[i].bytes : 0;
	return bytes;
}

static bool ref_has_room(const struct ref_circulation *circulation, int pipeline, ref_int bytes)
{
	return ref_circulation_held(circulation, pipeline) + bytes <= circulation->room_bytes[pipeline];
}

static void ref_enter(struct ref_circulation *circulation, struct ref_circulating packet, int pipeline, ref_int now_ns)
{
	ref_int *busy = &circulation->busy_q24[pipeline];

	if (*busy / NS_Q24 < now_ns)
		*busy = now_ns * NS_Q24;
	*busy += packet.bytes * -ref_divide_down(-1000000000 * NS_Q24, circulation->control.capacity_Bps[pipeline]);
	packet.end_ns = *busy / NS_Q24 + circulation->loop_ns;
	circulation->control.front_in += pipeline == 0 && packet.pipeline != 0;
	packet.pipeline = pipeline;
	circulation->packets[circulation->count++] = packet;
}

bool ref_circulation_put(struct ref_circulation *circulation, struct ref_circulating packet, ref_int now_ns)
{
	int pipeline = ref_wf2q_gate(&circulation->control.groups, packet.vft_ns);

	packet.pipeline = -1;
	ref_control_see(&circulation->control, (struct ref_seen){ -1, packet.vst_ns, packet.vft_ns, packet.bytes });
	if (circulation->count == circulation->packets_max || !ref_has_room(circulation, pipeline, packet.bytes))
		return false;
	ref_enter(circulation, packet, pipeline, now_ns);
	return true;
}

/* The earliest end; of those, the lowest pipeline; of those, who came first. -1 of none. */
static int ref_first(const struct ref_circulation *circulation)
{
	int i, found = -1;

	for (i = 0; i < circulation->count; i++) {
		const struct ref_circulating *one = &circulation->packets[i], *best = &circulation->packets[found < 0 ? i : found];

		if (found < 0 || one->end_ns < best->end_ns ||
		    (one->end_ns == best->end_ns && one->pipeline < best->pipeline))
			found = i;
	}
	return found;
}

static bool ref_pass(struct ref_circulation *circulation, int index, struct ref_circulating *sent)
{
	struct ref_circulating packet = circulation->packets[index];
	int pipeline;

	circulation->passed_bytes[packet.pipeline] += packet.bytes;
	circulation->count--;
	memmove(&circulation->packets[index], &circulation->packets[index + 1],
		(size_t)(circulation->count - index) * sizeof(packet));
	ref_control_see(&circulation->control, (struct ref_seen){ packet.pipeline, packet.vst_ns, packet.vft_ns, packet.bytes });
	pipeline = ref_wf2q_gate(&circulation->control.groups, packet.vft_ns);
	if (packet.pipeline == 0 && pipeline == 0 && packet.vst_ns <= packet.end_ns) {
		circulation->control.front_out++;
		*sent = packet;
		return true;
	}
	if (!ref_has_room(circulation, pipeline, packet.bytes))
		pipeline = packet.pipeline;
	ref_enter(circulation, packet, pipeline, packet.end_ns);
	return false;
}

bool ref_circulation_run(struct ref_circulation *circulation, ref_int until_ns, struct ref_circulating *sent)
{
	struct ref_control *control = &circulation->control;

	for (;;) {
		ref_int timer = control->slide_at_ns < control->monitor_at_ns ? control->slide_at_ns : control->monitor_at_ns;
		int first = ref_first(circulation);
		bool passes = first >= 0 && circulation->packets[first].end_ns < timer;

		if ((passes ? circulation->packets[first].end_ns : timer) > until_ns)
			return false;
		if (!passes)
			ref_control_tick(control, timer);
		else if (ref_pass(circulation, first, sent))
			return true;
	}
}
