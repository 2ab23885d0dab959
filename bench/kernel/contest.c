/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE

#include "contest.h"

#include <penstock/rng.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define LOOPBACK 1U
#define CACHED_BUCKETS_MAX 32768U /* as crates/penstock-dataplane/src/xdp/generation.rs */

/* The variables that kernel.bpf.c declares const volatile, in this order. */
struct settings {
	uint32_t flow_count;
	uint32_t send_ifindex;
	uint32_t out_ifindex;
	uint32_t pad;
	uint64_t rate_Bps;
};

void bench_fail(const char *what)
{
	fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
	exit(1);
}

double bench_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

double bench_median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(double), compare);
	return values[count / 2];
}

void bench_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		bench_fail("choosing a CPU");
}

void bench_frame(uint8_t *frame)
{
	memset(frame, 0, BENCH_FRAME_BYTES);
	frame[12] = 0x08;
	frame[14] = 0x45;
	frame[17] = BENCH_FRAME_BYTES - 14;
	frame[22] = 64;
	frame[23] = 17;
	frame[39] = BENCH_FRAME_BYTES - 34;
}

static struct bpf_map *map_of(const struct contest *contest, const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(contest->object, name);

	if (!map)
		bench_fail(name);
	return map;
}

int contest_map(const struct contest *contest, const char *name)
{
	return bpf_map__fd(map_of(contest, name));
}

int contest_program(const struct contest *contest, const char *name)
{
	struct bpf_program *program = bpf_object__find_program_by_name(contest->object, name);

	if (!program)
		bench_fail(name);
	return bpf_program__fd(program);
}

static void resize(const struct contest *contest, const char *name, uint32_t entries)
{
	if (bpf_map__set_max_entries(map_of(contest, name), entries))
		bench_fail(name);
}

static void put(const struct contest *contest, const char *name, const void *key, const void *value)
{
	if (bpf_map_update_elem(contest_map(contest, name), key, value, BPF_ANY))
		bench_fail(name);
}

/* The five-tuple of a flow as the parser would find it in a frame. */
static struct pst_key key_of(uint32_t flow)
{
	struct bench_tuple tuple;
	struct pst_key key = { { 0 } };

	bench_flow_tuple(&tuple, flow);
	key.words[0] = (uint64_t)__builtin_bswap32(tuple.source) << 32 | __builtin_bswap32(tuple.destination);
	key.words[1] = (uint64_t)(4 | PST_KEY_HAS_PORTS) << PST_KEY_FAMILY_SHIFT | UINT64_C(17) << 48 |
		       (uint64_t)__builtin_bswap16(tuple.source_port) << 16 | __builtin_bswap16(tuple.destination_port);
	return key;
}

static void set_constants(struct contest *contest)
{
	uint64_t rng = pst_rng_seed(contest->flows);
	struct settings *settings;
	size_t size, i;

	for (i = 0; i < PST_HASH_SECRET_WORDS; i++)
		contest->constants.secret.words[i] = (uint64_t)pst_rng_next(&rng) << 32 | pst_rng_next(&rng);
	contest->table.bucket_count = pst_table_buckets_for(contest->flows);
	contest->constants.links_max = 1;
	contest->constants.tuples_max = 1;
	contest->constants.link_count = 1;
	contest->constants.tuple_count = 1;
	contest->constants.class_count = 1;
	contest->constants.profile_count = 1;
	contest->constants.bucket_counts[PST_TUPLE_LIMITS] = contest->table.bucket_count;
	contest->constants.has_buffer_length = 1;
	contest->constants.asks_ahead = contest->table.bucket_count > CACHED_BUCKETS_MAX;
	if (bpf_map__set_initial_value(map_of(contest, ".rodata.constants"), &contest->constants, sizeof(contest->constants)))
		bench_fail("constants");
	settings = (struct settings *)(uintptr_t)bpf_map__initial_value(map_of(contest, ".rodata"), &size);
	if (!settings || size < sizeof(*settings))
		bench_fail("settings");
	settings->flow_count = contest->flows;
	settings->send_ifindex = contest->send_ifindex;
	settings->out_ifindex = contest->out_ifindex;
	settings->rate_Bps = contest->rate_Bps;
}

static void open_object(struct contest *contest, const char *path)
{
	contest->object = bpf_object__open(path);
	if (!contest->object)
		bench_fail(path);
	set_constants(contest);
	resize(contest, "limiter_buckets", contest->table.bucket_count);
	resize(contest, "ports", (contest->ifindex > LOOPBACK ? contest->ifindex : LOOPBACK) + 1);
	resize(contest, "hash_buckets", contest->flows);
	resize(contest, "lru_buckets", contest->flows + contest->flows / 4 + 1024);
	bpf_program__set_autoload(bpf_object__find_program_by_name(contest->object, "penstock"), false);
	if (bpf_object__load(contest->object))
		bench_fail("loading");
}

