/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a share costs a packet in userspace: pst_fair_apply, beside the limiter of a class on the same packets, each less a loop that only opens
 * the decision. 2.5 million packets of 1000 bytes a second come to a link of 10 Gbit/s, twice what it takes.
 *
 *   classes  a chain of classes, and eight leaves below the last
 *   entries  users of one class that have entries, twice as many as users: by an entry's two hashes most of them find one
 *   sketch   users that have none; what is drawn is who sends, and users' addresses are scattered. They are dropped by chance, as AHAB
 *            does, or held by limiters of the sketch, with the terms of the limit beside them
 *   tend     pst_tree_tend, of a class whose users all have sent
 *
 * The three take turns, ROUNDS times. Times are CPU time, the least of all rounds; "noise" is the median of the shares' rounds over it.
 */
#define _GNU_SOURCE
#define PST_ONE_THREAD /* as the replay engine */

#include <penstock/pipeline.h>
#include <penstock/rng.h>

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define ROUNDS 15
#define PACKETS (UINT32_C(1) << 22) /* drawn; a round takes the next ROUND_PACKETS of them */
#define ROUND_PACKETS (UINT32_C(1) << 18)
#define BYTES 1000U
#define GAP_NSEC 400U
#define LINK_BPS UINT64_C(1250000000)
#define START_NS (UINT64_C(1) << 53)
#define ZIPF_EXPONENT 1.1 /* as workload.c */
#define LEAVES 8U
#define CLASSES_MAX (PST_TREE_DEPTH_MAX + LEAVES)
#define COUNTDOWNS 65536U /* as crates/penstock-algo */
#define PROTO_UDP 17U

enum { EMPTY, LIMIT, SHARE, LOOPS, COUNT = LOOPS };

struct bench {
	struct pst_plane plane;
	struct pst_link link;
	struct pst_tuple tuples[2]; /* users by source address, of IPv4; and of IPv6, which nobody here has */
	struct pst_class classes[CLASSES_MAX];
	struct pst_profile profile;
	struct pst_limit limits[CLASSES_MAX];
	struct pst_tree_place places[CLASSES_MAX + 1]; /* the link behind all classes */
	struct pst_slice slice;
	uint64_t countdowns[COUNTDOWNS];
	uint32_t first_leaf; /* whose packets they are: this class and the next `leaves` */
	uint32_t leaves;
	bool has_users;
	uint8_t proto;
	uint32_t *senders;   /* PACKETS of them: a leaf, or a user */
	uint32_t next[LOOPS]; /* each loop has a time of its own: packets that another took would be a pause */
	uint64_t now_ns[LOOPS];
	uint64_t rng;
};

static struct bench bench;

static double cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void *zeroed(size_t bytes)
{
	size_t page = (size_t)1 << 21, size = (bytes + page) & ~(page - 1);
	void *memory = aligned_alloc(page, size);

	if (!memory) {
		fputs("bench: no memory\n", stderr);
		exit(1);
	}
	madvise(memory, size, MADV_HUGEPAGE);
	return memset(memory, 0, size);
}

static uint64_t draw(void)
{
	return (uint64_t)pst_rng_next(&bench.rng) << 32 | pst_rng_next(&bench.rng);
}

/* ---- planes ---- */

static void put_place(uint32_t index, uint32_t parent, uint32_t first_child, uint32_t next_sibling, uint32_t link)
{
	bench.places[index] = (struct pst_tree_place){
		.terms = { 0, index == link ? LINK_BPS : PST_TREE_NO_CEILING_BPS, 1, 0 }, .parent = parent, .first_child = first_child,
		.next_sibling = next_sibling, .link = link, .profile = first_child == PST_NONE ? 0 : PST_NONE, .users = PST_NONE,
		.slice = PST_NONE, .first_user = PST_NONE,
	};
}

/* Tuples, and the limits that the shares are measured beside: each takes half of what comes. */
static void start(uint32_t classes, uint32_t leaves)
{
	uint32_t i;

	free(bench.plane.nodes);
	free(bench.plane.filters);
	memset(&bench, 0, offsetof(struct bench, senders));
	bench.rng = pst_rng_seed(7);
	bench.proto = PROTO_UDP;
	bench.leaves = leaves;
	bench.first_leaf = classes - leaves;
	bench.profile = (struct pst_profile){ .burst_ticks = pst_clock_ticks(17500000), .excess_ticks = pst_clock_ticks(25000000),
					      .mtu_bytes = BYTES, .red_action = PST_ACTION_DROP };
	bench.tuples[0].mask.words[0] = UINT64_C(0xffffffff) << 32;
	bench.tuples[0].mask.words[1] = (uint64_t)PST_KEY_FAMILY << PST_KEY_FAMILY_SHIFT;
	bench.tuples[0].words = 3;
	bench.tuples[0].kind = PST_TUPLE_LIMITS;
	bench.tuples[0].salt = draw();
	for (i = 0; i < classes; i++) {
		bench.classes[i] = (struct pst_class){ .limit_index = i };
		bench.limits[i] = (struct pst_limit){ .state = pst_limiter_idle(START_NS), .rate = pst_rate_encode(LINK_BPS / leaves) };
	}
	bench.plane = (struct pst_plane){
		.links = &bench.link, .link_count = 1, .tuples = bench.tuples, .tuple_count = 2, .classes = bench.classes,
		.class_count = classes, .profiles = &bench.profile, .profile_count = 1, .limits = bench.limits, .limit_count = classes,
		.places = bench.places, .place_count = classes + 1, .slices = &bench.slice, .countdowns = bench.countdowns,
		.countdown_count = COUNTDOWNS, .uses_random = true,
	};
	for (i = 0; i < PST_HASH_SECRET_WORDS; i++)
		bench.plane.secret.words[i] = draw();
	for (i = 0; i < LOOPS; i++) {
		bench.next[i] = 0;
		bench.now_ns[i] = START_NS;
	}
}

