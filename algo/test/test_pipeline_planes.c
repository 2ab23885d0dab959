/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* pipeline.h on whole planes against ref_pipeline.h, and on golden vectors. */
#include "planes.h"
#include "ref_pipeline.h"
#include "single.h"
#include "vectors.h"

/* ---- whole planes ---- */

#define POLICIES 600U
#define PACKETS 300U
#define LIMITS (PLANES_ENTRIES + PLANES_CLASSES)

/* A random plane with a random limit in each row, and in some classes. Limits are numbered: rows, then classes. */
struct world {
	struct planes *p;
	struct pst_profile profiles[LIMITS];
	struct pst_limit limits[PLANES_CLASSES];
	struct pst_meter_state meters[LIMITS];
	struct ref_plane ref;
	struct ref_limit ref_limits[LIMITS];
	uint32_t class_limits[PLANES_CLASSES];
	uint32_t slots[LIMITS]; /* of each row */
	uint64_t waiting;       /* packets of every limit */
	ref_int now_ns;
	uint32_t seen[PST_REASON_COUNT];
};

static struct pst_profile random_profile(struct planes *p, uint32_t class_index)
{
	struct pst_profile profile = {
		.mtu_bytes = 1514, .class_index = class_index, .red_max_q32 = pst_rng_next(&p->rng),
		.second_rate = ref_rate_code(1000 + planes_draw(p, 1000000)),
		.meter = (uint8_t)planes_draw(p, 4), .flags = (uint8_t)planes_draw(p, 4),
		.yellow_action = (uint8_t)planes_draw(p, 7), .red_action = (uint8_t)planes_draw(p, 7),
		.yellow_dscp = (uint8_t)planes_draw(p, 64), .red_dscp = (uint8_t)planes_draw(p, 64),
	};

	if (planes_draw(p, 3) == 0)
		profile.red_action = PST_ACTION_HOLD;
	if (planes_draw(p, 2)) {
		profile.hold_ticks = planes_draw(p, 3) * pst_clock_ticks(planes_draw(p, 100000000));
		profile.hold_bytes = planes_draw(p, 3) * planes_draw(p, 10000);
		profile.ce_ns = planes_draw(p, 3) * planes_draw(p, 20000000);
	}
	if (planes_draw(p, 2)) {
		profile.burst_bytes = planes_draw(p, 20000);
		profile.excess_bytes = planes_draw(p, 20000);
	} else {
		profile.burst_ticks = pst_clock_ticks(planes_draw(p, 50000000));
		profile.excess_ticks = pst_clock_ticks(planes_draw(p, 50000000));
	}
	return profile;
}

/* Makes limit `i`, and tells what the table's words for it are. Every twentieth has no rate: unlimited. */
static struct pst_limit world_limit(struct world *w, uint32_t i, uint32_t class_index)
{
	ref_int idle = ref_limiter_idle(w->now_ns);
	uint32_t rate = planes_draw(w->p, 20) ? ref_rate_code(1000 + planes_draw(w->p, 1000000)) : 0;
	struct pst_limit limit = { (uint64_t)idle, rate, (uint16_t)i, (uint16_t)(7 * i) };

	w->profiles[i] = random_profile(w->p, class_index);
	ref_limit_init(&w->ref_limits[i], &w->profiles[i], rate, w->now_ns, idle);
	if (w->profiles[i].meter != PST_METER_WINDOW) {
		w->meters[i] = (struct pst_meter_state){ (uint64_t)idle, (uint64_t)idle };
		limit.state = i;
	}
	return limit;
}

static void world_rows(struct world *w)
{
	uint32_t bucket, slot;

	for (bucket = 0; bucket < PLANES_BUCKETS; bucket++) {
		for (slot = 0; slot < PST_BUCKET_SLOTS; slot++) {
			struct pst_bucket *at = &w->p->limiter_buckets[bucket];
			uint32_t row = (uint32_t)at->states[slot];
			struct pst_limit limit;

			if (!at->keys[slot])
				continue;
			limit = world_limit(w, row, (uint16_t)at->keys[slot]);
			at->keys[slot] = (at->keys[slot] & ~UINT64_C(0xffff)) | limit.profile;
			at->states[slot] = limit.state;
			at->rates[slot] = limit.rate;
			w->slots[row] = bucket * PST_BUCKET_SLOTS + slot;
		}
	}
}

