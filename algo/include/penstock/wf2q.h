/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * wf2q.h: DragonKing as published: what waits is sorted into a few groups by its finish time, and circulates until its start time.
 *
 * What         vst = max(lft, now), vft = vst + bytes / rate, lft' = vft             rate_limiter_table (pst_compact_take)
 *              group i: D[i-1] <= vft < D[i]; the last one is open-ended             gate_table
 *              group 0 and vst <= now: send; else recirculate; no room: drop         scheduler_table
 *              every slide: T_beg and all D[i] go on by the slide                    packet sliding
 *              T[i] = T (1 - B[i]) / sum (1 - B[j]), D[i] = T_beg + T[0] + .. + T[i] redistribution (Algorithm 1, equation 1)
 *              beta = W0 - d; T[0] += delta * beta when |beta| > h                   front window (equations 2-6)
 *              The default shaper is wheel.h: this grouping with a group a slot.
 * Source       Chen et al., "DRAGONKING: A Scalable and High-Throughput Rate Limiter by Enabling WF2Q+ on Programmable Switches for Cloud
 *              Networks", IEEE Transactions on Networking 2026, sections III and IV, with these corrections:
 *              D1  line 3 of Algorithm 1 says "for all i"; a redistribution is needed when there is one i. The variance of a pipeline is
 *                  neither defined nor bounded: |B[i] - mean| here, 0.1 by default.
 *              D2  the slide happens whether or not there is a redistribution, and T_beg follows the clock: it never leaves [now, now + slide].
 *              D3  D[i] is the end of group i's window. Equation 5 follows when P0 is T[0]/T, not T_slide/T as printed.
 *              D4  rho is packets in over packets out, below 1; W0 = alpha rho / (1 - rho). alpha, h and delta have no units in the paper: here
 *                  alpha is a time (1 us for its 0.001, read as ms), h a time (40 us), delta a number. Equation 6 keeps T[0] in [1, T - (N - 1)].
 *              D5  a rate in 2 bytes is a float; an LFT in 4 bytes counts 64 ns and is aged.
 *              D6  packets leave by start time, earliest deadline first among groups: a virtual clock, without WF2Q+'s system virtual time.
 * Units        _ns; _q16 1/65536; rates in bytes a second; packed entries count 64 ns.
 * Ranges       T up to 2^46 ns; windows of 1 ns at least. pst_compact: rates of 512 B/s to 2^41 B/s, to within 1/4096; waits up to 68 s;
 *              an entry that nobody asked for is aged at least every 68 s. A rate outside of these is the nearest one.
 * Invariants   I1  a packet is sent at or after its start time, and only from group 0.
 *              I2  D[0] <= D[1] <= ..; each finish time has exactly one group.
 *              I3  after a redistribution the windows sum to T, to within N ns; a busier group's is not wider.
 *              I4  T_beg is in [now, now + slide] after each slide.
 *              I5  a compact entry passes bytes <= rate * time + one packet, to within the rate code's step and 64 ns a packet.
 *              I6  only differences of times matter, wraps included.
 * Overflow     T < 2^46 times 2^16 is below 2^62; beta is cut to 2^40 ns and delta is below 2^16: below 2^56; sums of the fit:
 *              see pst_wf2q_fit_add.
 * Concurrency  none: one control loop owns the groups; an entry is one CPU's.
 * Not done     a pipeline's bandwidth is measured by the host, as are the least start time of the back groups and packets in and out.
 */
#ifndef PENSTOCK_WF2Q_H
#define PENSTOCK_WF2Q_H

#include "wire.h"

#define PST_Q16_ONE UINT32_C(65536)
#define PST_WF2Q_SLIDE_NSEC 5000                 /* T_b = T_slide, section III-C */
#define PST_WF2Q_VARIANCE_Q16 (PST_Q16_ONE / 10) /* D1 */
#define PST_WF2Q_ALPHA_NSEC 1000                 /* D4 */
#define PST_WF2Q_H_NSEC 40000                    /* D4 */
#define PST_WF2Q_DELTA_Q16 (-1638)               /* -0.025 */
#define PST_WF2Q_TOTAL_MAX_NSEC (UINT64_C(1) << 46)

enum pst_wf2q_verdict {
	PST_WF2Q_SEND = 0,
	PST_WF2Q_RECIRCULATE = 1,
	PST_WF2Q_DROP = 2,
};

