/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include <math.h>
#include <pthread.h>

#include "vectors.h"

static uint64_t racing_cas(uint64_t *word, uint64_t old, uint64_t next);

/* The filters of this file commit through racing_cas. */
#define __sync_val_compare_and_swap(word, old, next) racing_cas(word, old, next)
#include <penstock/lpf.h>
#undef __sync_val_compare_and_swap

#include "ref_lpf.h"
#include "schedule.h"

#define TAU PST_LPF_TAU_SHIFT
#define TAU_NS (UINT64_C(1) << TAU)

static bool rival;

static uint64_t racing_cas(uint64_t *word, uint64_t old, uint64_t next)
{
	if (rival)
		*word += UINT64_C(7) << 32;
	return __sync_val_compare_and_swap(word, old, next);
}

static uint32_t add(uint64_t *word, uint64_t now_ns, uint32_t parts)
{
	return pst_lpf_add(word, pst_lpf_stamp(now_ns, TAU), parts);
}

static uint32_t left_at(uint64_t word, uint64_t now_ns)
{
	return pst_lpf_read(word, pst_lpf_stamp(now_ns, TAU));
}

/* Equation 4, I1, against real numbers: random gaps and sizes, and the table's whole length. */
static void is_equation_4(void **state)
{
	uint64_t rng = pst_rng_seed(1);
	int run, i;

	(void)state;
	for (run = 0; run < 400; run++) {
		struct ref_lpf exact = { 0, 0, false };
		uint64_t now_ns = draw(&rng), start_ns = now_ns, word = pst_lpf_word(0, pst_lpf_stamp(now_ns, TAU), 0);
		uint32_t gap_bits = 6 + below(&rng, 18), size_bits = 4 + below(&rng, 20);
		double slack = 0;

		for (i = 0; i < 300; i++) {
			uint64_t gap_ns = draw(&rng) >> (64 - gap_bits);
			uint32_t parts = 1 + below(&rng, UINT32_C(1) << size_bits);
			double error;

			now_ns += gap_ns;
			slack = slack * exp(-(double)gap_ns / (double)TAU_NS) + 0.5;
			ref_lpf_add(&exact, (double)(now_ns - start_ns), (double)TAU_NS, parts);
			error = add(&word, now_ns, parts) - exact.value;
			assert_true(fabs(error) <= 0.002 * exact.value + slack + 1);
		}
	}
}

/* I3, I4, I5, bit for bit, around every wrap. */
static void equals_reference(void **state)
{
	uint64_t rng = pst_rng_seed(2);
	int run, i;

	(void)state;
	for (run = 0; run < 2000; run++) {
		uint64_t now_ns = (uint64_t)draw_start_ns(&rng), word = draw(&rng);
		uint32_t tau = PST_LPF_TAU_SHIFT_MIN + below(&rng, PST_LPF_TAU_SHIFT_MAX - PST_LPF_TAU_SHIFT_MIN + 1);

		for (i = 0; i < 50; i++) {
			uint32_t parts = (uint32_t)draw(&rng) >> below(&rng, 32);
			uint64_t next = ref_lpf_next(word, now_ns, tau, parts);
			uint32_t stamp = pst_lpf_stamp(now_ns, tau);

			assert_int_equal(pst_lpf_read(word, stamp), ref_lpf_value(word, now_ns, tau));
			assert_int_equal(pst_lpf_add(&word, stamp, parts), next >> 32);
			assert_int_equal(word, next);
			now_ns += below(&rng, 8) ? draw(&rng) >> (68 - tau) : 0 - (draw(&rng) >> (61 - tau));
		}
	}
	for (i = 0; i < 25000; i++)
		assert_int_equal(pst_lpf_left_q31((uint32_t)i), ref_lpf_left_q31((uint64_t)i));
}

