/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* tree.h, Concurrency: many CPUs in one tree. Threads take packets of one schedule, each whichever comes next. */
#include <pthread.h>
#include <sched.h>

#include "vectors.h"
#include "forest.h"

#define CPUS 4
#define LEAVES 8
#define EVENTS 400000

struct event {
	double at_ns;
	uint32_t leaf;
};

static struct event events[EVENTS];
static uint64_t next_event;
static uint64_t passed_bytes[NODES_MAX];
static double counted_from_ns;

/* A link with two inner nodes of four leaves each, which ask for 1.5 times to 4 times what they may have. */
static void schedule_events(void)
{
	uint32_t leaf, i;

	plant(9, 125000000);
	grow(0, 2);
	grow(1, 4);
	grow(2, 4);
	for (leaf = 3; leaf < 3 + LEAVES; leaf++)
		send_at(leaf, 125e6 / LEAVES * (1 + leaf / 3.0));
	for (i = 0; i < EVENTS; i++) {
		uint32_t next = next_leaf();

		events[i] = (struct event){ forest.sources[next].next_ns, next };
		send_later(next, FRAME_BYTES);
	}
	counted_from_ns = events[EVENTS / 4].at_ns;
}

static void judge(const struct event *event)
{
	struct pst_tree_node *node = &forest.nodes[event->leaf];
	uint64_t now_ns = START_NS + (uint64_t)event->at_ns, window = pst_clock_ticks(42500000);
	uint64_t cost = cost_at(share_of(event->leaf, now_ns, FRAME_BYTES), FRAME_BYTES);
	const struct pst_limiter_profile profile = { window, window, 0, false };
	uint64_t old = *(volatile uint64_t *)&node->vft_ticks;
	struct pst_limiter_result result;

	do {
		result = pst_limiter_judge(&profile, old, now_ns, cost);
	} while (!pst_limiter_charge(&node->vft_ticks, &old, result.vft_ticks));
	if (result.color != PST_COLOR_RED && event->at_ns >= counted_from_ns)
		__sync_fetch_and_add(&passed_bytes[event->leaf], FRAME_BYTES);
}

/* How often the host has tended; packets wait for it, or on a busy machine they would be over before it has begun. */
static uint64_t turns;

static void await_turn(uint64_t event)
{
	while (event / (EVENTS / 400) > __atomic_load_n(&turns, __ATOMIC_RELAXED))
		sched_yield();
}

static void *cpu_run(void *argument)
{
	uint64_t event;

	(void)argument;
	while ((event = __sync_fetch_and_add(&next_event, 1)) < EVENTS) {
		await_turn(event);
		judge(&events[event]);
		if (event % 8 == 0)
			sched_yield(); /* where there are fewer cores than threads: here, and not in the tree */
	}
	return NULL;
}

/* Beside packets, a host that tends all the time. */
static void *tend_run(void *argument)
{
	uint64_t *tended = argument, event, node = 0;

	while ((event = __atomic_load_n(&next_event, __ATOMIC_RELAXED)) < EVENTS) {
		*tended += pst_tree_tend(&forest.plane, (uint32_t)node, START_NS + (uint64_t)events[event].at_ns);
		node = (node + 1) % 3;
		__atomic_add_fetch(&turns, 1, __ATOMIC_RELAXED);
		sched_yield();
	}
	__atomic_store_n(&turns, UINT64_MAX, __ATOMIC_RELAXED); /* the last packets go on alone */
	return NULL;
}

/* Every leaf its share to within 3 %, and nothing is left locked or miscounted. */
static void assert_shared(void)
{
	double time_s = (events[EVENTS - 1].at_ns - counted_from_ns) / 1e9;
	uint32_t leaf;

	assert_int_equal(forest.nodes[0].lock, 0);
	assert_sums();
	for (leaf = 3; leaf < 3 + LEAVES; leaf++) {
		double fair = 125e6 / LEAVES * time_s;

		if (fabs((double)passed_bytes[leaf] - fair) > 0.03 * fair)
			fail_msg("leaf %u: %.0f of %.0f", leaf, (double)passed_bytes[leaf], fair);
	}
}

static void run_threads(uint32_t cpus, uint64_t *tended)
{
	pthread_t threads[CPUS];
	uint32_t i;

	schedule_events();
	memset(passed_bytes, 0, sizeof(passed_bytes));
	next_event = 0;
	turns = cpus < CPUS ? 0 : UINT64_MAX;
	for (i = 0; i < CPUS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, i < cpus ? cpu_run : tend_run, tended), 0);
	for (i = 0; i < CPUS; i++)
		pthread_join(threads[i], NULL);
}

static void test_threads_share_fairly(void **state)
{
	(void)state;
	run_threads(CPUS, NULL);
	assert_shared();
}

static void test_tending_beside_packets(void **state)
{
	uint64_t tended = 0;
	uint32_t node;

	(void)state;
	run_threads(CPUS - 1, &tended);
	assert_true(tended > 100);
	assert_shared();
	for (node = 0; node < 3; node++)
		assert_true(pst_tree_tend(&forest.plane, node, START_NS + (uint64_t)events[EVENTS - 1].at_ns + 100000 * MS_NS));
	assert_sums();
	for (node = 0; node < 3; node++)
		assert_int_equal(forest.nodes[node].children.weight + forest.nodes[node].children.weight_taken, 0);
}

