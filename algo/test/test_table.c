/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* table.h with one thread: against ref_table, at the sizes it promises, and at its edges. */
#include <penstock/rng.h>
#include <penstock/table.h>

#include "ref_table.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MILLION 1000000U

static uint64_t draw_u64(uint64_t *rng)
{
	uint64_t high = pst_rng_next(rng);

	return high << 32 | pst_rng_next(rng);
}

static struct pst_hash draw_hash(uint64_t *rng)
{
	struct pst_hash hash;

	hash.tag = draw_u64(rng);
	hash.place = draw_u64(rng);
	return hash;
}

static struct pst_table new_table(uint32_t bucket_count)
{
	struct pst_table table;

	table.bucket_count = bucket_count;
	table.buckets = aligned_alloc(sizeof(struct pst_bucket), bucket_count * sizeof(struct pst_bucket));
	assert_non_null(table.buckets);
	memset(table.buckets, 0, bucket_count * sizeof(struct pst_bucket));
	return table;
}

static uint32_t used_slots(const struct pst_table *table)
{
	uint32_t slot, used = 0;

	for (slot = 0; slot < table->bucket_count * PST_BUCKET_SLOTS; slot++)
		used += table->buckets[slot / PST_BUCKET_SLOTS].keys[slot % PST_BUCKET_SLOTS] != 0;
	return used;
}

static enum pst_table_result insert(const struct pst_table *table, struct pst_hash hash, uint64_t state,
				    struct pst_table_insertion *done)
{
	struct pst_place place = pst_table_place(hash, table->bucket_count);
	struct pst_table_entry entry = { state, (uint32_t)hash.place, (uint16_t)hash.tag };

	return pst_table_insert(table, &place, &entry, done);
}

static enum pst_found find(const struct pst_table *table, struct pst_hash hash, struct pst_slot_view *view)
{
	struct pst_place place = pst_table_place(hash, table->bucket_count);

	return pst_table_find(table, &place, view);
}

/* The buckets of a key are those of the definition, differ, and lead to each other. */
static void buckets_are_as_defined(void **context)
{
	static const uint32_t counts[] = { 2, 4, 6, 48, 50, 98, 1000, 784362, 1U << 20, PST_TABLE_BUCKETS_MAX };
	static const uint64_t edges[] = { 0, 1, 0xffff, 0x10000, UINT64_MAX >> 16, UINT64_MAX };
	uint64_t rng = pst_rng_seed(1);
	uint32_t i, j;

	(void)context;
	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		for (j = 0; j < 20000; j++) {
			struct pst_hash hash = draw_hash(&rng);
			struct pst_place place;

			if (j < 36) {
				hash.tag = edges[j % 6];
				hash.place = edges[j / 6];
			}
			place = pst_table_place(hash, counts[i]);
			assert_true(place.tag != 0 && place.tag >> 48 == 0);
			assert_int_equal(place.first, ref_table_first(hash.place, counts[i]));
			assert_int_equal(place.second, ref_table_second(hash.tag, hash.place, counts[i]));
			assert_true(place.first < counts[i] && place.second < counts[i] && place.first != place.second);
			assert_int_equal(pst_table_other(place.tag, place.second, counts[i]), place.first);
		}
	}
}

/* Every entry of the reference is found as it should be, and the table holds nothing else (I1, I2). */
static void compare(const struct pst_table *table, struct ref_table *ref)
{
	uint32_t i;

	assert_int_equal(used_slots(table), ref->count);
	for (i = 0; i < ref->count; i++) {
		const struct ref_table_entry *entry = &ref->entries[i];
		struct pst_hash hash = { entry->tag_hash, entry->place_hash };
		struct pst_slot_view view;

		assert_int_equal(find(table, hash, &view), PST_FOUND_ENTRY);
		assert_int_equal(pst_table_slot(&view), entry->slot);
		assert_int_equal(view.state, entry->state);
		assert_int_equal(view.rate, entry->rate);
		assert_int_equal(view.profile, entry->profile);
		assert_int_equal(view.sequence & 1, 0);
		assert_ptr_equal(pst_table_state(table, entry->slot), &table->buckets[view.bucket].states[view.slot]);
	}
}