/* What is left falls with time, from all to nothing, and what is gone is right to 5 in 10^4, near 0 too, or v would be too high. */
static void what_is_left_falls(void **state)
{
	uint32_t i, before = PST_DECAY_ONE_Q31;

	(void)state;
	assert_int_equal(pst_lpf_left_q31(0), PST_DECAY_ONE_Q31);
	for (i = 1; i < 23000; i++) {
		uint32_t left_q31 = pst_lpf_left_q31(i);
		double x = i / 1024.0, lost = 1 - left_q31 / 2147483648.0;

		assert_true(left_q31 <= before);
		assert_true(fabs(lost / (1 - exp(-x)) - 1) < 0.0005);
		before = left_q31;
	}
	assert_int_equal(pst_lpf_left_q31(22 << 10), 0);
	assert_int_equal(pst_lpf_left_q31(UINT32_MAX), 0);
}

/* v of packets of `parts`, gap_ns apart: just after one in the long run, and the mean over a gap. */
static void settle(uint64_t gap_ns, uint32_t parts, double *after, double *mean)
{
	uint64_t word = 0, now_ns = 12345;
	int i, moments = 1000;

	while (now_ns < 20 * TAU_NS) {
		now_ns += gap_ns;
		*after = add(&word, now_ns, parts);
	}
	*mean = 0;
	for (i = 0; i < moments; i++)
		*mean += left_at(word, now_ns + gap_ns * (uint64_t)i / (uint64_t)moments);
	*mean /= moments;
}

/* "proportional to a good estimate of the user's instantaneous sending rate" (IV-B): too high by T/2tau where it is read. */
static void reads_high_by_half_a_gap(void **state)
{
	static const uint64_t gaps_ns[] = { 1200, 12000, 120000, 500000, 1200000 };
	unsigned i;

	(void)state;
	for (i = 0; i < 5; i++) {
		double gap = (double)gaps_ns[i] / (double)TAU_NS, exact = 100000 / gap, after, mean;

		settle(gaps_ns[i], 100000, &after, &mean);
		assert_true(fabs(after / exact - (1 + gap / 2 + gap * gap / 12)) < 0.002);
		assert_true(fabs(mean / exact - 1) < 0.0012);
	}
}

/* A rate that starts is known to within 10 % after 2.3 tau, and one that ends is forgotten to 10 % in as long. */
static void follows_within_two_and_a_half_tau(void **state)
{
	uint64_t word = 0, now_ns = 0;

	(void)state;
	for (; now_ns < TAU_NS * 5 / 2; now_ns += 10000)
		add(&word, now_ns, 1000);
	assert_in_range(left_at(word, now_ns), 1000 * TAU_NS / 10000 * 90 / 100, 1000 * TAU_NS / 10000 * 94 / 100);
	assert_true(left_at(word, now_ns + TAU_NS * 5 / 2) < 1000 * TAU_NS / 10000 / 10);
}

/* I2. */
static void is_kept_below_32_bits(void **state)
{
	uint64_t word = 0;

	(void)state;
	assert_int_equal(add(&word, 1, UINT32_MAX), UINT32_MAX);
	assert_int_equal(add(&word, 1, UINT32_MAX), UINT32_MAX);
	assert_int_equal(add(&word, 1, 1), UINT32_MAX);
	assert_in_range(left_at(word, 1 + TAU_NS), 1579000000, 1581000000);
}

/* I3, I4. */
static void time_that_steps_back_is_no_time(void **state)
{
	uint64_t word = 0, now_ns = UINT64_C(1000) * TAU_NS;

	(void)state;
	add(&word, now_ns, 1000000);
	assert_int_equal(add(&word, now_ns - TAU_NS, 1000), 1001000);
	assert_in_range(left_at(word, now_ns + TAU_NS), 1001000 * 0.3676, 1001000 * 0.3682); /* and not e^-2 */
	assert_int_equal(left_at(word, now_ns - 3 * TAU_NS), 1001000);
	assert_int_equal(left_at(word, now_ns - 5 * TAU_NS), 0);
	assert_int_equal(left_at(word, now_ns + 22 * TAU_NS), 0);
	assert_int_equal(left_at(word, now_ns + (TAU_NS << 21)), 0);
}