struct pst_wf2q {
	uint64_t begin_ns;                   /* T_beg */
	uint64_t slide_ns;                   /* T_slide */
	uint64_t total_ns;                   /* T */
	uint64_t window_ns[PST_WF2Q_GROUPS]; /* T[i] */
	uint64_t end_ns[PST_WF2Q_GROUPS];    /* D[i] */
};

/* The ends follow from where the windows begin, and how long they are. */
PST_INLINE void pst_wf2q_lay(struct pst_wf2q *groups)
{
	uint64_t end_ns = groups->begin_ns;
	uint32_t i;

	for (i = 0; i < PST_WF2Q_GROUPS; i++) {
		end_ns += groups->window_ns[i];
		groups->end_ns[i] = end_ns;
	}
}

/* All windows alike: "initially, T is set to 4 x 5 us" (section III-C). */
PST_INLINE void pst_wf2q_start(struct pst_wf2q *groups, uint64_t slide_ns, uint64_t now_ns)
{
	uint32_t i;

	groups->begin_ns = now_ns;
	groups->slide_ns = slide_ns;
	groups->total_ns = PST_WF2Q_GROUPS * slide_ns;
	for (i = 0; i < PST_WF2Q_GROUPS; i++)
		groups->window_ns[i] = slide_ns;
	pst_wf2q_lay(groups);
}

/* gate_table */
PST_INLINE uint32_t pst_wf2q_gate(const struct pst_wf2q *groups, uint64_t vft_ns)
{
	uint32_t i;

	for (i = 0; i < PST_WF2Q_GROUPS - 1; i++) {
		if ((int64_t)(vft_ns - groups->end_ns[i]) < 0)
			break;
	}
	return i;
}

/* scheduler_table */
PST_INLINE enum pst_wf2q_verdict pst_wf2q_schedule(uint32_t group, uint64_t vst_ns, uint64_t now_ns, bool has_room)
{
	if (group == 0 && (int64_t)(vst_ns - now_ns) <= 0)
		return PST_WF2Q_SEND;
	return has_room ? PST_WF2Q_RECIRCULATE : PST_WF2Q_DROP;
}

/* The slide timer went off (D2). */
PST_INLINE void pst_wf2q_slide(struct pst_wf2q *groups, uint64_t now_ns)
{
	uint64_t ahead_ns = groups->begin_ns + groups->slide_ns - now_ns;

	if ((int64_t)ahead_ns < 0)
		ahead_ns = 0;
	if (ahead_ns > groups->slide_ns)
		ahead_ns = groups->slide_ns;
	groups->begin_ns = now_ns + ahead_ns;
	pst_wf2q_lay(groups);
}

/* T: "the difference between the minimal VFT and the max VFT", at least what it is at the start. Windows follow in the next redistribution. */
PST_INLINE void pst_wf2q_span(struct pst_wf2q *groups, uint64_t least_vft_ns, uint64_t most_vft_ns)
{
	uint64_t span_ns = most_vft_ns - least_vft_ns;

	if ((int64_t)span_ns < 0 || span_ns < PST_WF2Q_GROUPS * groups->slide_ns)
		span_ns = PST_WF2Q_GROUPS * groups->slide_ns;
	groups->total_ns = span_ns < PST_WF2Q_TOTAL_MAX_NSEC ? span_ns : PST_WF2Q_TOTAL_MAX_NSEC;
}

/* Lines 1-5 of Algorithm 1: is some group's bandwidth far from the mean (D1)? All of 1 and more count as 1. */
PST_INLINE bool pst_wf2q_is_uneven(const uint32_t *bandwidth_q16, uint32_t variance_q16)
{
	uint64_t sum_q16 = 0;
	uint32_t i;

	for (i = 0; i < PST_WF2Q_GROUPS; i++)
		sum_q16 += bandwidth_q16[i] < PST_Q16_ONE ? bandwidth_q16[i] : PST_Q16_ONE;
	for (i = 0; i < PST_WF2Q_GROUPS; i++) {
		uint64_t scaled_q16 = PST_WF2Q_GROUPS * (uint64_t)(bandwidth_q16[i] < PST_Q16_ONE ? bandwidth_q16[i] : PST_Q16_ONE);
		uint64_t away_q16 = scaled_q16 > sum_q16 ? scaled_q16 - sum_q16 : sum_q16 - scaled_q16;

		if (away_q16 >= (uint64_t)PST_WF2Q_GROUPS * variance_q16)
			return true;
	}
	return false;
}

