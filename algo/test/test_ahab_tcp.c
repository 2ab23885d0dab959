/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * AHAB's periodic drops against senders that heed them: CUBIC as a model (RFC 9438's window, beta 0.7, no queue, no timeouts, one answer to all
 * losses of a round trip). It says which const holds a slice to its capacity; what kernels do is the laboratory's to say.
 */
#include <math.h>

#include "vectors.h"

#include <penstock/fairdrop.h>
#include <penstock/rng.h>
#include <penstock/sketch.h>
#include <penstock/threshold.h>

#include "cells.h"

#define MSS 1500
#define SENDERS_MAX 8
#define SECONDS 6
#define SEC_NS PST_NSEC_PER_SEC

struct sender {
	double window, window_max, slow_start_end;
	uint64_t round_trip_ns, cut_ns; /* cut: of the window */
	uint64_t due_ns, answer_ns, deaf_until_ns;
	bool is_told;
	uint64_t passed_bytes, countdowns;
};

struct slice {
	struct sender senders[SENDERS_MAX];
	uint32_t count;
	uint64_t words[3 << 11];
	struct pst_plane plane;
	struct pst_lpf_scale scale;
	struct pst_threshold_state state;
	struct pst_fairdrop_profile drops;
	bool by_chance;
	bool marks;
	uint64_t rng;
};

static struct slice slice;
static const struct pst_threshold_profile profile = { 1 << PST_LPF_NOMINAL_BITS, PST_LPF_TAU_SHIFT, PST_THRESHOLD_EPOCH_SHIFT, 0 };

static void grow(struct sender *sender, uint64_t now_ns)
{
	double since = (double)(now_ns - sender->cut_ns) / 1e9, root = cbrt(sender->window_max * 0.3 / 0.4);
	double cubic = 0.4 * (since - root) * (since - root) * (since - root) + sender->window_max;
	double reno = sender->slow_start_end + 0.53 * since / ((double)sender->round_trip_ns / 1e9);

	if (sender->window < sender->slow_start_end)
		sender->window += 1;
	else if (fmax(cubic, reno) > sender->window)
		sender->window += fmin((fmax(cubic, reno) - sender->window) / sender->window, 0.5);
}

static void answer(struct sender *sender, uint64_t now_ns)
{
	sender->window_max = sender->window;
	sender->window = sender->slow_start_end = fmax(sender->window * 0.7, 2);
	sender->cut_ns = now_ns;
	sender->is_told = false;
}

static void send_one(struct sender *sender, uint64_t user)
{
	uint64_t now_ns = sender->due_ns;
	uint32_t stamp = pst_lpf_stamp(now_ns, PST_LPF_TAU_SHIFT), length = pst_lpf_parts(&slice.scale, MSS);
	struct pst_threshold_packet packet = { length, pst_sketch_add(&slice.plane, cells_of(&slice.plane, user), stamp, length), 0 };
	struct pst_fairdrop_packet decided = { 0, packet.user_parts, length, pst_rng_next(&slice.rng), slice.marks };
	uint8_t verdict;

	if (sender->is_told && now_ns >= sender->answer_ns)
		answer(sender, now_ns);
	decided.limit_parts = pst_threshold_take(&profile, &slice.state, now_ns, &packet);
	verdict = slice.by_chance ? pst_fairdrop_by_chance(&slice.drops, &decided)
				  : pst_fairdrop_periodic(&slice.drops, &decided, &sender->countdowns);
	if (verdict != PST_VERDICT_DROP && now_ns >= 2 * SEC_NS)
		sender->passed_bytes += MSS;
	if (verdict != PST_VERDICT_PASS && !sender->is_told && now_ns >= sender->deaf_until_ns) {
		sender->is_told = true;
		sender->answer_ns = now_ns + sender->round_trip_ns;
		sender->deaf_until_ns = now_ns + 2 * sender->round_trip_ns;
	}
	if (!sender->is_told)
		grow(sender, now_ns);
	sender->due_ns += (uint64_t)((double)sender->round_trip_ns / sender->window * (0.9 + 0.2 * pst_rng_next(&slice.rng) / 4294967296.0));
}