/* "we scale each packet's length using the user's weight" (V-E), and by the slice's rate (IV-C). */
static void parts_are_shares_of_the_nominal_rate(void **state)
{
	uint64_t rng = pst_rng_seed(3);
	struct pst_lpf_scale scale;
	int i;

	(void)state;
	for (i = 0; i < 20000; i++) {
		uint64_t nominal_Bps = draw_rate_Bps(&rng);
		uint32_t weight = 1 + below(&rng, UINT32_C(1) << below(&rng, 16)), tau = 18 + below(&rng, 10), bytes = draw_bytes(&rng);
		double exact = ref_lpf_parts_per_byte((double)nominal_Bps, weight, (double)(UINT64_C(1) << tau)) * bytes;
		uint32_t parts;

		pst_lpf_scale_compile(&scale, nominal_Bps, weight, tau);
		parts = pst_lpf_parts(&scale, bytes);
		exact = exact < 1 ? 1 : exact > UINT32_MAX ? UINT32_MAX : exact;
		assert_true(fabs(parts - exact) <= 0.5 + exact * 1e-9);
	}
	/* Who sends at the nominal rate for tau has sent 2^24. */
	pst_lpf_scale_compile(&scale, 12500000, 1, 0);
	assert_in_range(pst_lpf_parts(&scale, 52429), 16777216 - 200, 16777216 + 200);
	assert_int_equal(pst_lpf_parts_of_rate(12500000, 12500000), 1 << PST_LPF_NOMINAL_BITS);
	for (i = 0; i < 1000; i++) {
		uint64_t nominal_Bps = draw_rate_Bps(&rng), rate_Bps = nominal_Bps / (1 + below(&rng, 1000));

		assert_true(llabs((long long)(pst_lpf_rate_Bps(nominal_Bps, pst_lpf_parts_of_rate(nominal_Bps, rate_Bps)) - rate_Bps)) <=
			    (long long)(nominal_Bps >> PST_LPF_NOMINAL_BITS) + 1);
	}
}

/* Any numbers at all: no trap, and the promises that still make sense. */
static void takes_anything(void **state)
{
	uint64_t rng = pst_rng_seed(4);
	int i;

	(void)state;
	for (i = 0; i < 100000; i++) {
		struct pst_lpf_scale scale = { (uint32_t)draw(&rng), (uint32_t)draw(&rng) >> below(&rng, 32) };
		uint64_t rates = draw(&rng) >> below(&rng, 64), word = draw(&rng);

		assert_true(pst_lpf_parts(&scale, (uint32_t)draw(&rng)) >= 1);
		pst_lpf_scale_compile(&scale, rates, (uint32_t)draw(&rng), (uint32_t)draw(&rng) >> below(&rng, 32));
		assert_true(pst_lpf_parts(&scale, (uint32_t)draw(&rng)) >= 1);
		assert_true(pst_lpf_parts_of_rate(rates, draw(&rng)) <= PST_LPF_MAX_PARTS);
		assert_true(pst_lpf_rate_Bps(rates, (uint32_t)draw(&rng)) <= PST_RATE_MAX_BPS << 8);
		assert_true(pst_lpf_stamp(draw(&rng), (uint32_t)draw(&rng)) <= UINT32_MAX);
		assert_true(pst_lpf_add(&word, (uint32_t)draw(&rng), 5) >= 5);
	}
}

/* A writer that loses every race adds all the same; one that meets a full word does not wrap it. */
static void a_lost_race_loses_nothing(void **state)
{
	uint64_t word = 0, now_ns = 77 * TAU_NS;

	(void)state;
	add(&word, now_ns, 1000);
	rival = true;
	assert_int_equal(add(&word, now_ns, 500), 1000 + 7 * PST_CAS_TRIES + 500);
	rival = false;
	assert_int_equal(left_at(word, now_ns), 1000 + 7 * PST_CAS_TRIES + 500);
	add(&word, now_ns, UINT32_MAX - 10000);
	rival = true;
	add(&word, now_ns, 1 << 23);
	rival = false;
	assert_true(left_at(word, now_ns) >= UINT32_MAX - 10000);
}

struct shared {
	uint64_t word;
	uint32_t stamp;
};

static void *add_often(void *argument)
{
	struct shared *shared = argument;
	int i;

	for (i = 0; i < 50000; i++)
		pst_lpf_add(&shared->word, shared->stamp, 100);
	return NULL;
}