static struct world *world_new(uint32_t seed)
{
	struct world *w = calloc(1, sizeof(*w));
	struct pst_plane *plane;
	uint32_t i, rows;

	assert_non_null(w);
	w->p = planes_new(seed);
	/* Times begin shortly before the ticks wrap, or the nanoseconds do. */
	w->now_ns = ((ref_int)1 << (seed % 2 ? 54 : 64)) - planes_draw(w->p, 2000000000);
	world_rows(w);
	plane = &w->p->plane;
	rows = w->p->row_count;
	for (i = 0; i < PLANES_CLASSES; i++) {
		w->class_limits[i] = PST_NONE;
		if (planes_draw(w->p, 3) == 0)
			continue;
		w->class_limits[i] = rows + i;
		w->limits[i] = world_limit(w, rows + i, i);
		w->p->classes[i].limit_index = i;
	}
	for (i = 0; i < plane->link_count; i++) {
		w->p->links[i].overhead_bytes = planes_draw(w->p, 40);
		w->p->links[i].unmatched_action = planes_draw(w->p, 2) ? PST_ACTION_DROP : PST_ACTION_PASS;
		w->p->links[i].malformed_action = planes_draw(w->p, 2) ? PST_ACTION_DROP : PST_ACTION_PASS;
	}
	plane->profiles = w->profiles;
	plane->profile_count = rows + PLANES_CLASSES;
	plane->limits = w->limits;
	plane->limit_count = PLANES_CLASSES;
	plane->meters = w->meters;
	plane->meter_count = rows + PLANES_CLASSES;
	plane->shapes = true;
	plane->waiting = &w->waiting;
	w->ref = (struct ref_plane){ w->p->policy, w->p->links, w->class_limits, w->ref_limits };
	return w;
}

static void world_free(struct world *w)
{
	free(w->p);
	free(w);
}

/* A packet; its key is one of a few, so that limits fill up. */
static struct pst_packet world_packet(struct world *w, struct pst_key *keys, struct ref_arrival *arrival)
{
	struct pst_packet packet = { .key = keys[planes_draw(w->p, 4)] };

	*arrival = (struct ref_arrival){
		.now_ns = w->now_ns, .length = 64 + planes_draw(w->p, 1437), .random = pst_rng_next(&w->p->rng),
		.is_ip = planes_draw(w->p, 10) > 0,
		.malformed = planes_draw(w->p, 20) ? PST_REASON_NONE : PST_REASON_SHORT_IPV4,
		.is_absent = planes_draw(w->p, 10) == 0, .is_full = planes_draw(w->p, 10) == 0,
		.is_waiting = planes_draw(w->p, 5) == 0,
	};
	if (arrival->is_ip)
		arrival->tos = (uint8_t)pst_rng_next(&w->p->rng);
	packet.length = arrival->length;
	packet.network_family = arrival->is_ip ? 6 : 0;
	packet.network_tos = arrival->tos;
	packet.reason = arrival->malformed;
	return packet;
}

static void assert_state(const struct world *w, uint32_t i, uint64_t state)
{
	uint64_t words[2];

	ref_limit_words(&w->ref_limits[i], words);
	if (w->profiles[i].meter == PST_METER_WINDOW) {
		assert_int_equal(state, words[0]);
	} else {
		assert_int_equal(w->meters[i].committed_ticks, words[0]);
		assert_int_equal(w->meters[i].excess_ticks, words[1]);
	}
}

