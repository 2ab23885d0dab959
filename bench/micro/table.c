/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The limiter table alone, at three sizes and with both sizes of pages: lookups of present keys in random order, singly
 * and in batches with prefetch, against the floor: a prefetched read of one random line of the same memory, no table at
 * all. Then insertion, memory, the share of entries in their first bucket, and how many entries an insertion moved.
 * Times are CPU time, the best of ROUNDS.
 */
#define _GNU_SOURCE
#include <penstock/rng.h>
#include <penstock/table.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define LOOKUPS 4000000U
#define BATCH 32U
#define ROUNDS 5

typedef uint64_t lookups(const struct pst_table *table, const struct pst_hash *asked);

static double cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static struct pst_hash random_hash(uint64_t *rng)
{
	struct pst_hash hash;

	hash.tag = (uint64_t)pst_rng_next(rng) << 32 | pst_rng_next(rng);
	hash.place = (uint64_t)pst_rng_next(rng) << 32 | pst_rng_next(rng);
	return hash;
}

static uint64_t find_one_by_one(const struct pst_table *table, const struct pst_hash *asked)
{
	struct pst_slot_view view = { 0 };
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < LOOKUPS; i++) {
		struct pst_place place = pst_table_place(asked[i], table->bucket_count);

		if (pst_table_find(table, &place, &view) == PST_FOUND_ENTRY)
			sum += view.state;
	}
	return sum;
}

/* What memory alone costs. Returns what the lookups return, so that it can be timed like them. */
static uint64_t read_floor(const struct pst_table *table, const struct pst_hash *asked)
{
	const struct pst_bucket *lines[BATCH];
	uint64_t sum = 0;
	uint32_t i, j;

	for (i = 0; i + BATCH <= LOOKUPS; i += BATCH) {
		for (j = 0; j < BATCH; j++) {
			lines[j] = &table->buckets[pst_table_first(asked[i + j], table->bucket_count)];
			__builtin_prefetch(lines[j]);
		}
		for (j = 0; j < BATCH; j++)
			sum += pst_table_load_u64(&lines[j]->states[0]);
	}
	return sum;
}

static uint64_t find_batched(const struct pst_table *table, const struct pst_hash *asked)
{
	struct pst_slot_view view = { 0 };
	struct pst_place places[BATCH];
	uint64_t sum = 0;
	uint32_t i, j;

	for (i = 0; i + BATCH <= LOOKUPS; i += BATCH) {
		for (j = 0; j < BATCH; j++) {
			places[j] = pst_table_place(asked[i + j], table->bucket_count);
			__builtin_prefetch(&table->buckets[places[j].first]);
		}
		for (j = 0; j < BATCH; j++) {
			places[j] = pst_place_turn(&table->buckets[places[j].first], places[j]);
			__builtin_prefetch(&table->buckets[places[j].first]);
		}
		for (j = 0; j < BATCH; j++)
			if (pst_table_find(table, &places[j], &view) == PST_FOUND_ENTRY)
				sum += view.state;
	}
	return sum;
}

static void fail(const char *what)
{
	fprintf(stderr, "table bench: %s\n", what);
	exit(1);
}

/* Nanoseconds a lookup. `expected` is the sum that the lookups must return, or 0. */
static double best_ns(lookups *run, const struct pst_table *table, const struct pst_hash *asked, uint64_t expected)
{
	double best = 1e18;
	int round;

	for (round = 0; round < ROUNDS; round++) {
		double start = cpu_ns();
		uint64_t sum = run(table, asked);
		double spent = (cpu_ns() - start) / LOOKUPS;

		if (expected && sum != expected)
			fail("a key was not found");
		if (spent < best)
			best = spent;
	}
	return best;
}

static struct pst_table new_table(uint32_t keys, bool huge)
{
	const size_t page = 2U << 20;
	struct pst_table table = { NULL, pst_table_buckets_for(keys) };
	size_t size = (table.bucket_count * sizeof(*table.buckets) + page - 1) / page * page;

	table.buckets = aligned_alloc(page, size);
	if (!table.buckets)
		fail("out of memory");
	madvise(table.buckets, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	memset(table.buckets, 0, size);
	return table;
}

/* Inserts key i with state i. Returns nanoseconds an insertion; `moves` counts insertions by how many entries moved. */
static double build(const struct pst_table *table, const struct pst_hash *hashes, uint32_t keys, uint32_t *moves)
{
	double start = cpu_ns();
	uint32_t i;

	for (i = 0; i < keys; i++) {
		struct pst_place place = pst_table_place(hashes[i], table->bucket_count);
		struct pst_table_entry entry = { i, 1, 1 };
		struct pst_table_insertion done;

		if (pst_table_insert(table, &place, &entry, &done) != PST_TABLE_DONE)
			fail("full");
		moves[done.move_count]++;
	}
	return (cpu_ns() - start) / keys;
}

static double first_share(const struct pst_table *table, const struct pst_hash *hashes, uint32_t keys)
{
	struct pst_slot_view view;
	uint32_t i, first = 0;

	for (i = 0; i < keys; i++) {
		struct pst_place place = pst_table_place(hashes[i], table->bucket_count);

		if (pst_table_find(table, &place, &view) == PST_FOUND_ENTRY)
			first += view.bucket == place.first;
	}
	return (double)first / keys;
}

static void measure(uint32_t keys, bool huge)
{
	struct pst_table table = new_table(keys, huge);
	struct pst_hash *hashes = calloc(keys, sizeof(*hashes)), *asked = calloc(LOOKUPS, sizeof(*asked));
	uint64_t rng = pst_rng_seed(keys), expected = 0;
	uint32_t i, moves[PST_TABLE_MOVES_MAX + 1] = { 0 };
	double insert_ns, floor_ns, one_ns, batch_ns;

	if (!hashes || !asked)
		fail("out of memory");
	for (i = 0; i < keys; i++)
		hashes[i] = random_hash(&rng);
	insert_ns = build(&table, hashes, keys, moves);
	for (i = 0; i < LOOKUPS; i++) {
		uint32_t which = pst_scale_u32(pst_rng_next(&rng), keys);

		asked[i] = hashes[which];
		expected += which;
	}
	floor_ns = best_ns(read_floor, &table, asked, 0);
	one_ns = best_ns(find_one_by_one, &table, asked, expected);
	batch_ns = best_ns(find_batched, &table, asked, expected);
	printf("%8u  %s  %8.1f  %9.1f  %8.1f  %7.2f  ", keys, huge ? "2 MB" : "4 KB", floor_ns, one_ns, batch_ns,
	       batch_ns / floor_ns);
	printf("%9.1f  %10.1f  %11.3f  %11.2f  ", insert_ns, 1e3 / insert_ns, first_share(&table, hashes, keys),
	       (double)table.bucket_count * sizeof(*table.buckets) / keys);
	printf("%u/%u/%u/%u/%u\n", moves[0], moves[1], moves[2], moves[3], moves[4]);
	free(table.buckets);
	free(hashes);
	free(asked);
}

int main(void)
{
	static const uint32_t sizes[] = { 1000, 100000, 2000000 };
	uint32_t i;

	printf(" entries  pages floor_ns  lookup_ns  batch_ns  batch/f  "
	       "insert_ns  insert_M/s  first_share  bytes/entry  moves 0/1/2/3/4\n");
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		measure(sizes[i], false);
		measure(sizes[i], true);
	}
	return 0;
}
