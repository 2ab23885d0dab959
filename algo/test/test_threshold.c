/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include <math.h>

#include "vectors.h"

#include <penstock/sketch.h>
#include <penstock/threshold.h>

#include "ref_threshold.h"
#include "schedule.h"

#define TAU_NS (UINT64_C(1) << PST_LPF_TAU_SHIFT)
#define EPOCH_NS (UINT64_C(1) << PST_THRESHOLD_EPOCH_SHIFT)
#define C_PARTS (UINT32_C(1) << PST_LPF_NOMINAL_BITS)

static const struct pst_threshold_profile exact = { C_PARTS, PST_LPF_TAU_SHIFT, PST_THRESHOLD_EPOCH_SHIFT, 0 };
static const struct pst_threshold_profile faithful = { C_PARTS, PST_LPF_TAU_SHIFT, PST_THRESHOLD_EPOCH_SHIFT, 6 };

/* Section V-C: "We choose D to be a power of 2 .. T_low = T_mid - D ~ 0.5 T_mid and T_hi ~ 1.5 T_mid". I1. */
static void candidates_are_about_half_and_one_and_a_half(void **state)
{
	uint64_t rng = pst_rng_seed(1);
	int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		uint32_t limit = pst_threshold_limit_parts(draw(&rng) >> below(&rng, 32));
		uint64_t step = UINT64_C(1) << pst_threshold_step_shift(limit);

		assert_in_range(limit, PST_THRESHOLD_MIN_PARTS, PST_THRESHOLD_MAX_PARTS);
		assert_int_equal(step, ref_threshold_step(limit));
		assert_true(2 * step <= limit && 4 * step > limit);
		assert_true(limit + step <= UINT32_MAX);
	}
}

/* Figure 7 and equation 12: "T_new = T_mid + 9584". */
static void figure_7_is_recomputed(void **state)
{
	struct pst_threshold_curve f = { 60000, 100000, 101690 };

	(void)state;
	assert_int_equal(pst_threshold_step_shift(40000), 14);
	assert_int_equal(pst_threshold_interpolate(40000, 101012, &f, 5), 40000 + 9584);
	assert_int_equal(pst_threshold_interpolate(40000, 101012, &f, 0), 40000 + 1012 * 16384 / 1690);
}

/* A3: "keep right shifts": with D below 2^12 and a quotient below a quarter there is still a step. */
static void small_steps_are_kept(void **state)
{
	struct pst_threshold_curve f = { 0, 100000, 200000 };

	(void)state;
	/* 10000 / 100000 is (2 + 1/2) / (24 + 1/2) = 418 / 2^12; D is 2^10, and 2^5. */
	assert_int_equal(pst_threshold_interpolate(4000, 110000, &f, 5), 4000 + (418 >> 2));
	assert_int_equal(pst_threshold_interpolate(100, 110000, &f, 5), 100 + (418 >> 7));
	assert_int_equal(pst_threshold_interpolate(100, 90000, &f, 5), 100 - (418 >> 7));
}

/* Section V-C: equations 8 and 13, and "we clip the update". Bit-equal to ref/, I2, and exact where f is a straight line. */
static void interpolation_equals_reference(void **state)
{
	uint64_t rng = pst_rng_seed(2);
	int i;

	(void)state;
	for (i = 0; i < 300000; i++) {
		uint32_t limit = pst_threshold_limit_parts(draw(&rng) >> below(&rng, 32)), b = below(&rng, 2) ? 0 : 1 + below(&rng, 12);
		uint32_t values[3], capacity, next;
		uint64_t step = ref_threshold_step(limit);
		struct pst_threshold_curve f;

		values[0] = (uint32_t)draw(&rng) >> (2 + below(&rng, 30));
		values[1] = values[0] + ((uint32_t)draw(&rng) >> (2 + below(&rng, 30)));
		values[2] = values[1] + ((uint32_t)draw(&rng) >> (2 + below(&rng, 30)));
		capacity = below(&rng, 4) ? values[0] + (uint32_t)(draw(&rng) % (values[2] - values[0] + UINT64_C(2))) : (uint32_t)draw(&rng);
		f.low_parts = values[0];
		f.middle_parts = values[1];
		f.high_parts = values[2];
		next = pst_threshold_interpolate(limit, capacity, &f, b);
		assert_int_equal(next, ref_threshold_interpolate(limit, capacity, values, b));
		assert_true(next >= limit - step && next <= limit + step);
	}
}