/* Of the window: what the limit's state was before, or 0. */
static uint64_t *world_state(struct world *w, const struct pst_decision *decision)
{
	struct pst_table table = { w->p->limiter_buckets, PLANES_BUCKETS };

	if (decision->slot != PST_NONE)
		return pst_table_state(&table, decision->slot);
	return decision->limit_index != PST_NONE ? &w->limits[decision->limit_index].state : NULL;
}

/* Whoever holds packets is as the arrival has it. */
static void world_hold(struct world *w, const struct ref_arrival *arrival)
{
	w->waiting = arrival->is_waiting;
	w->p->plane.is_holder_absent = arrival->is_absent;
	w->p->plane.room_chunks = arrival->is_full ? pst_hold_chunks(arrival->length) - 1 : 2;
}

/* Who the limit is to those that count what waits: of a row, what follows from its value. */
static uint32_t world_owner(const struct world *w, const struct pst_decision *decision, uint32_t number)
{
	const struct ref_candidate *row = w->p->candidates;
	uint64_t sum = 0;
	int i;

	if (decision->slot == PST_NONE)
		return w->limits[decision->limit_index].owner;
	while (row->row != number)
		row++;
	for (i = 0; i < PST_KEY_WORDS; i++) {
		sum = (sum ^ row->value.words[i]) * UINT64_C(0x9e3779b97f4a7c15);
		sum ^= sum >> 32;
	}
	return (uint32_t)sum;
}

/* I1, I3, I6, of any decision. */
static void assert_sound(const struct pst_decision *decision, const struct ref_arrival *arrival)
{
	uint64_t late_ns = decision->departure_ns - (uint64_t)arrival->now_ns;

	switch (decision->verdict) {
	case PST_VERDICT_PASS:
		assert_int_equal(decision->reason, arrival->malformed);
		break;
	case PST_VERDICT_MARK:
		assert_true(arrival->is_ip);
		assert_true(decision->reason == PST_REASON_CE_MARK || decision->reason == PST_REASON_DSCP_MARK);
		break;
	case PST_VERDICT_DROP:
		assert_true(decision->reason != PST_REASON_NONE);
		break;
	default:
		assert_int_equal(decision->verdict, PST_VERDICT_HOLD);
		assert_true(decision->reason == PST_REASON_HELD || decision->reason == PST_REASON_HELD_CE);
	}
	if (decision->reason == PST_REASON_CE_MARK || decision->reason == PST_REASON_HELD_CE)
		assert_true(arrival->tos & 3);
	if (decision->verdict != PST_VERDICT_HOLD)
		assert_int_equal(late_ns, 0);
	else
		assert_true(late_ns > 0 || arrival->is_waiting);
	assert_true(late_ns < PST_AHEAD_MAX_TICKS >> PST_TICK_BITS);
}

static void world_check(struct world *w, const struct pst_packet *packet, const struct ref_arrival *arrival,
			const struct pst_decision *decision)
{
	struct pst_decision expected = ref_pipeline_decide(&w->ref, &packet->key, arrival);
	uint32_t number = PST_NONE;
	uint64_t *state;

	if (expected.slot != PST_NONE) {
		number = expected.slot;
		expected.slot = w->slots[number];
	} else if (expected.limit_index != PST_NONE) {
		number = expected.limit_index;
		expected.limit_index -= w->p->row_count;
	}
	if (number != PST_NONE && w->profiles[number].red_action == PST_ACTION_HOLD)
		expected.owner = world_owner(w, decision, number);
	assert_memory_equal(decision, &expected, sizeof(*decision));
	assert_sound(decision, arrival);
	state = world_state(w, decision);
	assert_true((state != NULL) == (number != PST_NONE));
	if (state)
		assert_state(w, number, *state);
	w->seen[decision->reason]++;
}

