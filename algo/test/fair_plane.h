/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * fair_plane.h: a small plane of shares: one link, classes that rules on the destination port tell apart, users by their source address, rows
 * for users that have weights, and sources that send into it.
 */
#ifndef PENSTOCK_TEST_FAIR_PLANE_H
#define PENSTOCK_TEST_FAIR_PLANE_H

#include <math.h>
#include <string.h>

#include <penstock/fair.h>
#include <penstock/pipeline.h>
#include <penstock/rng.h>
#include <penstock/window.h>

#include "schedule.h"

#define CLASSES 3U
#define LINK CLASSES /* its place, behind the classes' */
#define ENTRIES 64U
#define NODES (LINK + 1 + CLASSES * (ENTRIES + 1))
#define ROW_PROFILES 8U /* of weights 0 to 7, behind those of shares and of limits */
#define PROFILES (2 * CLASSES + ROW_PROFILES)
#define BUCKETS 64U
#define COLUMN_BITS 11
#define COUNTDOWNS 1024U
#define SOURCES_MAX 64U
#define MTU 1000U
#define MBIT UINT64_C(125000)
#define MSEC UINT64_C(1000000)
#define START_NS (UINT64_C(1) << 50)
#define PROTO_TCP 6U
#define PROTO_UDP 17U
#define ECT 2U

enum { TUPLE_USERS_V4, TUPLE_USERS_V6, TUPLE_ROWS, TUPLE_RULES, TUPLES };

struct fair_source {
	struct pst_packet packet;
	uint64_t rate_Bps; /* 0: silent */
	double next_ns;
	uint64_t sent_bytes, passed_bytes, marked_bytes;
};

struct fair_plane {
	struct pst_plane plane;
	struct pst_link link;
	struct pst_tuple tuples[TUPLES];
	struct pst_rule rules[CLASSES];
	struct pst_class classes[CLASSES];
	struct pst_profile profiles[PROFILES]; /* shares', limits', rows' */
	struct pst_limit limits[CLASSES];
	struct pst_bucket rule_buckets[BUCKETS];
	struct pst_bucket row_buckets[BUCKETS];
	struct pst_tree_place places[LINK + 1];
	struct pst_tree_node nodes[NODES];
	struct pst_slice slices[CLASSES];
	uint64_t filters[2 * 3 << COLUMN_BITS]; /* and limiters */
	uint64_t countdowns[COUNTDOWNS];
	uint64_t waiting[16];
	struct fair_source sources[SOURCES_MAX];
	uint32_t source_count;
	uint64_t measured_ns; /* how long what the sources' bytes are of took */
	uint64_t rng;
};

static struct fair_plane fair;

static inline struct pst_packet packet_of(uint32_t class_index, uint32_t user, bool is_v6, uint8_t proto, uint8_t tos)
{
	struct pst_packet packet;

	memset(&packet, 0, sizeof(packet));
	packet.key.words[0] = is_v6 ? UINT64_C(0x20010db8) << 32 : (uint64_t)user << 32;
	packet.key.words[2] = is_v6 ? user : 0;
	packet.key.words[1] = (uint64_t)(PST_KEY_HAS_PORTS | (is_v6 ? 6U : 4U)) << PST_KEY_FAMILY_SHIFT | (uint64_t)proto << 48 | class_index;
	packet.length = MTU;
	packet.network_family = is_v6 ? 6 : 4;
	packet.network_tos = tos;
	return packet;
}

static inline void put_tuple(uint32_t index, uint8_t kind, uint64_t word_0, uint64_t word_1, uint64_t word_2)
{
	struct pst_tuple *tuple = &fair.tuples[index];
	uint32_t i;

	tuple->mask.words[0] = word_0;
	tuple->mask.words[1] = word_1;
	tuple->mask.words[2] = word_2;
	tuple->salt = draw(&fair.rng);
	tuple->kind = kind;
	tuple->specificity_q8 = (TUPLES - index) << 8; /* rows before rules */
	for (i = 0; i < 3; i++)
		tuple->words |= (uint8_t)((tuple->mask.words[i] != 0) << i);
}

static inline void put_entry(uint32_t tuple, const struct pst_packet *packet, uint32_t rate, uint32_t profile)
{
	struct pst_table table = fair.plane.tables[fair.tuples[tuple].kind];
	struct pst_table_entry entry = { pst_limiter_idle(START_NS), rate, (uint16_t)profile };
	struct pst_table_insertion insertion;
	struct pst_place place;
	struct pst_key key = packet->key;
	uint32_t i;

	for (i = 0; i < PST_KEY_WORDS; i++)
		key.words[i] &= fair.tuples[tuple].mask.words[i];
	place = pst_tuple_place(&fair.plane, &fair.tuples[tuple], &key);
	assert_int_equal(pst_table_insert(&table, &place, &entry, &insertion), PST_TABLE_DONE);
}

