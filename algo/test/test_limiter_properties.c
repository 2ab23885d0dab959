/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* limiter.h: I1-I7 and equality with the reference, on thousands of random schedules. */
#include "vectors.h"

#include <penstock/limiter.h>

#include "ref_limiter.h"
#include "schedule.h"

struct random_limit {
	uint64_t rate_Bps;
	struct pst_profile written;
	struct pst_limiter_profile profile;
	struct ref_limiter_profile reference;
};

static void set_rate(struct random_limit *limit, uint64_t rate_Bps)
{
	limit->rate_Bps = rate_Bps;
	pst_limiter_resolve(&limit->profile, &limit->written, pst_rate_encode(rate_Bps));
	limit->reference = ref_limiter_resolve(&limit->written, ref_rate_code(rate_Bps));
	assert_int_equal(limit->profile.green_ticks, (uint64_t)limit->reference.green_ticks);
	assert_int_equal(limit->profile.window_ticks, (uint64_t)limit->reference.window_ticks);
}

static struct random_limit draw_limit(uint64_t *rng, bool may_shape)
{
	struct random_limit limit;

	memset(&limit, 0, sizeof(limit));
	if (below(rng, 2))
		limit.written.burst_ticks = draw(rng) >> (28 + below(rng, 12));
	if (below(rng, 2))
		limit.written.burst_bytes = below(rng, 200000);
	if (below(rng, 2))
		limit.written.excess_ticks = draw(rng) >> (28 + below(rng, 12));
	if (below(rng, 2))
		limit.written.excess_bytes = below(rng, 200000);
	limit.written.mtu_bytes = MTU_BYTES;
	limit.written.red_action = may_shape && below(rng, 4) == 0 ? PST_ACTION_HOLD : PST_ACTION_DROP;
	set_rate(&limit, draw_rate_Bps(rng));
	return limit;
}

/* --- equality with the reference, I3 --- */

static void test_equals_the_reference(void **state)
{
	uint64_t rng = pst_rng_seed(1), colors[3] = { 0, 0, 0 };
	int schedule, i;

	(void)state;
	for (schedule = 0; schedule < SCHEDULES; schedule++) {
		struct random_limit limit = draw_limit(&rng, true), before;
		ref_int now_ns = draw_start_ns(&rng), wide = ref_limiter_idle(now_ns);
		uint64_t vft = pst_limiter_idle((uint64_t)now_ns);

		for (i = 0; i < PACKETS; i++) {
			uint32_t bytes = draw_bytes(&rng);
			struct pst_limiter_result result =
				pst_limiter_try(&limit.profile, vft, (uint64_t)now_ns, bytes);
			struct ref_limiter_result wanted = ref_limiter_try(&limit.reference, wide, now_ns, bytes);

			assert_int_equal(result.color, wanted.color);
			assert_int_equal(result.vft_ticks, (uint64_t)wanted.vft_ticks);
			assert_int_equal(result.depth_ticks, (uint64_t)wanted.depth_ticks);
			assert_int_equal(result.wait_ticks, (uint64_t)wanted.wait_ticks);
			colors[result.color]++;
			if (result.wait_ticks < PST_AHEAD_MAX_TICKS / 2) { /* a host's horizon */
				vft = result.vft_ticks;
				wide = wanted.vft_ticks;
			}
			now_ns += draw_gap_ns(&rng, limit.rate_Bps, limit.profile.window_ticks);
			if (below(&rng, 50) == 0) {
				before = limit;
				set_rate(&limit, draw_rate_Bps(&rng));
				vft = pst_limiter_convert(&before.profile, &limit.profile, vft, (uint64_t)now_ns);
				wide = ref_limiter_convert(&before.reference, &limit.reference, wide, now_ns);
				assert_int_equal(vft, (uint64_t)wide);
			}
		}
	}
	/* The schedules are worth something: every colour is common. */
	for (i = 0; i < 3; i++)
		assert_true(colors[i] > SCHEDULES * PACKETS / 20);
}

