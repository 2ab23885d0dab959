/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The cost of a decision, ours and the peer's, on the same frames in the same run.
 *
 *   frames   parse, classify by five-tuple, limit, count for each limiter: all that the replay engine does to a packet
 *   decide   classify and limit, the key given (the peer's: an array of nothing but keys); RFC meters without the touching
 *            of their state ahead, which only pst_host_run has
 *   index    limit only, the limiter given by its index
 *
 * Each figure is the median of ROUNDS passes over 2^20 frames; ours and the peer's passes alternate, because machines are
 * noisy. The ratio is peer / ours: above 1 we are faster.
 */
#define PST_ONE_THREAD /* as the replay engine */

#include "workload.h"

#include <penstock/packet.h>
#include <penstock/pipeline.h>
#include <penstock/rng.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ROUNDS 7
#define BURST 32
#define CHUNK 512U
#define START_NS (UINT64_C(1) << 53)

void pst_host_run(const struct pst_plane *plane, const struct pst_frame *frames, uint32_t count, uint64_t *rng,
		  struct pst_packet *packets, struct pst_decision *decisions, const struct pst_tally *tally);

struct contest {
	struct bench_workload workload;
	struct pst_plane plane;
	struct pst_tally tally;
	struct pst_link link;
	struct pst_tuple tuple;
	struct pst_class klass;
	struct pst_profile profile;
	struct pst_frame *frames;
	struct pst_packet *packets;
	struct pst_decision *decisions;
	uint64_t now_ns;
	uint64_t rng;
};

static void *zeroed(size_t bytes)
{
	size_t size = (bytes + (1U << 21)) & ~(((size_t)1 << 21) - 1);
	void *memory = aligned_alloc((size_t)1 << 21, size);

	if (!memory) {
		fprintf(stderr, "bench: out of memory\n");
		exit(1);
	}
	madvise(memory, size, MADV_HUGEPAGE);
	return memset(memory, 0, size);
}

static void make_profile(struct pst_profile *profile, enum pst_meter meter, uint64_t rate_Bps)
{
	memset(profile, 0, sizeof(*profile));
	profile->meter = (uint8_t)meter;
	profile->mtu_bytes = 1514;
	profile->red_action = PST_ACTION_DROP;
	if (meter == PST_METER_WINDOW) { /* the policy's defaults */
		profile->burst_ticks = pst_clock_ticks(17500000);
		profile->excess_ticks = pst_clock_ticks(25000000);
	} else {
		profile->burst_bytes = 20000;
		profile->excess_bytes = 20000;
	}
	profile->second_rate = pst_rate_encode(2 * rate_Bps);
}

static struct pst_key flow_key(const struct bench_flow *flow)
{
	struct pst_key key = { { (uint64_t)flow->source << 32 | flow->destination,
				 (uint64_t)(4 | PST_KEY_HAS_PORTS) << PST_KEY_FAMILY_SHIFT | UINT64_C(17) << 48 |
					 (uint64_t)flow->source_port << 16 | flow->destination_port } };

	return key;
}

/* IPv4 five-tuples: addresses, family, proto and ports, and that there are ports. */
static void make_tuple(struct pst_tuple *tuple, uint64_t *rng)
{
	memset(tuple, 0, sizeof(*tuple));
	tuple->mask.words[0] = UINT64_MAX;
	tuple->mask.words[1] = UINT64_C(0x1fff0000ffffffff);
	tuple->words = 1 << 0 | 1 << 1;
	tuple->kind = PST_TUPLE_LIMITS;
	tuple->specificity_q8 = 104 << 8;
	tuple->salt = (uint64_t)pst_rng_next(rng) << 32 | pst_rng_next(rng);
}

/* Inserts every flow. Returns ns an insertion. */
static double load(struct contest *contest)
{
	struct pst_table table = contest->plane.tables[PST_TUPLE_LIMITS];
	bool is_window = contest->profile.meter == PST_METER_WINDOW;
	uint64_t start = bench_now_ns();
	uint32_t i;

	for (i = 0; i < contest->workload.flow_count; i++) {
		struct pst_key key = flow_key(&contest->workload.flows[i]);
		struct pst_hash hash = pst_hash_key(&contest->plane.secret, &contest->tuple, &key);
		struct pst_place place = pst_table_place(hash, table.bucket_count);
		struct pst_table_entry entry = { is_window ? pst_limiter_idle(contest->now_ns) : i,
						 pst_rate_encode(contest->workload.rate_Bps), 0 };
		struct pst_table_insertion done;

		contest->plane.meters[i] = pst_meter_idle(contest->now_ns);
		contest->plane.limits[i].state = entry.state;
		contest->plane.limits[i].rate = entry.rate;
		if (pst_table_insert(&table, &place, &entry, &done) != PST_TABLE_DONE) {
			fprintf(stderr, "bench: limiter %u found no place\n", i);
			exit(1);
		}
	}
	return (double)(bench_now_ns() - start) / contest->workload.flow_count;
}

static double contest_make(struct contest *contest, uint32_t limiters, enum bench_keys keys, enum pst_meter meter)
{
	struct pst_plane *plane = &contest->plane;
	struct pst_table *table = &plane->tables[PST_TUPLE_LIMITS];
	uint32_t i;

	memset(contest, 0, sizeof(*contest));
	contest->now_ns = START_NS;
	contest->rng = pst_rng_seed(limiters);
	bench_workload_make(&contest->workload, limiters, keys);
	make_profile(&contest->profile, meter, contest->workload.rate_Bps);
	make_tuple(&contest->tuple, &contest->rng);
	contest->link.tuple_count = 1;
	contest->link.overhead_bytes = 14;
	contest->link.unmatched_class = PST_NONE;
	contest->klass.limit_index = PST_NONE;
	plane->links = &contest->link;
	plane->link_count = 1;
	plane->tuples = &contest->tuple;
	plane->tuple_count = 1;
	plane->classes = &contest->klass;
	plane->class_count = 1;
	plane->profiles = &contest->profile;
	plane->profile_count = 1;
	table->bucket_count = pst_table_buckets_for(limiters);
	table->buckets = zeroed(table->bucket_count * sizeof(struct pst_bucket));
	plane->limits = zeroed(limiters * sizeof(struct pst_limit));
	plane->limit_count = limiters;
	plane->meters = zeroed(limiters * sizeof(struct pst_meter_state));
	plane->meter_count = meter == PST_METER_WINDOW ? 0 : limiters; /* as a plane has them */
	for (i = 0; i < PST_HASH_SECRET_WORDS; i++)
		plane->secret.words[i] = (uint64_t)pst_rng_next(&contest->rng) << 32 | pst_rng_next(&contest->rng);
	contest->tally.classes = zeroed(sizeof(struct pst_counters));
	contest->tally.limits = zeroed(limiters * sizeof(struct pst_counters));
	contest->tally.slots = zeroed(table->bucket_count * PST_BUCKET_SLOTS * sizeof(struct pst_counters));
	contest->tally.reasons = zeroed(PST_REASON_COUNT * sizeof(uint64_t));
	contest->frames = zeroed(BENCH_FRAMES * sizeof(*contest->frames));
	contest->packets = zeroed(CHUNK * sizeof(*contest->packets));
	contest->decisions = zeroed(CHUNK * sizeof(*contest->decisions));
	for (i = 0; i < BENCH_FRAMES; i++) {
		struct pst_frame *frame = &contest->frames[i];

		frame->data = contest->workload.frames + (size_t)i * BENCH_FRAME_STRIDE;
		frame->captured_bytes = BENCH_FRAME_BYTES;
		frame->wire_bytes = BENCH_WIRE_BYTES;
	}
	return load(contest);
}

static void contest_free(struct contest *contest)
{
	free(contest->plane.tables[PST_TUPLE_LIMITS].buckets);
	free(contest->plane.limits);
	free(contest->plane.meters);
	free(contest->tally.classes);
	free(contest->tally.limits);
	free(contest->tally.slots);
	free(contest->tally.reasons);
	free(contest->frames);
	free(contest->packets);
	free(contest->decisions);
	bench_workload_free(&contest->workload);
}

/* Stamps are written outside of what is timed: a NIC or a capture brings them. */
static void stamp(struct contest *contest)
{
	uint32_t i;

	for (i = 0; i < BENCH_FRAMES; i++) {
		contest->now_ns += BENCH_GAP_NS;
		contest->frames[i].now_ns = contest->now_ns;
	}
}

/* In chunks as the replay engine has them, so that packets and decisions stay in the cache as they do there. */
static uint64_t ours_frames(struct contest *contest)
{
	uint64_t start = bench_now_ns();
	uint32_t done;

	for (done = 0; done < BENCH_FRAMES; done += CHUNK)
		pst_host_run(&contest->plane, contest->frames + done, CHUNK, &contest->rng, contest->packets,
			     contest->decisions, &contest->tally);
	return bench_now_ns() - start;
}

/* ns of deciding alone: the packets of a chunk are parsed before, untimed, and lie in the cache as after a parser. */
static uint64_t ours_decide(struct contest *contest)
{
	struct pst_batch batch;
	struct pst_decision decisions[BURST];
	uint64_t total_ns = 0;
	uint32_t done, first, i;

	for (done = 0; done < BENCH_FRAMES; done += CHUNK) {
		uint64_t start;

		for (i = 0; i < CHUNK; i++) {
			struct pst_frame *frame = &contest->frames[done + i];

			pst_packet_parse(&contest->packets[i], frame->data, frame->data + frame->captured_bytes,
					 frame->wire_bytes, PST_LINK_ETHERNET);
		}
		start = bench_now_ns();
		for (first = 0; first < CHUNK; first += BURST) {
			pst_batch_start(&batch, &contest->plane);
			for (i = 0; i < BURST; i++)
				pst_batch_add(&batch, &contest->plane, &contest->packets[first + i]);
			pst_batch_classify(&batch, &contest->plane, &contest->packets[first]);
			for (i = 0; i < BURST; i++)
				pst_pipeline_judge(&decisions[i], &contest->plane, &contest->packets[first + i],
						   pst_batch_match(&batch, &contest->plane, i,
								   &contest->packets[first + i].key), contest->frames[done + first + i].now_ns,
						   pst_rng_next(&contest->rng));
			contest->tally.reasons[decisions[0].reason]++;
		}
		total_ns += bench_now_ns() - start;
	}
	return total_ns;
}

static uint64_t ours_index(struct contest *contest)
{
	uint64_t start = bench_now_ns();
	uint32_t done, i;

	for (done = 0; done < BENCH_FRAMES; done += BURST) {
		for (i = 0; i < BURST; i++)
			__builtin_prefetch(&contest->plane.limits[contest->workload.owners[done + i]], 1);
		for (i = 0; i < BURST; i++) {
			struct pst_limit *limit = &contest->plane.limits[contest->workload.owners[done + i]];
			struct pst_limit_ref ref = { &limit->state, limit->state, limit->rate, limit->profile };
			struct pst_arrival arrival = { contest->frames[done + i].now_ns, BENCH_WIRE_BYTES, 0, 0, true };
			struct pst_decision decision = { 0 };

			pst_pipeline_limit(&decision, &contest->plane, &ref, &arrival);
			contest->tally.reasons[decision.reason]++;
		}
	}
	return bench_now_ns() - start;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), compare);
	return values[ROUNDS / 2];
}