/* Inserts into both; the reference follows the reported moves. Returns how many there were. */
static uint32_t insert_both(const struct pst_table *table, struct ref_table *ref, uint64_t *rng)
{
	struct pst_hash hash = draw_hash(rng);
	struct ref_table_entry entry = { .tag_hash = hash.tag, .place_hash = hash.place, .state = draw_u64(rng),
					 .rate = (uint32_t)hash.place, .profile = (uint16_t)hash.tag };
	struct pst_table_insertion done;
	uint32_t i;

	if (insert(table, hash, entry.state, &done) != PST_TABLE_DONE)
		return 0;
	assert_in_range(done.move_count, 0, PST_TABLE_MOVES_MAX);
	for (i = 0; i < done.move_count; i++)
		ref_table_at(ref, done.moves[i].from_slot)->slot = done.moves[i].to_slot;
	assert_null(ref_table_at(ref, done.slot));
	entry.slot = done.slot;
	ref_table_add(ref, &entry);
	return done.move_count;
}

static void random_operations_match_the_reference(void **context)
{
	uint32_t seed, step, moves = 0;

	(void)context;
	for (seed = 0; seed < 60; seed++) {
		uint64_t rng = pst_rng_seed(seed);
		struct pst_table table = new_table(2 + 2 * pst_scale_u32(pst_rng_next(&rng), 20));
		struct ref_table ref = ref_table_new(table.bucket_count * PST_BUCKET_SLOTS);

		for (step = 0; step < 1500; step++) {
			uint32_t what = pst_scale_u32(pst_rng_next(&rng), 8);
			struct ref_table_entry *entry = &ref.entries[pst_scale_u32(pst_rng_next(&rng), ref.count)];
			struct pst_slot_view view;

			if (what < 4) {
				moves += insert_both(&table, &ref, &rng);
			} else if (what == 4) {
				assert_int_equal(find(&table, draw_hash(&rng), &view), PST_FOUND_ABSENT);
			} else if (ref.count && what == 5) {
				entry->rate = pst_rng_next(&rng);
				entry->profile = (uint16_t)pst_rng_next(&rng);
				pst_table_change(&table, entry->slot, entry->profile, entry->rate, NULL);
			} else if (ref.count) {
				struct pst_hash hash = { entry->tag_hash, entry->place_hash };

				pst_table_remove(&table, entry->slot);
				assert_int_equal(find(&table, hash, &view), PST_FOUND_ABSENT);
				ref_table_remove(&ref, entry);
			}
			if (step % 50 == 0)
				compare(&table, &ref);
		}
		compare(&table, &ref);
		ref_table_free(&ref);
		free(table.buckets);
	}
	assert_true(moves > 1000); /* else the schedules never made room */
}

/* A table sized for N takes N keys, for every small N. */
static void small_tables_take_their_keys(void **context)
{
	uint32_t keys, seed, i;

	(void)context;
	for (keys = 1; keys <= 200; keys++) {
		struct pst_table table = new_table(pst_table_buckets_for(keys));

		for (seed = 0; seed < 100; seed++) {
			uint64_t rng = pst_rng_seed(seed << 8 | keys);
			struct pst_table_insertion done;

			memset(table.buckets, 0, table.bucket_count * sizeof(*table.buckets));
			for (i = 0; i < keys; i++)
				assert_int_equal(insert(&table, draw_hash(&rng), i, &done), PST_TABLE_DONE);
			assert_int_equal(used_slots(&table), keys);
		}
		free(table.buckets);
	}
}

static void sizes_are_within_the_budget(void **context)
{
	(void)context;
	assert_int_equal(pst_table_buckets_for(0), 48);
	assert_true(pst_table_buckets_for(2 * MILLION) * sizeof(struct pst_bucket) <= 27ULL * 2 * MILLION);
	assert_true(pst_table_buckets_for(1U << 31) <= PST_TABLE_BUCKETS_MAX);
	assert_int_equal(pst_table_buckets_for(1U << 31) % 2, 0);
}

static struct pst_tuple tuple_of(uint64_t salt, const uint64_t *mask)
{
	struct pst_tuple tuple = { .salt = salt };
	uint32_t i;

	for (i = 0; i < PST_KEY_WORDS; i++) {
		tuple.mask.words[i] = mask[i];
		if (mask[i])
			tuple.words = (uint8_t)(tuple.words | 1U << i);
	}
	return tuple;
}