static void test_i3_red_changes_nothing_and_the_rest_charges_its_cost(void **state)
{
	uint64_t rng = pst_rng_seed(2);
	int i;

	(void)state;
	for (i = 0; i < SCHEDULES * 20; i++) {
		struct random_limit limit = draw_limit(&rng, false);
		uint64_t now_ns = draw(&rng), now = pst_clock_ticks(now_ns);
		uint64_t vft = now - draw(&rng) % (limit.profile.window_ticks + limit.profile.window_ticks / 8);
		uint32_t bytes = draw_bytes(&rng);
		struct pst_limiter_result result = pst_limiter_try(&limit.profile, vft, now_ns, bytes);
		uint64_t base = pst_limiter_base(&limit.profile, vft, now);

		if (result.color == PST_COLOR_RED)
			assert_int_equal(result.vft_ticks, vft);
		else
			assert_int_equal(result.vft_ticks - base, pst_rate_cost(limit.profile.rate, bytes));
	}
}

/* --- I1 and I2: the envelope --- */

/* The same bytes at another rate, forgiven what convert may lose; a smaller window forgives what it cannot hold. */
static void envelope_change(struct envelope *envelope, const struct random_limit *before,
			    const struct random_limit *after)
{
	ref_int units = envelope->excess_units * before->rate_Bps / after->rate_Bps;
	ref_int window_units = (ref_int)after->profile.window_ticks * REF_UNITS_PER_TICK;

	units -= packet_units(after->rate_Bps, 1) / 256 + 3 * REF_UNITS_PER_TICK + (units >> 25);
	units -= REF_UNITS_PER_TICK * before->rate_Bps / after->rate_Bps;
	envelope->excess_units = units < 0 ? 0 : units > window_units ? window_units : units;
}

/* Without the packet of grace that I1 grants: a packet passes only when it fits whole. */
static void test_i1_never_more_than_the_envelope(void **state)
{
	uint64_t rng = pst_rng_seed(3), closest_permille = 0;
	int schedule, i;

	(void)state;
	for (schedule = 0; schedule < SCHEDULES; schedule++) {
		struct random_limit limit = draw_limit(&rng, false), before;
		struct envelope envelope = { 0, 0 };
		ref_int now_ns = draw_start_ns(&rng);
		uint64_t vft = pst_limiter_idle((uint64_t)now_ns);

		for (i = 0; i < PACKETS; i++) {
			uint32_t bytes = draw_bytes(&rng);
			ref_int gap_ns = draw_gap_ns(&rng, limit.rate_Bps, limit.profile.window_ticks), window_units;

			window_units = (ref_int)limit.profile.window_ticks * REF_UNITS_PER_TICK;
			if (pst_limiter_take(&limit.profile, &vft, (uint64_t)now_ns, bytes) != PST_COLOR_RED)
				envelope_pass(&envelope, limit.rate_Bps, bytes);
			assert_true(envelope.excess_units <= window_units);
			if (1000 * envelope.excess_units / window_units > closest_permille)
				closest_permille = (uint64_t)(1000 * envelope.excess_units / window_units);
			now_ns += gap_ns;
			envelope_advance(&envelope, gap_ns);
			if (below(&rng, 50) == 0) {
				before = limit;
				set_rate(&limit, draw_rate_Bps(&rng));
				vft = pst_limiter_convert(&before.profile, &limit.profile, vft, (uint64_t)now_ns);
				envelope_change(&envelope, &before, &limit);
			}
		}
	}
	assert_true(closest_permille >= 999); /* the bound is reached, so it is the right one */
}

/* Backlogged: the next packet comes before the last gap could bring `gap` of credit. One packet, and that gap. */
static void test_i2_a_backlogged_source_gets_its_rate(void **state)
{
	uint64_t rng = pst_rng_seed(4);
	int schedule, i;

	(void)state;
	for (schedule = 0; schedule < SCHEDULES; schedule++) {
		struct random_limit limit = draw_limit(&rng, false);
		struct envelope envelope = { 0, 0 };
		ref_int now_ns = draw_start_ns(&rng);
		ref_int most_ns = (ref_int)(pst_rate_cost(limit.profile.rate, 64) / PST_TICKS_PER_NSEC) + 1;
		ref_int gap_units = (most_ns + 1) * REF_TICKS_PER_NSEC * REF_UNITS_PER_TICK;
		ref_int bound = packet_units(limit.rate_Bps, MTU_BYTES) + gap_units;
		uint32_t mixed = below(&rng, 2), fixed = draw_bytes(&rng);
		uint64_t vft = pst_clock_ticks((uint64_t)now_ns);

		for (i = 0; i < 4 * PACKETS; i++) {
			uint32_t bytes = mixed ? draw_bytes(&rng) : fixed;
			ref_int gap_ns = (ref_int)(draw(&rng) % (uint64_t)(most_ns + 1));

			now_ns += gap_ns;
			envelope_advance(&envelope, gap_ns);
			if (pst_limiter_take(&limit.profile, &vft, (uint64_t)now_ns, bytes) != PST_COLOR_RED)
				envelope_pass(&envelope, limit.rate_Bps, bytes);
			assert_true(envelope.lack_units <= bound + rounding_units(bound));
		}
	}
}

