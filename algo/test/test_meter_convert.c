/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* meter.h, I3: a meter that changes keeps what is used of each bucket, in bytes. */
#include "vectors.h"

#include "rfc_meter.h"

static struct pst_meter_state convert(const struct rfc_meter *before, const struct rfc_meter *after, uint64_t now_ns)
{
	switch (before->written.meter) {
	case PST_METER_RFC2697:
		return pst_rfc2697_convert(&before->srtcm, &after->srtcm, &before->state, now_ns);
	case PST_METER_RFC2698:
		return pst_rfc2698_convert(&before->peak, &after->peak, &before->state, now_ns);
	default:
		return pst_rfc4115_convert(&before->excess, &after->excess, &before->state, now_ns);
	}
}

/* One bucket: its rate, how deep it is, and how much of it is used. */
struct bucket {
	uint32_t rate;
	uint64_t depth_ticks;
	uint64_t used_ticks;
};

static void buckets_of(struct bucket *buckets, const struct rfc_meter *meter, const struct pst_meter_state *state,
		       uint64_t now_ns)
{
	bool is_single = meter->written.meter == PST_METER_RFC2697;
	uint64_t now = pst_clock_ticks(now_ns);

	buckets[0].rate = pst_rate_encode(meter->rate_Bps);
	buckets[0].depth_ticks = rfc_meter_cbs_ticks(meter);
	buckets[0].used_ticks = state->committed_ticks - now;
	buckets[1].rate = is_single ? buckets[0].rate : meter->written.second_rate;
	buckets[1].depth_ticks = rfc_meter_other_ticks(meter);
	buckets[1].used_ticks = state->excess_ticks - (is_single ? state->committed_ticks : now);
}

/* Returns whether the bytes could be kept: they fit in. */
static bool check_bucket(const struct bucket *before, const struct bucket *after)
{
	ref_int before_unit = ref_rate_units_per_byte(before->rate), after_unit = ref_rate_units_per_byte(after->rate);
	ref_int difference = (ref_int)before->used_ticks * after_unit - (ref_int)after->used_ticks * before_unit;
	/* 1/256 byte and two ticks, times both ticks-per-byte. */
	ref_int slack = after_unit * (before_unit / REF_UNITS_PER_TICK / 256 + 1) + 2 * before_unit;

	assert_true(after->used_ticks <= after->depth_ticks);
	if (after->used_ticks == after->depth_ticks) {
		assert_true(difference >= -slack);
		return false;
	}
	assert_true(difference <= slack && -difference <= slack);
	return true;
}

static void check_kind(uint8_t kind)
{
	uint64_t rng = pst_rng_seed(120 + kind), kept[2] = { 0, 0 };
	int i, bucket;

	for (i = 0; i < SCHEDULES * 10; i++) {
		uint64_t now_ns = (uint64_t)draw_start_ns(&rng), now = pst_clock_ticks(now_ns);
		struct bucket before_buckets[2], after_buckets[2];
		struct pst_meter_state converted;
		struct rfc_meter before, after;

		rfc_meter_draw(&before, &rng, kind, (ref_int)now_ns);
		rfc_meter_draw(&after, &rng, kind, (ref_int)now_ns);
		if (below(&rng, 2)) { /* up to the deepest buckets */
			rfc_meter_deepen(&before, &rng, (ref_int)now_ns);
			rfc_meter_deepen(&after, &rng, (ref_int)now_ns);
		}
		before.state.committed_ticks = now + draw(&rng) % (rfc_meter_cbs_ticks(&before) + 1);
		before.state.excess_ticks = kind == PST_METER_RFC2697 ? before.state.committed_ticks : now;
		before.state.excess_ticks += draw(&rng) % (rfc_meter_other_ticks(&before) + 1);
		converted = convert(&before, &after, now_ns);
		buckets_of(before_buckets, &before, &before.state, now_ns);
		buckets_of(after_buckets, &after, &converted, now_ns);
		for (bucket = 0; bucket < 2; bucket++)
			kept[bucket] += check_bucket(&before_buckets[bucket], &after_buckets[bucket]);
	}
	assert_true(kept[0] > SCHEDULES && kept[1] > SCHEDULES);
}

static void test_i3_each_bucket_keeps_its_bytes(void **state)
{
	(void)state;
	check_kind(PST_METER_RFC2697);
	check_kind(PST_METER_RFC2698);
	check_kind(PST_METER_RFC4115);
}

/* A state that was not touched for months means full buckets, before as after. */
static void test_i3_idle_buckets_stay_full(void **state)
{
	uint64_t rng = pst_rng_seed(130);
	uint8_t kind;

	(void)state;
	for (kind = PST_METER_RFC2697; kind <= PST_METER_RFC4115; kind++) {
		uint64_t now_ns = draw(&rng);
		struct rfc_meter before, after;
		struct pst_meter_state converted;

		rfc_meter_draw(&before, &rng, kind, 0);
		rfc_meter_draw(&after, &rng, kind, 0);
		before.state = pst_meter_idle(now_ns);
		converted = convert(&before, &after, now_ns);
		assert_int_equal(converted.committed_ticks, pst_clock_ticks(now_ns));
		assert_int_equal(converted.excess_ticks, pst_clock_ticks(now_ns));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_i3_each_bucket_keeps_its_bytes),
		cmocka_unit_test(test_i3_idle_buckets_stay_full),
	};

	return cmocka_run_group_tests_name("meter conversion", tests, NULL, NULL);
}
