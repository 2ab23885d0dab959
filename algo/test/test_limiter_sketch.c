/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include <math.h>
#include <string.h>

#include "vectors.h"

#include <penstock/limiter_sketch.h>

#include "cells.h"
#include "ref_limiter_sketch.h"
#include "schedule.h"

#define USERS REF_LIMITER_SKETCH_USERS
#define COLUMN_BITS_MAX 8
#define RUNS 300
#define RUN_PACKETS 200

static struct {
	uint64_t words[2 * PST_SKETCH_ROWS_MAX << COLUMN_BITS_MAX];
	struct pst_plane plane;
	struct ref_limiter_sketch slow;
	bool is_clean[USERS]; /* nobody has pushed its limiter since it was empty */
	uint32_t reds, pushed, crowded, stale; /* how often: a test of what never happens tests nothing */
} run;

static uint64_t name_of(uint32_t user)
{
	return (uint64_t)user * 521 << 20 | 1;
}

static uint64_t ticks_of(ref_int now_ns)
{
	return pst_clock_ticks((uint64_t)now_ns);
}

/* Empty words, or ones so far ahead that they can only be left over. */
static void start(uint64_t *rng, uint32_t rows, uint32_t column_bits, uint32_t users, ref_int now_ns)
{
	uint32_t row, user, i;

	memset(&run.slow, 0, sizeof(run.slow));
	run.plane = (struct pst_plane){ .filters = run.words, .filter_count = 2 * rows << column_bits, .sketch = { .rows = rows, .column_bits = column_bits } };
	for (i = 0; i < run.plane.filter_count; i++) {
		run.words[i] = (uint64_t)(ref_limiter_idle(now_ns) - (ref_int)(draw(rng) >> 3));
		if (below(rng, 4) == 0)
			run.words[i] = ticks_of(now_ns) + PST_AHEAD_MAX_TICKS + (UINT64_C(1) << 58) + (draw(rng) >> 3);
	}
	ref_limiter_sketch_start(&run.slow, rows, users, now_ns);
	for (row = 0; row < rows; row++) {
		run.plane.sketch.seeds[row] = draw(rng);
		for (user = 0; user < users; user++)
			run.slow.columns[row][user] = pst_sketch_column(name_of(user), run.plane.sketch.seeds[row], column_bits);
	}
	for (user = 0; user < USERS; user++)
		run.is_clean[user] = true;
}

/* One packet, as fair.h takes it. */
static uint8_t take(const struct pst_limiter_profile *profile, uint64_t user, uint64_t now_ns, uint32_t bytes)
{
	const struct pst_sketch_cells *cells = cells_of(&run.plane, user);
	uint32_t index = pst_limiter_sketch_find(&run.plane, cells, now_ns);
	uint8_t color = pst_limiter_take(profile, &run.words[index], now_ns, bytes);

	if (color != PST_COLOR_RED)
		pst_limiter_sketch_raise(&run.plane, cells, index, now_ns);
	return color;
}

static uint64_t queue_of(const struct pst_limiter_profile *profile, uint64_t user, uint64_t now_ns)
{
	return pst_limiter_queue(profile, run.words[pst_limiter_sketch_find(&run.plane, cells_of(&run.plane, user), now_ns)], now_ns);
}

static ref_int slow_queue(const struct ref_limiter_profile *profile, ref_int vft_ticks, ref_int now_ns)
{
	ref_int queue = vft_ticks - (now_ns * REF_TICKS_PER_NSEC - profile->window_ticks);

	return queue > 0 ? queue : 0;
}

static void draw_profile(uint64_t *rng, struct pst_limiter_profile *profile, struct ref_limiter_profile *slow)
{
	const struct pst_profile terms = { .burst_ticks = pst_clock_ticks(below(rng, 100000)), .excess_ticks = pst_clock_ticks(below(rng, 50000)),
					   .mtu_bytes = MTU_BYTES };
	uint32_t rate = pst_rate_encode(UINT64_C(100000000) + (draw(rng) >> 34));

	pst_limiter_resolve(profile, &terms, rate);
	*slow = ref_limiter_resolve(&terms, rate);
}