/* Section V-B, f by expectation: bit-equal to ref/, monotone in the limit (I3); by chance: the same on average, and nested. */
static void passing_is_the_expectation(void **state)
{
	uint64_t rng = pst_rng_seed(3);
	int i, passed = 0;

	(void)state;
	for (i = 0; i < 200000; i++) {
		uint32_t length = (uint32_t)draw(&rng) >> below(&rng, 32), user = (uint32_t)draw(&rng) >> below(&rng, 32);
		uint32_t limit = pst_threshold_limit_parts(draw(&rng) >> below(&rng, 32)), random = (uint32_t)draw(&rng);
		uint32_t parts = pst_threshold_passing(length, limit, user);

		assert_int_equal(parts, ref_threshold_passing(length, limit, user));
		assert_true(parts <= length && pst_threshold_passing(length, limit + 1, user) >= parts);
		if (pst_threshold_passing_by_chance(1, limit, user, 6, random))
			assert_int_equal(pst_threshold_passing_by_chance(1, limit + limit / 4, user, 6, random), 1);
	}
	for (i = 0; i < 100000; i++)
		passed += (int)pst_threshold_passing_by_chance(1, 3000, 8000, 6, (uint32_t)draw(&rng));
	assert_in_range(passed, 37500 - 1500, 37500 + 1500); /* 6 bits: 3 %; 153 is the standard deviation */
}

/* Users that send evenly, without a sketch: T after a while, and its extremes over the last half. */
struct load {
	const double *rates; /* parts: shares of C times 2^24 */
	const double *weights;
	uint32_t users;
	uint32_t packets; /* of C in tau */
};

static double settle(const struct pst_threshold_profile *profile, const struct load *load, uint32_t seed, double *worst)
{
	struct pst_threshold_state slice = pst_threshold_start(profile, TAU_NS);
	uint64_t rng = pst_rng_seed(seed), now_ns, due_ns[16], end_ns = 80 * TAU_NS;
	uint32_t length = C_PARTS / load->packets, user, samples = 0;
	uint64_t words[16] = { 0 };
	double sum = 0, share = ref_threshold_share(load->rates, load->weights, load->users, C_PARTS);

	for (user = 0; user < load->users; user++)
		due_ns[user] = TAU_NS + below(&rng, 100000);
	for (*worst = 0;;) {
		struct pst_threshold_packet packet = { length, 0, pst_rng_next(&rng) };
		uint32_t first = 0, limit;

		for (user = 1; user < load->users; user++)
			first = due_ns[user] < due_ns[first] ? user : first;
		now_ns = due_ns[first];
		if (now_ns >= end_ns)
			return sum / samples / share;
		due_ns[first] += (uint64_t)((double)length / load->rates[first] * (double)TAU_NS) + below(&rng, 2000);
		packet.user_parts = pst_lpf_add(&words[first], pst_lpf_stamp(now_ns, PST_LPF_TAU_SHIFT), (uint32_t)(length / load->weights[first]));
		limit = pst_threshold_take(profile, &slice, now_ns, &packet);
		if (now_ns > end_ns / 2) {
			samples++;
			sum += limit;
			*worst = fmax(*worst, fabs(limit / share - 1));
		}
	}
}