/* Key i of 2 M random five-tuples, or of 2 M prefixes as an operator numbers them: one after the other. */
static struct pst_hash big_key(bool prefixes, uint32_t i, const struct pst_hash_secret *secret)
{
	static const uint64_t five[PST_KEY_WORDS] = { UINT64_MAX, 0x00ff0000ffffffffU };
	static const uint64_t v4_32[PST_KEY_WORDS] = { UINT32_MAX, UINT64_C(0x0f) << 56 };
	static const uint64_t v4_28[PST_KEY_WORDS] = { UINT32_MAX << 4, UINT64_C(0x0f) << 56 };
	static const uint64_t v6_56[PST_KEY_WORDS] = { 0, UINT64_C(0x0f) << 56, 0, UINT64_MAX << 8 };
	uint64_t rng = pst_rng_seed(i);
	struct pst_key key = { { 0 } };
	struct pst_tuple tuple;

	if (!prefixes) {
		key.words[0] = (uint64_t)pst_rng_next(&rng) << 32 | pst_rng_next(&rng);
		key.words[1] = UINT64_C(4) << 56 | UINT64_C(17) << 48 | pst_rng_next(&rng);
		tuple = tuple_of(1, five);
	} else if (i < MILLION) {
		key.words[0] = 0x0a000000 + i;
		key.words[1] = UINT64_C(4) << 56;
		tuple = tuple_of(2, v4_32);
	} else if (i < MILLION + MILLION / 2) {
		key.words[0] = 0x0a000000 + (i - MILLION) * 16;
		key.words[1] = UINT64_C(4) << 56;
		tuple = tuple_of(3, v4_28);
	} else {
		key.words[3] = UINT64_C(0x20010db800000000) + ((uint64_t)i << 8);
		key.words[1] = UINT64_C(6) << 56;
		tuple = tuple_of(4, v6_56);
	}
	return pst_hash_key(secret, &tuple, &key);
}

/* All 2 M are found where the reported moves say, and a million others are not. */
static void take_two_million(bool prefixes)
{
	struct pst_table table = new_table(pst_table_buckets_for(2 * MILLION));
	uint32_t *owners = calloc(table.bucket_count * PST_BUCKET_SLOTS, sizeof(*owners));
	struct pst_hash_secret secret;
	struct pst_table_insertion done;
	struct pst_slot_view view;
	uint64_t rng = pst_rng_seed(7);
	uint32_t i, j;

	assert_non_null(owners);
	for (i = 0; i < PST_HASH_SECRET_WORDS; i++)
		secret.words[i] = draw_u64(&rng);
	for (i = 0; i < 2 * MILLION; i++) {
		assert_int_equal(insert(&table, big_key(prefixes, i, &secret), i, &done), PST_TABLE_DONE);
		for (j = 0; j < done.move_count; j++)
			owners[done.moves[j].to_slot] = owners[done.moves[j].from_slot];
		owners[done.slot] = i;
	}
	assert_int_equal(used_slots(&table), 2 * MILLION);
	for (i = 0; i < 2 * MILLION; i++) {
		assert_int_equal(find(&table, big_key(prefixes, i, &secret), &view), PST_FOUND_ENTRY);
		assert_int_equal(view.state, i);
		assert_int_equal(owners[pst_table_slot(&view)], i);
	}
	for (i = 0; i < MILLION; i++)
		assert_int_equal(find(&table, draw_hash(&rng), &view), PST_FOUND_ABSENT);
	free(owners);
	free(table.buckets);
}

static void two_million_five_tuples(void **context)
{
	(void)context;
	take_two_million(false);
}

static void two_million_prefixes(void **context)
{
	(void)context;
	take_two_million(true);
}

