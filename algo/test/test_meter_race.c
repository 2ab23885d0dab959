/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * meter.h, Concurrency: many CPUs on one RFC meter.
 *
 * The bound: with N CPUs a bucket is overdrawn by N - 1 packets at most, and what passes is charged to the tick. First with real
 * threads; then the worst case, made certain by other CPUs between load and commit.
 */
#include <pthread.h>

#include "vectors.h"

static uint64_t racing_cas(uint64_t *word, uint64_t old, uint64_t next);

/* The meters of this file commit through racing_cas. */
#define __sync_val_compare_and_swap(word, old, next) racing_cas(word, old, next)
#include "rfc_meter.h"
#undef __sync_val_compare_and_swap

#define NOW_NS (UINT64_C(7) * PST_NSEC_PER_SEC)
#define CPUS 4U
#define BYTES 1500
#define ROUNDS 200
#define RATE_BPS UINT64_C(125000000)
#define SECOND_BPS UINT64_C(250000000)
#define REDS 50

static void (*rival)(void);

static uint64_t racing_cas(uint64_t *word, uint64_t old, uint64_t next)
{
	if (rival)
		rival();
	return __sync_val_compare_and_swap(word, old, next);
}

/* What passed, by colour. */
struct passed {
	uint64_t packets[3];
};

/* Packets that each bucket was charged with. */
static uint64_t committed_packets(const struct passed *passed)
{
	return passed->packets[PST_COLOR_GREEN];
}

static uint64_t excess_packets(const struct passed *passed, uint8_t kind)
{
	return passed->packets[PST_COLOR_YELLOW] +
	       (kind == PST_METER_RFC4115 ? 0 : passed->packets[PST_COLOR_GREEN]);
}

/* Buckets of so many packets. RFC 4115's never become empty: a tick is not a packet, and is added. */
static void make_meter(struct rfc_meter *meter, uint8_t kind, uint32_t committed, uint32_t excess)
{
	struct pst_profile written;
	uint64_t more = kind == PST_METER_RFC4115;

	memset(&written, 0, sizeof(written));
	written.meter = kind;
	written.mtu_bytes = BYTES;
	written.burst_ticks = committed * pst_rate_cost(pst_rate_encode(RATE_BPS), BYTES) + more;
	written.excess_ticks = excess * pst_rate_cost(pst_rate_encode(kind == PST_METER_RFC2697 ? RATE_BPS : SECOND_BPS), BYTES) +
			       more;
	rfc_meter_init(meter, &written, RATE_BPS, SECOND_BPS, NOW_NS);
}

/* One packet, as pipeline.h has it. */
static uint8_t take(const struct rfc_meter *meter, struct pst_meter_state *shared)
{
	struct pst_meter_state old = pst_meter_load(shared);
	struct rfc_meter view = *meter;
	struct pst_meter_result result;

	view.state = old;
	result = rfc_meter_try(&view, NOW_NS, BYTES, PST_COLOR_GREEN);
	pst_meter_commit(shared, &old, &result);
	return result.color;
}

/* The words are what the packets that passed cost, to the tick. */
static void check_charges(const struct rfc_meter *meter, const struct pst_meter_state *state, const struct passed *passed)
{
	uint64_t now = pst_clock_ticks(NOW_NS), cost = pst_rate_cost(pst_rate_encode(RATE_BPS), BYTES);
	uint8_t kind = meter->written.meter;
	uint64_t second = kind == PST_METER_RFC2697 ? cost : pst_rate_cost(pst_rate_encode(SECOND_BPS), BYTES);

	assert_int_equal(state->committed_ticks - now, committed_packets(passed) * cost);
	assert_int_equal(state->excess_ticks - now, excess_packets(passed, kind) * second);
}

/* --- threads --- */

struct shared {
	struct rfc_meter meter;
	struct pst_meter_state state;
	pthread_barrier_t barrier;
};

struct cpu {
	struct shared *shared;
	struct passed passed;
	pthread_t thread;
};

static void *cpu_run(void *argument)
{
	struct cpu *cpu = argument;
	struct shared *shared = cpu->shared;
	int round;

	for (round = 0; round < ROUNDS; round++) {
		struct passed passed = { { 0, 0, 0 } };

		pthread_barrier_wait(&shared->barrier);
		while (passed.packets[PST_COLOR_RED] < REDS) /* a red one may be followed by others that are not */
			passed.packets[take(&shared->meter, &shared->state)]++;
		cpu->passed = passed;
		pthread_barrier_wait(&shared->barrier); /* the main thread checks, and starts the next round */
		pthread_barrier_wait(&shared->barrier);
	}
	return NULL;
}