/* Some packets, as a batch or one by one. Each is checked before the next is judged. */
static void world_step(struct world *w, struct pst_key *keys)
{
	struct pst_packet packets[PST_BATCH_MAX];
	struct ref_arrival arrivals[PST_BATCH_MAX];
	uint32_t i, count = 1 + planes_draw(w->p, PST_BATCH_MAX);
	bool is_batch = planes_draw(w->p, 2);
	struct pst_batch batch;

	memset(&batch, 0xa5, sizeof(batch));
	pst_batch_start(&batch, &w->p->plane);
	for (i = 0; i < count; i++) {
		packets[i] = world_packet(w, keys, &arrivals[i]);
		if (is_batch)
			pst_batch_add(&batch, &w->p->plane, &packets[i]);
		if (planes_draw(w->p, 3) == 0)
			w->now_ns += planes_draw(w->p, 4000000);
	}
	if (is_batch)
		pst_batch_classify(&batch, &w->p->plane, packets);
	for (i = 0; i < count; i++) {
		uint64_t now_ns = (uint64_t)arrivals[i].now_ns;
		struct pst_decision decision;

		memset(&decision, 0xa5, sizeof(decision));
		world_hold(w, &arrivals[i]);
		if (is_batch)
			pst_pipeline_judge(&decision, &w->p->plane, &packets[i],
					   pst_batch_match(&batch, &w->p->plane, i, &packets[i].key), now_ns,
					   arrivals[i].random);
		else
			pst_pipeline_decide(&decision, &w->p->plane, &packets[i], now_ns, arrivals[i].random);
		world_check(w, &packets[i], &arrivals[i], &decision);
	}
}

/* I1, I3, I6 and, through the reference, I2 and I5; decisions and states of whole planes, bit for bit. */
static void test_planes_as_the_reference(void **state)
{
	static const uint8_t reasons[] = {
		PST_REASON_NONE,     PST_REASON_OVER_RATE, PST_REASON_EARLY_DROP, PST_REASON_YELLOW,    PST_REASON_CE_MARK,
		PST_REASON_DSCP_MARK, PST_REASON_HELD,      PST_REASON_UNMATCHED,  PST_REASON_SHORT_IPV4, PST_REASON_HORIZON,
		PST_REASON_HELD_CE,  PST_REASON_BACKLOG,   PST_REASON_NO_ROOM,    PST_REASON_NO_SHAPER,
	};
	uint32_t seed, i, seen[PST_REASON_COUNT] = { 0 };

	(void)state;
	for (seed = 0; seed < POLICIES; seed++) {
		struct world *w = world_new(seed);
		struct pst_key keys[4];

		for (i = 0; i < 4; i++)
			keys[i] = planes_key(w->p);
		for (i = 0; i < PACKETS / (PST_BATCH_MAX / 2); i++)
			world_step(w, keys);
		for (i = 0; i < PST_REASON_COUNT; i++)
			seen[i] += w->seen[i];
		world_free(w);
	}
	for (i = 0; i < sizeof(reasons); i++)
		assert_in_range(seen[reasons[i]], 100, UINT32_MAX);
}

/* ---- golden vectors ---- */

static const char *const meters[] = { "window", "rfc2697", "rfc2698", "rfc4115" };
static const char *const actions[] = { "pass", "drop", "mark", "dscp", "red", "hold" };
static const char *const verdicts[] = { "pass", "mark", "drop", "hold" };
static const char *const reasons[] = { "none", "over_rate", "early_drop", "yellow", "ce_mark", "dscp_mark", "held",
				       "unmatched", "table_busy", "horizon", "held_ce", "backlog" };