/* I3: a refused insertion leaves every byte as it was; and what was full takes a key again after a removal. */
static void full_changes_nothing(void **context)
{
	static const uint32_t counts[] = { 2, 4, 100, 1000 };
	uint64_t rng = pst_rng_seed(11);
	uint32_t i;

	(void)context;
	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct pst_table table = new_table(counts[i]);
		size_t size = counts[i] * sizeof(*table.buckets);
		struct pst_bucket *before = malloc(size);
		struct pst_table_insertion done;
		uint32_t taken = 0;
		struct pst_hash hash;

		assert_non_null(before);
		do {
			memcpy(before, table.buckets, size);
			hash = draw_hash(&rng);
			taken++;
		} while (insert(&table, hash, 1, &done) == PST_TABLE_DONE);
		taken--;
		assert_memory_equal(before, table.buckets, size);
		assert_int_equal(insert(&table, hash, 1, &done), PST_TABLE_FULL);
		assert_int_equal(used_slots(&table), taken);
		if (counts[i] == 2)
			assert_int_equal(taken, 6);
		assert_true(taken * 100 >= counts[i] * PST_BUCKET_SLOTS * 60);
		pst_table_remove(&table, pst_table_first(hash, counts[i]) * PST_BUCKET_SLOTS + 1);
		assert_int_equal(insert(&table, hash, 1, &done), PST_TABLE_DONE);
		assert_int_equal(done.move_count, 0);
		free(before);
		free(table.buckets);
	}
}

/* I2: the same key, a twin that shares the bucket pair, and a key that shares only the tag. */
static void equal_tags_are_told_apart_or_refused(void **context)
{
	struct pst_table table = new_table(100);
	struct pst_hash key = { UINT64_C(0x123456789abc0000), UINT64_C(0x8000000000000000) };
	struct pst_hash twin = { key.tag | 1, key.place | 1 }; /* differs where table.h does not look */
	struct pst_hash mirror = key, stranger = key;
	struct pst_place place = pst_table_place(key, 100);
	struct pst_table_insertion done;
	struct pst_slot_view view;
	struct pst_bucket before[100];

	(void)context;
	mirror.place = (((uint64_t)place.second << 32) / 100 + 1) << 32;
	stranger.place = 0;
	assert_int_equal(pst_table_first(mirror, 100), place.second);
	assert_int_equal(insert(&table, key, 1, &done), PST_TABLE_DONE);
	memcpy(before, table.buckets, sizeof(before));
	assert_int_equal(insert(&table, key, 2, &done), PST_TABLE_TAKEN);
	assert_int_equal(insert(&table, twin, 2, &done), PST_TABLE_TAKEN);
	assert_int_equal(insert(&table, mirror, 2, &done), PST_TABLE_TAKEN);
	assert_memory_equal(before, table.buckets, sizeof(before));
	assert_int_equal(insert(&table, stranger, 3, &done), PST_TABLE_DONE);
	assert_int_equal(find(&table, key, &view), PST_FOUND_ENTRY);
	assert_int_equal(view.state, 1);
	assert_int_equal(find(&table, stranger, &view), PST_FOUND_ENTRY);
	assert_int_equal(view.state, 3);
	free(table.buckets);
}

/* A change of rate keeps the bytes of the virtual queue; a charge decided before it fails (I6). */
static void change_converts_the_state(void **context)
{
	static const struct pst_profile shared = { .burst_ticks = PST_TICKS_PER_SEC, .mtu_bytes = 1514 };
	struct pst_table table = new_table(48);
	struct pst_hash hash = { UINT64_MAX / 3, UINT64_MAX / 5 };
	struct pst_limiter_profile before, after;
	struct pst_table_conversion conversion = { &before, &after, PST_NSEC_PER_SEC };
	struct pst_table_insertion done;
	struct pst_slot_view view, changed;
	uint64_t queue_ticks, now_ticks = pst_clock_ticks(PST_NSEC_PER_SEC);

	(void)context;
	pst_limiter_resolve(&before, &shared, pst_rate_encode(1000000));
	pst_limiter_resolve(&after, &shared, pst_rate_encode(4000000));
	queue_ticks = pst_rate_cost(before.rate, 20000);
	assert_int_equal(insert(&table, hash, now_ticks - before.window_ticks + queue_ticks, &done), PST_TABLE_DONE);
	assert_int_equal(find(&table, hash, &view), PST_FOUND_ENTRY);
	pst_table_change(&table, done.slot, 77, after.rate, &conversion);
	assert_int_equal(find(&table, hash, &changed), PST_FOUND_ENTRY);
	assert_int_equal(changed.profile, 77);
	assert_int_equal(changed.rate, after.rate);
	assert_int_equal(changed.sequence, view.sequence + 2);
	queue_ticks = changed.state - (now_ticks - after.window_ticks);
	assert_in_range(pst_rate_bytes_q8(after.rate, queue_ticks), 20000 * 256 - 1, 20000 * 256 + 1);
	assert_false(pst_limiter_commit(pst_table_state(&table, done.slot), &view.state, 1));
	assert_true(pst_limiter_commit(pst_table_state(&table, done.slot), &changed.state, 1));
	free(table.buckets);
}