static void start(uint32_t count, uint64_t rate_Bps, uint64_t round_trip_us)
{
	uint32_t i;

	memset(&slice, 0, sizeof(slice));
	slice.count = count;
	slice.rng = pst_rng_seed(3);
	slice.plane.filters = slice.words;
	slice.plane.filter_count = 3 << 11;
	slice.plane.sketch.rows = 3;
	slice.plane.sketch.column_bits = 11;
	for (i = 0; i < 3; i++)
		slice.plane.sketch.seeds[i] = pst_rng_seed(i);
	pst_lpf_scale_compile(&slice.scale, rate_Bps, 1, 0);
	slice.state = pst_threshold_start(&profile, SEC_NS);
	slice.drops = pst_fairdrop_default(PST_LPF_TAU_SHIFT);
	for (i = 0; i < count; i++) {
		struct sender *sender = &slice.senders[i];

		sender->window = 10;
		sender->slow_start_end = 1e9;
		sender->round_trip_ns = round_trip_us * (1000 + 50 * i);
		sender->due_ns = SEC_NS + i * 1000000;
	}
}

/* What all use of the slice, and the mean error of each one's share of what all use. */
static double use(uint64_t rate_Bps, double *unfair)
{
	double all = 0;
	uint32_t i;

	for (;;) {
		uint32_t first = 0;

		for (i = 1; i < slice.count; i++)
			first = slice.senders[i].due_ns < slice.senders[first].due_ns ? i : first;
		if (slice.senders[first].due_ns >= (1 + SECONDS) * SEC_NS)
			break;
		send_one(&slice.senders[first], first * 521 + 7);
	}
	for (i = 0; i < slice.count; i++)
		all += (double)slice.senders[i].passed_bytes;
	for (i = 0, *unfair = 0; i < slice.count; i++)
		*unfair += fabs((double)slice.senders[i].passed_bytes * slice.count / all - 1) / slice.count;
	return all / (double)rate_Bps / (SECONDS - 1);
}

/* Section VI-C: "within 12.1% of ideal fair share", 2, 4 or 8 flows in 1 Gbit/s. Where T * round trip is 20 packets or more, default form. */
static void holds_the_slice_to_its_capacity(void **state)
{
	static const uint64_t round_trips_us[] = { 1500, 5000, 30000 };
	uint32_t count, k, marks;

	(void)state;
	for (count = 2; count <= 8; count *= 2) {
		for (k = 0; k < 3; k++) {
			for (marks = 0; marks < 2; marks++) {
				double unfair, used;

				start(count, 125000000, round_trips_us[k]);
				slice.marks = marks;
				used = use(125000000, &unfair);
				assert_true(used > 0.88 && used < 1.08);
				assert_true(unfair < 0.121);
			}
		}
	}
}

/* The release's distance, T * 32, at a short round trip: windows grow back long before the next drop. */
static void drops_32_tau_apart_do_not_hold_a_short_round_trip(void **state)
{
	double unfair;

	(void)state;
	start(8, 125000000, 1000);
	slice.drops.const_shift = PST_FAIRDROP_CONST_SHIFT_RELEASED;
	slice.drops.ceiling_shift = PST_FAIRDROP_NO_CEILING;
	assert_true(use(125000000, &unfair) > 3);
	start(8, 125000000, 1000);
	assert_true(use(125000000, &unfair) < 1.15);
}

/* Where the window is some packets no distance holds them: the ceiling cuts at 2 T, and chance would hold them. */
static void some_packets_a_window_are_held_by_chance_only(void **state)
{
	double unfair, used;

	(void)state;
	start(8, 125000000, 300);
	used = use(125000000, &unfair);
	assert_true(used > 1.3 && used < 2);
	start(8, 125000000, 300);
	slice.by_chance = true;
	used = use(125000000, &unfair);
	assert_true(used > 0.95 && used < 1.06);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holds_the_slice_to_its_capacity),
		cmocka_unit_test(drops_32_tau_apart_do_not_hold_a_short_round_trip),
		cmocka_unit_test(some_packets_a_window_are_held_by_chance_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