/* Both return the ns that a pass took. */
typedef uint64_t (*ours_pass)(struct contest *);
typedef uint64_t (*peer_pass)(const struct bench_workload *);

/* ns a packet of alternating passes; *peer_ns stays 0 without a peer. */
static double race(struct contest *contest, ours_pass ours, peer_pass peer, double *peer_ns)
{
	double our_times[ROUNDS], peer_times[ROUNDS];
	int round;

	for (round = -1; round < ROUNDS; round++) { /* the first is a warm-up */
		uint64_t our_ns, their_ns;

		stamp(contest);
		our_ns = ours(contest);
		their_ns = peer ? peer(&contest->workload) : 0;
		if (round < 0)
			continue;
		our_times[round] = (double)our_ns / BENCH_FRAMES;
		peer_times[round] = (double)their_ns / BENCH_FRAMES;
	}
	if (peer)
		*peer_ns = median(peer_times);
	return median(our_times);
}

static void print_row(const char *keys, uint32_t limiters, const char *what, const char *meter, double ours, double peer)
{
	printf("%-8s %9u  %-7s %-8s %8.1f %8.1f", keys, limiters, what, meter, ours, 1000.0 / ours);
	if (peer > 0)
		printf(" %8.1f %8.2f", peer, peer / ours);
	printf("\n");
	fflush(stdout);
}

