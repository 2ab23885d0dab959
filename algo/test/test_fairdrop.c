/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "vectors.h"

static uint64_t racing_cas(uint64_t *word, uint64_t old, uint64_t next);

/* The countdowns of this file commit through racing_cas. */
#define __sync_val_compare_and_swap(word, old, next) racing_cas(word, old, next)
#include <penstock/fairdrop.h>
#undef __sync_val_compare_and_swap

#include "ref_fairdrop.h"
#include "schedule.h"

static const struct pst_fairdrop_profile published = { PST_FAIRDROP_CONST_SHIFT_RELEASED, PST_FAIRDROP_NO_CEILING, 5 };
static bool rival;

static uint64_t racing_cas(uint64_t *word, uint64_t old, uint64_t next)
{
	if (rival)
		*word += 1;
	return __sync_val_compare_and_swap(word, old, next);
}

/* Equation 3, I1: bit-equal to ref/, and the border is where 2^32 T / R is. */
static void chance_is_equation_3(void **state)
{
	uint64_t rng = pst_rng_seed(1);
	int i;

	(void)state;
	for (i = 0; i < 200000; i++) {
		uint32_t limit = (uint32_t)draw(&rng) >> below(&rng, 32), user = (uint32_t)draw(&rng) >> below(&rng, 32);
		uint32_t random = (uint32_t)draw(&rng), b = 1 + below(&rng, 12);

		assert_int_equal(pst_fairdrop_passes(limit, user, random), ref_fairdrop_passes(limit, user, 0, random));
		assert_int_equal(pst_fairdrop_passes_by_table(limit, user, b, random), ref_fairdrop_passes(limit, user, b, random));
		if (user > limit) {
			uint64_t border = (((uint64_t)limit << 32) + user - 1) / user;

			assert_false(pst_fairdrop_passes(limit, user, (uint32_t)border));
			assert_true(border == 0 || pst_fairdrop_passes(limit, user, (uint32_t)(border - 1)));
		} else {
			assert_true(pst_fairdrop_passes(limit, user, UINT32_MAX));
			assert_true(pst_fairdrop_passes_by_table(limit, user, b, UINT32_MAX));
		}
	}
}

/* A countdown is T * 8.4 ms, but no less than what passes in tau, whatever tau is. */
static void a_countdown_is_no_shorter_than_tau(void **state)
{
	uint32_t tau_shift;

	(void)state;
	for (tau_shift = 10; tau_shift <= 40; tau_shift++) {
		uint64_t tau_ns = UINT64_C(1) << tau_shift, countdown_ns = tau_ns << pst_fairdrop_const_shift(tau_shift);

		assert_int_equal(countdown_ns, tau_ns > 8388608 ? tau_ns : 8388608);
		assert_int_equal(pst_fairdrop_default(tau_shift).const_shift, pst_fairdrop_const_shift(tau_shift));
	}
}

/* Section IV-A: "after probabilistic dropping the user's remaining packets will use bandwidth equal to T". I1, I2. */
static void what_passes_is_the_limit(void **state)
{
	static const uint32_t users[] = { 1100000, 2000000, 5000000, 10000000, 31000000 };
	const struct pst_fairdrop_profile profile = pst_fairdrop_default(22);
	uint64_t rng = pst_rng_seed(2);
	int i, k;

	(void)state;
	for (k = 0; k < 5; k++) {
		struct pst_fairdrop_packet packet = { 1000000, users[k], 100, 0, false };
		double ratio = 1e6 / users[k], passed = 0, passed_published = 0;

		for (i = 0; i < 400000; i++) {
			packet.random_u32 = pst_rng_next(&rng);
			passed += pst_fairdrop_by_chance(&profile, &packet) == PST_VERDICT_PASS;
			passed_published += pst_fairdrop_by_chance(&published, &packet) == PST_VERDICT_PASS;
		}
		assert_true(passed / 400000 > ratio - 0.004 && passed / 400000 < ratio + 0.004);
		assert_true(passed_published / 400000 > ratio - (1 + ratio) / 32 - 0.004);
		assert_true(passed_published / 400000 < ratio + (1 + ratio) / 32 + 0.004);
	}
}

/* Section V-A: "if the counter is already zero, we drop this packet and reset .. otherwise, we spare the packet". Equal to ref/; I3, I4. */
static void periodic_equals_reference(void **state)
{
	static const uint8_t verdicts[] = { PST_VERDICT_PASS, PST_VERDICT_MARK, PST_VERDICT_DROP };
	uint64_t rng = pst_rng_seed(3);
	int run, i;

	(void)state;
	for (run = 0; run < 1000; run++) {
		struct pst_fairdrop_profile profile = { below(&rng, 8), PST_FAIRDROP_NO_CEILING, 0 };
		struct ref_fairdrop flow = { UINT64_C(1) << profile.const_shift, 0, 0, 0, 0 };
		uint64_t word = 0, passed = 0, least = 0;
		uint32_t limit = ((uint32_t)draw(&rng) >> below(&rng, 32)) | 1, most = UINT32_C(1) << below(&rng, 28);

		for (i = 0; i < 400; i++) {
			struct pst_fairdrop_packet packet = { limit, limit / 2 + (uint32_t)(draw(&rng) % (limit + UINT64_C(1))), 1 + below(&rng, most), 0,
							      below(&rng, 4) != 0 };
			uint64_t before = word;
			int verdict = ref_fairdrop_periodic(&flow, packet.limit_parts, packet.user_parts, packet.length_parts, packet.can_be_marked);

			assert_int_equal(pst_fairdrop_periodic(&profile, &packet, &word), verdicts[verdict]);
			if (packet.user_parts <= limit) {
				assert_int_equal(word, before);
			} else if (verdict == 2) {
				assert_true(passed >= least);
				least = (uint64_t)limit << profile.const_shift;
				least = least < UINT32_MAX ? least : UINT32_MAX;
				passed = 0;
			} else {
				passed += packet.length_parts;
			}
		}
	}
}

