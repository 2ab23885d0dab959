/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* pipeline.h in races: with other CPUs for one limiter, and with the writer of its table. */
#include <stddef.h>
#include <stdint.h>

/* The next so many commits find that a rival took one tick just before; and the last of them, that the writer came, too. */
static uint32_t rivals;
static void (*writer)(void);

/* The next addition finds that the writer came just before. */
static void (*late_writer)(void);

static uint64_t racing_cas(uint64_t *state, uint64_t old, uint64_t next)
{
	if (rivals > 0) {
		rivals--;
		__sync_fetch_and_add(state, 1);
		if (rivals == 0 && writer)
			writer();
	}
	return __sync_val_compare_and_swap(state, old, next);
}

/* Locks of trees: nobody races for them here. */
static uint32_t plain_cas(uint32_t *state, uint32_t old, uint32_t next)
{
	return __sync_val_compare_and_swap(state, old, next);
}

static uint64_t racing_add(uint64_t *state, uint64_t amount)
{
	void (*comes)(void) = late_writer;

	late_writer = NULL;
	if (comes)
		comes();
	return __sync_fetch_and_add(state, amount);
}

#define __sync_val_compare_and_swap(state, old, next) _Generic((state), uint32_t *: plain_cas, default: racing_cas)(state, old, next)
#define __sync_fetch_and_add(state, amount) racing_add(state, amount)
#include "single.h"
#undef __sync_val_compare_and_swap
#undef __sync_fetch_and_add

#include <pthread.h>

/* ---- other CPUs ---- */

#define THREADS 4U
#define ROUNDS 300U
#define TRIES 50U
#define RACE_BYTES 1000U
#define RACE_WINDOW_BYTES 40000U

struct race {
	struct single one;
	pthread_barrier_t barrier;
	uint64_t passed; /* in this round */
};

static void *race_thread(void *argument)
{
	struct race *race = argument;
	struct pst_packet packet = { .length = RACE_BYTES };
	uint32_t round, i, passed;

	for (round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&race->barrier);
		for (i = 0, passed = 0; i < TRIES; i++) {
			struct pst_decision decision;

			pst_pipeline_decide(&decision, &race->one.plane, &packet, single_round_ns(round), 0);
			passed += decision.verdict != PST_VERDICT_DROP;
		}
		__atomic_fetch_add(&race->passed, passed, __ATOMIC_RELAXED);
		pthread_barrier_wait(&race->barrier);
	}
	return NULL;
}

/*
 * limiter.h, Concurrency: whatever passes is charged, and at most one packet per other CPU passes above red. In each
 * round, one moment long, four threads want five times what fits.
 */
static void test_threads_on_one_limiter(void **state)
{
	struct pst_profile profile = {
		.burst_bytes = RACE_WINDOW_BYTES, .mtu_bytes = RACE_BYTES, .red_action = PST_ACTION_DROP,
	};
	uint32_t rate = pst_rate_encode(125000), round, i;
	uint64_t cost = pst_rate_cost(rate, RACE_BYTES), fits = RACE_WINDOW_BYTES / RACE_BYTES;
	struct race race = { .passed = 0 };
	pthread_t threads[THREADS];

	(void)state;
	single_init(&race.one, &profile, rate);
	pthread_barrier_init(&race.barrier, NULL, THREADS + 1);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, race_thread, &race), 0);
	for (round = 0; round < ROUNDS; round++) {
		uint64_t floor_ticks = pst_clock_ticks(single_round_ns(round)) - fits * cost;

		race.passed = 0;
		race.one.limit.state = floor_ticks;
		pthread_barrier_wait(&race.barrier);
		pthread_barrier_wait(&race.barrier);
		assert_true(race.passed >= fits && race.passed <= fits + THREADS - 1);
		assert_int_equal(race.one.limit.state, floor_ticks + race.passed * cost);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&race.barrier);
}