static void put_nodes(uint32_t users)
{
	bench.plane.node_count = bench.plane.place_count + users;
	bench.plane.nodes = zeroed(bench.plane.node_count * sizeof(*bench.plane.nodes));
}

static void start_classes(uint32_t depth)
{
	uint32_t inner = depth - 1, classes = inner + LEAVES, i;

	start(classes, LEAVES);
	for (i = 0; i < inner; i++) /* each is the only child of the one before; the first leaf follows the last */
		put_place(i, i ? i - 1 : classes, i + 1, PST_NONE, classes);
	for (i = inner; i < classes; i++)
		put_place(i, inner ? inner - 1 : classes, PST_NONE, i + 1 < classes ? i + 1 : PST_NONE, classes);
	put_place(classes, PST_NONE, 0, PST_NONE, classes);
	put_nodes(0);
}

static void start_users(void)
{
	start(1, 1);
	put_place(0, 1, PST_NONE, PST_NONE, 1);
	put_place(1, PST_NONE, 0, PST_NONE, 1);
	bench.has_users = true;
	bench.places[0].users = 0;
}

static void start_entries(uint32_t entries)
{
	start_users();
	bench.places[0].first_user = 2;
	bench.places[0].user_count = entries;
	put_nodes(entries + 1);
}

static void start_sketch(uint32_t column_bits, uint32_t flags)
{
	uint32_t i;

	start_users();
	put_nodes(0);
	bench.places[0].slice = 0;
	bench.plane.slice_count = 1;
	bench.plane.sketch.rows = 3;
	bench.plane.sketch.column_bits = column_bits;
	for (i = 0; i < 3; i++)
		bench.plane.sketch.seeds[i] = draw();
	bench.plane.filter_count = 2 * 3U << column_bits; /* and limiters */
	bench.plane.filters = zeroed(bench.plane.filter_count * sizeof(*bench.plane.filters));
	bench.slice.nominal_Bps = LINK_BPS;
	bench.slice.epoch_shift = PST_THRESHOLD_EPOCH_SHIFT;
	pst_lpf_scale_compile(&bench.slice.scale, LINK_BPS, 1, 0);
	bench.slice.flags = flags;
	if (flags & PST_SLICE_PERIODIC)
		bench.proto = PST_FAIR_PROTO_TCP;
}

/* ---- packets ---- */

static void draw_senders(uint32_t count, bool is_zipf)
{
	double *sums = is_zipf ? malloc(count * sizeof(*sums)) : NULL, total = 0;
	uint32_t i;

	for (i = 0; sums && i < count; i++)
		sums[i] = total += pow(i + 1, -ZIPF_EXPONENT);
	for (i = 0; i < PACKETS; i++) {
		double point = (double)(draw() >> 11) / 9007199254740992.0 * total;
		uint32_t low = 0, high = count - 1;

		while (sums && low < high) {
			uint32_t middle = low + (high - low) / 2;

			if (sums[middle] < point)
				low = middle + 1;
			else
				high = middle;
		}
		bench.senders[i] = sums ? low : pst_scale_u32(pst_rng_next(&bench.rng), count);
	}
	free(sums);
}

/* The ns a packet of one round of a loop. Inlined, once for each loop. */
static inline __attribute__((always_inline)) double run_loop(int loop, uint32_t *dropped)
{
	struct pst_packet packet = { .length = BYTES, .network_family = 4 };
	uint32_t *next = &bench.next[loop == COUNT ? SHARE : loop], i;
	uint64_t *now_ns = &bench.now_ns[loop == COUNT ? SHARE : loop];
	double begin = cpu_ns();

	packet.key.words[1] = (uint64_t)(PST_KEY_HAS_PORTS | 4) << PST_KEY_FAMILY_SHIFT | (uint64_t)bench.proto << PST_FAIR_PROTO_SHIFT;
	for (i = 0; i < ROUND_PACKETS; i++) {
		uint32_t sender = bench.senders[(*next)++ & (PACKETS - 1)], random_u32 = pst_rng_next(&bench.rng);
		struct pst_match match = { .class_index = bench.first_leaf + (bench.has_users ? 0 : sender) };
		struct pst_decision decision;
		struct pst_fair fair;

		if (bench.has_users)
			packet.key.words[0] = (uint64_t)(sender * UINT32_C(2654435761)) << 32;
		*now_ns += GAP_NSEC;
		if (loop == LIMIT) {
			pst_pipeline_judge(&decision, &bench.plane, &packet, &match, *now_ns, random_u32);
		} else {
			pst_pipeline_open(&decision, &bench.plane, &packet, 0);
			decision.departure_ns = *now_ns;
			decision.class_index = match.class_index;
		}
		if (loop == SHARE || loop == COUNT)
			pst_fair_apply(&decision, &bench.plane, &packet, &fair, *now_ns, random_u32);
		if (loop == COUNT)
			*dropped += decision.verdict == PST_VERDICT_DROP;
		__asm__ volatile("" : : "r"(&decision), "r"(&packet) : "memory");
	}
	return (cpu_ns() - begin) / ROUND_PACKETS;
}

