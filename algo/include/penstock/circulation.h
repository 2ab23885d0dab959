/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * circulation.h: DragonKing's buffer: packets circulate in pipelines, first in, first out, and each pass tries their luck again.
 *
 * What         A packet comes with its start and its finish time, and goes into the pipeline of its group; no room there: dropped. A pass takes
 *              bytes / capacity of the pipeline, one packet after the other, and then loop_ns. At the end of it gate_table and scheduler_table are
 *              asked again:
 *                  it passed the front, is of the front's group, and its start time has come: sent
 *                  else                                       it passes the pipeline of its group, or, without room there, the one it is in
 *              Between passes the control's timers go off (wf2q_control.h).
 * Source       DragonKing (wf2q.h), sections II-D (queues are FIFO and cannot be reordered), III-A, III-B (placement c: packets are cached by
 *              the back pipelines, and pass the front only to leave), V ("backend-pipelines ... with a capacity of around 120Mb"). The paper does not
 *              say what a packet does that finds the pipeline of its group full: here it stays where it has room.
 * Units        _ns, bytes, rates in bytes a second.
 * Ranges       capacities of 1 MB/s at least; packets of 1 byte to 2^17; at most 2^32 - 2 of them, as the caller's memory has.
 * Invariants   I1  nothing is sent before its start time, and only out of the front pipeline.
 *              I2  what was taken in is sent once, and never dropped.
 *              I3  a pipeline never holds more than its buffer, and in [s, t] passes at most capacity * (t - s) + one packet.
 *              I4  packets of a flow, each starting when the one before finishes, are sent in order as long as each is sent before its own
 *                  finish time. Only one that is later than that is overtaken: circulation keeps no order by itself.
 *              I5  only differences of times matter, wraps included.
 * Overflow     2^17 bytes times 2^34 units of 2^-24 ns a byte: below 2^51.
 * Concurrency  none: one owner.
 * Not done     the headers of packets, and the table of limits in front.
 */
#ifndef PENSTOCK_CIRCULATION_H
#define PENSTOCK_CIRCULATION_H

#include "wf2q_control.h"

#define PST_CIRCULATION_MIN_BPS UINT64_C(1000000)
#define PST_CIRCULATION_NONE UINT32_MAX

/* A packet's place in the caller's memory. */
struct pst_circulation_packet {
	uint64_t vst_ns;
	uint64_t vft_ns;
	uint64_t pass_end_ns;
	uint32_t bytes;
	uint32_t tag;  /* the caller's */
	uint32_t next; /* behind it in its pipeline, or in the list of free places */
};

struct pst_circulation_params {
	struct pst_wf2q_control_params control; /* its capacities are the pipelines' */
	uint64_t loop_ns;                       /* from the end of a pipeline to its beginning */
	uint32_t room_bytes[PST_WF2Q_GROUPS];   /* buffers */
};

struct pst_circulation_profile {
	struct pst_wf2q_control_profile control;
	uint64_t byte_q24[PST_WF2Q_GROUPS]; /* 2^-24 ns a byte */
	uint64_t loop_ns;
	uint32_t room_bytes[PST_WF2Q_GROUPS];
};

struct pst_circulation_pipeline {
	uint64_t busy_ns;      /* until when its capacity is taken, and the part of a ns in 2^-24 */
	uint64_t busy_q24;
	uint64_t passed_bytes; /* in all */
	uint32_t held_bytes;
	uint32_t first;        /* packets, or PST_CIRCULATION_NONE */
	uint32_t last;
};

struct pst_circulation {
	struct pst_circulation_packet *packets; /* the caller's memory */
	struct pst_wf2q_control_state control;
	struct pst_wf2q_reading reading;
	struct pst_circulation_pipeline pipelines[PST_WF2Q_GROUPS];
	uint32_t free;     /* first free place */
	uint32_t waiting;  /* packets inside */
};