static void fill_plane(struct contest *contest)
{
	struct pst_port port = { .link_count = 1, .flags = PST_PORT_ACTIVE };
	struct pst_link link = { .tuple_count = 1, .overhead_bytes = 14, .unmatched_class = PST_NONE };
	struct pst_class klass = { .limit_index = PST_NONE };
	struct pst_profile profile = { .burst_ticks = pst_clock_ticks(17500000), .excess_ticks = pst_clock_ticks(25000000),
				       .mtu_bytes = 1514, .red_action = PST_ACTION_DROP };
	uint32_t zero = 0, loopback = LOOPBACK;

	contest->tuple.mask.words[0] = UINT64_MAX;
	contest->tuple.mask.words[1] = UINT64_C(0x1fff0000ffffffff);
	contest->tuple.words = 3;
	contest->tuple.kind = PST_TUPLE_LIMITS;
	contest->tuple.specificity_q8 = 104 << 8;
	put(contest, ".data.links", &zero, &link);
	put(contest, ".data.tuples", &zero, &contest->tuple);
	put(contest, ".data.classes", &zero, &klass);
	put(contest, ".data.profiles", &zero, &profile);
	put(contest, "ports", &loopback, &port);
	if (contest->ifindex)
		put(contest, "ports", &contest->ifindex, &port);
}

static void fill_tables(struct contest *contest)
{
	struct { uint32_t lock, tokens; uint64_t last_ns; } bucket = { 0, BENCH_BURST_BYTES, 0 };
	size_t bytes = contest->table.bucket_count * sizeof(struct pst_bucket);
	uint32_t flow;

	contest->table.buckets = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, contest_map(contest, "limiter_buckets"), 0);
	if (contest->table.buckets == MAP_FAILED)
		bench_fail("mapping the limiter table");
	for (flow = 0; flow < contest->flows; flow++) {
		struct pst_key key = key_of(flow);
		struct pst_place place = pst_table_place(pst_hash_key(&contest->constants.secret, &contest->tuple, &key),
							 contest->table.bucket_count);
		struct pst_table_entry entry = { pst_limiter_idle((uint64_t)bench_now_ns()), pst_rate_encode(contest->rate_Bps), 0 };
		struct pst_table_insertion done;
		struct bench_tuple tuple;

		if (pst_table_insert(&contest->table, &place, &entry, &done) != PST_TABLE_DONE)
			bench_fail("inserting a limiter");
		bench_flow_tuple(&tuple, flow);
		put(contest, "hash_buckets", &tuple, &bucket);
		put(contest, "lru_buckets", &tuple, &bucket);
	}
}

void contest_open(struct contest *contest, const char *path)
{
	open_object(contest, path);
	fill_plane(contest);
	fill_tables(contest);
}

void contest_close(struct contest *contest)
{
	munmap(contest->table.buckets, contest->table.bucket_count * sizeof(struct pst_bucket));
	bpf_object__close(contest->object);
}

/* Gives every entry another rate, one after the other, while packets are judged. */
void *rewriter_run(void *argument)
{
	struct rewriter *rewriter = argument;
	const struct pst_table *table = &rewriter->contest->table;
	uint64_t rewritten = 0, slots = (uint64_t)table->bucket_count * PST_BUCKET_SLOTS, slot = 0;
	struct pst_profile profile = { .burst_ticks = pst_clock_ticks(17500000), .excess_ticks = pst_clock_ticks(25000000),
				       .mtu_bytes = 1514, .red_action = PST_ACTION_DROP };
	uint32_t rates[2] = { pst_rate_encode(rewriter->contest->rate_Bps), pst_rate_encode(rewriter->contest->rate_Bps * 2) };
	struct pst_limiter_profile limits[2];
	double start;
	int turn = 0;

	bench_pin(1);
	start = bench_now_ns();
	pst_limiter_resolve(&limits[0], &profile, rates[0]);
	pst_limiter_resolve(&limits[1], &profile, rates[1]);
	while (!rewriter->stops) {
		const struct pst_bucket *bucket = &table->buckets[slot / PST_BUCKET_SLOTS];

		if (bucket->keys[slot % PST_BUCKET_SLOTS]) {
			struct pst_table_conversion conversion = { &limits[turn], &limits[!turn], (uint64_t)bench_now_ns() };

			pst_table_change(table, (uint32_t)slot, 0, rates[!turn], &conversion);
			rewritten++;
		}
		if (++slot == slots) {
			slot = 0;
			turn = !turn;
		}
	}
	rewriter->per_second = (double)rewritten / (bench_now_ns() - start) * 1e9;
	return NULL;
}
