/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The userspace host of pipeline.h: builds the tables of a plane and runs frames through it in batches.
 *
 * A batch goes stage by stage, so that the cache misses of its packets overlap: parse all and ask for their buckets; find all;
 * judge all and ask for the counters of their rows; count all.
 */
#define _DEFAULT_SOURCE /* madvise */
#define PST_ONE_THREAD  /* a plane belongs to one thread */
#include <penstock/mark.h>
#include <penstock/packet.h>
#include <penstock/pipeline.h>
#include <penstock/rng.h>
#include <penstock/wheel.h>

#include <stddef.h>
#include <sys/mman.h>

#define FRAMES_AHEAD 8
#define HUGE_PAGE ((size_t)2 << 20)

uint32_t pst_host_buckets_for(uint32_t keys);
void pst_host_advise_huge(void *memory, size_t bytes);
uint64_t pst_host_limiter_idle(uint64_t now_ns);
struct pst_meter_state pst_host_meter_idle(uint64_t now_ns);
uint32_t pst_host_rng_next(uint64_t *state);
uint64_t pst_host_rng_seed(uint64_t seed);
void pst_host_run(const struct pst_plane *plane, const struct pst_frame *frames, uint32_t count, uint64_t *rng,
		  struct pst_packet *packets, struct pst_decision *decisions, const struct pst_tally *tally,
		  struct pst_room *room);
bool pst_host_reason_is_mark(uint8_t reason);
void pst_host_room_start(struct pst_room *room, uint64_t now_ns);
void pst_host_parse(struct pst_packet *packet, const struct pst_frame *frame);
int pst_host_mark(uint8_t *data, uint32_t bytes, const struct pst_packet *packet, const struct pst_decision *decision);

/* Asks for 2 MB pages inside of [memory, memory + bytes). A system that has none goes on with small ones. */
void pst_host_advise_huge(void *memory, size_t bytes)
{
	uintptr_t start = ((uintptr_t)memory + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1);
	uintptr_t end = ((uintptr_t)memory + bytes) & ~(uintptr_t)(HUGE_PAGE - 1);

	if (start < end)
		(void)madvise((void *)start, end - start, MADV_HUGEPAGE);
}

uint32_t pst_host_buckets_for(uint32_t keys)
{
	return pst_table_buckets_for(keys);
}

uint64_t pst_host_limiter_idle(uint64_t now_ns)
{
	return pst_limiter_idle(now_ns);
}

struct pst_meter_state pst_host_meter_idle(uint64_t now_ns)
{
	return pst_meter_idle(now_ns);
}

uint64_t pst_host_rng_seed(uint64_t seed)
{
	return pst_rng_seed(seed);
}

uint32_t pst_host_rng_next(uint64_t *state)
{
	return pst_rng_next(state);
}

static inline void parse(struct pst_packet *packet, const struct pst_frame *frame)
{
	pst_packet_parse(packet, frame->data, frame->data + frame->captured_bytes, frame->wire_bytes,
			 (enum pst_link_type)frame->link_type);
}

void pst_host_parse(struct pst_packet *packet, const struct pst_frame *frame)
{
	parse(packet, frame);
}

int pst_host_mark(uint8_t *data, uint32_t bytes, const struct pst_packet *packet, const struct pst_decision *decision)
{
	if (decision->reason == PST_REASON_CE_MARK || decision->reason == PST_REASON_HELD_CE)
		return pst_packet_mark_ce(data, data + bytes, packet);
	if (decision->reason == PST_REASON_DSCP_MARK)
		return pst_packet_set_dscp(data, data + bytes, packet, decision->dscp);
	return 0;
}

/* Two counters that are added to at once; a pst_counters is four of them. */
typedef uint64_t counter_pair __attribute__((vector_size(16), may_alias, aligned(8)));

/* A packet is counted in one place: at its limiter, or at its class when it has none. No branch on what was decided. */
static void count_packet(const struct pst_tally *tally, const struct pst_decision *decision)
{
	static const counter_pair colors[] = { { 1, 0 }, { 0, 1 }, { 0, 0 }, { 0, 0 } };   /* green, yellow */
	counter_pair verdict = { pst_reason_is_mark(decision->reason), pst_is_same(decision->verdict, PST_VERDICT_HOLD) };
	uint64_t dropped = 0 - (uint64_t)(decision->verdict == PST_VERDICT_DROP);
	counter_pair one = { 1, decision->length };
	counter_pair *counters;

	tally->reasons[decision->reason]++;
	if (decision->slot != PST_NONE)
		counters = (counter_pair *)&tally->slots[decision->slot];
	else if (decision->limit_index != PST_NONE)
		counters = (counter_pair *)&tally->limits[decision->limit_index];
	else if (decision->class_index != PST_NONE)
		counters = (counter_pair *)&tally->classes[decision->class_index];
	else
		return;
	counters[0] += one;
	counters[1] += one & dropped;
	counters[2] += colors[decision->color];
	counters[3] += verdict;
}