/* Lines 6-13 of Algorithm 1. Groups that are all full share T alike. */
PST_INLINE void pst_wf2q_redistribute(struct pst_wf2q *groups, const uint32_t *bandwidth_q16)
{
	uint64_t free_q16[PST_WF2Q_GROUPS], sum_q16 = 0;
	uint32_t i;

	for (i = 0; i < PST_WF2Q_GROUPS; i++) {
		free_q16[i] = bandwidth_q16[i] < PST_Q16_ONE ? PST_Q16_ONE - bandwidth_q16[i] : 0;
		sum_q16 += free_q16[i];
	}
	for (i = 0; i < PST_WF2Q_GROUPS; i++) {
		uint64_t window_ns = sum_q16 ? groups->total_ns * free_q16[i] / sum_q16 : groups->total_ns / PST_WF2Q_GROUPS;

		groups->window_ns[i] = window_ns ? window_ns : 1;
	}
	pst_wf2q_lay(groups);
}

/* ---- the front window ---- */

/* X = rho / (1 - rho) with rho = in / out, kept below 1 (D4). */
PST_INLINE uint32_t pst_wf2q_load_q16(uint32_t packets_in, uint32_t packets_out)
{
	uint64_t rho_q16 = packets_out ? (uint64_t)packets_in * PST_Q16_ONE / packets_out : PST_Q16_ONE - 1;

	if (packets_in == 0)
		rho_q16 = 0;
	if (rho_q16 > PST_Q16_ONE - 256) /* X up to 255 */
		rho_q16 = PST_Q16_ONE - 256;
	return (uint32_t)(rho_q16 * PST_Q16_ONE / (PST_Q16_ONE - rho_q16));
}

/* W0: what a packet waits for in the front group. */
PST_INLINE uint64_t pst_wf2q_front_delay_ns(uint32_t alpha_ns, uint32_t load_q16)
{
	return (uint64_t)alpha_ns * load_q16 / PST_Q16_ONE;
}

/* d: how late the first of the back groups will be at the next slide (equations 3 and 4). */
PST_INLINE uint64_t pst_wf2q_back_delay_ns(const struct pst_wf2q *groups, uint64_t least_vst_ns, uint64_t now_ns)
{
	int64_t late_ns = (int64_t)(now_ns + groups->slide_ns - least_vst_ns);

	return late_ns > 0 ? (uint64_t)late_ns : 0;
}

/* Equation 6. delta_q16 is below 0: a front that waits longer than the back is made shorter. */
PST_INLINE void pst_wf2q_front_window(struct pst_wf2q *groups, uint64_t front_delay_ns, uint64_t back_delay_ns,
				      int32_t delta_q16, uint64_t h_ns)
{
	const int64_t most_ns = (int64_t)1 << 40;
	int64_t beta_ns, front_ns = (int64_t)groups->window_ns[0], last_ns;
	uint64_t size_ns, step_ns;
	bool is_shorter;

	beta_ns = (int64_t)(front_delay_ns < (uint64_t)most_ns ? front_delay_ns : (uint64_t)most_ns) -
		  (int64_t)(back_delay_ns < (uint64_t)most_ns ? back_delay_ns : (uint64_t)most_ns);
	size_ns = (uint64_t)(beta_ns < 0 ? -beta_ns : beta_ns);
	if (size_ns <= h_ns)
		return;
	step_ns = size_ns * (uint64_t)(delta_q16 < 0 ? -(int64_t)delta_q16 : delta_q16) / PST_Q16_ONE;
	is_shorter = (beta_ns < 0) != (delta_q16 < 0);
	front_ns += is_shorter ? -(int64_t)step_ns : (int64_t)step_ns;
	last_ns = (int64_t)groups->total_ns - (PST_WF2Q_GROUPS - 1);
	if (front_ns > last_ns)
		front_ns = last_ns;
	groups->window_ns[0] = front_ns > 0 ? (uint64_t)front_ns : 1;
	pst_wf2q_lay(groups);
}

/* alpha by least squares over (X, W0) (section IV): sum X W / sum X^2. */
struct pst_wf2q_fit {
	uint64_t xw;
	uint64_t xx;
};