/* A charge that was decided before a move or a removal fails, and finds the state in its new place (I6). */
static void charges_do_not_follow_a_freed_slot(void **context)
{
	struct pst_table table = new_table(48);
	struct pst_hash hash = { UINT64_MAX / 3, UINT64_MAX / 5 };
	struct pst_place place = pst_table_place(hash, 48);
	struct pst_table_move move;
	struct pst_table_insertion done;
	struct pst_slot_view view, moved;

	(void)context;
	assert_int_equal(insert(&table, hash, 1000, &done), PST_TABLE_DONE);
	assert_int_equal(done.slot / PST_BUCKET_SLOTS, place.first);
	assert_int_equal(find(&table, hash, &view), PST_FOUND_ENTRY);
	move.from_slot = done.slot;
	move.to_slot = place.second * PST_BUCKET_SLOTS + 2;
	pst_table_shift(&table, move);
	assert_false(pst_limiter_commit(pst_table_state(&table, move.from_slot), &view.state, 2000));
	assert_int_equal(find(&table, hash, &moved), PST_FOUND_ENTRY);
	assert_int_equal(pst_table_slot(&moved), move.to_slot);
	assert_int_equal(moved.state, 1000);
	pst_table_remove(&table, move.to_slot);
	assert_false(pst_limiter_commit(pst_table_state(&table, move.to_slot), &moved.state, 2000));
	assert_int_equal(used_slots(&table), 0);
	free(table.buckets);
}

/* A reader says busy, not absent, when the writer stays in one of the two buckets; and it sees past other buckets. */
static void an_open_bucket_is_busy(void **context)
{
	struct pst_table table = new_table(48);
	struct pst_hash hash = { UINT64_MAX / 3, UINT64_MAX / 5 };
	struct pst_place place = pst_table_place(hash, 48);
	struct pst_slot_view view;
	uint32_t other = 0;

	(void)context;
	assert_int_equal(find(&table, hash, &view), PST_FOUND_ABSENT);
	pst_bucket_open(&table.buckets[place.first]);
	assert_int_equal(find(&table, hash, &view), PST_FOUND_BUSY);
	pst_bucket_close(&table.buckets[place.first]);
	pst_bucket_open(&table.buckets[place.second]);
	assert_int_equal(find(&table, hash, &view), PST_FOUND_BUSY);
	pst_bucket_close(&table.buckets[place.second]);
	while (other == place.first || other == place.second)
		other++;
	pst_bucket_open(&table.buckets[other]);
	assert_int_equal(find(&table, hash, &view), PST_FOUND_ABSENT);
	free(table.buckets);
}

#define SHARED_BUCKETS 64U
#define KEPT 60U
#define KILLS 80U

/* Inserts, changes and removes keys until it is killed. */
static void write_for_ever(struct pst_table table, uint64_t seed)
{
	uint64_t rng = pst_rng_seed(seed);
	struct { struct pst_hash hash; uint32_t slot; } mine[64];
	struct pst_table_insertion done;
	uint32_t count = 0, i;

	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	for (;;) {
		mine[count].hash = draw_hash(&rng);
		if (count == 64 || insert(&table, mine[count].hash, 1 + count, &done) != PST_TABLE_DONE) {
			struct pst_slot_view view;

			for (i = 0; i < count; i++) {
				if (find(&table, mine[i].hash, &view) != PST_FOUND_ENTRY)
					continue;
				pst_table_change(&table, pst_table_slot(&view), 3, 77, NULL);
				pst_table_remove(&table, pst_table_slot(&view));
			}
			count = 0;
		} else {
			count++;
		}
	}
}

/* Slots of a key: 0, 1, or 2 when a move was cut short. */
static uint32_t slots_of(const struct pst_table *table, struct pst_hash hash)
{
	struct pst_place place = pst_table_place(hash, table->bucket_count);

	bool first = pst_bucket_slot(&table->buckets[place.first], place.tag) < PST_BUCKET_SLOTS;
	bool second = pst_bucket_slot(&table->buckets[place.second], place.tag) < PST_BUCKET_SLOTS;

	return (uint32_t)first + (uint32_t)second;
}

