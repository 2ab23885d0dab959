/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* tree.h, Concurrency: many CPUs in one tree. Threads take packets of one schedule, each whichever comes next. */
#include <pthread.h>

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

static void *cpu_run(void *argument)
{
	uint64_t event;

	(void)argument;
	while ((event = __sync_fetch_and_add(&next_event, 1)) < EVENTS)
		judge(&events[event]);
	return NULL;
}

/* Every leaf its share to within 3 %, and nothing is left locked or miscounted. */
static void test_threads_share_fairly(void **state)
{
	pthread_t threads[CPUS];
	double time_s;
	uint32_t leaf;
	int i;

	(void)state;
	schedule_events();
	for (i = 0; i < CPUS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, cpu_run, NULL), 0);
	for (i = 0; i < CPUS; i++)
		pthread_join(threads[i], NULL);
	time_s = (events[EVENTS - 1].at_ns - counted_from_ns) / 1e9;
	assert_int_equal(forest.nodes[0].lock, 0);
	assert_sums();
	for (leaf = 3; leaf < 3 + LEAVES; leaf++) {
		double fair = 125e6 / LEAVES * time_s;

		if (fabs((double)passed_bytes[leaf] - fair) > 0.03 * fair)
			fail_msg("leaf %u: %.0f of %.0f", leaf, (double)passed_bytes[leaf], fair);
	}
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_share_fairly),
		cmocka_unit_test(test_who_finds_somebody_at_work_waits_for_nobody),
		cmocka_unit_test(test_a_lock_is_not_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