PST_INLINE void pst_circulation_compile(struct pst_circulation_profile *out, const struct pst_circulation_params *params)
{
	uint32_t i;

	pst_wf2q_control_compile(&out->control, &params->control);
	for (i = 0; i < PST_WF2Q_GROUPS; i++) {
		uint64_t rate_Bps = params->control.capacity_Bps[i];

		if (rate_Bps < PST_CIRCULATION_MIN_BPS)
			rate_Bps = PST_CIRCULATION_MIN_BPS;
		out->byte_q24[i] = ((PST_NSEC_PER_SEC << 24) + rate_Bps - 1) / rate_Bps;
		out->room_bytes[i] = params->room_bytes[i];
	}
	out->loop_ns = params->loop_ns;
}

/* All places are free. */
PST_INLINE void pst_circulation_start(const struct pst_circulation_profile *profile, struct pst_circulation *circulation,
				      struct pst_circulation_packet *packets, uint32_t packet_count, uint64_t now_ns)
{
	static const struct pst_wf2q_reading none = { 0, 0, { 0 }, 0, 0, false, false };
	uint32_t i;

	pst_wf2q_control_start(&profile->control, &circulation->control, now_ns);
	circulation->packets = packets;
	circulation->reading = none;
	for (i = 0; i < PST_WF2Q_GROUPS; i++) {
		struct pst_circulation_pipeline *pipeline = &circulation->pipelines[i];

		pipeline->busy_ns = now_ns;
		pipeline->busy_q24 = 0;
		pipeline->passed_bytes = 0;
		pipeline->held_bytes = 0;
		pipeline->first = PST_CIRCULATION_NONE;
		pipeline->last = PST_CIRCULATION_NONE;
	}
	for (i = 0; i < packet_count; i++)
		packets[i].next = i + 1 < packet_count ? i + 1 : PST_CIRCULATION_NONE;
	circulation->free = packet_count ? 0 : PST_CIRCULATION_NONE;
	circulation->waiting = 0;
}

/* A pass begins: behind all that are in the pipeline. */
PST_INLINE void pst_circulation_enter(const struct pst_circulation_profile *profile, struct pst_circulation *circulation,
				      uint32_t index, uint32_t group, uint64_t now_ns)
{
	struct pst_circulation_pipeline *pipeline = &circulation->pipelines[group];
	struct pst_circulation_packet *packet = &circulation->packets[index];

	if ((int64_t)(now_ns - pipeline->busy_ns) > 0) {
		pipeline->busy_ns = now_ns;
		pipeline->busy_q24 = 0;
	}
	pipeline->busy_q24 += packet->bytes * profile->byte_q24[group];
	pipeline->busy_ns += pipeline->busy_q24 >> 24;
	pipeline->busy_q24 &= (1U << 24) - 1;
	pipeline->held_bytes += packet->bytes;
	packet->pass_end_ns = pipeline->busy_ns + profile->loop_ns;
	packet->next = PST_CIRCULATION_NONE;
	if (pipeline->first == PST_CIRCULATION_NONE)
		pipeline->first = index;
	else
		circulation->packets[pipeline->last].next = index;
	pipeline->last = index;
}

/* Who goes round in the front pipeline was received there once. */
PST_INLINE void pst_circulation_receive(struct pst_circulation *circulation, uint32_t group, uint32_t from)
{
	if (group == 0 && from != 0)
		circulation->reading.front_in += circulation->reading.front_in < UINT32_MAX;
}

/* A packet comes: only its times, bytes and tag are read. RECIRCULATE when it was taken in, else DROP. */
PST_INLINE enum pst_wf2q_verdict pst_circulation_put(const struct pst_circulation_profile *profile,
						     struct pst_circulation *circulation,
						     const struct pst_circulation_packet *packet, uint64_t now_ns)
{
	uint32_t group = pst_wf2q_gate(&circulation->control.groups, packet->vft_ns), index = circulation->free;
	uint32_t room_bytes = profile->room_bytes[group] - circulation->pipelines[group].held_bytes;

	pst_wf2q_reading_see(&circulation->reading, packet->vft_ns);
	if (index == PST_CIRCULATION_NONE || packet->bytes > room_bytes)
		return PST_WF2Q_DROP;
	circulation->free = circulation->packets[index].next;
	circulation->waiting++;
	circulation->packets[index] = *packet;
	pst_circulation_enter(profile, circulation, index, group, now_ns);
	pst_circulation_receive(circulation, group, PST_WF2Q_GROUPS);
	return PST_WF2Q_RECIRCULATE;
}