static void read_limit(struct vectors *v, struct single *one)
{
	uint64_t second_rate_Bps = vectors_in_or(v, "second_rate_Bps", 0);
	const char *words = vectors_in_text(v, "state");
	struct pst_profile profile = {
		.meter = vectors_name(v, vectors_in_text(v, "meter"), meters, 4),
		.second_rate = second_rate_Bps ? pst_rate_encode(second_rate_Bps) : 0,
		.burst_ticks = vectors_in_or(v, "burst_ticks", 0),
		.burst_bytes = (uint32_t)vectors_in_or(v, "burst_bytes", 0),
		.excess_ticks = vectors_in_or(v, "excess_ticks", 0),
		.excess_bytes = (uint32_t)vectors_in_or(v, "excess_bytes", 0),
		.mtu_bytes = (uint32_t)vectors_in_or(v, "mtu_bytes", 0),
		.yellow_action = vectors_name(v, vectors_in_text(v, "yellow"), actions, 6),
		.red_action = vectors_name(v, vectors_in_text(v, "red"), actions, 6),
		.yellow_dscp = (uint8_t)vectors_in_or(v, "yellow_dscp", 0),
		.red_dscp = (uint8_t)vectors_in_or(v, "red_dscp", 0),
		.red_max_q32 = (uint32_t)vectors_in_or(v, "red_max", 0),
		.hold_ticks = vectors_in_or(v, "hold_ticks", 0),
		.hold_bytes = (uint32_t)vectors_in_or(v, "hold_bytes", 0),
		.ce_ns = (uint32_t)vectors_in_or(v, "ce_ns", 0),
	};

	if (vectors_in_or(v, "color_aware", 0))
		profile.flags |= PST_PROFILE_COLOR_AWARE;
	if (vectors_in_or(v, "shadow", 0))
		profile.flags |= PST_PROFILE_SHADOW;
	single_init(one, &profile, pst_rate_encode(vectors_in(v, "rate_Bps")));
	one->link.overhead_bytes = (uint32_t)vectors_in(v, "overhead");
	if (profile.meter == PST_METER_WINDOW) {
		one->limit.state = vectors_number(v, words, 0);
	} else {
		one->meter.committed_ticks = vectors_number(v, words, 0);
		one->meter.excess_ticks = vectors_number(v, words, 1);
	}
}

static void check_packet(struct vectors *v, struct single *one)
{
	struct pst_packet packet = { .length = (uint32_t)vectors_in(v, "length") };
	const char *words = vectors_out_text(v, "state");
	struct pst_decision decision;

	if (vectors_has(v, "tos")) {
		packet.network_family = 4;
		packet.network_tos = (uint8_t)vectors_in(v, "tos");
	}
	pst_pipeline_decide(&decision, &one->plane, &packet, vectors_in(v, "now"),
			    (uint32_t)vectors_in(v, "random"));
	assert_int_equal(decision.verdict, vectors_name(v, vectors_out_text(v, "verdict"), verdicts, 4));
	assert_int_equal(decision.color, vectors_color(v, vectors_out_text(v, "color")));
	assert_int_equal(decision.reason, vectors_name(v, vectors_out_text(v, "reason"), reasons, 12));
	assert_int_equal(decision.departure_ns, vectors_out(v, "departure"));
	assert_int_equal(decision.shadow, (one->profile.flags & PST_PROFILE_SHADOW) != 0);
	if (decision.reason == PST_REASON_DSCP_MARK)
		assert_int_equal(decision.dscp, vectors_out(v, "dscp"));
	if (one->profile.meter == PST_METER_WINDOW) {
		assert_int_equal(one->limit.state, vectors_number(v, words, 0));
	} else {
		assert_int_equal(one->meter.committed_ticks, vectors_number(v, words, 0));
		assert_int_equal(one->meter.excess_ticks, vectors_number(v, words, 1));
	}
}

static void test_golden_vectors(void **state)
{
	struct vectors v;
	struct single one;

	(void)state;
	vectors_open(&v, "vectors/pipeline.txt");
	while (vectors_next(&v)) {
		if (vectors_is(&v, "limit"))
			read_limit(&v, &one);
		else if (vectors_is(&v, "packet"))
			check_packet(&v, &one);
		else
			fail_msg("%s:%u: unknown verb %s", v.path, v.line, v.verb);
	}
	assert_true(v.directives > 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_planes_as_the_reference),
		cmocka_unit_test(test_golden_vectors),
	};

	return cmocka_run_group_tests_name("pipeline_planes", tests, NULL, NULL);
}