/* --- I4, I5: time --- */

static void test_i4_only_differences_of_time_matter(void **state)
{
	uint64_t rng = pst_rng_seed(5);
	int i;

	(void)state;
	for (i = 0; i < SCHEDULES * 20; i++) {
		struct random_limit limit = draw_limit(&rng, true);
		uint64_t now_ns = draw(&rng), shift_ns = draw(&rng), shift = pst_clock_ticks(shift_ns);
		uint64_t vft = pst_clock_ticks(now_ns) + (draw(&rng) >> 16) - (draw(&rng) >> 12);
		uint32_t bytes = draw_bytes(&rng);
		struct pst_limiter_result a = pst_limiter_try(&limit.profile, vft, now_ns, bytes);
		struct pst_limiter_result b = pst_limiter_try(&limit.profile, vft + shift, now_ns + shift_ns, bytes);

		assert_int_equal(a.color, b.color);
		assert_int_equal(a.depth_ticks, b.depth_ticks);
		assert_int_equal(a.wait_ticks, b.wait_ticks);
		assert_int_equal(a.vft_ticks + shift, b.vft_ticks);
	}
}

static void test_i5_stale_reads_as_idle(void **state)
{
	uint64_t rng = pst_rng_seed(6);
	int i;

	(void)state;
	for (i = 0; i < SCHEDULES * 20; i++) {
		struct random_limit limit = draw_limit(&rng, true);
		uint64_t now_ns = draw(&rng), now = pst_clock_ticks(now_ns), window = limit.profile.window_ticks;
		/* Idle for longer than the window and less than a whole wrap, but for what a state may be ahead. */
		uint64_t idle = window + draw(&rng) % (0 - 2 * window - PST_AHEAD_MAX_TICKS);
		uint64_t ahead = now + PST_AHEAD_MAX_TICKS;

		assert_int_equal(pst_limiter_base(&limit.profile, now - idle, now), now - window);
		assert_int_equal(pst_limiter_base(&limit.profile, ahead, now), ahead);
		assert_int_equal(pst_limiter_base(&limit.profile, ahead + 1, now), now - window);
		assert_int_equal(pst_limiter_base(&limit.profile, pst_limiter_idle(now_ns), now), now - window);
	}
}

/* --- I6: changes of rate --- */

static void test_i6_the_queue_keeps_its_bytes(void **state)
{
	uint64_t rng = pst_rng_seed(7), kept = 0, kept_gigabytes = 0;
	int i;

	(void)state;
	for (i = 0; i < SCHEDULES * 20; i++) {
		struct random_limit before = draw_limit(&rng, true), after;
		uint64_t now_ns = draw(&rng), now = pst_clock_ticks(now_ns), queue, vft, most, converted;
		ref_int bytes_by_rates, back_by_rates, slack_by_rates;

		if (below(&rng, 2)) { /* up to the longest windows */
			before.written.burst_ticks = draw(&rng) >> (12 + below(&rng, 16));
			before.written.excess_ticks = draw(&rng) >> (12 + below(&rng, 16));
			set_rate(&before, before.rate_Bps);
		}
		queue = draw(&rng) % (before.profile.window_ticks + 1);
		after = before;
		set_rate(&after, draw_rate_Bps(&rng));
		most = after.profile.window_ticks;
		vft = now - before.profile.window_ticks + queue;
		vft = pst_limiter_convert(&before.profile, &after.profile, vft, now_ns);
		converted = vft - (now - after.profile.window_ticks);
		assert_true(converted <= most);
		bytes_by_rates = (ref_int)queue * ref_rate_units_per_byte(after.profile.rate);
		back_by_rates = (ref_int)converted * ref_rate_units_per_byte(before.profile.rate);
		/* 1/256 byte and two ticks, times both ticks-per-byte. */
		slack_by_rates = ref_rate_units_per_byte(after.profile.rate) *
				 (ref_rate_units_per_byte(before.profile.rate) / REF_UNITS_PER_TICK / 256 + 1) +
				 2 * ref_rate_units_per_byte(before.profile.rate);
		assert_true(back_by_rates - bytes_by_rates <= slack_by_rates);
		if (converted < most) {
			assert_true(bytes_by_rates - back_by_rates <= slack_by_rates);
			kept++;
			kept_gigabytes += ref_rate_bytes_q8(before.profile.rate, queue) >= (ref_int)256 << 30;
		}
	}
	assert_true(kept > SCHEDULES * 4 && kept_gigabytes > SCHEDULES / 4);
}