/* However often a race is lost, the packet is charged once, on top of what the rivals charged. */
static void test_lost_races(void **state)
{
	struct pst_profile profile = {
		.burst_bytes = RACE_WINDOW_BYTES, .mtu_bytes = RACE_BYTES, .red_action = PST_ACTION_DROP,
	};
	uint32_t rate = pst_rate_encode(125000), lost;
	struct pst_packet packet = { .length = RACE_BYTES };
	struct single one;

	(void)state;
	for (lost = 0; lost <= PST_CAS_TRIES; lost++) {
		uint64_t now_ticks = pst_clock_ticks(single_round_ns(0));

		single_init(&one, &profile, rate);
		one.limit.state = now_ticks;
		rivals = lost;
		assert_int_equal(single_decide(&one, &packet, 0).verdict, PST_VERDICT_DROP);
		assert_int_equal(one.limit.state, now_ticks); /* red does not race */
		one.limit.state = now_ticks - 2 * pst_rate_cost(rate, RACE_BYTES);
		assert_int_equal(single_decide(&one, &packet, 0).verdict, PST_VERDICT_PASS);
		assert_int_equal(rivals, 0);
		assert_int_equal(one.limit.state, now_ticks - pst_rate_cost(rate, RACE_BYTES) + lost);
	}
}

/* ---- the writer comes between the find and the judgement ---- */

/* A row that was read before the writer came. */
struct late {
	struct single one;
	struct pst_bucket buckets[64];
	struct pst_tuple tuple;
	struct pst_table table;
	struct pst_key key;
	struct pst_place place;
	struct pst_match match;
	struct pst_arrival arrival;
	uint64_t idle;
};

static struct late *late_new(void)
{
	static const struct pst_profile profile = { .burst_bytes = 3000, .mtu_bytes = 1500, .red_action = PST_ACTION_DROP };
	struct late *late = calloc(1, sizeof(*late));
	struct pst_table_insertion insertion;

	assert_non_null(late);
	single_init(&late->one, &profile, pst_rate_encode(125000));
	late->tuple = (struct pst_tuple){ .kind = PST_TUPLE_LIMITS, .specificity_q8 = 1 };
	late->one.link.tuple_count = 1;
	late->one.plane.tuples = &late->tuple;
	late->one.plane.tuple_count = 1;
	late->table = (struct pst_table){ late->buckets, 64 };
	late->one.plane.tables[PST_TUPLE_LIMITS] = late->table;
	late->idle = pst_limiter_idle(single_round_ns(0));
	late->place = pst_tuple_place(&late->one.plane, &late->tuple, &late->key);
	assert_int_equal(pst_table_insert(&late->table, &late->place,
					  &(struct pst_table_entry){ late->idle, pst_rate_encode(125000), 0 },
					  &insertion), PST_TABLE_DONE);
	late->arrival = (struct pst_arrival){ .now_ns = single_round_ns(0), .bytes = 1000 };
	pst_classify(&late->match, &late->one.plane, &late->key);
	assert_true(late->match.has_row);
	return late;
}

static struct pst_decision late_decide(struct late *late)
{
	struct pst_decision decision;

	pst_decision_start(&decision, 0);
	decision.departure_ns = late->arrival.now_ns;
	pst_pipeline_match(&decision, &late->one.plane, &late->match, &late->key, &late->arrival);
	return decision;
}

/* The state of an idle limiter of 6000 bytes' depth after `bytes`. */
static uint64_t late_state(uint64_t rate_Bps, uint32_t bytes)
{
	uint32_t rate = pst_rate_encode(rate_Bps);

	return pst_clock_ticks(single_round_ns(0)) - pst_rate_cost(rate, 3000) + pst_rate_cost(rate, bytes);
}