/* Section II-B: "the ideal limit T means the shaded area has size exactly equal to C", with demands of all kinds, and weights (V-E). */
static void limit_becomes_the_max_min_share(void **state)
{
	static const double equal[] = { C_PARTS, C_PARTS, C_PARTS, C_PARTS };
	static const double mixed[] = { C_PARTS * 0.1, C_PARTS * 0.2, C_PARTS * 0.3, C_PARTS * 0.4, C_PARTS * 0.5, C_PARTS * 0.6 };
	static const double ones[] = { 1, 1, 1, 1, 1, 1 }, weights[] = { 1, 1, 2, 2, 4, 4 };
	static const double heavy[] = { C_PARTS, C_PARTS, C_PARTS, C_PARTS, C_PARTS, C_PARTS };
	static const struct load loads[] = { { equal, ones, 4, 400 }, { mixed, ones, 6, 400 }, { heavy, weights, 6, 400 } };
	double worst;
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		/* R reads high by T/2tau, and so is T: not more, for f divides by the same. */
		assert_true(fabs(settle(&exact, &loads[i], 5, &worst) - 1) < 0.03);
		assert_true(worst < 0.04);
		assert_true(fabs(settle(&faithful, &loads[i], 5, &worst) - 1) < 0.08);
		assert_true(worst < 0.35);
	}
}

/* A4: "when a slice is idle: T = largest user + spare capacity". */
static void an_idle_slice_keeps_room_for_what_is_spare(void **state)
{
	struct pst_threshold_state slice = pst_threshold_start(&exact, 0);
	uint64_t now_ns, word = 0;
	uint32_t limit = 0;

	(void)state;
	/* One user at 0.3 C: T = 0.3 C + 0.7 C. */
	for (now_ns = 0; now_ns < 20 * TAU_NS; now_ns += 10000) {
		uint32_t length = (uint32_t)(C_PARTS * 0.3 * 10000 / (double)TAU_NS);
		struct pst_threshold_packet packet = { length, pst_lpf_add(&word, pst_lpf_stamp(now_ns, PST_LPF_TAU_SHIFT), length), 0 };

		limit = pst_threshold_take(&exact, &slice, now_ns, &packet);
	}
	assert_in_range(limit, C_PARTS * 0.99, C_PARTS * 1.01);
}

/* A4: "no packets, no update": T is set anew by the first packet after the pause. I4. */
static void first_packet_after_a_pause_sets_the_limit_anew(void **state)
{
	static const uint64_t pauses[] = { 23, 30, 1000, UINT64_C(1) << 21 };
	uint64_t rng = pst_rng_seed(7);
	int i;

	(void)state;
	for (i = 0; i < 2000; i++) {
		uint64_t now_ns = draw(&rng);
		struct pst_threshold_state slice = pst_threshold_start(&exact, now_ns);
		struct pst_threshold_packet packet = { 20000, 0, (uint32_t)draw(&rng) };
		const struct pst_threshold_profile *profile = below(&rng, 2) ? &exact : &faithful;
		int k;

		/* Crowded: everybody at 8 C, T down at any size. */
		for (k = 0; k < 200; k++) {
			packet.user_parts = C_PARTS * 8;
			packet.length_parts = 1 + ((uint32_t)draw(&rng) >> below(&rng, 31));
			pst_threshold_take(profile, &slice, now_ns += below(&rng, EPOCH_NS), &packet);
		}
		now_ns += pauses[i % 4] * TAU_NS;
		packet.user_parts = 1000;
		assert_int_equal(pst_threshold_take(profile, &slice, now_ns, &packet), C_PARTS);
	}
}

#define STAMP 5

/* A slice whose filters read like this at STAMP. */
static struct pst_threshold_state state_of(const struct ref_threshold_epoch *epoch)
{
	struct pst_threshold_state slice = { .demand = (uint64_t)epoch->demand << 32 | STAMP, .largest = (uint64_t)epoch->largest << 32 | STAMP,
					     .low = (uint64_t)epoch->f[0] << 32 | STAMP, .middle = (uint64_t)epoch->f[1] << 32 | STAMP,
					     .high = (uint64_t)epoch->f[2] << 32 | STAMP, .gain_q16 = epoch->gain_q16 };

	if (epoch->has_limiters)
		slice.passed = (uint64_t)epoch->passed << 32 | STAMP;
	return slice;
}