/* 10 Gbit/s with ten seconds of burst, all of it used: at 9 Gbit/s there is still no credit, not one packet passes. */
static void test_i6_a_full_window_stays_full(void **state)
{
	uint64_t now_ns = UINT64_C(1) << 53, vft = pst_clock_ticks(now_ns);
	struct random_limit before, after;

	(void)state;
	memset(&before, 0, sizeof(before));
	before.written.burst_ticks = pst_clock_ticks(10 * PST_NSEC_PER_SEC);
	before.written.mtu_bytes = 1500;
	after = before;
	set_rate(&before, UINT64_C(1250000000));
	set_rate(&after, UINT64_C(1125000000));
	assert_int_equal(pst_limiter_try(&before.profile, vft, now_ns, 64).color, PST_COLOR_RED);
	vft = pst_limiter_convert(&before.profile, &after.profile, vft, now_ns);
	assert_int_equal(vft, pst_clock_ticks(now_ns));
	assert_int_equal(pst_limiter_try(&after.profile, vft, now_ns, 64).color, PST_COLOR_RED);
}

/* A held queue of a gigabyte is as long as it was when the rate falls far: not 12 days, and not a stale state, that is a free burst. */
static void test_i6_a_long_queue_is_never_forgotten(void **state)
{
	struct random_limit before, after;
	uint64_t now_ns = UINT64_C(1) << 53, vft;

	(void)state;
	memset(&before, 0, sizeof(before));
	before.written.burst_bytes = 3000;
	before.written.mtu_bytes = 1500;
	before.written.red_action = PST_ACTION_HOLD;
	after = before;
	set_rate(&before, UINT64_C(1250000000));
	set_rate(&after, 1000);
	vft = pst_clock_ticks(now_ns + PST_NSEC_PER_SEC);
	vft = pst_limiter_convert(&before.profile, &after.profile, vft, now_ns);
	assert_int_equal(vft, pst_clock_ticks(now_ns + PST_NSEC_PER_SEC));
	assert_int_equal(pst_limiter_try(&after.profile, vft, now_ns, 1500).color, PST_COLOR_RED);
}

/* A packet waits for a second. At ten times the rate the next one still goes after it, and at a tenth no later than that. */
static void test_i6_who_waits_is_not_overtaken(void **state)
{
	uint64_t now_ns = UINT64_C(1) << 53, vft;
	struct random_limit before, fast, slow, police;

	(void)state;
	memset(&before, 0, sizeof(before));
	before.written.mtu_bytes = 1500;
	before.written.red_action = PST_ACTION_HOLD;
	fast = slow = police = before;
	police.written.red_action = PST_ACTION_DROP;
	set_rate(&before, 100000);
	set_rate(&fast, 1000000);
	set_rate(&slow, 10000);
	set_rate(&police, 1000000);
	vft = pst_clock_ticks(now_ns + PST_NSEC_PER_SEC);
	assert_int_equal(pst_limiter_convert(&before.profile, &fast.profile, vft, now_ns), vft);
	assert_int_equal(pst_limiter_convert(&before.profile, &slow.profile, vft, now_ns), vft);
	/* Up and down a thousand times: it is not longer for it. */
	assert_int_equal(pst_limiter_convert(&fast.profile, &slow.profile, vft, now_ns), vft);
	/* One that drops from now on drops until who waits has gone. */
	vft = pst_limiter_convert(&before.profile, &police.profile, vft, now_ns);
	assert_int_equal(pst_limiter_try(&police.profile, vft, now_ns + PST_NSEC_PER_SEC, 1500).color, PST_COLOR_RED);
	assert_int_equal(pst_limiter_try(&police.profile, vft, now_ns + PST_NSEC_PER_SEC + 2000000, 1500).color,
			 PST_COLOR_YELLOW);
}