static const char *const meter_names[] = { "window", "rfc2697", "rfc2698", "rfc4115" };

static void bench(uint32_t limiters, enum bench_keys keys, enum pst_meter meter, bool has_peer)
{
	const char *keys_name = keys == BENCH_ZIPF ? "zipf" : "uniform";
	struct contest contest;
	double insert_ns, peer_ns = 0, ours_ns;

	insert_ns = contest_make(&contest, limiters, keys, meter);
	has_peer = has_peer && bench_peer_load(&contest.workload);
	ours_ns = race(&contest, ours_frames, has_peer ? bench_peer_frames : NULL, &peer_ns);
	print_row(keys_name, limiters, "frames", meter_names[meter], ours_ns, peer_ns);
	peer_ns = 0;
	ours_ns = race(&contest, ours_decide, has_peer ? bench_peer_decide : NULL, &peer_ns);
	print_row(keys_name, limiters, "decide", meter_names[meter], ours_ns, peer_ns);
	ours_ns = race(&contest, ours_index, NULL, &peer_ns);
	print_row(keys_name, limiters, "index", meter_names[meter], ours_ns, 0);
	if (keys == BENCH_UNIFORM && meter == PST_METER_WINDOW)
		printf("%-8s %9u  insert  %-8s %8.1f   table %.1f bytes a limiter\n", "", limiters, "", insert_ns,
		       (double)contest.plane.tables[PST_TUPLE_LIMITS].bucket_count * sizeof(struct pst_bucket) / limiters);
	if (has_peer)
		bench_peer_unload();
	contest_free(&contest);
}