/*
 * RFC meters keep their state behind the slot: touches it ahead. A load, because a prefetch was measured to change nothing
 * here (2 M meters: 280 ns a packet with it or without, 190 with the load).
 */
static void touch_meters(const struct pst_plane *plane, const struct pst_batch *batch)
{
	uint32_t i;

	for (i = 0; plane->meter_count && i < batch->count; i++) {
		const struct pst_match *match = &batch->matches[i];

		if (match->has_row && match->row.state < plane->meter_count)
			(void)*(const volatile uint64_t *)&plane->meters[match->row.state].committed_ticks;
	}
}

bool pst_host_reason_is_mark(uint8_t reason)
{
	return pst_reason_is_mark(reason);
}

void pst_host_room_start(struct pst_room *room, uint64_t now_ns)
{
	pst_wheel_start(room->wheel, now_ns);
}

/* Packets whose time has come go, and what they took is free. */
static void room_release(struct pst_room *room, uint64_t now_ns)
{
	uint32_t item;

	while ((item = pst_wheel_take(room->wheel, room->items, now_ns)) != PST_NONE) {
		room->free_chunks += (int32_t)room->items[item].owner;
		room->items[item].next = room->free_first;
		room->free_first = item;
	}
}

/* Every packet takes a chunk at least, and there are as many items: who finds chunks free finds an item, too. */
static void room_take(struct pst_room *room, const struct pst_decision *decision)
{
	uint32_t item = room->free_first, chunks = pst_hold_chunks(decision->length);

	if (item == PST_NONE)
		return;
	room->free_first = room->items[item].next;
	room->items[item].owner = chunks;
	if (pst_wheel_put(room->wheel, room->items, item, decision->departure_ns)) {
		room->free_chunks -= (int32_t)chunks;
	} else { /* no limit's horizon is as long as that */
		room->items[item].next = room->free_first;
		room->free_first = item;
	}
}

/* Judges a packet of a plane that holds some, or shares. */
static void judge_with_more(struct pst_decision *decision, struct pst_plane *plane, const struct pst_packet *packet,
			    struct pst_match *match, uint64_t now_ns, uint32_t random_u32, struct pst_room *room)
{
	bool holds = plane->shapes || pst_plane_delays(plane);

	if (holds) {
		room_release(room, now_ns);
		plane->room_chunks = room->free_chunks > 0 ? (uint32_t)room->free_chunks : 0;
	}
	pst_pipeline_judge(decision, plane, packet, match, now_ns, random_u32);
	pst_pipeline_end(decision, plane, packet, now_ns, random_u32);
	if (holds && decision->verdict == PST_VERDICT_HOLD && !decision->shadow)
		room_take(room, decision);
}

/* `left` frames lie at `frames`, of which the first `count` are this batch. */
static void run_batch(struct pst_plane *plane, const struct pst_frame *frames, uint32_t left, uint32_t count,
		      uint64_t *rng, struct pst_packet *packets, struct pst_decision *decisions,
		      const struct pst_tally *tally, struct pst_room *room)
{
	struct pst_batch batch;
	bool is_plain = !plane->shapes && !pst_plane_delays(plane) && !pst_plane_has_shares(plane);
	uint64_t draws = *rng;
	uint32_t i;

	pst_batch_start(&batch, plane);
	for (i = 0; i < count; i++) {
		if (i + FRAMES_AHEAD < left)
			__builtin_prefetch(frames[i + FRAMES_AHEAD].data);
		parse(&packets[i], &frames[i]);
		pst_batch_add(&batch, plane, &packets[i]);
	}
	pst_batch_classify(&batch, plane, packets);
	touch_meters(plane, &batch);
	for (i = 0; i < count; i++) {
		struct pst_match *match = pst_batch_match(&batch, plane, i, &packets[i].key);
		uint32_t random_u32 = plane->uses_random ? pst_rng_next(&draws) : 0;

		if (is_plain)
			pst_pipeline_judge(&decisions[i], plane, &packets[i], match, frames[i].now_ns, random_u32);
		else
			judge_with_more(&decisions[i], plane, &packets[i], match, frames[i].now_ns, random_u32, room);
		if (decisions[i].slot != PST_NONE)
			__builtin_prefetch(&tally->slots[decisions[i].slot], 1);
	}
	*rng = draws;
	for (i = 0; i < count; i++)
		count_packet(tally, &decisions[i]);
}

/* Runs `count` frames in order. `packets` and `decisions` have room for as many. */
void pst_host_run(const struct pst_plane *plane, const struct pst_frame *frames, uint32_t count, uint64_t *rng,
		  struct pst_packet *packets, struct pst_decision *decisions, const struct pst_tally *tally,
		  struct pst_room *room)
{
	struct pst_plane now = *plane; /* with the room that is left at the moment */
	uint32_t done, batch;

	for (done = 0; done < count; done += batch) {
		uint32_t left = count - done;

		batch = left < PST_BATCH_MAX ? left : PST_BATCH_MAX;
		run_batch(&now, frames + done, left, batch, rng, packets + done, decisions + done, tally, room);
	}
}