/* Section IV-A: "drop one packet approximately every T * const bytes"; marks are four times as many. At low rates one in 9 is dropped at most. */
static void drops_every_so_many_bytes_and_marks_four_times_as_often(void **state)
{
	static const uint32_t limits[] = { 1000000, 100000, 1000, 16 };
	static const int every[] = { 32 * 1000 + 1, 32 * 100 + 1, 33, 9 }; /* lengths are 1000: 8 packets at least */
	int k, i;

	(void)state;
	for (k = 0; k < 4; k++) {
		struct pst_fairdrop_packet packet = { limits[k], limits[k] * 2, 1000, 0, true };
		uint64_t word = 0;
		int drops = 0, marks = 0, packets = every[k] * 40;

		for (i = 0; i < packets; i++) {
			uint8_t verdict = pst_fairdrop_periodic(&published, &packet, &word);

			drops += verdict == PST_VERDICT_DROP;
			marks += verdict == PST_VERDICT_MARK;
		}
		assert_in_range(drops, 40, 41);
		/* The fourth would come with the drop; a mark's packet is not counted down, and of 8 packets that is much. */
		assert_in_range(marks, k == 3 ? 2 * 40 : 3 * 40, 4 * 40);
	}
}

/* I5. */
static void who_does_not_heed_drops_meets_chance(void **state)
{
	const struct pst_fairdrop_profile profile = pst_fairdrop_default(22);
	struct pst_fairdrop_packet packet = { 1000000, 2000000, 1000, 0, true };
	uint64_t rng = pst_rng_seed(4), word = 0;
	int i, passed = 0;

	(void)state;
	for (i = 0; i < 20010; i++) {
		packet.random_u32 = pst_rng_next(&rng);
		passed += pst_fairdrop_periodic(&profile, &packet, &word) != PST_VERDICT_DROP;
	}
	assert_int_equal(passed, 20000); /* 2000 pass between two drops */
	packet.user_parts = 8000000;
	for (i = passed = 0; i < 100000; i++) {
		packet.random_u32 = pst_rng_next(&rng);
		passed += pst_fairdrop_periodic(&profile, &packet, &word) != PST_VERDICT_DROP;
	}
	assert_in_range(passed, 12500 - 500, 12500 + 500); /* 105 is the standard deviation */
}

static void a_lost_race_lets_the_packet_pass(void **state)
{
	struct pst_fairdrop_packet packet = { 1000, 2000, 10, 0, false };
	uint64_t word = 0;

	(void)state;
	rival = true;
	assert_int_equal(pst_fairdrop_periodic(&published, &packet, &word), PST_VERDICT_PASS);
	rival = false;
	assert_int_equal(word, PST_CAS_TRIES);
}

static void takes_anything(void **state)
{
	uint64_t rng = pst_rng_seed(5);
	int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		struct pst_fairdrop_profile profile = { (uint32_t)draw(&rng), (uint32_t)draw(&rng) >> below(&rng, 32), (uint32_t)draw(&rng) >> below(&rng, 32) };
		struct pst_fairdrop_packet packet = { (uint32_t)draw(&rng), (uint32_t)draw(&rng), (uint32_t)draw(&rng), (uint32_t)draw(&rng), below(&rng, 2) };
		uint64_t word = draw(&rng);

		assert_true(pst_fairdrop_periodic(&profile, &packet, &word) <= PST_VERDICT_DROP);
	}
}

static void reproduces_golden_vectors(void **state)
{
	static const char *const names[] = { "pass", "mark", "drop" };
	struct pst_fairdrop_profile released = published;
	struct vectors v;
	uint64_t word = 1;

	(void)state;
	vectors_open(&v, "vectors/fairdrop.txt");
	while (vectors_next(&v)) {
		if (vectors_is(&v, "chance")) {
			struct pst_fairdrop_profile profile = { 0, 0, (uint32_t)vectors_in(&v, "b") };
			struct pst_fairdrop_packet packet = { (uint32_t)vectors_in(&v, "limit"), (uint32_t)vectors_in(&v, "user"), 0,
							      (uint32_t)vectors_in(&v, "random"), false };

			assert_int_equal(pst_fairdrop_by_chance(&profile, &packet) == PST_VERDICT_PASS, vectors_out(&v, "passes"));
		} else if (vectors_is(&v, "flow")) {
			word = vectors_in(&v, "word");
			released.const_shift = (uint32_t)vectors_in(&v, "const_shift");
		} else {
			struct pst_fairdrop_packet packet = { (uint32_t)vectors_in(&v, "limit"), (uint32_t)vectors_in(&v, "user"),
							      (uint32_t)vectors_in(&v, "length"), 0, vectors_in(&v, "ect") != 0 };

			assert_true(vectors_is(&v, "periodic"));
			assert_int_equal(pst_fairdrop_periodic(&released, &packet, &word),
					 vectors_name(&v, vectors_out_text(&v, "verdict"), names, 3));
		}
	}
	assert_true(v.directives > 250);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chance_is_equation_3),
		cmocka_unit_test(a_countdown_is_no_shorter_than_tau),
		cmocka_unit_test(what_passes_is_the_limit),
		cmocka_unit_test(periodic_equals_reference),
		cmocka_unit_test(drops_every_so_many_bytes_and_marks_four_times_as_often),
		cmocka_unit_test(who_does_not_heed_drops_meets_chance),
		cmocka_unit_test(a_lost_race_lets_the_packet_pass),
		cmocka_unit_test(takes_anything),
		cmocka_unit_test(reproduces_golden_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