/* All meters and keys at so many limiters. */
static void bench_limiters(uint32_t limiters, bool has_peer)
{
	int meter;

	for (meter = PST_METER_WINDOW; meter <= PST_METER_RFC4115; meter++)
		bench(limiters, BENCH_UNIFORM, (enum pst_meter)meter, has_peer && meter <= PST_METER_RFC2697);
	bench(limiters, BENCH_ZIPF, PST_METER_WINDOW, has_peer);
}

/* decide [LIMITERS...] */
int main(int count, char **arguments)
{
	static const uint32_t limiters[] = { 1, 1000, 100000, 2000000 };
	bool has_peer = bench_peer_start();
	int i;

	if (!has_peer)
		printf("NO PEER: built without DPDK, or its environment did not start; ratios are missing\n");
	printf("%-8s %9s  %-7s %-8s %8s %8s %8s %8s\n", "keys", "limiters", "what", "meter", "ns", "M/s", "DPDK ns",
	       "ratio");
	for (i = 1; i < count; i++)
		bench_limiters((uint32_t)strtoul(arguments[i], NULL, 10), has_peer);
	for (i = 0; count == 1 && i < (int)(sizeof(limiters) / sizeof(*limiters)); i++)
		bench_limiters(limiters[i], has_peer);
	return 0;
}
