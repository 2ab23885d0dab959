/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* AHAB as a closed loop, in virtual time: section VI's experiments with UDP, and HCSFQ beside it. */
#include "vectors.h"

#include "fair_link.h"

#define MBIT UINT64_C(125000)

static struct fair_link run;

static void start(enum fair_kind kind, uint64_t rate_Bps)
{
	memset(&run, 0, sizeof(run));
	run.kind = kind;
	run.rate_Bps = rate_Bps;
	run.bytes = 1250;
	run.from_ns = UINT64_MAX;
	run.hcsfq_params = pst_hcsfq_fast(rate_Bps);
}

struct times {
	double reached_mean, reached_max, first_mean, first_max, stays_mean, stays_max; /* ms; stays: of those that stay */
	int stay;
};

/* Figure 8: flows of C each, in [0, 8], [1, 7], [2, 6], [3, 5] units: three joins and three leaves while somebody sends. */
static struct times figure_8(enum fair_kind kind, uint64_t rate_Bps, uint64_t unit_ms, uint64_t seed)
{
	static const uint64_t units[] = { 1, 2, 3, 5, 6, 7 };
	struct times times = { 0, 0, 0, 0, 0, 0, 0 };
	int i;

	start(kind, rate_Bps);
	for (i = 0; i < 4; i++)
		fair_add(&run, rate_Bps, (uint64_t)i * unit_ms, (uint64_t)(8 - i) * unit_ms, 1);
	for (i = 0; i < 6; i++)
		fair_change(&run, units[i] * unit_ms, i < 3);
	fair_run(&run, seed);
	for (i = 0; i < 6; i++) {
		assert_true(run.changes[i].first_ns >= 0);
		times.reached_mean += run.changes[i].reached_ns / 6e6;
		times.reached_max = fmax(times.reached_max, run.changes[i].reached_ns / 1e6);
		times.first_mean += run.changes[i].first_ns / 6e6;
		times.first_max = fmax(times.first_max, run.changes[i].first_ns / 1e6);
		times.stays_mean += fmax(run.changes[i].stays_ns, 0) / 6e6;
		times.stays_max = fmax(times.stays_max, run.changes[i].stays_ns / 1e6);
		times.stay += run.changes[i].stays_ns >= 0;
	}
	return times;
}

/*
 * Section VI-B: "only 3.1ms on average (at most 5ms)". Measured here: 4.4 ms until T is within 10 % for the first time, 8.8 at most; 6.4 until it is
 * for good, 8.8 at most. A join takes what the newcomer's rate takes to be known; the leave of one of two 1.6 tau, until what it sent has
 * gone from f, and the rest of an epoch. The paper's 5 ms do not hold for it.
 */
static void figure_8_converges_in_milliseconds(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 5; seed++) {
		struct times times = figure_8(FAIR_AHAB, 100 * MBIT, 40, seed);

		assert_int_equal(times.stay, 6);
		assert_true(times.first_mean < 5.5 && times.first_max < 10);
		assert_true(times.stays_mean < 7.5 && times.stays_max < 11);
	}
}

/*
 * The published form, its filters left where they were: within 10 %, or past it, after 2.3 to 3.1 ms, 5.6 at most. These are the paper's 3.1 and 5.
 * But the limit swings past by up to a half, is there to stay after some 15 ms at 1 Gbit/s, and wanders out again now and then: at 100 Mbit/s, C is
 * 42 packets in tau.
 */
static void figure_8_faithful_is_there_sooner_and_swings_past(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 3; seed++) {
		struct times times = figure_8(FAIR_AHAB_FAITHFUL, 100 * MBIT, 40, seed);

		assert_true(times.reached_mean < 3.8 && times.reached_max < 6.5);
		assert_true(times.first_mean < 8 && times.first_max < 20);
		assert_true(times.stay < 6);
	}
}

/* Section VI-B: "HCSFQ needs on average 42.3ms (at most 234ms)", with constants unknown. With ours 78 and 234 in units of 2 s; it swings on. */
static void figure_8_takes_hcsfq_ten_times_as_long(void **state)
{
	struct times ahab, hcsfq;

	(void)state;
	ahab = figure_8(FAIR_AHAB, 100 * MBIT, 500, 1);
	hcsfq = figure_8(FAIR_HCSFQ, 100 * MBIT, 500, 1);
	assert_true(hcsfq.first_mean > 10 * ahab.first_mean && hcsfq.first_mean < 160);
	assert_true(hcsfq.first_max > 150 && hcsfq.first_max < 400);
}

/* What each flow got against its max-min share: the mean and the largest error, and all together against C. */
struct errors {
	double mean, worst, total;
};

static struct errors measure(uint64_t seconds)
{
	double share, use = 0;
	struct errors errors = { 0, 0, 0 };
	uint32_t i;

	fair_run(&run, 5);
	share = fair_share(&run, run.from_ns);
	for (i = 0; i < run.count; i++) {
		double got = (double)run.flows[i].passed_bytes / (double)(seconds * run.rate_Bps);
		double want = fmin((double)run.flows[i].rate_Bps / (double)run.rate_Bps, share * run.flows[i].weight);

		errors.mean += fabs(got / want - 1) / run.count;
		errors.worst = fmax(errors.worst, fabs(got / want - 1));
		use += got;
	}
	errors.total = use;
	return errors;
}