/* Limiters: bit-equal to ref/; T grows by an eighth an epoch at most. */
static void next_limit_equals_reference(void **state)
{
	uint64_t rng = pst_rng_seed(9);
	uint32_t held = 0;
	int i;

	(void)state;
	for (i = 0; i < 300000; i++) {
		uint32_t size = 1 + ((uint32_t)draw(&rng) >> below(&rng, 31)), limit = pst_threshold_limit_parts(draw(&rng) >> below(&rng, 32));
		struct ref_threshold_epoch epoch = { .capacity = size, .demand = size / 2 + below(&rng, size) / 2, .largest = (uint32_t)draw(&rng) >> below(&rng, 31),
						     .has_limiters = below(&rng, 2), .gain_q16 = below(&rng, 2) ? 32768 + below(&rng, 32769) : 0 };
		struct pst_threshold_profile profile = { .capacity_parts = size, .divide_bits = below(&rng, 4) ? 0 : 1 + below(&rng, 12) };
		struct pst_threshold_state slice;
		uint32_t next, gain;

		if (below(&rng, 2))
			epoch.capacity = profile.capacity_parts = size / 2 + below(&rng, size / 2 + 1);
		epoch.f[0] = below(&rng, size / 2 + 1);
		epoch.f[1] = epoch.f[0] + below(&rng, size / 4 + 1);
		epoch.f[2] = epoch.f[1] + below(&rng, size / 4 + 1);
		epoch.passed = epoch.has_limiters ? below(&rng, size) : 0;
		epoch.epochs = below(&rng, 4) ? 1 : (uint32_t)draw(&rng) >> below(&rng, 32);
		slice = state_of(&epoch);
		gain = pst_threshold_gain_q16(&profile, &slice, STAMP);
		next = pst_threshold_next(&profile, &slice, limit, STAMP, epoch.epochs, gain);
		assert_int_equal(next, ref_threshold_next(limit, &epoch, profile.divide_bits));
		assert_int_equal(gain, ref_threshold_gain_q16(epoch.gain_q16, epoch.passed, epoch.capacity));
		if (epoch.has_limiters && epoch.epochs == 1) {
			assert_true(next <= limit + limit / 8);
			held += next == limit + limit / 8;
		}
	}
	assert_true(held > 1000);
}

/* From 1/2 to 1, down where more than C has passed and up where less, by a 64th of the difference; 1 where nothing is known. */
static void gain_moves_towards_what_should_pass(void **state)
{
	uint64_t rng = pst_rng_seed(10);
	int i;

	(void)state;
	for (i = 0; i < 200000; i++) {
		uint32_t gain = 32768 + below(&rng, 32769), passed = 1 + (uint32_t)(draw(&rng) % (3 * (uint64_t)C_PARTS));
		struct pst_threshold_state slice = { .passed = (uint64_t)passed << 32, .gain_q16 = gain };
		uint32_t next = pst_threshold_gain_q16(&exact, &slice, 0);
		double step = 1024 * (1 - fmin((double)passed / C_PARTS, 2));

		assert_in_range(next, 32768, 65536);
		assert_true(passed <= C_PARTS ? next >= gain : next <= gain + 1); /* and rounded up */
		assert_true(fabs(next - fmax(32768, fmin(65536, gain + step))) <= 1);
		slice.passed = 0;
		assert_int_equal(pst_threshold_gain_q16(&exact, &slice, 0), 65536);
		slice.passed = (uint64_t)passed << 32;
		assert_int_equal(pst_threshold_gain_q16(&exact, &slice, 23 << PST_LPF_STAMP_BITS), 65536); /* forgotten: lpf.h I4 */
	}
}