/* --- I7: charged at one place, then at its copy, caught up --- */

/* A limiter at both places, and as it would be at one. */
struct handed_over {
	struct random_limit before, after;
	struct pst_limiter_copy copy;
	uint64_t moved;     /* the copy */
	uint64_t one_place; /* under the terms of the copy */
	uint64_t caught_up; /* how often */
};

static uint64_t charge(const struct random_limit *limit, uint64_t vft, uint64_t now_ns, uint32_t bytes)
{
	return pst_limiter_base(&limit->profile, vft, pst_clock_ticks(now_ns)) + pst_rate_cost(limit->profile.rate, bytes);
}

static void start_copy(struct handed_over *one, uint64_t now_ns, uint64_t queue_ticks)
{
	one->copy.copied_ticks = pst_clock_ticks(now_ns) - one->before.profile.window_ticks + queue_ticks;
	one->copy.last_ticks = one->copy.copied_ticks;
	one->moved = pst_limiter_convert(&one->before.profile, &one->after.profile, one->copy.copied_ticks, now_ns);
	one->one_place = one->moved;
}

/* Charges a packet that finds room, to the copy or to the original. */
static void charge_one(struct handed_over *one, bool to_copy, uint64_t now_ns, uint32_t bytes)
{
	if (pst_limiter_try(&one->after.profile, one->one_place, now_ns, bytes).color == PST_COLOR_RED)
		return;
	one->one_place = charge(&one->after, one->one_place, now_ns, bytes);
	if (to_copy)
		one->moved = charge(&one->after, one->moved, now_ns, bytes);
	else
		one->copy.last_ticks = charge(&one->before, one->copy.last_ticks, now_ns, bytes);
}

/* 1/256 byte and two ticks each time for converting; each cost was rounded to a tick, at one rate or at the other. */
static uint64_t error_of(const struct handed_over *one, uint64_t packets)
{
	return one->caught_up * (pst_rate_cost(one->after.profile.rate, 1) / 256 + 2) + packets +
	       packets * pst_rate_cost(one->after.profile.rate, 1024) / pst_rate_cost(one->before.profile.rate, 1024);
}

static void catch_up(struct handed_over *one, uint64_t now_ns)
{
	one->moved = pst_limiter_catch_up(&one->before.profile, &one->after.profile, &one->copy, one->moved, now_ns);
	one->copy.copied_ticks = one->copy.last_ticks;
	one->caught_up++;
}

/*
 * Idle or busy, for microseconds or seconds, caught up once or now and then, all at once or one interface after the other: nothing that was
 * charged is forgotten, and time that passed is no charge.
 */
static void test_i7_a_copy_catches_up(void **state)
{
	uint64_t rng = pst_rng_seed(7), drained = 0, kept = 0;
	int schedule, i;

	(void)state;
	for (schedule = 0; schedule < SCHEDULES; schedule++) {
		struct handed_over one = { .before = draw_limit(&rng, true) };
		uint64_t now_ns = (uint64_t)draw_start_ns(&rng), queue, least;
		uint32_t gap_ns = 1u << below(&rng, 28);
		int packets = 1 + (int)below(&rng, 20), before = (int)below(&rng, (uint32_t)packets + 1);
		uint32_t stays_percent = below(&rng, 2) * 80;

		one.after = one.before;
		start_copy(&one, now_ns, pst_rng_next(&rng) % (one.before.profile.window_ticks + 1));
		for (i = 0; i < packets; i++) {
			now_ns += below(&rng, gap_ns);
			if (i == before)
				one.copy.switched_ns = now_ns;
			charge_one(&one, i >= before && below(&rng, 100) >= stays_percent, now_ns, draw_bytes(&rng));
			if (i >= before && !below(&rng, 4))
				catch_up(&one, now_ns);
		}
		if (before == packets)
			one.copy.switched_ns = now_ns;
		now_ns += below(&rng, gap_ns);
		catch_up(&one, now_ns);
		queue = pst_limiter_queue(&one.after.profile, one.moved, now_ns);
		least = pst_limiter_queue(&one.after.profile, one.one_place, now_ns);
		assert_true(queue + error_of(&one, 20) >= least);
		assert_true(queue <= least + error_of(&one, 20) + pst_clock_ticks(now_ns - one.copy.switched_ns));
		if (before == packets) /* the copy was not charged: nothing is more */
			assert_true(queue <= least + error_of(&one, 20));
		drained += queue == 0;
		kept += queue != 0;
	}
	assert_true(drained > SCHEDULES / 8);
	assert_true(kept > SCHEDULES / 8);
}

