/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* wheel.h: the same items at the same times as a list that is searched from end to end, in any order of calls. */
#include <stdlib.h>

#include <penstock/wheel.h>

#include "ref_wheel.h"
#include "schedule.h"
#include "vectors.h"

#define ITEMS 3000

static struct pst_wheel wheel;
static struct pst_wheel_item items[ITEMS];
static struct ref_wheel ref;

static uint64_t ns(ref_int time)
{
	return (uint64_t)time;
}

static void start(ref_int now)
{
	memset(&wheel, 0, sizeof(wheel));
	pst_wheel_start(&wheel, ns(now));
	ref_wheel_start(&ref, now);
}

/* Both take everything that is due; the host's rules are checked on the way. Frees what was taken. */
static void take_all(ref_int now, bool *is_used, uint64_t *taken)
{
	uint32_t item;

	do {
		int expected = ref_wheel_take(&ref, now);

		item = pst_wheel_take(&wheel, items, ns(now));
		assert_int_equal(item, (uint32_t)expected);
		if (item == PST_NONE)
			break;
		assert_true((int64_t)(ns(now) - items[item].due_ns) >= 0); /* I1 */
		assert_true(is_used[item]);                                /* I3 */
		is_used[item] = false;
		++*taken;
	} while (item != PST_NONE);
}

/* From a moment ago to beyond the horizon, evenly over orders of magnitude. */
static ref_int draw_wait_ns(uint64_t *rng)
{
	ref_int wait = (ref_int)(draw(rng) >> (27 + below(rng, 30)));

	return below(rng, 8) ? wait : -wait;
}

/* Mostly a short time, now and then many blocks. */
static ref_int draw_step_ns(uint64_t *rng)
{
	switch (below(rng, 16)) {
	case 0:
		return (ref_int)(draw(rng) >> (26 + below(rng, 10)));
	case 1:
		return 0;
	default:
		return (ref_int)(draw(rng) >> (40 + below(rng, 20)));
	}
}

static void test_i1_i2_i3_as_the_reference(void **state)
{
	uint64_t rng = pst_rng_seed(41), taken = 0, refused = 0, put = 0;
	int run, call;

	(void)state;
	for (run = 0; run < 400; run++) {
		ref_int now = draw_start_ns(&rng);
		bool is_used[ITEMS] = { false };
		uint32_t burst = 1 + below(&rng, 40);

		start(now);
		for (call = 0; call < 1500; call++) {
			uint32_t item = below(&rng, ITEMS);

			if (is_used[item] || below(&rng, burst + 4) < 4) {
				now += draw_step_ns(&rng);
				take_all(now, is_used, &taken);
				continue;
			}
			/* Due times before 0 would round the other way in the reference. */
			ref_int due = now + draw_wait_ns(&rng);
			bool is_put = ref_wheel_put(&ref, (int)item, due < 0 ? 0 : due);

			assert_int_equal(pst_wheel_put(&wheel, items, item, ns(due < 0 ? 0 : due)), is_put);
			is_used[item] = is_put;
			refused += !is_put;
			put += is_put;
		}
		take_all(now + ((ref_int)1 << 37), is_used, &taken);
		assert_int_equal(wheel.waiting, 0);
	}
	assert_int_equal(put, taken);
	assert_true(refused > 1000 && taken > 100000);
}

/* A flow whose due times rise, put while others fill the wheel, comes out as it went in; also across blocks that are poured late. */
static void test_i2_a_flow_keeps_its_order(void **state)
{
	uint64_t rng = pst_rng_seed(42), due = 0, now = 0;
	uint32_t next_in = 0, next_out = 0, item;

	(void)state;
	start(0);
	for (next_in = 0; next_in < ITEMS; next_in++) {
		due += draw(&rng) >> (39 + below(&rng, 12));
		now += draw(&rng) >> (41 + below(&rng, 12));
		if (due < now)
			due = now;
		assert_true(pst_wheel_put(&wheel, items, next_in, due));
		while ((item = pst_wheel_take(&wheel, items, now)) != PST_NONE)
			assert_int_equal(item, next_out++);
	}
	while ((item = pst_wheel_take(&wheel, items, due + PST_WHEEL_SLOT_NSEC)) != PST_NONE)
		assert_int_equal(item, next_out++);
	assert_int_equal(next_out, ITEMS);
}

