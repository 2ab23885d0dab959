/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include <math.h>

#include "vectors.h"

#include <penstock/sketch.h>

#include "cells.h"
#include "ref_sketch.h"
#include "schedule.h"

#define TAU_NS (UINT64_C(1) << PST_LPF_TAU_SHIFT)
#define COLUMN_BITS_MAX 10
#define PACKETS_A_RUN 20000

static struct {
	uint64_t words[PST_SKETCH_ROWS_MAX << COLUMN_BITS_MAX];
	struct pst_plane plane;
	struct ref_sketch exact;
	uint64_t now_ns;
} run;

static uint64_t name_of(uint32_t user)
{
	return (uint64_t)user * 521 << 20 | 1; /* names with a pattern: the seeds must break it */
}

/* Users of Zipf's law: user k sends a share of 1/k. */
static uint32_t draw_user(uint64_t *rng, uint32_t users)
{
	uint32_t user = (uint32_t)exp(log((double)users) * pst_rng_next(rng) / 4294967296.0);

	return user < users ? user : users - 1;
}

static void start(uint64_t *rng, uint32_t rows, uint32_t column_bits, uint32_t users)
{
	uint32_t row, user;

	memset(&run, 0, sizeof(run));
	run.plane.filters = run.words;
	run.plane.filter_count = rows << column_bits;
	run.plane.sketch.rows = rows;
	run.plane.sketch.column_bits = column_bits;
	run.exact.rows = rows;
	run.exact.count = users;
	for (row = 0; row < rows; row++) {
		run.plane.sketch.seeds[row] = draw(rng);
		for (user = 0; user < users; user++)
			run.exact.columns[row][user] = pst_sketch_column(name_of(user), run.plane.sketch.seeds[row], column_bits);
	}
	run.now_ns = TAU_NS;
}

static uint32_t stamp_now(void)
{
	return pst_lpf_stamp(run.now_ns, PST_LPF_TAU_SHIFT);
}

static uint32_t packet(uint64_t *rng, uint32_t user)
{
	uint32_t parts = 1000 * draw_bytes(rng);

	run.now_ns += below(rng, 4000);
	ref_sketch_add(&run.exact, user, (double)run.now_ns, (double)TAU_NS, parts);
	return pst_sketch_add(&run.plane, cells_of(&run.plane, name_of(user)), stamp_now(), parts);
}

static double exact_of(uint32_t user)
{
	return ref_sketch_user(&run.exact, user, (double)run.now_ns, (double)TAU_NS);
}

/* "the reported rate is the least of the counters at the r locations" (IV-B), and filters are linear: the sum of those who share one. */
static void reads_the_least_of_sums(void **state)
{
	uint64_t rng = pst_rng_seed(1);
	uint32_t rows, i;

	(void)state;
	for (rows = 1; rows <= PST_SKETCH_ROWS_MAX; rows++) {
		start(&rng, rows, 5, 200);
		for (i = 0; i < 8000; i++) {
			uint32_t user = draw_user(&rng, 200), value = packet(&rng, user);
			double exact = ref_sketch_read(&run.exact, user, (double)run.now_ns, (double)TAU_NS);

			assert_true(fabs(value / exact - 1) < 0.003);
			assert_int_equal(pst_sketch_read(&run.plane, cells_of(&run.plane, name_of(user)), stamp_now()), value);
		}
	}
}

/* Theorem 1 of section IV-B as it must read (A1). I1 always; I2: at most e^-r of all users over all seeds are too high by e/c. */
static void theorem_1_with_its_letters_in_order(void **state)
{
	uint64_t rng = pst_rng_seed(2);
	uint32_t rows, trial, user, i;

	(void)state;
	for (rows = 1; rows <= PST_SKETCH_ROWS_MAX; rows++) {
		const uint32_t users = 2000, column_bits = 6;
		uint32_t over = 0;

		for (trial = 0; trial < 10; trial++) {
			double all;

			start(&rng, rows, column_bits, users);
			for (i = 0; i < PACKETS_A_RUN; i++)
				packet(&rng, draw_user(&rng, users));
			all = ref_sketch_all(&run.exact, (double)run.now_ns, (double)TAU_NS);
			for (user = 0; user < users; user++) {
				double value = pst_sketch_read(&run.plane, cells_of(&run.plane, name_of(user)), stamp_now());

				assert_true(value >= exact_of(user) * 0.997 - 1000);
				over += value > exact_of(user) + exp(1) / (1 << column_bits) * all;
			}
		}
		assert_true(over <= exp(-(double)rows) * users * 10);
	}
}