/* It moved, and another has its place: the charge follows it. */
static void test_moved_meanwhile(void **state)
{
	struct late *late = late_new();
	uint32_t from = pst_table_slot(&late->match.row);
	struct pst_table_move move = { from, late->place.second * PST_BUCKET_SLOTS + 2 };
	struct pst_bucket *old_bucket = &late->buckets[from / PST_BUCKET_SLOTS];
	struct pst_decision decision;

	(void)state;
	pst_table_shift(&late->table, move);
	pst_bucket_open(old_bucket);
	pst_bucket_put(old_bucket, from % PST_BUCKET_SLOTS, UINT64_C(77) << PST_TABLE_PROFILE_BITS, 5, late->idle + 1);
	pst_bucket_close(old_bucket);
	decision = late_decide(late);
	assert_int_equal(decision.verdict, PST_VERDICT_PASS);
	assert_int_equal(decision.slot, move.to_slot);
	assert_int_equal(*pst_table_state(&late->table, from), late->idle + 1);
	assert_int_equal(*pst_table_state(&late->table, move.to_slot), late_state(125000, 1000));
	free(late);
}

/* Its rate changed: it is charged, and judged, at the new one. */
static void test_changed_meanwhile(void **state)
{
	struct late *late = late_new();
	uint32_t slot = pst_table_slot(&late->match.row), rate = pst_rate_encode(250000);
	struct pst_limiter_profile before, after;
	struct pst_table_conversion conversion = { &before, &after, single_round_ns(0) };

	(void)state;
	pst_limiter_resolve(&before, &late->one.profile, pst_rate_encode(125000));
	pst_limiter_resolve(&after, &late->one.profile, rate);
	pst_table_change(&late->table, slot, 0, rate, &conversion);
	assert_int_equal(late_decide(late).color, PST_COLOR_GREEN);
	assert_int_equal(*pst_table_state(&late->table, slot), late_state(250000, 1000));
	free(late);
}

/* It was removed: nothing is charged. */
static void test_removed_meanwhile(void **state)
{
	struct late *late = late_new();
	uint32_t slot = pst_table_slot(&late->match.row);

	(void)state;
	pst_table_remove(&late->table, slot);
	assert_int_equal(late_decide(late).verdict, PST_VERDICT_PASS);
	assert_int_equal(*pst_table_state(&late->table, slot), 0);
	free(late);
}

/* The writer came between the find and the judgement, and is still there: as if it had been there at the find. */
static void test_busy_meanwhile(void **state)
{
	struct late *late = late_new();
	uint32_t slot = pst_table_slot(&late->match.row);
	struct pst_packet packet = { .length = 1000, .key = late->key };
	const struct pst_match found = late->match;
	uint64_t now_ns = single_round_ns(0);
	struct pst_decision decision;

	(void)state;
	pst_bucket_open(&late->buckets[slot / PST_BUCKET_SLOTS]);
	pst_pipeline_judge(&decision, &late->one.plane, &packet, &late->match, now_ns, 0);
	assert_int_equal(decision.verdict, PST_VERDICT_PASS);
	assert_int_equal(decision.slot, PST_NONE);
	late->match = found;
	late->one.link.unmatched_action = PST_ACTION_DROP;
	pst_pipeline_judge(&decision, &late->one.plane, &packet, &late->match, now_ns, 0);
	assert_int_equal(decision.verdict, PST_VERDICT_DROP);
	assert_int_equal(decision.reason, PST_REASON_TABLE_BUSY);
	assert_int_equal(*pst_table_state(&late->table, slot), late->idle);
	free(late);
}

/* ---- the writer comes between two tries ---- */

static struct late *racing;
static uint32_t racing_slot;

static void writer_removes(void)
{
	pst_table_remove(&racing->table, racing_slot);
}

static void writer_stays(void)
{
	pst_bucket_open(&racing->buckets[racing_slot / PST_BUCKET_SLOTS]);
}

/* The row passes, holds or drops by `profile` at the first try, which is lost to the writer. */
static struct pst_decision late_race(const struct pst_profile *profile, uint8_t unmatched_action, void (*comes)(void))
{
	struct late *late = late_new();
	struct pst_packet packet = { .length = 1000, .key = late->key };
	uint64_t now_ns = single_round_ns(0);
	struct pst_decision decision;

