/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * limiter.h, Concurrency: many CPUs on one state.
 *
 * The bound: with N CPUs, at one moment, at most window + (N - 1) packets pass, and each that passes is charged.
 * First with real threads; then the worst case, made certain by losing the compare-and-swap on purpose.
 */
#include <pthread.h>

#include "vectors.h"

static uint64_t racing_cas(uint64_t *state, uint64_t old, uint64_t next);

/* The limiter of this file commits through racing_cas. */
#define __sync_val_compare_and_swap(state, old, next) racing_cas(state, old, next)
#include <penstock/limiter.h>
#undef __sync_val_compare_and_swap

#define NOW_NS (UINT64_C(7) * PST_NSEC_PER_SEC)
#define CPUS 4
#define BYTES 1500
#define ROUNDS 300

static void (*rival)(uint64_t *state);

static uint64_t racing_cas(uint64_t *state, uint64_t old, uint64_t next)
{
	if (rival)
		rival(state);
	return __sync_val_compare_and_swap(state, old, next);
}

static struct pst_limiter_profile profile_of(uint32_t packets)
{
	struct pst_limiter_profile profile;

	profile.rate = pst_rate_encode(125000000);
	profile.green_ticks = profile.window_ticks = packets * pst_rate_cost(profile.rate, BYTES);
	profile.shapes = false;
	return profile;
}

/* --- threads --- */

struct shared {
	struct pst_limiter_profile profile;
	uint64_t vft_ticks;
	pthread_barrier_t barrier;
	uint64_t passed[CPUS];
};

struct cpu {
	struct shared *shared;
	int index;
};

static void *cpu_run(void *argument)
{
	struct cpu *cpu = argument;
	struct shared *shared = cpu->shared;
	int round;

	for (round = 0; round < ROUNDS; round++) {
		uint64_t passed = 0;

		pthread_barrier_wait(&shared->barrier);
		while (pst_limiter_take(&shared->profile, &shared->vft_ticks, NOW_NS, BYTES) != PST_COLOR_RED)
			passed++;
		shared->passed[cpu->index] = passed;
		pthread_barrier_wait(&shared->barrier); /* the main thread checks, and starts the next round */
		pthread_barrier_wait(&shared->barrier);
	}
	return NULL;
}

static void test_threads_pass_no_more_than_the_bound(void **state)
{
	const uint32_t credit_packets = 20000;
	struct shared shared = { .profile = profile_of(credit_packets) };
	struct cpu cpus[CPUS];
	pthread_t threads[CPUS];
	int round, i;

	(void)state;
	rival = NULL;
	assert_int_equal(pthread_barrier_init(&shared.barrier, NULL, CPUS + 1), 0);
	shared.vft_ticks = pst_limiter_idle(NOW_NS);
	for (i = 0; i < CPUS; i++) {
		cpus[i] = (struct cpu){ &shared, i };
		assert_int_equal(pthread_create(&threads[i], NULL, cpu_run, &cpus[i]), 0);
	}
	for (round = 0; round < ROUNDS; round++) {
		uint64_t passed = 0, floor_ticks = pst_clock_ticks(NOW_NS) - shared.profile.window_ticks;

		pthread_barrier_wait(&shared.barrier);
		pthread_barrier_wait(&shared.barrier);
		for (i = 0; i < CPUS; i++)
			passed += shared.passed[i];
		assert_in_range(passed, credit_packets, credit_packets + CPUS - 1);
		assert_int_equal(shared.vft_ticks - floor_ticks, passed * pst_rate_cost(shared.profile.rate, BYTES));
		shared.vft_ticks = pst_limiter_idle(NOW_NS);
		pthread_barrier_wait(&shared.barrier);
	}
	for (i = 0; i < CPUS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&shared.barrier);
}

/* --- the worst case --- */

static struct pst_limiter_profile worst_profile;
static uint32_t worst_cpus_left, worst_passed, worst_nudges;

/*
 * At each try of a CPU another one is quicker: three times with a byte of its own, and at the last try the next CPU,
 * having seen the same credit, goes through all this itself.
 */
static void worst_rival(uint64_t *state)
{
	static uint32_t tries;

	if (worst_cpus_left == 0)
		return; /* the last CPU meets no rival, and takes the credit that all of them have seen */
	if (++tries % PST_CAS_TRIES != 0) {
		__sync_fetch_and_add(state, pst_rate_cost(worst_profile.rate, 1));
		worst_nudges++;
		return;
	}
	worst_cpus_left--;
	if (pst_limiter_take(&worst_profile, state, NOW_NS, BYTES) != PST_COLOR_RED)
		worst_passed++;
}

static void test_the_worst_case_is_one_packet_for_each_other_cpu(void **state)
{
	uint64_t vft, floor_ticks, nudge;

	(void)state;
	worst_profile = profile_of(10);
	nudge = pst_rate_cost(worst_profile.rate, 1);
	/* Credit for one packet, and for the nudges. */
	floor_ticks = pst_clock_ticks(NOW_NS) - worst_profile.window_ticks;
	vft = floor_ticks + 9 * pst_rate_cost(worst_profile.rate, BYTES) - (CPUS - 1) * (PST_CAS_TRIES - 1) * nudge;
	worst_cpus_left = CPUS - 1;
	worst_passed = 0;
	worst_nudges = 0;
	rival = worst_rival;
	if (pst_limiter_take(&worst_profile, &vft, NOW_NS, BYTES) != PST_COLOR_RED)
		worst_passed++;
	rival = NULL;
	assert_int_equal(worst_nudges, (CPUS - 1) * (PST_CAS_TRIES - 1));
	assert_int_equal(worst_passed, CPUS);
	/* One of them had the credit; the others are over it, but charged: the state remembers, and is red for all. */
	assert_int_equal(vft - floor_ticks,
			 worst_profile.window_ticks + (CPUS - 1) * pst_rate_cost(worst_profile.rate, BYTES));
	assert_int_equal(pst_limiter_take(&worst_profile, &vft, NOW_NS, 1), PST_COLOR_RED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_pass_no_more_than_the_bound),
		cmocka_unit_test(test_the_worst_case_is_one_packet_for_each_other_cpu),
	};

	return cmocka_run_group_tests_name("limiter race", tests, NULL, NULL);
}