static inline void put_class(uint32_t index)
{
	struct pst_packet packet = packet_of(index, 0, false, 0, 0);

	fair.rules[index] = (struct pst_rule){ index, 1 << 8 };
	fair.classes[index] = (struct pst_class){ PST_NONE, 0, 0, 0, 0 };
	fair.profiles[index] = (struct pst_profile){ .burst_ticks = pst_clock_ticks(20 * MSEC), .mtu_bytes = MTU, .red_action = PST_ACTION_DROP };
	fair.places[index] = (struct pst_tree_place){
		.terms = { 0, PST_TREE_NO_CEILING_BPS, 1, 0 }, .parent = LINK, .first_child = PST_NONE,
		.next_sibling = index + 1 < CLASSES ? index + 1 : PST_NONE, .link = LINK, .profile = index,
		.owner = 7 + index, .users = PST_NONE, .slice = PST_NONE, .first_user = PST_NONE,
	};
	put_entry(TUPLE_RULES, &packet, 0, index);
}

static inline void connect_parts(void)
{
	fair.plane = (struct pst_plane){
		.links = &fair.link, .link_count = 1, .tuples = fair.tuples, .tuple_count = TUPLES, .rules = fair.rules, .rule_count = CLASSES,
		.classes = fair.classes, .class_count = CLASSES, .profiles = fair.profiles, .profile_count = PROFILES,
		.limits = fair.limits, .limit_count = CLASSES, .places = fair.places, .place_count = LINK + 1,
		.nodes = fair.nodes, .node_count = NODES, .slices = fair.slices, .slice_count = CLASSES,
		.filters = fair.filters, .filter_count = 2 * 3 << COLUMN_BITS, .countdowns = fair.countdowns, .countdown_count = COUNTDOWNS,
		.sketch = { .rows = 3, .column_bits = COLUMN_BITS }, .waiting = fair.waiting, .waiting_mask = 15, .room_chunks = UINT32_MAX,
		.uses_random = true, .shapes = true,
		.tables = { { fair.rule_buckets, BUCKETS }, { fair.row_buckets, BUCKETS } },
	};
}

/* A link of this rate whose classes share it, with a weight of 1 each, no users and no limits of their own. */
static inline void fair_start(uint64_t rate_Bps)
{
	uint32_t i;

	memset(&fair, 0, sizeof(fair));
	fair.rng = pst_rng_seed(11);
	connect_parts();
	for (i = 0; i < PST_HASH_SECRET_WORDS; i++)
		fair.plane.secret.words[i] = draw(&fair.rng);
	for (i = 0; i < 3; i++)
		fair.plane.sketch.seeds[i] = draw(&fair.rng);
	put_tuple(TUPLE_USERS_V4, PST_TUPLE_LIMITS, UINT64_C(0xffffffff) << 32, (uint64_t)PST_KEY_FAMILY << PST_KEY_FAMILY_SHIFT, 0);
	put_tuple(TUPLE_USERS_V6, PST_TUPLE_LIMITS, UINT64_MAX, (uint64_t)PST_KEY_FAMILY << PST_KEY_FAMILY_SHIFT, UINT64_MAX);
	put_tuple(TUPLE_ROWS, PST_TUPLE_LIMITS, UINT64_C(0xffffffff) << 32, (uint64_t)PST_KEY_FAMILY << PST_KEY_FAMILY_SHIFT, 0);
	put_tuple(TUPLE_RULES, PST_TUPLE_RULES, 0, 0xffff, 0);
	fair.link = (struct pst_link){ .tuple_first = TUPLE_ROWS, .tuple_count = 2, .unmatched_class = PST_NONE };
	for (i = 0; i < CLASSES; i++)
		put_class(i);
	fair.places[LINK] = (struct pst_tree_place){
		.terms = { 0, rate_Bps, 1, 0 }, .parent = PST_NONE, .first_child = 0, .next_sibling = PST_NONE, .link = LINK,
		.profile = PST_NONE, .users = PST_NONE, .slice = PST_NONE, .first_user = PST_NONE,
	};
}

/* A class whose users have entries. */
static inline void fair_entries(uint32_t class_index)
{
	fair.places[class_index].users = TUPLE_USERS_V4;
	fair.places[class_index].first_user = LINK + 1 + class_index * (ENTRIES + 1);
	fair.places[class_index].user_count = ENTRIES;
}

/* A class whose users have none. */
static inline void fair_slice(uint32_t class_index)
{
	struct pst_slice *slice = &fair.slices[class_index];

	fair.places[class_index].users = TUPLE_USERS_V4;
	fair.places[class_index].slice = class_index;
	slice->nominal_Bps = fair.places[LINK].terms.ceiling_Bps;
	slice->epoch_shift = PST_THRESHOLD_EPOCH_SHIFT;
	pst_lpf_scale_compile(&slice->scale, slice->nominal_Bps, 1, slice->tau_shift);
}