static void race(uint8_t kind)
{
	const uint32_t committed = 2000, excess = 3000;
	const uint32_t second = excess + (kind == PST_METER_RFC2697 ? committed : 0);
	struct shared shared;
	struct cpu cpus[CPUS];
	uint32_t round, i, color;

	rival = NULL;
	make_meter(&shared.meter, kind, committed, excess);
	assert_int_equal(pthread_barrier_init(&shared.barrier, NULL, CPUS + 1), 0);
	for (i = 0; i < CPUS; i++) {
		cpus[i].shared = &shared;
		assert_int_equal(pthread_create(&cpus[i].thread, NULL, cpu_run, &cpus[i]), 0);
	}
	for (round = 0; round < ROUNDS; round++) {
		struct passed passed = { { 0, 0, 0 } };

		shared.state = pst_meter_idle(NOW_NS);
		pthread_barrier_wait(&shared.barrier);
		pthread_barrier_wait(&shared.barrier);
		for (i = 0; i < CPUS; i++)
			for (color = 0; color < 3; color++)
				passed.packets[color] += cpus[i].passed.packets[color];
		check_charges(&shared.meter, &shared.state, &passed);
		assert_in_range(committed_packets(&passed), committed, committed + CPUS - 1);
		/* RFC 2697: both buckets, each overdrawn by as much. */
		assert_in_range(excess_packets(&passed, kind), second,
				second + (kind == PST_METER_RFC2697 ? 2 : 1U) * (CPUS - 1));
		pthread_barrier_wait(&shared.barrier);
	}
	for (i = 0; i < CPUS; i++)
		pthread_join(cpus[i].thread, NULL);
	pthread_barrier_destroy(&shared.barrier);
}

static void test_threads_overdraw_no_more_than_the_bound(void **state)
{
	(void)state;
	race(PST_METER_RFC2697);
	race(PST_METER_RFC2698);
	race(PST_METER_RFC4115);
}

/* --- the worst case --- */

static struct {
	struct rfc_meter meter;
	struct pst_meter_state state;
	struct passed passed;
	uint32_t cpus_left;
} worst;

/* Between load and commit of a CPU the next one judges, and so on: all see the credit that one of them may have. */
static void worst_rival(void)
{
	if (worst.cpus_left == 0)
		return;
	worst.cpus_left--;
	worst.passed.packets[take(&worst.meter, &worst.state)]++;
}

/* Credit for one packet of this colour is left; all CPUs take it, and each is charged. */
static void check_worst(uint8_t kind, uint8_t color)
{
	struct passed before;

	rival = NULL;
	memset(&worst, 0, sizeof(worst));
	make_meter(&worst.meter, kind, 10, 10);
	worst.state = pst_meter_idle(NOW_NS);
	while (worst.passed.packets[color] < 9)
		worst.passed.packets[take(&worst.meter, &worst.state)]++;
	before = worst.passed;
	worst.cpus_left = CPUS - 1;
	rival = worst_rival;
	worst.passed.packets[take(&worst.meter, &worst.state)]++;
	rival = NULL;
	assert_int_equal(worst.cpus_left, 0);
	assert_int_equal(worst.passed.packets[color], before.packets[color] + CPUS);
	check_charges(&worst.meter, &worst.state, &worst.passed);
	/* The state remembers: the next packet has a worse colour. */
	assert_true(take(&worst.meter, &worst.state) > color);
}

static void test_the_worst_case_is_one_packet_for_each_other_cpu(void **state)
{
	(void)state;
	check_worst(PST_METER_RFC2697, PST_COLOR_GREEN);
	check_worst(PST_METER_RFC2697, PST_COLOR_YELLOW);
	check_worst(PST_METER_RFC2698, PST_COLOR_GREEN);
	check_worst(PST_METER_RFC4115, PST_COLOR_GREEN);
	check_worst(PST_METER_RFC4115, PST_COLOR_YELLOW);
}

/* A word that one CPU only brings up to now is not taken back from another that charges it meanwhile. */
static void test_an_idle_word_is_charged_once(void **state)
{
	uint8_t kind;

	(void)state;
	for (kind = PST_METER_RFC2697; kind <= PST_METER_RFC4115; kind++) {
		rival = NULL;
		memset(&worst, 0, sizeof(worst));
		make_meter(&worst.meter, kind, 10, 10);
		worst.state = pst_meter_idle(NOW_NS);
		worst.cpus_left = CPUS - 1;
		rival = worst_rival;
		worst.passed.packets[take(&worst.meter, &worst.state)]++;
		rival = NULL;
		assert_int_equal(worst.passed.packets[PST_COLOR_GREEN], CPUS);
		if (kind == PST_METER_RFC4115)
			assert_int_equal(worst.state.excess_ticks, pst_clock_ticks(NOW_NS));
		check_charges(&worst.meter, &worst.state, &worst.passed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_overdraw_no_more_than_the_bound),
		cmocka_unit_test(test_the_worst_case_is_one_packet_for_each_other_cpu),
		cmocka_unit_test(test_an_idle_word_is_charged_once),
	};

	return cmocka_run_group_tests_name("meter race", tests, NULL, NULL);
}