/* I1 and I2 of all users, at one moment. */
static void check_users(const struct pst_limiter_profile *profile, const struct ref_limiter_profile *slow, ref_int now_ns)
{
	ref_int idle_ticks = now_ns * REF_TICKS_PER_NSEC - slow->window_ticks;
	uint32_t user;

	for (user = 0; user < run.slow.count; user++) {
		uint64_t queue = queue_of(profile, name_of(user), (uint64_t)now_ns);
		ref_int alone = slow_queue(slow, run.slow.alone[user], now_ns);
		bool is_crowded = ref_limiter_sketch_is_crowded(&run.slow, user, idle_ticks);

		assert_true((ref_int)queue == slow_queue(slow, ref_limiter_sketch_vft(&run.slow, user), now_ns));
		assert_true((ref_int)queue >= alone);
		if (run.is_clean[user] && !is_crowded)
			assert_true((ref_int)queue == alone);
		run.pushed += (ref_int)queue > alone;
		run.crowded += is_crowded;
	}
}

/* One packet of anybody: its colour is ref/'s, and I3. */
static void check_packet(uint64_t *rng, const struct pst_limiter_profile *profile, const struct ref_limiter_profile *slow, ref_int now_ns)
{
	uint32_t sender = below(rng, run.slow.count), bytes = draw_bytes(rng), user;
	ref_int idle_ticks = now_ns * REF_TICKS_PER_NSEC - slow->window_ticks, alone = run.slow.alone[sender];
	uint64_t before[USERS];
	uint8_t color;

	for (user = 0; user < run.slow.count; user++)
		before[user] = queue_of(profile, name_of(user), (uint64_t)now_ns);
	if (ref_limiter_sketch_vft(&run.slow, sender) <= idle_ticks)
		run.is_clean[sender] = true;
	else if (ref_limiter_sketch_is_crowded(&run.slow, sender, idle_ticks))
		run.is_clean[sender] = false;
	color = take(profile, name_of(sender), (uint64_t)now_ns, bytes);
	assert_int_equal(color, ref_limiter_sketch_take(&run.slow, slow, sender, now_ns, bytes).color);
	if (color != PST_COLOR_RED) /* so what passes is no more than a limiter of its own lets pass (limiter.h I1) */
		assert_int_not_equal(ref_limiter_try(slow, alone, now_ns, bytes).color, PST_COLOR_RED);
	run.reds += color == PST_COLOR_RED;
	for (user = 0; user < run.slow.count; user++) {
		uint64_t after = queue_of(profile, name_of(user), (uint64_t)now_ns);

		assert_true(after >= before[user]);
		if (user == sender && color != PST_COLOR_RED)
			assert_int_equal(after - before[user], pst_rate_cost(profile->rate, bytes));
	}
}

/*
 * I1 to I4, with so few columns that users meet: users of all kinds, rates that change, a clock that steps back and wraps, words left from long ago.
 */
static void equals_reference(void **state)
{
	uint64_t rng = pst_rng_seed(1);
	uint32_t i, k;

	(void)state;
	for (i = 0; i < RUNS; i++) {
		ref_int now_ns = draw_start_ns(&rng);
		struct pst_limiter_profile profile;
		struct ref_limiter_profile slow;

		start(&rng, 1 + i % PST_SKETCH_ROWS_MAX, below(&rng, 5), 1 + below(&rng, 24), now_ns);
		draw_profile(&rng, &profile, &slow);
		for (k = 0; k < RUN_PACKETS; k++) {
			now_ns += below(&rng, 100) ? below(&rng, 20000) : below(&rng, 400000);
			if (below(&rng, 16) == 0)
				draw_profile(&rng, &profile, &slow);
			check_packet(&rng, &profile, &slow, now_ns - (now_ns < 3000 || below(&rng, 4) ? 0 : below(&rng, 3000)));
			check_users(&profile, &slow, now_ns);
		}
	}
	assert_true(run.reds > 1000);
	assert_true(run.pushed > 10000);
	assert_true(run.crowded > 10000);
}

