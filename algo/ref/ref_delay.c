/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_delay.h"

/* splitmix64 (Steele, Lea, Flood 2014), as it was published; but 0, which is no state of what it seeds, is 1. */
static uint64_t ref_mix(uint64_t state)
{
	uint64_t z = state + 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	z ^= z >> 31;
	return z == 0 ? 1 : z;
}

/* The delay's own range: never below 0, and 1 s to each side at most. */
static ref_int ref_jitter_ns(const struct pst_line *line)
{
	ref_int jitter = line->jitter_ns;

	if (jitter > line->delay_ns)
		jitter = line->delay_ns;
	return jitter > 1000000000 ? 1000000000 : jitter;
}

uint64_t ref_delay_seed(const struct pst_line *line)
{
	return ref_mix(line->seed ^ (uint64_t)line->owner << 32);
}

ref_int ref_delay_draw_ns(const struct pst_line *line, uint64_t nth, ref_int jitter_ns)
{
	return 2 * jitter_ns * (ref_mix(~ref_delay_seed(line) + nth) >> 33) >> 31;
}

/* The wander as it is defined: from + (to - from) s / P, of which the part that is no whole ns is cut off: rounded towards `from`. */
ref_int ref_delay_ns(const struct pst_line *line, uint64_t turn_ns)
{
	ref_int jitter = ref_jitter_ns(line), length = 4 * jitter, from, to;

	if (jitter == 0)
		return line->delay_ns;
	from = ref_delay_draw_ns(line, (uint64_t)(turn_ns / length), jitter);
	to = ref_delay_draw_ns(line, (uint64_t)(turn_ns / length) + 1, jitter);
	return line->delay_ns - jitter + from + (to - from) * (turn_ns % length) / length;
}

bool ref_delay_loses(const struct pst_line *line, uint64_t number)
{
	return ref_mix(ref_delay_seed(line) + number) % ((uint64_t)1 << 32) < line->loss_q32;
}
