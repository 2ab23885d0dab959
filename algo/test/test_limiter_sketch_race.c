/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * limiter_sketch.h, Concurrency: two CPUs with packets of one user.
 *
 * A limiter alone lets its window and a packet for each other CPU pass (test_limiter_race.c). Here a CPU may come after another has charged the word that
 * it chose, and before the other words are raised: it finds those still empty, and its packet is not told from the first one.
 * So each packet in flight on another CPU may go uncharged: with two CPUs one for each that is charged, and never more.
 */
#include <pthread.h>
#include <string.h>

#include "vectors.h"

#include <penstock/limiter_sketch.h>

#define NOW_NS (UINT64_C(7) * PST_NSEC_PER_SEC)
#define CPUS 2
#define ROWS 3
#define COLUMN_BITS 4
#define BYTES 1500
#define ROUNDS 100
#define USER 77

static uint64_t words[2 * ROWS << COLUMN_BITS];
static struct pst_plane plane;
static struct pst_sketch_cells cells; /* of the user */
static struct pst_limiter_profile profile;

static void start(uint32_t credit_packets)
{
	uint32_t i;

	plane = (struct pst_plane){ .filters = words, .filter_count = 2 * ROWS << COLUMN_BITS,
				    .sketch = { .rows = ROWS, .column_bits = COLUMN_BITS, .seeds = { 123456789, 987654321987, 5555555555555 } } };
	pst_sketch_find(&cells, &plane, USER);
	profile.rate = pst_rate_encode(125000000);
	profile.green_ticks = profile.window_ticks = credit_packets * pst_rate_cost(profile.rate, BYTES);
	profile.shapes = false;
	for (i = 0; i < 2 * ROWS << COLUMN_BITS; i++)
		words[i] = pst_limiter_idle(NOW_NS);
}

static bool take(void)
{
	uint32_t index = pst_limiter_sketch_find(&plane, &cells, NOW_NS);

	if (pst_limiter_take(&profile, &words[index], NOW_NS, BYTES) == PST_COLOR_RED)
		return false;
	pst_limiter_sketch_raise(&plane, &cells, index, NOW_NS);
	return true;
}

/* What a user's limiter was charged with. */
static uint64_t charged_packets(void)
{
	uint32_t index = pst_limiter_sketch_find(&plane, &cells, NOW_NS);

	return pst_limiter_queue(&profile, words[index], NOW_NS) / pst_rate_cost(profile.rate, BYTES);
}

/* --- threads --- */

static pthread_barrier_t barrier;

static void *cpu_run(void *argument)
{
	uint64_t *passed = argument;
	int round;

	for (round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&barrier);
		for (*passed = 0; take();)
			(*passed)++;
		pthread_barrier_wait(&barrier); /* the main thread checks, and starts the next round */
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void threads_pass_no_more_than_the_bound(void **state)
{
	const uint32_t credit_packets = 20000;
	uint64_t passed[CPUS];
	pthread_t threads[CPUS];
	int round, i;

	(void)state;
	assert_int_equal(pthread_barrier_init(&barrier, NULL, CPUS + 1), 0);
	for (i = 0; i < CPUS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, cpu_run, &passed[i]), 0);
	for (round = 0; round < ROUNDS; round++) {
		start(credit_packets);
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		assert_in_range(passed[0] + passed[1], credit_packets, CPUS * credit_packets);
		assert_int_equal(charged_packets(), credit_packets); /* all that there is, and no packet that passed too much blocks others */
		pthread_barrier_wait(&barrier);
	}
	for (i = 0; i < CPUS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
}

/* --- the worst case, step by step --- */

static void one_packet_is_missed_for_each_in_flight(void **state)
{
	uint32_t packets = 0, passed = 0, first, second;

	(void)state;
	start(10);
	for (packets = 0; packets < 20; packets++) {
		first = pst_limiter_sketch_find(&plane, &cells, NOW_NS);
		if (pst_limiter_take(&profile, &words[first], NOW_NS, BYTES) == PST_COLOR_RED)
			break;
		passed++;
		second = pst_limiter_sketch_find(&plane, &cells, NOW_NS); /* another CPU, before the first has raised its words */
		assert_int_not_equal(first, second);
		passed += pst_limiter_take(&profile, &words[second], NOW_NS, BYTES) != PST_COLOR_RED;
		pst_limiter_sketch_raise(&plane, &cells, second, NOW_NS);
		pst_limiter_sketch_raise(&plane, &cells, first, NOW_NS);
		assert_int_equal(charged_packets(), packets + 1);
	}
	assert_int_equal(packets, 10);
	assert_int_equal(passed, CPUS * 10);
}

/* Words that another CPU wrote later stay, whatever a slower one raises. */
static void what_is_later_stays(void **state)
{
	uint32_t first, index, row;
	uint64_t later;

	(void)state;
	start(10);
	first = pst_limiter_sketch_find(&plane, &cells, NOW_NS);
	assert_int_equal(pst_limiter_take(&profile, &words[first], NOW_NS, BYTES), PST_COLOR_GREEN);
	later = words[first] + 1000;
	index = pst_limiter_sketch_index(&plane.sketch, &cells, 1);
	words[index] = later;
	pst_limiter_sketch_raise(&plane, &cells, first, NOW_NS);
	for (row = 0; row < ROWS; row++)
		assert_int_equal(words[pst_limiter_sketch_index(&plane.sketch, &cells, row)], row == 1 ? later : words[first]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_pass_no_more_than_the_bound),
		cmocka_unit_test(one_packet_is_missed_for_each_in_flight),
		cmocka_unit_test(what_is_later_stays),
	};

	return cmocka_run_group_tests_name("limiter sketch race", tests, NULL, NULL);
}
