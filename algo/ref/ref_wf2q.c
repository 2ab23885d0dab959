/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_wf2q.h"

static ref_int ref_one(uint32_t bandwidth_q16)
{
	return bandwidth_q16 < 65536 ? bandwidth_q16 : 65536;
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

void ref_wf2q_slide(struct ref_wf2q *groups, ref_int now_ns)
{
	groups->begin_ns += groups->slide_ns;
	if (groups->begin_ns < now_ns)
		groups->begin_ns = now_ns;
	if (groups->begin_ns > now_ns + groups->slide_ns)
		groups->begin_ns = now_ns + groups->slide_ns;
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

/* All codes, one after the other. Of two that are equally near, the higher. */
ref_int ref_compact_rate_q2(uint64_t rate_Bps)
{
	ref_int wanted = (ref_int)rate_Bps * 4, best = 2048;
	int exponent, mantissa;

	for (exponent = 0; exponent < 32; exponent++) {
		for (mantissa = 2048; mantissa < 4096; mantissa++) {
			ref_int rate = (ref_int)mantissa << exponent;
			ref_int off = rate < wanted ? wanted - rate : rate - wanted;

			if (off <= (best < wanted ? wanted - best : best - wanted))
				best = rate;
		}
	}
	return best;
}
