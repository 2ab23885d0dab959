/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_hcsfq.h"

uint64_t ref_hcsfq_capacity_q8(uint64_t capacity_Bps, uint64_t window_ns)
{
	unsigned __int128 room_q8 = (unsigned __int128)capacity_Bps * window_ns * 256 / 1000000000;

	return room_q8 ? (uint64_t)room_q8 : 1;
}

uint64_t ref_hcsfq_rate_q8(uint64_t rate_q8, uint64_t bytes_q8, uint64_t windows, bool halves)
{
	uint64_t i;

	for (i = 0; i < windows && i < 64; i++)
		rate_q8 = halves ? (rate_q8 + (i ? 0 : bytes_q8)) / 2 : (7 * rate_q8 + (i ? 0 : bytes_q8)) / 8;
	return windows > 64 ? 0 : rate_q8;
}

static uint64_t at_least_one(uint64_t step)
{
	return step ? step : 1;
}

uint64_t ref_hcsfq_alpha_q8(uint64_t capacity_q8, uint64_t alpha_q8, uint64_t passed_q8, uint64_t windows, const uint32_t shifts[2], bool congested)
{
	uint64_t i;

	for (i = 0; i < windows && i < 64; i++) {
		if (i == 0 && congested && passed_q8 > capacity_q8) {
			uint64_t down = at_least_one(alpha_q8 / ((uint64_t)1 << shifts[0]));

			alpha_q8 = alpha_q8 > down ? alpha_q8 - down : 1;
		} else {
			uint64_t up = alpha_q8 / ((uint64_t)1 << shifts[1]), most = capacity_q8 / 500;

			alpha_q8 += at_least_one(up < most ? up : most);
			alpha_q8 = alpha_q8 < capacity_q8 ? alpha_q8 : capacity_q8;
		}
	}
	return windows > 64 ? capacity_q8 : alpha_q8;
}

uint32_t ref_hcsfq_sixteenths(uint64_t alpha_q8, uint64_t rate_q8, uint32_t weight)
{
	unsigned __int128 sixteenths;

	if (rate_q8 == 0)
		return alpha_q8 ? 16 : 0;
	sixteenths = ((unsigned __int128)alpha_q8 * weight * 16 + rate_q8 - 1) / rate_q8;
	return sixteenths < 16 ? (uint32_t)sixteenths : 16;
}

/* Windows from one to a later one; time that steps back by up to 2^16 of them is no time, and by more a long time. */
static uint64_t windows_since(uint64_t before, uint64_t window)
{
	if (window >= before)
		return window - before;
	return before - window <= 65536 ? 0 : UINT32_MAX;
}

bool ref_hcsfq_take(struct ref_hcsfq *node, uint32_t user, uint64_t now_ns, uint32_t bytes, uint32_t weight, uint32_t sixteenth, bool congested)
{
	uint64_t window = now_ns / node->window_ns, ended = windows_since(node->window, window);

	if (ended) {
		node->alpha_q8 = ref_hcsfq_alpha_q8(node->capacity_q8, node->alpha_q8, node->passed_q8, ended, node->shifts, congested);
		node->passed_q8 = 0;
		node->window = window;
	}
	ended = windows_since(node->users[user].window, window);
	if (ended) {
		node->users[user].rate_q8 = ref_hcsfq_rate_q8(node->users[user].rate_q8, node->users[user].bytes_q8, ended, node->halves);
		node->users[user].bytes_q8 = 0;
		node->users[user].window = window;
	}
	node->users[user].bytes_q8 += (uint64_t)bytes * 256;
	if (sixteenth >= ref_hcsfq_sixteenths(node->alpha_q8, node->users[user].rate_q8, weight))
		return false;
	node->passed_q8 += (uint64_t)bytes * 256;
	return true;
}