/* X in 1/4096 is below 2^20: 2^12 samples of up to 268 ms fit. */
PST_INLINE void pst_wf2q_fit_add(struct pst_wf2q_fit *fit, uint32_t load_q16, uint32_t front_delay_ns)
{
	uint64_t load_q12 = load_q16 >> 4;

	fit->xw += load_q12 * front_delay_ns;
	fit->xx += load_q12 * load_q12;
}

PST_INLINE uint32_t pst_wf2q_fit_alpha_ns(const struct pst_wf2q_fit *fit)
{
	uint64_t alpha_ns = fit->xx ? fit->xw / fit->xx * 4096 + fit->xw % fit->xx * 4096 / fit->xx : 0;

	return alpha_ns < UINT32_MAX ? (uint32_t)alpha_ns : UINT32_MAX;
}

/* ---- the entry of 19 bytes (D5) ---- */

#define PST_COMPACT_TICK_BITS 6 /* 64 ns: 32 bits are 275 s, half of them before now and half after */
#define PST_COMPACT_AHEAD_MAX (UINT32_C(1) << 30)

/* (2048 + mantissa) * 2^(exponent - 2) bytes a second: mantissa in the lower 11 bits, exponent in the upper 5. Rounded to nearest. */
PST_INLINE uint16_t pst_compact_rate(uint64_t rate_Bps)
{
	uint32_t exponent = 0;
	uint64_t scaled = rate_Bps < UINT64_C(1) << 42 ? rate_Bps << 2 : UINT64_C(1) << 44;

	if (scaled < 2048)
		return 0;
	while (scaled >> exponent >= 4096 && exponent < 31)
		exponent++;
	if (exponent)
		scaled += UINT64_C(1) << (exponent - 1);
	scaled >>= exponent;
	if (scaled >= 4096) { /* rounded up to the next power of two */
		scaled >>= 1;
		exponent++;
	}
	if (exponent > 31)
		return UINT16_MAX;
	return (uint16_t)(exponent << 11 | ((uint32_t)scaled - 2048));
}

/* A quarter byte a second is the unit: slow rates are exact. */
PST_INLINE uint64_t pst_compact_rate_q2(uint16_t rate_code)
{
	return (UINT64_C(2048) + (rate_code & 2047U)) << (rate_code >> 11);
}

PST_INLINE uint32_t pst_compact_now(uint64_t now_ns)
{
	return (uint32_t)(now_ns >> PST_COMPACT_TICK_BITS);
}

/* What `bytes` take at a rate, in 64 ns; rounded up, so that the code's rate is never exceeded. Below 2^32 bytes. */
PST_INLINE uint64_t pst_compact_cost(uint16_t rate_code, uint32_t bytes)
{
	uint64_t per_second = PST_NSEC_PER_SEC >> PST_COMPACT_TICK_BITS, rate_q2 = pst_compact_rate_q2(rate_code);

	return ((uint64_t)bytes * 4 * per_second + rate_q2 - 1) / rate_q2;
}

/*
 * How long a packet waits for its turn: its start is max(lft, now), and the entry's lft its finish. False, and nothing is charged, when
 * that is more than 68 s.
 */
PST_INLINE bool pst_compact_take(struct pst_compact_entry *entry, uint64_t now_ns, uint32_t bytes, uint64_t *wait_ns)
{
	uint32_t now = pst_compact_now(now_ns), ahead = entry->lft - now;
	uint64_t cost = pst_compact_cost(entry->rate_code, bytes);

	if ((int32_t)ahead < 0)
		ahead = 0;
	if (ahead > PST_COMPACT_AHEAD_MAX || cost > PST_COMPACT_AHEAD_MAX)
		return false;
	*wait_ns = (uint64_t)ahead << PST_COMPACT_TICK_BITS;
	entry->lft = now + ahead + (uint32_t)cost;
	return true;
}

/* An lft that lies far behind would read as ahead some day: it is taken along. */
PST_INLINE void pst_compact_age(struct pst_compact_entry *entry, uint64_t now_ns)
{
	uint32_t now = pst_compact_now(now_ns);

	if ((int32_t)(entry->lft - now) < 0)
		entry->lft = now;
}

#endif /* PENSTOCK_WF2Q_H */
