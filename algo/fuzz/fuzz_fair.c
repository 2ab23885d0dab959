/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Any bytes as the memory of shares, any links between places, any packets: what is not there is not touched, every loop ends, and every packet has
 * one verdict. A killed process or a program of another build may have left such memory; rates and weights are those that a policy may have.
 *
 * An input is a number of packets' worth of bytes, which are gone through again and again.
 */
#include <penstock/pipeline.h>

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define CLASSES 5
#define PLACES (CLASSES + 1)
#define NODES 24
#define SLICES 2
#define FILTERS 48 /* 3 rows of 8, and as many limiters */
#define COUNTDOWNS 4
#define PACKETS 40

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

struct source {
	const uint8_t *bytes;
	size_t size, at;
};

static void fill(struct source *source, void *out, size_t bytes)
{
	uint8_t *to = out;
	size_t i;

	for (i = 0; i < bytes; i++) {
		to[i] = source->bytes[source->at];
		source->at = (source->at + 1) % source->size;
	}
}

static uint32_t draw(struct source *source)
{
	uint32_t word;

	fill(source, &word, sizeof(word));
	return word;
}

static uint64_t draw_wide(struct source *source)
{
	return (uint64_t)draw(source) << 32 | draw(source);
}

/* Mostly something that is there. */
static uint32_t draw_index(struct source *source, uint32_t count)
{
	uint32_t word = draw(source);

	if (word % 8 == 0)
		return PST_NONE;
	return word % 8 == 1 ? word : word / 8 % count;
}

static void draw_place(struct source *source, struct pst_tree_place *place)
{
	place->terms.guarantee_Bps = draw_wide(source) >> 27;
	place->terms.ceiling_Bps = draw_wide(source) >> 27;
	place->terms.weight = draw(source) >> 8;
	place->parent = draw_index(source, PLACES);
	place->first_child = draw(source) % 4 ? PST_NONE : draw_index(source, PLACES);
	place->next_sibling = draw_index(source, PLACES);
	place->link = draw_index(source, PLACES);
	place->profile = draw_index(source, 2);
	place->users = draw_index(source, 2);
	place->slice = draw_index(source, SLICES);
	place->first_user = draw_index(source, NODES);
	place->user_count = draw(source) % 2 ? draw(source) % 16 : draw(source);
}

static void draw_slice(struct source *source, struct pst_slice *slice)
{
	fill(source, &slice->threshold, sizeof(slice->threshold));
	slice->nominal_Bps = draw_wide(source) >> 27;
	slice->tau_shift = PST_LPF_TAU_SHIFT;
	slice->epoch_shift = PST_THRESHOLD_EPOCH_SHIFT;
	slice->flags = draw(source); /* PST_SLICE_LIMITERS among them */
	pst_lpf_scale_compile(&slice->scale, slice->nominal_Bps, 1, slice->tau_shift);
}

static void decide(struct source *source, const struct pst_plane *plane)
{
	struct pst_decision decision;
	struct pst_packet packet;
	struct pst_fair fair;
	uint64_t now_ns = draw_wide(source);

	memset(&fair, 0xa5, sizeof(fair));
	fill(source, &packet, sizeof(packet));
	pst_decision_start(&decision, 0);
	decision.departure_ns = now_ns;
	decision.length = draw(source) % (PST_LENGTH_MAX + 1);
	decision.class_index = draw_index(source, CLASSES);
	decision.slot = draw(source) % 2 ? PST_NONE : draw(source) % 6; /* what found the row says where it is */
	pst_fair_apply(&decision, plane, &packet, &fair, now_ns, draw(source));
	if (decision.verdict > PST_VERDICT_HOLD || decision.reason >= PST_REASON_COUNT)
		abort();
	pst_tree_tend(plane, draw_index(source, PLACES), now_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static struct pst_tree_place places[PLACES];
	static struct pst_tree_node nodes[NODES];
	static struct pst_slice slices[SLICES];
	static uint64_t filters[FILTERS], countdowns[COUNTDOWNS];
	static struct pst_class classes[CLASSES];
	static struct pst_profile profiles[2];
	static struct pst_tuple tuples[2];
	static struct pst_bucket buckets[2];
	struct pst_plane plane = {
		.places = places, .nodes = nodes, .slices = slices, .filters = filters, .countdowns = countdowns, .classes = classes,
		.profiles = profiles, .tuples = tuples, .place_count = PLACES, .node_count = NODES, .slice_count = SLICES,
		.filter_count = FILTERS, .countdown_count = COUNTDOWNS, .class_count = CLASSES, .profile_count = 2, .tuple_count = 2,
		.tables = { { buckets, 2 }, { buckets, 2 } }, .room_chunks = 100, .shapes = true, .uses_random = true,
	};
	struct source source = { input, size, 0 };
	uint32_t i;

	if (size == 0)
		return 0;
	for (i = 0; i < PLACES; i++)
		draw_place(&source, &places[i]);
	for (i = 0; i < SLICES; i++)
		draw_slice(&source, &slices[i]);
	fill(&source, nodes, sizeof(nodes));
	fill(&source, filters, sizeof(filters));
	fill(&source, countdowns, sizeof(countdowns));
	fill(&source, tuples, sizeof(tuples));
	fill(&source, buckets, sizeof(buckets));
	fill(&source, &plane.sketch, sizeof(plane.sketch));
	if (draw(&source) % 4) { /* mostly one that fits: all of its filters, and all, some or none of its limiters */
		plane.sketch.rows = plane.sketch.rows % PST_SKETCH_ROWS_MAX + 1;
		plane.sketch.column_bits %= 4;
		plane.filter_count = draw(&source) % 2 ? FILTERS : plane.sketch.rows << plane.sketch.column_bits;
	}
	for (i = 0; i < 2; i++) {
		memset(&profiles[i], 0, sizeof(profiles[i]));
		profiles[i].burst_ticks = pst_clock_ticks(draw(&source));
		profiles[i].mtu_bytes = 1514;
		profiles[i].weight = (uint16_t)draw(&source);
		profiles[i].yellow_action = (uint8_t)(draw(&source) % 6);
		profiles[i].red_action = draw(&source) % 2 ? PST_ACTION_HOLD : PST_ACTION_DROP;
		profiles[i].flags = (uint8_t)draw(&source);
	}
	for (i = 0; i < PACKETS; i++)
		decide(&source, &plane);
	return 0;
}