/* ---- entries ---- */

#define RACE_USERS 200
#define RACE_ENTRIES 512
#define RACE_ROUNDS 200

static pthread_barrier_t barrier;

/* All users, in the same order on all CPUs, from different places on: CPUs meet at users that have no entry yet. */
static void *admit_run(void *argument)
{
	uint32_t first = *(const uint32_t *)argument, round, i;

	for (round = 0; round < RACE_ROUNDS; round++) {
		pthread_barrier_wait(&barrier);
		for (i = 0; i < RACE_USERS; i++) {
			const struct user *user = &forest.users[(first + i) % RACE_USERS];
			struct pst_tree_walk walk = { .now_ns = START_NS + i, .place = 1, .user = user->user, .weight = user->weight };

			pst_tree_share(&forest.plane, &walk, FRAME_BYTES);
		}
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

/*
 * No user has two entries, and none an entry that another one has too. Who finds no entry while another CPU is at work goes by the crowd's share
 * this once.
 */
static void assert_admitted_once(void)
{
	uint32_t i, k;

	for (i = 0; i < RACE_USERS; i++) {
		uint32_t entries = 0;

		for (k = 0; k < RACE_ENTRIES; k++)
			entries += forest.nodes[NODES_MAX + k].user == forest.users[i].user;
		assert_in_range(entries, 0, 1);
	}
	assert_int_equal(forest.nodes[0].lock, 0);
	assert_sums();
}

static void test_users_are_admitted_once(void **state)
{
	static const uint32_t firsts[CPUS] = { 0, 0, 0, 100 };
	pthread_t threads[CPUS];
	uint32_t round, i;

	(void)state;
	pthread_barrier_init(&barrier, NULL, CPUS + 1);
	for (i = 0; i < CPUS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, admit_run, (void *)(uintptr_t)&firsts[i]), 0);
	for (round = 0; round < RACE_ROUNDS; round++) {
		plant(round, 125000000);
		grow(0, 1);
		settle_users(1);
		forest.places[1].user_count = RACE_ENTRIES;
		for (i = 0; i < RACE_USERS; i++)
			add_user(1, 1 + i % 3);
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		assert_admitted_once();
	}
	for (i = 0; i < CPUS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
}

/* Another CPU is at work: the leaf goes by the share that it has, and its bytes count later. */
static void test_who_finds_somebody_at_work_waits_for_nobody(void **state)
{
	uint64_t share_Bps;

	(void)state;
	plant(1, 12500000);
	grow(0, 2);
	forest.nodes[0].lock = (uint32_t)(START_NS >> PST_TREE_LOCK_SHIFT) | 1;
	assert_int_equal(share_of(1, START_NS, 1000), 12500000); /* it has none yet */
	assert_int_equal(forest.nodes[1].late_bytes, 1000);
	forest.nodes[0].lock = 0;
	share_Bps = share_of(1, START_NS + MS_NS, 1000);
	assert_int_equal(share_Bps, 12500000);
	assert_int_equal(forest.nodes[1].late_bytes, 0);
	forest.nodes[1].late_bytes = 3 * PST_TREE_LATE_MAX;
	share_of(1, START_NS + 2 * MS_NS, 1000);
	assert_int_equal(forest.nodes[1].late_bytes, 2 * PST_TREE_LATE_MAX);
	assert_int_equal(share_of(3, START_NS, 1000), 0);
}

/* One that was killed in there keeps the tree for some seconds. */
static void test_a_lock_is_not_for_ever(void **state)
{
	(void)state;
	plant(1, 12500000);
	grow(0, 2);
	forest.nodes[0].lock = (uint32_t)(START_NS >> PST_TREE_LOCK_SHIFT) | 1;
	share_of(1, START_NS + 4290 * MS_NS, 1000);
	assert_int_equal(forest.nodes[1].late_bytes, 1000);
	share_of(1, START_NS + 4297 * MS_NS, 1000);
	assert_int_equal(forest.nodes[1].late_bytes, 0);
	assert_int_equal(forest.nodes[0].lock, 0);
}

/* Who was only slow, and not killed, does not give back what is another's now. */
static void test_a_lock_is_given_back_by_its_owner(void **state)
{
	uint32_t slow, other;

	(void)state;
	plant(1, 12500000);
	slow = pst_tree_enter(&forest.nodes[0], START_NS);
	assert_int_equal(pst_tree_enter(&forest.nodes[0], START_NS + 4000 * MS_NS), 0);
	other = pst_tree_enter(&forest.nodes[0], START_NS + 5000 * MS_NS);
	assert_true(slow && other && slow != other);
	pst_tree_exit(&forest.nodes[0], slow);
	assert_int_equal(forest.nodes[0].lock, other);
	pst_tree_exit(&forest.nodes[0], other);
	assert_int_equal(forest.nodes[0].lock, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_share_fairly),
		cmocka_unit_test(test_tending_beside_packets),
		cmocka_unit_test(test_users_are_admitted_once),
		cmocka_unit_test(test_who_finds_somebody_at_work_waits_for_nobody),
		cmocka_unit_test(test_a_lock_is_not_for_ever),
		cmocka_unit_test(test_a_lock_is_given_back_by_its_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