	late->one.profile = *profile;
	late->one.link.unmatched_action = unmatched_action;
	racing_slot = pst_table_slot(&late->match.row);
	if (profile->red_action == PST_ACTION_HOLD) { /* its turn is in a millisecond */
		late->buckets[racing_slot / PST_BUCKET_SLOTS].states[racing_slot % PST_BUCKET_SLOTS] =
			pst_clock_ticks(now_ns + 1000000);
	}
	racing = late;
	rivals = 1;
	writer = comes;
	pst_pipeline_judge(&decision, &late->one.plane, &packet, &late->match, now_ns, 0);
	assert_int_equal(rivals, 0);
	writer = NULL;
	free(late);
	return decision;
}

/* A row that vanishes between two tries leaves nothing behind of what the first one said. */
static void test_gone_between_tries(void **state)
{
	struct pst_profile profile = { .burst_bytes = 3000, .mtu_bytes = 1500, .red_action = PST_ACTION_DROP };
	struct pst_decision none, decision;
	uint32_t round;

	(void)state;
	for (round = 0; round < 3; round++) {
		profile.flags = round == 1 ? PST_PROFILE_SHADOW : 0;
		profile.red_action = round == 2 ? PST_ACTION_HOLD : PST_ACTION_DROP;
		pst_decision_start(&none, 0);
		none.departure_ns = single_round_ns(0);
		none.length = 1000;
		none.class_index = 0;
		decision = late_race(&profile, PST_ACTION_PASS, writer_removes);
		assert_memory_equal(&decision, &none, sizeof(decision));
		decision = late_race(&profile, PST_ACTION_PASS, writer_stays);
		assert_memory_equal(&decision, &none, sizeof(decision));
		pst_decide(&none, PST_VERDICT_DROP, PST_REASON_TABLE_BUSY);
		decision = late_race(&profile, PST_ACTION_DROP, writer_stays);
		assert_memory_equal(&decision, &none, sizeof(decision));
	}
}

/* ---- the writer comes before the last resort, or in the middle of it ---- */

#define FOREIGN_TAG UINT64_C(77)

/* Profile 1 is the RFC meter that `one.meter` is the state of; all its buckets are full. */
static const struct pst_profile late_metered = {
	.meter = PST_METER_RFC2697, .burst_bytes = 3000, .mtu_bytes = 1500, .red_action = PST_ACTION_DROP,
};

/* Another entry in the row's slot: of the row's own key, or of another one. */
static void writer_puts(uint64_t tag, uint16_t profile, uint64_t word)
{
	struct pst_bucket *bucket = &racing->buckets[racing_slot / PST_BUCKET_SLOTS];

	pst_bucket_open(bucket);
	pst_bucket_put(bucket, racing_slot % PST_BUCKET_SLOTS, tag << PST_TABLE_PROFILE_BITS | profile,
		       pst_rate_encode(125000), word);
	pst_bucket_close(bucket);
}

static void writer_makes_it_rfc(void)
{
	writer_puts(racing->place.tag, 1, 0);
}

/* To the end of the row's other bucket. */
static uint32_t writer_slot(void)
{
	uint32_t is_first = racing_slot / PST_BUCKET_SLOTS == racing->place.first;

	return (is_first ? racing->place.second : racing->place.first) * PST_BUCKET_SLOTS + 2;
}

static void writer_moves(void)
{
	pst_table_shift(&racing->table, (struct pst_table_move){ racing_slot, writer_slot() });
}

static void writer_moves_and_reuses(void)
{
	writer_moves();
	writer_puts(FOREIGN_TAG, 1, 0);
}

static void writer_reuses(void)
{
	writer_puts(FOREIGN_TAG, 1, 0);
}

static void writer_changes(void)
{
	struct pst_limiter_profile before, after;
	struct pst_table_conversion conversion = { &before, &after, single_round_ns(0) };

	pst_limiter_resolve(&before, &racing->one.profile, pst_rate_encode(125000));
	pst_limiter_resolve(&after, &racing->one.profile, pst_rate_encode(250000));
	pst_table_change(&racing->table, racing_slot, 0, conversion.after->rate, &conversion);
}