/* Concurrency: four CPUs on one filter, at one moment: all of it is there. */
static void threads_lose_nothing(void **state)
{
	struct shared shared = { 0, 12345 };
	pthread_t threads[4];
	int i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_often, &shared), 0);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(pst_lpf_read(shared.word, shared.stamp), 4 * 50000 * 100);
}

/* The peak of what was seen. */
static void raise_keeps_the_larger(void **state)
{
	uint64_t word = 0;

	(void)state;
	pst_lpf_raise(&word, 100, 5000);
	pst_lpf_raise(&word, 100, 3000);
	assert_int_equal(pst_lpf_read(word, 100), 5000);
	pst_lpf_raise(&word, 1124, 3000); /* 5000 / e is less */
	assert_int_equal(pst_lpf_read(word, 1124), 3000);
	rival = true;
	pst_lpf_raise(&word, 1124, 9000);
	rival = false;
	assert_in_range(pst_lpf_read(word, 1124), 3000, 9000);
}

/* What others add while a filter is moved stays. */
static void move_keeps_what_others_add(void **state)
{
	uint64_t word = 0;

	(void)state;
	add(&word, TAU_NS, 5000);
	pst_lpf_move(&word, pst_lpf_stamp(TAU_NS, TAU), 4000, 1000);
	assert_int_equal(left_at(word, TAU_NS), 2000);
	pst_lpf_move(&word, pst_lpf_stamp(TAU_NS, TAU), 4000, 1000);
	assert_int_equal(left_at(word, TAU_NS), 0);
	pst_lpf_move(&word, pst_lpf_stamp(TAU_NS, TAU), 0, UINT32_MAX);
	pst_lpf_move(&word, pst_lpf_stamp(TAU_NS, TAU), 0, UINT32_MAX);
	assert_int_equal(left_at(word, TAU_NS), UINT32_MAX);
}

static void reproduces_golden_vectors(void **state)
{
	struct pst_lpf_scale scale = { 0, 0 };
	uint64_t word = 0;
	uint32_t tau = 0;
	struct vectors v;

	(void)state;
	vectors_open(&v, "vectors/lpf.txt");
	while (vectors_next(&v)) {
		if (vectors_is(&v, "filter")) {
			tau = (uint32_t)vectors_in(&v, "tau_shift");
			word = vectors_in(&v, "word");
		} else if (vectors_is(&v, "add")) {
			uint32_t stamp = pst_lpf_stamp(vectors_in(&v, "now"), tau);

			assert_int_equal(pst_lpf_add(&word, stamp, (uint32_t)vectors_in(&v, "parts")), vectors_out(&v, "value"));
			assert_int_equal(word, vectors_out(&v, "word"));
		} else if (vectors_is(&v, "read")) {
			assert_int_equal(pst_lpf_read(word, pst_lpf_stamp(vectors_in(&v, "now"), tau)),
					 vectors_out(&v, "value"));
		} else {
			assert_true(vectors_is(&v, "parts"));
			pst_lpf_scale_compile(&scale, vectors_in(&v, "nominal_Bps"), (uint32_t)vectors_in(&v, "weight"),
					      (uint32_t)vectors_in(&v, "tau_shift"));
			assert_int_equal(scale.factor, vectors_out(&v, "factor"));
			assert_int_equal(scale.shift, vectors_out(&v, "shift"));
			assert_int_equal(pst_lpf_parts(&scale, (uint32_t)vectors_in(&v, "bytes")), vectors_out(&v, "parts"));
		}
	}
	assert_true(v.directives > 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_equation_4),
		cmocka_unit_test(equals_reference),
		cmocka_unit_test(what_is_left_falls),
		cmocka_unit_test(reads_high_by_half_a_gap),
		cmocka_unit_test(follows_within_two_and_a_half_tau),
		cmocka_unit_test(is_kept_below_32_bits),
		cmocka_unit_test(time_that_steps_back_is_no_time),
		cmocka_unit_test(parts_are_shares_of_the_nominal_rate),
		cmocka_unit_test(takes_anything),
		cmocka_unit_test(a_lost_race_loses_nothing),
		cmocka_unit_test(threads_lose_nothing),
		cmocka_unit_test(raise_keeps_the_larger),
		cmocka_unit_test(move_keeps_what_others_add),
		cmocka_unit_test(reproduces_golden_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