/* I4 with limiters: T = C after a pause, or what an eighth for each epoch of it has made of T. */
static void a_limit_of_limiters_grows_in_a_pause(void **state)
{
	static const uint64_t pauses[] = { 23, 30, 1000, UINT64_C(1) << 21 };
	uint64_t rng = pst_rng_seed(11);
	uint32_t i, held = 0;

	(void)state;
	for (i = 0; i < 2000; i++) {
		uint64_t epoch = below(&rng, 1000000), pause = pauses[i % 4] * TAU_NS / EPOCH_NS, grown;
		uint32_t limit = pst_threshold_limit_parts(draw(&rng) >> (33 + below(&rng, 31)));
		struct pst_threshold_state slice = pst_threshold_start(&exact, epoch * EPOCH_NS);
		struct pst_threshold_packet packet = { 20000, 20000, 0 };

		slice.limit = epoch << 32 | limit;
		slice.passed = slice.demand = UINT64_C(1) << 50 | pst_lpf_stamp(epoch * EPOCH_NS, PST_LPF_TAU_SHIFT);
		grown = limit + limit * pause / 8;
		held += grown < C_PARTS;
		assert_int_equal(pst_threshold_take(&exact, &slice, (epoch + pause) * EPOCH_NS, &packet), grown < C_PARTS ? grown : C_PARTS);
		assert_int_equal(slice.gain_q16, 65536);
	}
	assert_in_range(held, 100, 1900);
}

/* I5. */
static void an_epoch_is_turned_once(void **state)
{
	uint64_t now_ns = 1000 * EPOCH_NS;
	struct pst_threshold_state slice = pst_threshold_start(&exact, now_ns);

	(void)state;
	assert_false(pst_threshold_turn(&exact, &slice, now_ns + EPOCH_NS - 1));
	assert_true(pst_threshold_turn(&exact, &slice, now_ns + EPOCH_NS));
	assert_false(pst_threshold_turn(&exact, &slice, now_ns + EPOCH_NS));
	assert_false(pst_threshold_turn(&exact, &slice, now_ns - 60 * EPOCH_NS));
	assert_true(pst_threshold_turn(&exact, &slice, now_ns - 70 * EPOCH_NS)); /* long ago: another clock */
	assert_true(pst_threshold_turn(&exact, &slice, now_ns + 100 * EPOCH_NS));
}

/* The filters go along: at the limit where they were, they are what they were; in between straight; above no more than what came. */
static void filters_follow_along_the_curve(void **state)
{
	struct pst_threshold_state slice = pst_threshold_start(&exact, 0);

	(void)state;
	slice.low = UINT64_C(1000) << 32;
	slice.middle = UINT64_C(1400) << 32;
	slice.high = UINT64_C(1600) << 32;
	slice.demand = UINT64_C(1700) << 32;
	pst_threshold_follow(&slice, 0, 1024, 1536); /* 512, 1024, 1536 to 1024, 1536, 2048 */
	assert_int_equal(pst_lpf_value(slice.low), 1400);
	assert_int_equal(pst_lpf_value(slice.middle), 1600);
	assert_int_equal(pst_lpf_value(slice.high), 1700);
	pst_threshold_follow(&slice, 0, 1536, 1100); /* to 588, 1100, 1612 */
	assert_int_equal(pst_lpf_value(slice.low), 1400 * 588 / 1024);
	assert_int_equal(pst_lpf_value(slice.middle), 1400 + 200 * 76 / 512);
	assert_int_equal(pst_lpf_value(slice.high), 1600 + 100 * 76 / 512);
}

/* Any numbers at all. */
static void takes_anything(void **state)
{
	uint64_t rng = pst_rng_seed(8);
	int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		struct pst_threshold_profile profile = { (uint32_t)draw(&rng) >> below(&rng, 32), (uint32_t)draw(&rng), (uint32_t)draw(&rng),
							 (uint32_t)draw(&rng) >> below(&rng, 32) };
		struct pst_threshold_state slice = { draw(&rng), draw(&rng), draw(&rng), draw(&rng), draw(&rng), draw(&rng), draw(&rng), (uint32_t)draw(&rng), 0 };
		struct pst_threshold_packet packet = { (uint32_t)draw(&rng), (uint32_t)draw(&rng) >> below(&rng, 32), (uint32_t)draw(&rng) };

		if (below(&rng, 2))
			profile = exact;
		assert_in_range(pst_threshold_take(&profile, &slice, draw(&rng), &packet), PST_THRESHOLD_MIN_PARTS, PST_THRESHOLD_MAX_PARTS);
	}
}