/* Who comes when pst_wheel_next says finds everything in the slot that it is due in, and never comes in vain for long. */
static void test_i1_next_is_on_time(void **state)
{
	uint64_t rng = pst_rng_seed(43), next_ns, calls = 0;
	int round;

	(void)state;
	for (round = 0; round < 200; round++) {
		uint64_t now = draw(&rng) >> 8;
		uint32_t i, item, left = ITEMS;

		start((ref_int)now);
		assert_false(pst_wheel_next(&wheel, &next_ns));
		for (i = 0; i < ITEMS; i++)
			assert_true(pst_wheel_put(&wheel, items, i, now + (draw(&rng) >> (29 + below(&rng, 30)))));
		while (pst_wheel_next(&wheel, &next_ns)) {
			now = (int64_t)(next_ns - now) > 0 ? next_ns : now;
			while ((item = pst_wheel_take(&wheel, items, now)) != PST_NONE) {
				left--;
				assert_true(now - items[item].due_ns < PST_WHEEL_SLOT_NSEC);
			}
			calls++;
		}
		assert_int_equal(left, 0);
	}
	assert_true(calls < UINT64_C(200) * ITEMS * 4);
}

static void test_ranges(void **state)
{
	const uint64_t now = UINT64_C(12345) * PST_WHEEL_SLOT_NSEC;

	(void)state;
	start((ref_int)now);
	assert_true(pst_wheel_put(&wheel, items, 0, now + PST_WHEEL_AHEAD_NSEC));
	assert_false(pst_wheel_put(&wheel, items, 1, now + PST_WHEEL_AHEAD_NSEC + 1));
	assert_true(pst_wheel_put(&wheel, items, 1, now - PST_NSEC_PER_SEC)); /* long due: now */
	assert_true(pst_wheel_put(&wheel, items, 2, now + 1));                /* the next slot */
	assert_int_equal(pst_wheel_take(&wheel, items, now), 1);
	assert_int_equal(pst_wheel_take(&wheel, items, now + PST_WHEEL_SLOT_NSEC - 1), PST_NONE);
	assert_int_equal(pst_wheel_take(&wheel, items, now + PST_WHEEL_SLOT_NSEC), 2);
	assert_int_equal(pst_wheel_take(&wheel, items, now + PST_WHEEL_AHEAD_NSEC - 1), PST_NONE);
	assert_int_equal(pst_wheel_take(&wheel, items, now + PST_WHEEL_AHEAD_NSEC), 0);
	assert_int_equal(pst_wheel_take(&wheel, items, now + (UINT64_C(1) << 50)), PST_NONE);
	assert_int_equal(wheel.waiting, 0);
	/* A clock that goes back takes nothing, and breaks nothing. */
	assert_true(pst_wheel_put(&wheel, items, 3, now));
	assert_int_equal(pst_wheel_take(&wheel, items, now), PST_NONE);
	assert_int_equal(pst_wheel_take(&wheel, items, now + (UINT64_C(1) << 50)), 3);
}

static void test_golden_vectors(void **state)
{
	struct vectors v;

	(void)state;
	vectors_open(&v, "vectors/wheel.txt");
	while (vectors_next(&v)) {
		if (strcmp(v.verb, "start") == 0) {
			memset(&wheel, 0, sizeof(wheel));
			pst_wheel_start(&wheel, vectors_in(&v, "now"));
		} else if (strcmp(v.verb, "put") == 0) {
			bool is_put = pst_wheel_put(&wheel, items, (uint32_t)vectors_in(&v, "item"), vectors_in(&v, "due"));

			assert_int_equal(is_put, vectors_out(&v, "put"));
		} else {
			assert_string_equal(v.verb, "take");
			uint32_t item = pst_wheel_take(&wheel, items, vectors_in(&v, "now"));

			assert_int_equal(item, vectors_out(&v, "item"));
		}
	}
	assert_true(v.directives > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_i1_i2_i3_as_the_reference), cmocka_unit_test(test_i2_a_flow_keeps_its_order),
		cmocka_unit_test(test_i1_next_is_on_time),        cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_golden_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