/* An RFC meter's bucket is a limiter without a window, whose state may lie far ahead: what was charged late counts at the new rate. */
static void test_i7_of_a_bucket_at_another_rate(void **state)
{
	const struct pst_limiter_profile before = { 0, 0, pst_rate_encode(12500), true };
	const struct pst_limiter_profile after = { 0, 0, pst_rate_encode(1250000), true };
	uint64_t now_ns = UINT64_C(1) << 53, now = pst_clock_ticks(now_ns), moved = now + pst_clock_ticks(50000000), next;
	struct pst_limiter_copy copy = { now + pst_clock_ticks(5 * PST_NSEC_PER_SEC), now_ns, 0 };

	(void)state;
	copy.last_ticks = copy.copied_ticks + pst_rate_cost(before.rate, 1500);
	next = pst_limiter_catch_up(&before, &after, &copy, moved, now_ns);
	assert_in_range(next - moved, pst_rate_cost(after.rate, 1499), pst_rate_cost(after.rate, 1501));
}

/* Another rate from the copy on, all in one moment: the bytes of both places are there. */
static void test_i7_at_another_rate(void **state)
{
	uint64_t rng = pst_rng_seed(77), charged = 0;
	int schedule, i;

	(void)state;
	for (schedule = 0; schedule < SCHEDULES; schedule++) {
		struct handed_over one = { .before = draw_limit(&rng, true), .after = draw_limit(&rng, true) };
		uint64_t now_ns = (uint64_t)draw_start_ns(&rng), queue, least;

		one.copy.switched_ns = now_ns;
		start_copy(&one, now_ns, one.before.profile.window_ticks / 2);
		least = one.one_place;
		for (i = 0; i < 20; i++)
			charge_one(&one, below(&rng, 2), now_ns, draw_bytes(&rng));
		charged += least != one.one_place;
		catch_up(&one, now_ns);
		queue = pst_limiter_queue(&one.after.profile, one.moved, now_ns);
		least = pst_limiter_queue(&one.after.profile, one.one_place, now_ns);
		assert_true(queue + error_of(&one, 20) >= least);
		assert_true(queue <= least + error_of(&one, 20));
	}
	assert_true(charged > SCHEDULES / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equals_the_reference),
		cmocka_unit_test(test_i1_never_more_than_the_envelope),
		cmocka_unit_test(test_i2_a_backlogged_source_gets_its_rate),
		cmocka_unit_test(test_i3_red_changes_nothing_and_the_rest_charges_its_cost),
		cmocka_unit_test(test_i4_only_differences_of_time_matter),
		cmocka_unit_test(test_i5_stale_reads_as_idle),
		cmocka_unit_test(test_i6_the_queue_keeps_its_bytes),
		cmocka_unit_test(test_i6_a_full_window_stays_full),
		cmocka_unit_test(test_i6_a_long_queue_is_never_forgotten),
		cmocka_unit_test(test_i6_who_waits_is_not_overtaken),
		cmocka_unit_test(test_i7_a_copy_catches_up),
		cmocka_unit_test(test_i7_at_another_rate),
		cmocka_unit_test(test_i7_of_a_bucket_at_another_rate),
	};

	return cmocka_run_group_tests_name("limiter properties", tests, NULL, NULL);
}