static __attribute__((noinline)) double run_empty(void)
{
	return run_loop(EMPTY, NULL);
}

static __attribute__((noinline)) double run_limit(void)
{
	return run_loop(LIMIT, NULL);
}

static __attribute__((noinline)) double run_share(void)
{
	return run_loop(SHARE, NULL);
}

/* What part of the packets passes. */
static __attribute__((noinline)) double count_passed(void)
{
	uint32_t dropped = 0;

	run_loop(COUNT, &dropped);
	return 1 - (double)dropped / ROUND_PACKETS;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static void measure(const char *what, const char *keys)
{
	double times[LOOPS][ROUNDS], share, limit;
	uint32_t i;
	int round;

	for (i = 0; i < PACKETS; i += ROUND_PACKETS)
		run_share(); /* until everybody is known */
	for (round = 0; round < ROUNDS; round++) {
		times[EMPTY][round] = run_empty();
		times[LIMIT][round] = run_limit();
		times[SHARE][round] = run_share();
	}
	for (i = 0; i < LOOPS; i++)
		qsort(times[i], ROUNDS, sizeof(double), compare);
	share = times[SHARE][0] - times[EMPTY][0];
	limit = times[LIMIT][0] - times[EMPTY][0];
	printf("%-34s %-8s %6.1f %7.1f %7.1f %8.2f %6.2f %8.1f %%\n", what, keys, times[EMPTY][0], limit, share, share / limit,
	       times[SHARE][ROUNDS / 2] / times[SHARE][0], 100 * count_passed());
	fflush(stdout);
}

/* ms of a call, and ns an entry. */
static void tend(uint32_t entries)
{
	double least = 1e18;
	int round;

	for (round = 0; round < ROUNDS; round++) {
		double begin = cpu_ns(), spent;

		pst_tree_tend(&bench.plane, 0, bench.now_ns[SHARE]);
		spent = cpu_ns() - begin;
		least = spent < least ? spent : least;
	}
	printf("tend, %7u entries: %.4f ms, %.1f ns an entry\n", entries, least / 1e6, least / entries);
}

int main(void)
{
	static const uint32_t entries[] = { 1U << 10, 1U << 14, 1U << 18, 1U << 20 };
	static const uint32_t users[] = { 1000, 100000, 1000000, 10000000 }, column_bits[] = { 9, 11, 14, 16 };
	char what[64];
	uint32_t i, k;

	bench.senders = zeroed(PACKETS * sizeof(*bench.senders));
	printf("%-34s %-8s %6s %7s %7s %8s %6s %10s   (ns a packet, least of %d rounds; limit and share less the empty loop)\n", "shares", "keys",
	       "empty", "limit", "share", "s/limit", "noise", "passed", ROUNDS);
	for (i = 1; i <= PST_TREE_DEPTH_MAX; i++) {
		start_classes(i);
		draw_senders(LEAVES, false);
		snprintf(what, sizeof(what), "classes at depth %u", i);
		measure(what, "uniform");
	}
	for (i = 0; i < 4; i++) {
		for (k = 0; k < 2; k++) {
			start_entries(entries[i]);
			draw_senders(entries[i] / 2, k);
			snprintf(what, sizeof(what), "%u users, %u entries", entries[i] / 2, entries[i]);
			measure(what, k ? "zipf" : "uniform");
			if (!k)
				tend(entries[i]);
		}
	}
	for (i = 0; i < 4; i++) {
		for (k = 0; k < 8; k++) {
			start_sketch(column_bits[i], k % 2 ? PST_SLICE_LIMITERS : 0);
			draw_senders(users[k / 2], false);
			snprintf(what, sizeof(what), "%u users, 3 x %u%s", users[k / 2], 1U << column_bits[i], k % 2 ? ", limiters" : "");
			measure(what, "uniform");
		}
	}
	for (k = 0; k < 2; k++) { /* all of them above their shares, so that each has a limiter */
		start_sketch(11, k ? PST_SLICE_LIMITERS : 0);
		draw_senders(20, false);
		measure(k ? "20 users, 3 x 2048, limiters" : "20 users, 3 x 2048", "uniform");
	}
	start_sketch(11, PST_SLICE_PERIODIC);
	draw_senders(100000, false);
	measure("100000 TCP users, 3 x 2048", "uniform");
	return 0;
}