static uint32_t open_buckets(const struct pst_table *table)
{
	uint32_t i, open = 0;

	for (i = 0; i < table->bucket_count; i++)
		open += ((volatile struct pst_bucket *)table->buckets)[i].sequence & 1;
	return open;
}

/* Lets a writer run, instruction by instruction, until it is inside of a bucket, and some more, and kills it. */
static void kill_inside(pid_t writer, const struct pst_table *table, uint32_t changes, uint32_t more)
{
	uint32_t before = 0, open;

	assert_int_equal(waitpid(writer, NULL, 0), writer);
	while (changes || more) {
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, writer, NULL, NULL), 0);
		assert_int_equal(waitpid(writer, NULL, 0), writer);
		open = open_buckets(table);
		changes -= changes && open && !before;
		more -= !changes && more;
		before = open;
	}
	assert_int_equal(kill(writer, SIGKILL), 0);
	assert_int_equal(waitpid(writer, NULL, 0), writer);
}

/* Every store of a writer may be its last one: what it left is whole again, and at most the entry that it moved is lost. */
static void a_writer_that_is_killed_leaves_what_can_be_healed(void **context)
{
	size_t bytes = SHARED_BUCKETS * sizeof(struct pst_bucket);
	struct pst_bucket *buckets = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct pst_table table = { buckets, SHARED_BUCKETS };
	uint64_t rng = pst_rng_seed(99);
	struct pst_hash kept[KEPT];
	struct pst_table_insertion done;
	uint32_t round, i, torn = 0;

	(void)context;
	assert_true(buckets != MAP_FAILED);
	for (i = 0; i < KEPT; i++) {
		kept[i] = draw_hash(&rng);
		assert_int_equal(insert(&table, kept[i], 1000 + i, &done), PST_TABLE_DONE);
	}
	for (round = 0; round < KILLS; round++) {
		pid_t writer = fork();
		uint32_t open = 0, lost = 0, slot;

		assert_true(writer >= 0);
		if (writer == 0)
			write_for_ever(table, draw_u64(&rng) + round);
		kill_inside(writer, &table, 1 + pst_rng_next(&rng) % 4, pst_rng_next(&rng) % 64);
		open = open_buckets(&table);
		torn += open != 0;
		pst_table_heal(&table);
		for (i = 0; i < KEPT; i++) {
			struct pst_slot_view view;

			assert_true(slots_of(&table, kept[i]) <= 1);
			if (find(&table, kept[i], &view) == PST_FOUND_ENTRY) {
				assert_int_equal(view.state, 1000 + i);
				continue;
			}
			lost++;
			assert_int_equal(insert(&table, kept[i], 1000 + i, &done), PST_TABLE_DONE);
		}
		assert_true(lost <= (open ? 1 : 0));
		for (slot = 0; slot < SHARED_BUCKETS * PST_BUCKET_SLOTS; slot++) {
			const struct pst_bucket *bucket = &buckets[slot / PST_BUCKET_SLOTS];
			uint32_t at = slot % PST_BUCKET_SLOTS;

			assert_false(bucket->sequence & 1);
			assert_true(!bucket->keys[at] || (bucket->rates[at] && bucket->states[at]));
			if (bucket->states[at] && bucket->states[at] < 1000)
				pst_table_remove(&table, slot);
		}
		assert_int_equal(used_slots(&table), KEPT);
	}
	assert_true(torn > KILLS / 4);
	munmap(buckets, bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buckets_are_as_defined),
		cmocka_unit_test(random_operations_match_the_reference),
		cmocka_unit_test(small_tables_take_their_keys),
		cmocka_unit_test(sizes_are_within_the_budget),
		cmocka_unit_test(two_million_five_tuples),
		cmocka_unit_test(two_million_prefixes),
		cmocka_unit_test(full_changes_nothing),
		cmocka_unit_test(equal_tags_are_told_apart_or_refused),
		cmocka_unit_test(change_converts_the_state),
		cmocka_unit_test(charges_do_not_follow_a_freed_slot),
		cmocka_unit_test(an_open_bucket_is_busy),
		cmocka_unit_test(a_writer_that_is_killed_leaves_what_can_be_healed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
