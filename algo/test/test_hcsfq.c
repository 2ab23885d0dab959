/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "vectors.h"

#include <penstock/hcsfq.h>

#include "ref_hcsfq.h"
#include "schedule.h"

static struct pst_hcsfq_profile compile(struct pst_hcsfq_params params)
{
	struct pst_hcsfq_profile profile;

	pst_hcsfq_compile(&profile, &params);
	return profile;
}

/* Windows that tumble, both smoothings, and alpha's two laws: bit-equal to ref/ through any gaps. I1, I4. */
static void equals_reference(void **state)
{
	uint64_t rng = pst_rng_seed(1);
	int run, i;

	(void)state;
	for (run = 0; run < 3000; run++) {
		struct pst_hcsfq_params params = { draw_rate_Bps(&rng), UINT64_C(1) << (10 + below(&rng, 27)), below(&rng, 2) ? 1 : 3, below(&rng, 12),
						   below(&rng, 14) };
		struct pst_hcsfq_profile profile = compile(params);
		uint64_t index = draw(&rng) >> (28 + below(&rng, 9)), now_ns = index * params.window_ns;
		struct pst_hcsfq_node node = pst_hcsfq_start(&profile, now_ns);
		struct pst_hcsfq_user user = { 0, 0, (uint32_t)index };
		const uint32_t shifts[2] = { params.decrease_shift, params.increase_shift };

		assert_int_equal(profile.capacity_q8, ref_hcsfq_capacity_q8(params.capacity_Bps, params.window_ns));
		for (i = 0; i < 60; i++) {
			uint64_t windows = below(&rng, 3) ? below(&rng, 3) : below(&rng, 100);
			struct pst_hcsfq_packet packet = { draw_bytes(&rng), below(&rng, 3), (uint32_t)draw(&rng), below(&rng, 2) };
			uint64_t rate_q8 = ref_hcsfq_rate_q8(user.rate_q8, user.bytes_q8, windows, params.smooth_shift == 1);
			uint64_t alpha_q8 = ref_hcsfq_alpha_q8(profile.capacity_q8, node.alpha_q8, node.passed_q8, windows, shifts, packet.is_congested);
			bool passes;

			now_ns += windows * params.window_ns;
			passes = pst_hcsfq_take(&profile, &node, &user, &packet, now_ns + draw(&rng) % params.window_ns);
			assert_int_equal(user.rate_q8, rate_q8);
			assert_int_equal(node.alpha_q8, alpha_q8);
			assert_in_range(node.alpha_q8, 1, profile.capacity_q8);
			assert_int_equal(passes, packet.random_u32 >> 28 < ref_hcsfq_sixteenths(alpha_q8, rate_q8, 1U << packet.weight_shift));
		}
	}
}

/* I3: "a 4-bit uniform number (16 levels)". */
static void decides_in_sixteenths(void **state)
{
	uint32_t number, passed = 0;

	(void)state;
	for (number = 0; number < 16; number++)
		passed += pst_hcsfq_passes(1000, 2500, 0, number << 28 | 0xfffffff);
	assert_int_equal(passed, 7); /* 16 / 2.5 = 6.4, rounded up */
	assert_true(pst_hcsfq_passes(1, UINT64_C(1) << 50, 0, 0));
	assert_false(pst_hcsfq_passes(1, UINT64_C(1) << 50, 0, 1U << 28));
	assert_true(pst_hcsfq_passes(1000, 4000, 2, 15U << 28)); /* weight 4 */
}

/* With the release's constants alpha takes 1420 windows to halve. */
static void release_halves_alpha_in_1420_windows(void **state)
{
	struct pst_hcsfq_profile profile = compile(pst_hcsfq_tcp(12500000));
	uint64_t alpha_q8 = profile.capacity_q8;
	int windows = 0;

	(void)state;
	assert_int_equal(profile.capacity_q8, 25000 << 8);
	assert_int_equal(compile(pst_hcsfq_normal(UINT64_C(5000000000))).capacity_q8, UINT64_C(1024000000) << 8);
	for (; alpha_q8 > profile.capacity_q8 / 2; windows++)
		alpha_q8 = pst_hcsfq_alpha_q8(&profile, alpha_q8, profile.capacity_q8 + 1, true);
	assert_in_range(windows, 1415, 1425);
}

static void takes_anything(void **state)
{
	uint64_t rng = pst_rng_seed(2);
	int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		struct pst_hcsfq_params params = { draw(&rng) >> below(&rng, 64), draw(&rng) >> below(&rng, 64), (uint32_t)draw(&rng), (uint32_t)draw(&rng),
						   (uint32_t)draw(&rng) };
		struct pst_hcsfq_profile profile = compile(params);
		struct pst_hcsfq_node node = pst_hcsfq_start(&profile, draw(&rng));
		struct pst_hcsfq_user user = { draw(&rng) >> 13, draw(&rng) >> 13, (uint32_t)draw(&rng) };
		struct pst_hcsfq_packet packet = { (uint32_t)draw(&rng) >> 15, (uint32_t)draw(&rng), (uint32_t)draw(&rng), true };

		node.alpha_q8 = draw(&rng) >> (13 + below(&rng, 51));
		pst_hcsfq_take(&profile, &node, &user, &packet, draw(&rng));
		assert_true(user.bytes_q8 <= PST_HCSFQ_BYTES_MAX_Q8 && user.rate_q8 <= PST_HCSFQ_BYTES_MAX_Q8);
	}
}

static void reproduces_golden_vectors(void **state)
{
	struct pst_hcsfq_profile profile = compile(pst_hcsfq_tcp(0));
	struct pst_hcsfq_node node = { 0, 0, 0 };
	struct pst_hcsfq_user users[REF_HCSFQ_USERS];
	struct vectors v;
	int i;

	(void)state;
	vectors_open(&v, "vectors/hcsfq.txt");
	while (vectors_next(&v)) {
		if (vectors_is(&v, "node")) {
			profile = compile((struct pst_hcsfq_params){ vectors_in(&v, "capacity_Bps"), vectors_in(&v, "window_ns"),
								     (uint32_t)vectors_in(&v, "smooth"), (uint32_t)vectors_in(&v, "decrease"),
								     (uint32_t)vectors_in(&v, "increase") });
			node = pst_hcsfq_start(&profile, vectors_in(&v, "now"));
			for (i = 0; i < REF_HCSFQ_USERS; i++)
				users[i] = (struct pst_hcsfq_user){ 0, 0, node.window_index };
			assert_int_equal(profile.capacity_q8, vectors_out(&v, "capacity_q8"));
		} else {
			struct pst_hcsfq_packet packet = { (uint32_t)vectors_in(&v, "bytes"), (uint32_t)vectors_in(&v, "weight_shift"),
							   (uint32_t)vectors_in(&v, "random"), vectors_in(&v, "congested") };
			struct pst_hcsfq_user *user = &users[vectors_in(&v, "user") % REF_HCSFQ_USERS];

			assert_true(vectors_is(&v, "take"));
			assert_int_equal(pst_hcsfq_take(&profile, &node, user, &packet, vectors_in(&v, "now")), vectors_out(&v, "passes"));
			assert_int_equal(user->rate_q8, vectors_out(&v, "rate_q8"));
			assert_int_equal(node.alpha_q8, vectors_out(&v, "alpha_q8"));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_reference),
		cmocka_unit_test(decides_in_sixteenths),
		cmocka_unit_test(release_halves_alpha_in_1420_windows),
		cmocka_unit_test(takes_anything),
		cmocka_unit_test(reproduces_golden_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
