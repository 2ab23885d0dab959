/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the kernel program costs a packet, by BPF_PROG_RUN, beside an empty program and the token buckets that XDP examples
 * have. Programs take turns in rounds, and each figure is the median of its rounds; a cost is the time less the empty one's.
 * Also: how many entries of the limiter table a second can be rewritten while the program runs on another CPU.
 */
#define _GNU_SOURCE

#include "flow.h"

#include <penstock/rng.h>
#include <penstock/table.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define ROUNDS 7
#define REPEATS 1000000
#define LOOPBACK 1U
#define PROGRAMS 4

static const char *const programs[PROGRAMS] = { "bench_empty", "bench_penstock", "bench_hash", "bench_lru" };

struct contest {
	struct bpf_object *object;
	uint32_t flows;
	uint64_t rate_Bps;
	struct pst_table table;
	struct pst_tuple tuple;
	struct pst_constants constants;
	int fds[PROGRAMS];
};

static void fail(const char *what)
{
	fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static struct bpf_map *map_of(const struct contest *contest, const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(contest->object, name);

	if (!map)
		fail(name);
	return map;
}

static void resize(const struct contest *contest, const char *name, uint32_t entries)
{
	if (bpf_map__set_max_entries(map_of(contest, name), entries))
		fail(name);
}

static void put(const struct contest *contest, const char *name, const void *key, const void *value)
{
	if (bpf_map_update_elem(bpf_map__fd(map_of(contest, name)), key, value, BPF_ANY))
		fail(name);
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

static void open_object(struct contest *contest, const char *path)
{
	uint64_t rng = pst_rng_seed(contest->flows);
	size_t size, i;
	struct settings { uint32_t flow_count, pad; uint64_t rate_Bps; } *settings;

	contest->object = bpf_object__open(path);
	if (!contest->object)
		fail(path);
	for (i = 0; i < PST_HASH_SECRET_WORDS; i++)
		contest->constants.secret.words[i] = (uint64_t)pst_rng_next(&rng) << 32 | pst_rng_next(&rng);
	contest->table.bucket_count = pst_table_buckets_for(contest->flows);
	contest->constants.links_max = 1;
	contest->constants.link_count = 1;
	contest->constants.tuple_count = 1;
	contest->constants.class_count = 1;
	contest->constants.profile_count = 1;
	contest->constants.tuples_max = 1;
	contest->constants.bucket_counts[PST_TUPLE_LIMITS] = contest->table.bucket_count;
	contest->constants.has_buffer_length = 1;
	contest->constants.asks_ahead = getenv("NOASK") ? 0 : 1;
	if (bpf_map__set_initial_value(map_of(contest, ".rodata.constants"), &contest->constants, sizeof(contest->constants)))
		fail("constants");
	settings = (struct settings *)(uintptr_t)bpf_map__initial_value(map_of(contest, ".rodata"), &size);
	if (!settings || size < sizeof(*settings))
		fail("settings");
	settings->flow_count = contest->flows;
	settings->rate_Bps = contest->rate_Bps;
	resize(contest, "limiter_buckets", contest->table.bucket_count);
	resize(contest, "ports", LOOPBACK + 1);
	resize(contest, "hash_buckets", contest->flows);
	resize(contest, "lru_buckets", contest->flows + contest->flows / 4 + 1024);
	bpf_program__set_autoload(bpf_object__find_program_by_name(contest->object, "penstock"), false);
	if (bpf_object__load(contest->object))
		fail("loading");
	for (i = 0; i < PROGRAMS; i++)
		contest->fds[i] = bpf_program__fd(bpf_object__find_program_by_name(contest->object, programs[i]));
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
}

static void fill_tables(struct contest *contest)
{
	struct { uint32_t lock, tokens; uint64_t last_ns; } bucket = { 0, BENCH_BURST_BYTES, 0 };
	size_t bytes = contest->table.bucket_count * sizeof(struct pst_bucket);
	uint32_t flow;

	contest->table.buckets = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
				      bpf_map__fd(map_of(contest, "limiter_buckets")), 0);
	if (contest->table.buckets == MAP_FAILED)
		fail("mapping the limiter table");
	for (flow = 0; flow < contest->flows; flow++) {
		struct pst_key key = key_of(flow);
		struct pst_place place = pst_table_place(pst_hash_key(&contest->constants.secret, &contest->tuple, &key),
							 contest->table.bucket_count);
		struct pst_table_entry entry = { pst_limiter_idle((uint64_t)now_ns()), pst_rate_encode(contest->rate_Bps), 0 };
		struct pst_table_insertion done;
		struct bench_tuple tuple;

		if (pst_table_insert(&contest->table, &place, &entry, &done) != PST_TABLE_DONE)
			fail("inserting a limiter");
		bench_flow_tuple(&tuple, flow);
		put(contest, "hash_buckets", &tuple, &bucket);
		put(contest, "lru_buckets", &tuple, &bucket);
	}
}

static void make_frame(uint8_t *frame)
{
	memset(frame, 0, BENCH_FRAME_BYTES);
	frame[12] = 0x08;
	frame[14] = 0x45;
	frame[17] = BENCH_FRAME_BYTES - 14;
	frame[22] = 64;
	frame[23] = 17;
	frame[39] = BENCH_FRAME_BYTES - 34;
}

/* ns a packet of one run. */
static double run(const struct contest *contest, int program)
{
	uint8_t frame[BENCH_FRAME_BYTES], out[BENCH_FRAME_BYTES + 256];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = sizeof(frame), .data_out = out,
		    .data_size_out = sizeof(out), .repeat = REPEATS);

	make_frame(frame);
	if (bpf_prog_test_run_opts(contest->fds[program], &options))
		fail(programs[program]);
	return options.duration;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

struct rewriter {
	const struct contest *contest;
	volatile bool stops;
	double per_second;
};

/* Gives every entry another rate, one after the other, while packets are judged. */
static void *rewrite(void *argument)
{
	struct rewriter *rewriter = argument;
	const struct pst_table *table = &rewriter->contest->table;
	uint64_t rewritten = 0, slots = (uint64_t)table->bucket_count * PST_BUCKET_SLOTS, slot = 0;
	struct pst_profile profile = { .burst_ticks = pst_clock_ticks(17500000), .excess_ticks = pst_clock_ticks(25000000),
				       .mtu_bytes = 1514, .red_action = PST_ACTION_DROP };
	uint32_t rates[2] = { pst_rate_encode(rewriter->contest->rate_Bps), pst_rate_encode(rewriter->contest->rate_Bps * 2) };
	struct pst_limiter_profile limits[2];
	double start = now_ns();
	int turn = 0;

	pst_limiter_resolve(&limits[0], &profile, rates[0]);
	pst_limiter_resolve(&limits[1], &profile, rates[1]);
	while (!rewriter->stops) {
		const struct pst_bucket *bucket = &table->buckets[slot / PST_BUCKET_SLOTS];

		if (bucket->keys[slot % PST_BUCKET_SLOTS]) {
			struct pst_table_conversion conversion = { &limits[turn], &limits[!turn], (uint64_t)now_ns() };

			pst_table_change(table, (uint32_t)slot, 0, rates[!turn], &conversion);
			rewritten++;
		}
		if (++slot == slots) {
			slot = 0;
			turn = !turn;
		}
	}
	rewriter->per_second = (double)rewritten / (now_ns() - start) * 1e9;
	return NULL;
}

static void bench(const char *path, uint32_t flows)
{
	struct contest contest = { .flows = flows, .rate_Bps = UINT64_C(1140000000) / flows / 2 + 1 };
	double times[PROGRAMS][ROUNDS], empty;
	int round, i;

	open_object(&contest, path);
	fill_plane(&contest);
	fill_tables(&contest);
	for (round = -1; round < ROUNDS; round++)
		for (i = 0; i < PROGRAMS; i++) {
			double time = run(&contest, i);

			if (round >= 0)
				times[i][round] = time;
		}
	for (i = 0; i < PROGRAMS; i++)
		qsort(times[i], ROUNDS, sizeof(double), compare);
	empty = times[0][ROUNDS / 2];
	for (i = 0; i < PROGRAMS; i++)
		printf("%9u  %-14s %8.0f %8.0f\n", flows, programs[i], times[i][ROUNDS / 2], times[i][ROUNDS / 2] - empty);
	if (flows >= 1000) {
		struct rewriter rewriter = { .contest = &contest };
		pthread_t thread;
		double judged;

		pthread_create(&thread, NULL, rewrite, &rewriter);
		judged = run(&contest, 1);
		judged = run(&contest, 1);
		rewriter.stops = true;
		pthread_join(thread, NULL);
		printf("%9u  rewriting %.1f M entries/s meanwhile: %.0f ns a packet\n", flows, rewriter.per_second / 1e6, judged);
	}
	fflush(stdout);
	munmap(contest.table.buckets, contest.table.bucket_count * sizeof(struct pst_bucket));
	bpf_object__close(contest.object);
}

int main(int count, char **arguments)
{
	static const uint32_t flows[] = { 1, 1000, 100000, 2000000 };
	size_t i;

	if (count < 2) {
		fprintf(stderr, "usage: %s KERNEL.bpf.o [LIMITERS...]\n", arguments[0]);
		return 2;
	}
	printf("%9s  %-14s %8s %8s   (BPF_PROG_RUN, random flows)\n", "limiters", "program", "ns", "less empty");
	for (i = 2; i < (size_t)count; i++)
		bench(arguments[1], (uint32_t)strtoul(arguments[i], NULL, 10));
	for (i = 0; count == 2 && i < sizeof(flows) / sizeof(*flows); i++)
		bench(arguments[1], flows[i]);
	return 0;
}