/* Figure 11: "within 4% and 6% of the fair bandwidth allocation target, for 8 and 16 flows". Measured: 1.9 and 2.9 %; faithful 2.4 and 2.0 %. */
static void figure_11_is_within_the_papers_bounds(void **state)
{
	static const double bounds[] = { 0.01, 0.04, 0.06 };
	int kind, size;

	(void)state;
	for (kind = FAIR_AHAB; kind <= FAIR_AHAB_FAITHFUL; kind++) {
		for (size = 0; size < 3; size++) {
			struct errors errors;
			uint64_t i;

			start((enum fair_kind)kind, 100 * MBIT);
			run.from_ns = START_NS + 200 * MSEC;
			for (i = 1; i <= UINT64_C(4) << size; i++)
				fair_add(&run, 10 * MBIT * i, 0, 2200, 1);
			errors = measure(2);
			assert_true(errors.mean < bounds[size]);
			assert_true(errors.worst < 0.12);
			assert_true(errors.total > 0.98 && errors.total < 1.02);
		}
	}
}

/* Figure 12: weights 1, 2 and 4, four flows each: "within .. 1% for .. UDP". Measured: 0.3 % over 10 s, 2.5 % faithful: the divide's error. */
static void figure_12_shares_by_weight(void **state)
{
	int kind;

	(void)state;
	for (kind = FAIR_AHAB; kind <= FAIR_AHAB_FAITHFUL; kind++) {
		struct errors errors;
		uint32_t i;

		start((enum fair_kind)kind, 1000 * MBIT);
		run.from_ns = START_NS + 200 * MSEC;
		for (i = 0; i < 12; i++)
			fair_add(&run, 500 * MBIT, 0, 3200, 1U << (i / 4));
		errors = measure(3);
		assert_true(errors.mean < (kind == FAIR_AHAB ? 0.01 : 0.04));
		assert_true(errors.worst < (kind == FAIR_AHAB ? 0.03 : 0.1));
		assert_true(errors.total > 0.98 && errors.total < 1.02);
	}
}

/* A4: the slice was crowded, then idle for 200 ms. A newcomer within C loses nothing; T never rose without end. */
static void a_newcomer_after_a_pause_finds_all_of_it(void **state)
{
	uint32_t i;

	(void)state;
	start(FAIR_AHAB, 100 * MBIT);
	run.from_ns = START_NS + 300 * MSEC;
	for (i = 0; i < 8; i++)
		fair_add(&run, 100 * MBIT, 0, 100, 1);
	fair_add(&run, 90 * MBIT, 300, 500, 1);
	fair_run(&run, 1);
	assert_true(run.flows[8].passed_bytes == run.flows[8].sent_bytes);
}

/* A4: "else a newcomer overshoots without limit": one of 10 C in a slice that was idle passes at most what its rate takes to be seen. */
static void a_newcomer_of_ten_times_the_capacity_overshoots_little(void **state)
{
	(void)state;
	start(FAIR_AHAB, 100 * MBIT);
	fair_add(&run, 20 * MBIT, 0, 320, 1);
	fair_add(&run, 1000 * MBIT, 300, 320, 1);
	run.from_ns = START_NS + 300 * MSEC;
	fair_run(&run, 1);
	/* 20 ms of C are 250,000 bytes; its share of them 200,000. Measured: 258,750 of the 2,500,000 that it sends. */
	assert_in_range(run.flows[1].passed_bytes, 170000, 320000);
	assert_true(run.flows[0].passed_bytes == run.flows[0].sent_bytes);
}

/*
 * "T wanders at low packet rates": four flows of 0.5, 1, 1.5 and 2 C, 1250 bytes. Measured mean error and use of C: 100 Mbit/s 0.6 %, 100.1 %;
 * 30 Mbit/s (13 packets of C in tau) 1.7 %, 99.8 %; 10 Mbit/s 5.5 %, 101 %; 3 Mbit/s 16 %, 108 %; 1 Mbit/s (0.4 packets) 40 %, 120 %.
 */
static void low_rates_are_shared_less_exactly(void **state)
{
	static const uint64_t rates[] = { 30 * MBIT, 10 * MBIT, 3 * MBIT };
	static const double bounds[] = { 0.03, 0.08, 0.22 }, most[] = { 1.01, 1.03, 1.12 };
	int k;

	(void)state;
	for (k = 0; k < 3; k++) {
		struct errors errors;
		uint64_t i;

		start(FAIR_AHAB, rates[k]);
		run.from_ns = START_NS + 1000 * MSEC;
		for (i = 1; i <= 4; i++)
			fair_add(&run, rates[k] * i / 2, 0, 21000, 1);
		errors = measure(20);
		assert_true(errors.mean < bounds[k]);
		assert_true(errors.total > 0.97 && errors.total < most[k]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figure_8_converges_in_milliseconds),
		cmocka_unit_test(figure_8_faithful_is_there_sooner_and_swings_past),
		cmocka_unit_test(figure_8_takes_hcsfq_ten_times_as_long),
		cmocka_unit_test(figure_11_is_within_the_papers_bounds),
		cmocka_unit_test(figure_12_shares_by_weight),
		cmocka_unit_test(low_rates_are_shared_less_exactly),
		cmocka_unit_test(a_newcomer_after_a_pause_finds_all_of_it),
		cmocka_unit_test(a_newcomer_of_ten_times_the_capacity_overshoots_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