/* The pipeline whose pass ends next; PST_WF2Q_GROUPS when all are empty. The front goes first where two end at once. */
PST_INLINE uint32_t pst_circulation_first(const struct pst_circulation *circulation)
{
	uint32_t i, found = PST_WF2Q_GROUPS;
	uint64_t end_ns = 0;

	for (i = 0; i < PST_WF2Q_GROUPS; i++) {
		uint32_t index = circulation->pipelines[i].first;

		if (index == PST_CIRCULATION_NONE)
			continue;
		if (found == PST_WF2Q_GROUPS || (int64_t)(circulation->packets[index].pass_end_ns - end_ns) < 0) {
			found = i;
			end_ns = circulation->packets[index].pass_end_ns;
		}
	}
	return found;
}

/* The first packet of a pipeline ends its pass. When it is sent, its place is free, and true is returned with what it was. */
PST_INLINE bool pst_circulation_pass(const struct pst_circulation_profile *profile, struct pst_circulation *circulation,
				     uint32_t from, uint64_t now_ns, struct pst_circulation_packet *sent)
{
	struct pst_circulation_pipeline *pipeline = &circulation->pipelines[from];
	uint32_t index = pipeline->first, group;
	struct pst_circulation_packet *packet = &circulation->packets[index];

	pipeline->first = packet->next;
	pipeline->held_bytes -= packet->bytes;
	pipeline->passed_bytes += packet->bytes;
	pst_wf2q_reading_see(&circulation->reading, packet->vft_ns);
	pst_wf2q_reading_pass(&circulation->reading, from, packet->vst_ns, packet->bytes);
	group = pst_wf2q_gate(&circulation->control.groups, packet->vft_ns);
	if (from == 0 && pst_wf2q_schedule(group, packet->vst_ns, now_ns, true) == PST_WF2Q_SEND) {
		circulation->reading.front_out += circulation->reading.front_out < UINT32_MAX;
		*sent = *packet;
		packet->next = circulation->free;
		circulation->free = index;
		circulation->waiting--;
		return true;
	}
	if (packet->bytes > profile->room_bytes[group] - circulation->pipelines[group].held_bytes)
		group = from;
	pst_circulation_enter(profile, circulation, index, group, now_ns);
	pst_circulation_receive(circulation, group, from);
	return false;
}

/*
 * Lets time go on, up to until_ns at most: passes and timers, each at its own time, until a packet is sent. Returns whether one was, and
 * when; call again then. Where a timer and the end of a pass fall together, the timer goes first.
 */
PST_OUTLINE bool pst_circulation_run(const struct pst_circulation_profile *profile, struct pst_circulation *circulation,
				     uint64_t until_ns, struct pst_circulation_packet *sent)
{
	for (;;) {
		uint32_t from = pst_circulation_first(circulation);
		uint64_t timer_ns = pst_wf2q_control_next_ns(&circulation->control), end_ns = timer_ns;

		if (from < PST_WF2Q_GROUPS)
			end_ns = circulation->packets[circulation->pipelines[from].first].pass_end_ns;
		if (from == PST_WF2Q_GROUPS || (int64_t)(timer_ns - end_ns) <= 0) {
			if ((int64_t)(timer_ns - until_ns) > 0)
				return false;
			pst_wf2q_control_tick(&profile->control, &circulation->control, &circulation->reading, timer_ns);
			continue;
		}
		if ((int64_t)(end_ns - until_ns) > 0)
			return false;
		if (pst_circulation_pass(profile, circulation, from, end_ns, sent))
			return true;
	}
}

#endif /* PENSTOCK_CIRCULATION_H */