static void reproduces_next(struct vectors *v)
{
	const char *f = vectors_in_text(v, "f");
	struct pst_threshold_profile profile = { .capacity_parts = (uint32_t)vectors_in(v, "capacity"), .divide_bits = (uint32_t)vectors_in(v, "b") };
	struct ref_threshold_epoch epoch = {
		.capacity = profile.capacity_parts, .demand = (uint32_t)vectors_in(v, "demand"), .largest = (uint32_t)vectors_in(v, "largest"),
		.f = { (uint32_t)vectors_number(v, f, 0), (uint32_t)vectors_number(v, f, 1), (uint32_t)vectors_number(v, f, 2) },
		.passed = (uint32_t)vectors_in(v, "passed"), .has_limiters = vectors_in(v, "limiters") != 0,
		.gain_q16 = (uint32_t)vectors_in(v, "gain"), .epochs = (uint32_t)vectors_in(v, "epochs"),
	};
	struct pst_threshold_state slice = state_of(&epoch);
	uint32_t gain = pst_threshold_gain_q16(&profile, &slice, STAMP);

	assert_int_equal(pst_threshold_next(&profile, &slice, (uint32_t)vectors_in(v, "limit"), STAMP, epoch.epochs, gain), vectors_out(v, "limit"));
	assert_int_equal(gain, vectors_out(v, "gain"));
}

static void reproduces_golden_vectors(void **state)
{
	struct vectors v;

	(void)state;
	vectors_open(&v, "vectors/threshold.txt");
	while (vectors_next(&v)) {
		if (vectors_is(&v, "interpolate")) {
			const char *f = vectors_in_text(&v, "f");
			struct pst_threshold_curve curve = { (uint32_t)vectors_number(&v, f, 0), (uint32_t)vectors_number(&v, f, 1),
							     (uint32_t)vectors_number(&v, f, 2) };
			uint32_t limit = (uint32_t)vectors_in(&v, "limit"), capacity = (uint32_t)vectors_in(&v, "capacity");

			assert_int_equal(pst_threshold_interpolate(limit, capacity, &curve, (uint32_t)vectors_in(&v, "b")), vectors_out(&v, "limit"));
		} else if (vectors_is(&v, "gain")) {
			struct pst_threshold_profile profile = { .capacity_parts = (uint32_t)vectors_in(&v, "capacity") };
			struct pst_threshold_state slice = { .passed = vectors_in(&v, "passed") << 32, .gain_q16 = (uint32_t)vectors_in(&v, "gain") };

			assert_int_equal(pst_threshold_gain_q16(&profile, &slice, 0), vectors_out(&v, "gain"));
		} else if (vectors_is(&v, "next")) {
			reproduces_next(&v);
		} else {
			assert_true(vectors_is(&v, "passing"));
			assert_int_equal(pst_threshold_passing((uint32_t)vectors_in(&v, "length"), (uint32_t)vectors_in(&v, "limit"),
							       (uint32_t)vectors_in(&v, "user")),
					 vectors_out(&v, "parts"));
		}
	}
	assert_true(v.directives > 350);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(candidates_are_about_half_and_one_and_a_half),
		cmocka_unit_test(figure_7_is_recomputed),
		cmocka_unit_test(small_steps_are_kept),
		cmocka_unit_test(interpolation_equals_reference),
		cmocka_unit_test(passing_is_the_expectation),
		cmocka_unit_test(limit_becomes_the_max_min_share),
		cmocka_unit_test(an_idle_slice_keeps_room_for_what_is_spare),
		cmocka_unit_test(first_packet_after_a_pause_sets_the_limit_anew),
		cmocka_unit_test(next_limit_equals_reference),
		cmocka_unit_test(gain_moves_towards_what_should_pass),
		cmocka_unit_test(a_limit_of_limiters_grows_in_a_pause),
		cmocka_unit_test(an_epoch_is_turned_once),
		cmocka_unit_test(filters_follow_along_the_curve),
		cmocka_unit_test(takes_anything),
		cmocka_unit_test(reproduces_golden_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