/* A row with 1000 bytes in its queue, and a packet that loses every race. */
static struct late *late_loses(struct pst_decision *decision, void (*comes)(void), void (*comes_later)(void))
{
	struct late *late = late_new();
	const struct pst_profile profiles[] = { late->one.profile, late_metered };

	late->one.plane.profiles = profiles;
	late->one.plane.profile_count = 2;
	racing = late;
	racing_slot = pst_table_slot(&late->match.row);
	*pst_table_state(&late->table, racing_slot) = late_state(125000, 1000);
	rivals = PST_CAS_TRIES;
	writer = comes;
	late_writer = comes_later;
	*decision = late_decide(late);
	assert_int_equal(rivals, 0);
	assert_null(late_writer);
	writer = NULL;
	return late;
}

/* The row was removed and added with an RFC's terms: its meter is charged, and its index is no place to add to. */
static void test_another_meter_at_the_last_resort(void **state)
{
	uint32_t rate = pst_rate_encode(125000);
	struct pst_decision decision;
	struct late *late = late_loses(&decision, writer_makes_it_rfc, NULL);

	(void)state;
	assert_int_equal(*pst_table_state(&late->table, racing_slot), 0);
	assert_int_equal(decision.verdict, PST_VERDICT_PASS);
	assert_int_equal(decision.color, PST_COLOR_GREEN);
	assert_int_equal(late->one.meter.committed_ticks, pst_clock_ticks(single_round_ns(0)) + pst_rate_cost(rate, 1000));
	free(late);
}

/* It moves while its packet is added to it: the packet is charged there once, and who has the old slot keeps what it has. */
static void test_moved_at_the_last_resort(void **state)
{
	void (*const comings[])(void) = { writer_moves, writer_moves_and_reuses };
	struct pst_decision decision;
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct late *late = late_loses(&decision, NULL, comings[i]);

		assert_int_equal(*pst_table_state(&late->table, racing_slot), 0);
		assert_int_equal(decision.slot, writer_slot());
		assert_int_equal(decision.verdict, PST_VERDICT_PASS);
		assert_int_equal(*pst_table_state(&late->table, decision.slot), late_state(125000, 2000) + PST_CAS_TRIES);
		free(late);
	}
}

/* It is removed, and its slot is an RFC meter's: that one's index is as it was, and the packet is nobody's. */
static void test_removed_at_the_last_resort(void **state)
{
	struct pst_decision decision;
	struct late *late = late_loses(&decision, NULL, writer_reuses);

	(void)state;
	assert_int_equal(*pst_table_state(&late->table, racing_slot), 0);
	assert_int_equal(decision.verdict, PST_VERDICT_PASS);
	assert_int_equal(decision.color, PST_COLOR_NONE);
	assert_int_equal(decision.slot, PST_NONE);
	free(late);
}

/* Its rate changes: the packet is charged once, at the new rate. */
static void test_changed_at_the_last_resort(void **state)
{
	struct pst_decision decision;
	struct late *late = late_loses(&decision, NULL, writer_changes);
	uint64_t charged = *pst_table_state(&late->table, racing_slot);

	(void)state;
	assert_int_equal(decision.slot, racing_slot);
	assert_in_range(charged, late_state(250000, 2000), late_state(250000, 2000) + PST_CAS_TRIES);
	free(late);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_on_one_limiter),
		cmocka_unit_test(test_lost_races),
		cmocka_unit_test(test_moved_meanwhile),
		cmocka_unit_test(test_changed_meanwhile),
		cmocka_unit_test(test_removed_meanwhile),
		cmocka_unit_test(test_busy_meanwhile),
		cmocka_unit_test(test_gone_between_tries),
		cmocka_unit_test(test_another_meter_at_the_last_resort),
		cmocka_unit_test(test_moved_at_the_last_resort),
		cmocka_unit_test(test_removed_at_the_last_resort),
		cmocka_unit_test(test_changed_at_the_last_resort),
	};

	return cmocka_run_group_tests_name("pipeline races", tests, NULL, NULL);
}