/* A limit of a class's own, in front of its share. */
static inline struct pst_profile *fair_limit(uint32_t class_index, uint64_t rate_Bps)
{
	fair.classes[class_index].limit_index = class_index;
	fair.limits[class_index] = (struct pst_limit){ pst_limiter_idle(START_NS), pst_rate_encode(rate_Bps), (uint16_t)(CLASSES + class_index), 0 };
	fair.profiles[CLASSES + class_index] =
		(struct pst_profile){ .burst_ticks = pst_clock_ticks(20 * MSEC), .mtu_bytes = MTU, .red_action = PST_ACTION_DROP };
	return &fair.profiles[CLASSES + class_index];
}

/* A row of a user of a class, with a limit that is above everything, and a weight below ROW_PROFILES. */
static inline void fair_row(uint32_t class_index, const struct pst_packet *packet, uint16_t weight)
{
	struct pst_profile *profile = &fair.profiles[2 * CLASSES + weight];

	*profile = (struct pst_profile){ .burst_ticks = pst_clock_ticks(MSEC), .mtu_bytes = MTU, .class_index = class_index, .weight = weight };
	put_entry(TUPLE_ROWS, packet, pst_rate_encode(PST_RATE_MAX_BPS), 2 * CLASSES + weight);
}

static inline struct pst_decision fair_decide(const struct pst_packet *packet, uint64_t now_ns)
{
	struct pst_decision decision;

	memset(&decision, 0x5a, sizeof(decision));
	pst_pipeline_decide(&decision, &fair.plane, packet, now_ns, pst_rng_next(&fair.rng));
	return decision;
}

static inline struct fair_source *fair_send(struct pst_packet packet, uint64_t rate_Bps)
{
	struct fair_source *source = &fair.sources[fair.source_count++];

	assert_true(fair.source_count <= SOURCES_MAX);
	source->packet = packet;
	source->rate_Bps = rate_Bps;
	source->next_ns = below(&fair.rng, 1000000);
	return source;
}

/* Everybody sends until then. Gaps are even but for 4 %, or two would keep step. What passes is what the host would let pass. */
static inline void fair_run(uint64_t until_ns)
{
	for (;;) {
		struct fair_source *source = NULL;
		struct pst_decision decision;
		uint32_t i;

		for (i = 0; i < fair.source_count; i++) {
			if (fair.sources[i].rate_Bps && (!source || fair.sources[i].next_ns < source->next_ns))
				source = &fair.sources[i];
		}
		if (!source || source->next_ns >= (double)until_ns)
			return;
		decision = fair_decide(&source->packet, START_NS + (uint64_t)source->next_ns);
		source->sent_bytes += source->packet.length;
		if (decision.shadow || decision.verdict != PST_VERDICT_DROP)
			source->passed_bytes += source->packet.length;
		if (!decision.shadow && decision.verdict == PST_VERDICT_MARK)
			source->marked_bytes += source->packet.length;
		source->next_ns += source->packet.length * 1e9 / (double)source->rate_Bps * (0.98 + below(&fair.rng, 1000) / 25000.0);
	}
}

/* The same, measured from one moment to the next. */
static inline void fair_measure(uint64_t from_ns, uint64_t until_ns)
{
	uint32_t i;

	fair_run(from_ns);
	for (i = 0; i < fair.source_count; i++)
		fair.sources[i].sent_bytes = fair.sources[i].passed_bytes = fair.sources[i].marked_bytes = 0;
	fair.measured_ns = until_ns - from_ns;
	fair_run(until_ns);
}

/* What has passed of a source since the measurement began, as a part of the link. */
static inline double fair_part_of(const struct fair_source *source)
{
	return (double)source->passed_bytes * 1e9 / (double)fair.measured_ns / (double)fair.places[LINK].terms.ceiling_Bps;
}

static inline double fair_part_of_all(void)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < fair.source_count; i++)
		sum += fair_part_of(&fair.sources[i]);
	return sum;
}

static inline void assert_near(double got, double wanted, double part)
{
	if (!(fabs(got - wanted) <= part * wanted))
		fail_msg("%.0f, should be %.0f to within %.3f", got, wanted, part);
}

/* tree.h I1, of classes and of entries. */
static inline void fair_assert_sums(void)
{
	struct pst_share_sums link = { 0, 0, 0, 0 };
	uint32_t i, k;

	for (i = 0; i < CLASSES; i++) {
		struct pst_share_sums users = { 0, 0, 0, 0 };

		pst_share_join(&link, &fair.nodes[i].part);
		for (k = 0; k <= ENTRIES && fair.places[i].user_count; k++)
			pst_share_join(&users, &fair.nodes[fair.places[i].first_user + k].part);
		assert_memory_equal(&users, &fair.nodes[i].children, sizeof(users));
	}
	assert_memory_equal(&link, &fair.nodes[LINK].children, sizeof(link));
}

#endif /* PENSTOCK_TEST_FAIR_PLANE_H */