/* The theorem as printed, eps = e/r and delta = e^-c: no column would matter. One row of two columns fails it. */
static void theorem_1_as_printed_does_not_hold(void **state)
{
	uint64_t rng = pst_rng_seed(3);
	uint32_t user, i, over = 0;

	(void)state;
	start(&rng, 1, 2, 2000);
	for (i = 0; i < PACKETS_A_RUN; i++)
		packet(&rng, draw_user(&rng, 2000));
	for (user = 0; user < 2000; user++) /* "R' <= R + eps sum R" with at most delta: the sign, too */
		over += pst_sketch_read(&run.plane, cells_of(&run.plane, name_of(user)), stamp_now()) <=
			exact_of(user) + exp(1) * ref_sketch_all(&run.exact, (double)run.now_ns, (double)TAU_NS);
	assert_true(over > exp(-4.0) * 2000);
}

/* I3: two users that meet in one row meet in another as often as strangers do. */
static void rows_are_independent(void **state)
{
	uint64_t rng = pst_rng_seed(4);
	uint32_t i, both = 0, first = 0;

	(void)state;
	for (i = 0; i < 400000; i++) {
		uint64_t seeds[2] = { draw(&rng), draw(&rng) };
		uint64_t a = name_of(i), b = name_of(i + 1 + below(&rng, 1000));
		bool meet = pst_sketch_column(a, seeds[0], 4) == pst_sketch_column(b, seeds[0], 4);

		first += meet;
		both += meet && pst_sketch_column(a, seeds[1], 4) == pst_sketch_column(b, seeds[1], 4);
	}
	assert_in_range(first, 25000 - 700, 25000 + 700); /* 153 is the standard deviation */
	assert_in_range(both, 1562 - 180, 1562 + 180);    /* 39 */
}

/* "3 x 2048 .. supports accurately": with as many columns as here, heavy users among few read as themselves. */
static void columns_are_used_evenly(void **state)
{
	uint64_t rng = pst_rng_seed(5), seed = draw(&rng);
	uint32_t counts[64] = { 0 }, i;

	(void)state;
	for (i = 0; i < 64000; i++)
		counts[pst_sketch_column(name_of(i), seed, 6)]++;
	for (i = 0; i < 64; i++)
		assert_in_range(counts[i], 850, 1150);
	assert_int_equal(pst_sketch_column(77, seed, 0), 0);
	for (i = 0; i < 100000; i++)
		assert_true(pst_sketch_column(draw(&rng), draw(&rng), 20) < 1 << 20);
}

/* Section IV-C: two slices of very different rates in one sketch. Normalised, the slow one's users are seen as well as the fast one's. */
static void slices_share_without_drowning(void **state)
{
	uint64_t rng = pst_rng_seed(6);
	struct pst_lpf_scale fast, slow;
	uint32_t i, value = 0;

	(void)state;
	pst_lpf_scale_compile(&fast, 1250000000, 1, 0); /* 10 Gbit/s */
	pst_lpf_scale_compile(&slow, 12500000, 1, 0);   /* 100 Mbit/s */
	start(&rng, 3, 8, 0);
	/* 50 ms: the fast slice's 50 users send 200 Mbit/s each, one user of the slow slice 30. */
	for (i = 0; i < 41667; i++) {
		run.now_ns += 1200;
		pst_sketch_add(&run.plane, cells_of(&run.plane, name_of(i % 50)), stamp_now(), pst_lpf_parts(&fast, 1500));
		if (i % 333 == 0)
			value = pst_sketch_add(&run.plane, cells_of(&run.plane, name_of(777)), stamp_now(), pst_lpf_parts(&slow, 1500));
	}
	/* 30 Mbit/s, seen just after a packet, T/2tau = 4.8 % high, and at most two of the 50 beside it: 2 % of theirs each. */
	assert_in_range(pst_lpf_rate_Bps(12500000, value), 30e6 / 8, 30e6 / 8 * 1.07 + 2 * 0.02 * 12500000);
}