/* I4: as full as a limiter can wait, and one tick more. */
static void what_is_too_far_ahead_is_empty(void **state)
{
	const uint64_t now_ns = UINT64_C(1) << 40, now = pst_clock_ticks(now_ns);
	const uint64_t words[] = { now + PST_AHEAD_MAX_TICKS + 1, now + PST_AHEAD_MAX_TICKS, now + 1, now, now - 1, now - (UINT64_C(1) << 62) };
	const int64_t ahead[] = { INT64_MIN, (int64_t)PST_AHEAD_MAX_TICKS, 1, 0, -1, -(INT64_C(1) << 62) };
	const struct pst_sketch_cells *cells;
	uint64_t rng = pst_rng_seed(2);
	uint32_t i;

	(void)state;
	for (i = 0; i < 6; i++)
		assert_true(pst_limiter_sketch_ahead(words[i], now) == ahead[i]);
	start(&rng, 3, 2, 1, (ref_int)now_ns);
	cells = cells_of(&run.plane, 1);
	for (i = 0; i < 3; i++)
		run.words[pst_limiter_sketch_index(&run.plane.sketch, cells, i)] = words[2];
	for (i = 0; i < 3; i++) { /* it is the emptiest, wherever it lies; and is caught up with the others, not they with it */
		uint32_t index = pst_limiter_sketch_index(&run.plane.sketch, cells, i);

		run.words[index] = words[0];
		assert_int_equal(pst_limiter_sketch_find(&run.plane, cells, now_ns), index);
		pst_limiter_sketch_raise(&run.plane, cells, pst_limiter_sketch_index(&run.plane.sketch, cells, (i + 1) % 3), now_ns);
		assert_int_equal(run.words[index], words[2]);
	}
}

/*
 * I2 as a count-min sketch has it: b users are busy, in c columns of r rows. One more meets any of them in a row with a probability of b/c at most, and is
 * held back by others with one of (b/c)^r at most: over the seeds.
 */
static void strangers_are_held_back_as_seldom_as_rows_meet(void **state)
{
	const uint32_t trials = 20000, busy = 16, column_bits = 6;
	const struct pst_limiter_profile profile = { pst_clock_ticks(1000000), pst_clock_ticks(1000000), pst_rate_encode(12500000), false };
	const ref_int now_ns = (ref_int)1 << 50;
	uint64_t rng = pst_rng_seed(3);
	uint32_t rows, trial, user;

	(void)state;
	for (rows = 1; rows <= PST_SKETCH_ROWS_MAX; rows++) {
		double meets = 1 - pow(1 - 1.0 / (1 << column_bits), busy), wanted = pow(meets, rows) * trials;
		uint32_t held = 0;

		for (trial = 0; trial < trials; trial++) {
			start(&rng, rows, column_bits, 0, now_ns);
			for (user = 0; user < busy; user++)
				take(&profile, name_of(user), (uint64_t)now_ns, 1500);
			held += queue_of(&profile, name_of(busy + below(&rng, 1000)), (uint64_t)now_ns) != 0;
		}
		assert_true(held <= pow((double)busy / (1 << column_bits), rows) * trials);
		assert_true(fabs(held - wanted) < 5 * sqrt(wanted));
	}
}

/* Limiters lie behind the filters, in the same order; a sketch that has none, or some, is used as far as it goes. */
static void lies_behind_the_filters(void **state)
{
	const ref_int now_ns = (ref_int)1 << 50;
	uint64_t rng = pst_rng_seed(4);
	uint32_t i, row;

	(void)state;
	for (i = 0; i < 10000; i++) {
		uint32_t rows = 1 + below(&rng, PST_SKETCH_ROWS_MAX), bits = below(&rng, 5);
		uint64_t user = draw(&rng);
		struct pst_sketch *sketch = &run.plane.sketch;
		const struct pst_sketch_cells *cells;

		start(&rng, rows, bits, 0, now_ns);
		cells = cells_of(&run.plane, user);
		for (row = 0; row < rows; row++)
			assert_int_equal(pst_limiter_sketch_index(sketch, cells, row), pst_sketch_index(sketch, row, user) + (rows << bits));
		run.plane.filter_count = (rows + 1) << bits; /* the first row */
		row = pst_limiter_sketch_index(sketch, cells, 0);
		assert_int_equal(pst_limiter_sketch_find(&run.plane, cells, (uint64_t)now_ns), row);
		pst_limiter_sketch_raise(&run.plane, cells, row, (uint64_t)now_ns);
		run.plane.filter_count = rows << bits;
		assert_int_equal(pst_limiter_sketch_find(&run.plane, cells, (uint64_t)now_ns), PST_NONE);
		pst_limiter_sketch_raise(&run.plane, cells, row, (uint64_t)now_ns);
		sketch->column_bits = 77;
		cells = cells_of(&run.plane, user);
		assert_in_range(pst_limiter_sketch_index(sketch, cells, rows - 1), 0, 2U * PST_SKETCH_ROWS_MAX << PST_SKETCH_COLUMN_BITS_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_reference),
		cmocka_unit_test(what_is_too_far_ahead_is_empty),
		cmocka_unit_test(strangers_are_held_back_as_seldom_as_rows_meet),
		cmocka_unit_test(lies_behind_the_filters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