/* A user's cells are its column in each row, of as many as there are; a packet counts there and nowhere else. */
static void finds_a_cell_in_each_row(void **state)
{
	uint64_t rng = pst_rng_seed(7);
	uint32_t rows, row, i, bits = 6;

	(void)state;
	for (rows = 1; rows <= PST_SKETCH_ROWS_MAX; rows++) {
		for (i = 0; i < 1000; i++) {
			struct pst_sketch_cells cells = { { PST_NONE, PST_NONE, PST_NONE, PST_NONE } };
			uint32_t used = 0, word;
			uint64_t user;

			start(&rng, rows, bits, 0);
			user = draw(&rng);
			pst_sketch_find(&cells, &run.plane, user);
			for (row = 0; row < PST_SKETCH_ROWS_MAX; row++)
				assert_int_equal(cells.index[row],
						 row < rows ? (row << bits) + pst_sketch_column(user, run.plane.sketch.seeds[row], bits) : PST_NONE);
			assert_int_equal(pst_sketch_add(&run.plane, &cells, stamp_now(), 10), 10);
			for (word = 0; word < run.plane.filter_count; word++)
				used += run.words[word] != 0;
			assert_int_equal(used, rows);
			for (row = 0; row < rows; row++)
				assert_int_equal(pst_lpf_value(run.words[cells.index[row]]), 10);
		}
	}
}

static void is_cut_to_its_range(void **state)
{
	uint64_t rng = pst_rng_seed(1);

	(void)state;
	start(&rng, 4, 3, 0);
	run.plane.sketch.rows = 77;
	assert_int_equal(pst_sketch_add(&run.plane, cells_of(&run.plane, 5), 1, 10), 10);
	run.plane.filter_count = 0; /* nobody counts: all read as too much */
	assert_int_equal(pst_sketch_add(&run.plane, cells_of(&run.plane, 5), 1, 10), PST_LPF_MAX_PARTS);
	run.plane.sketch.rows = 0;
	assert_int_equal(pst_sketch_add(&run.plane, cells_of(&run.plane, 5), 1, 10), PST_LPF_MAX_PARTS);
}

static void golden_start(struct vectors *v)
{
	const char *seeds = vectors_in_text(v, "seeds");
	uint64_t rng = pst_rng_seed(1);
	uint32_t row;

	start(&rng, (uint32_t)vectors_in(v, "rows"), (uint32_t)vectors_in(v, "bits"), 0);
	for (row = 0; row < PST_SKETCH_ROWS_MAX; row++)
		run.plane.sketch.seeds[row] = vectors_number(v, seeds, row);
}

static void reproduces_golden_vectors(void **state)
{
	struct vectors v;

	(void)state;
	vectors_open(&v, "vectors/sketch.txt");
	while (vectors_next(&v)) {
		if (vectors_is(&v, "sketch")) {
			golden_start(&v);
		} else if (vectors_is(&v, "column")) {
			assert_int_equal(pst_sketch_column(vectors_in(&v, "user"), vectors_in(&v, "seed"), (uint32_t)vectors_in(&v, "bits")),
					 vectors_out(&v, "column"));
		} else if (vectors_is(&v, "add")) {
			const struct pst_sketch_cells *cells = cells_of(&run.plane, vectors_in(&v, "user"));

			assert_int_equal(pst_sketch_add(&run.plane, cells, (uint32_t)vectors_in(&v, "stamp"), (uint32_t)vectors_in(&v, "parts")),
					 vectors_out(&v, "value"));
		} else {
			assert_true(vectors_is(&v, "read"));
			assert_int_equal(pst_sketch_read(&run.plane, cells_of(&run.plane, vectors_in(&v, "user")), (uint32_t)vectors_in(&v, "stamp")),
					 vectors_out(&v, "value"));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_the_least_of_sums),
		cmocka_unit_test(theorem_1_with_its_letters_in_order),
		cmocka_unit_test(theorem_1_as_printed_does_not_hold),
		cmocka_unit_test(rows_are_independent),
		cmocka_unit_test(columns_are_used_evenly),
		cmocka_unit_test(slices_share_without_drowning),
		cmocka_unit_test(finds_a_cell_in_each_row),
		cmocka_unit_test(is_cut_to_its_range),
		cmocka_unit_test(reproduces_golden_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
