/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_limiter_sketch.h"

void ref_limiter_sketch_start(struct ref_limiter_sketch *sketch, uint32_t rows, uint32_t count, ref_int now_ns)
{
	uint32_t user;

	sketch->rows = rows;
	sketch->count = count;
	for (user = 0; user < count; user++)
		sketch->last[user] = sketch->alone[user] = ref_limiter_idle(now_ns);
}

static bool meet(const struct ref_limiter_sketch *sketch, uint32_t row, uint32_t a, uint32_t b)
{
	return sketch->columns[row][a] == sketch->columns[row][b];
}

ref_int ref_limiter_sketch_vft(const struct ref_limiter_sketch *sketch, uint32_t user)
{
	ref_int least = 0;
	uint32_t row, other;

	for (row = 0; row < sketch->rows; row++) {
		ref_int latest = sketch->last[user];

		for (other = 0; other < sketch->count; other++) {
			if (meet(sketch, row, user, other) && sketch->last[other] > latest)
				latest = sketch->last[other];
		}
		if (row == 0 || latest < least)
			least = latest;
	}
	return least;
}

bool ref_limiter_sketch_is_crowded(const struct ref_limiter_sketch *sketch, uint32_t user, ref_int idle_ticks)
{
	uint32_t row, other;

	for (row = 0; row < sketch->rows; row++) {
		bool is_met = false;

		for (other = 0; other < sketch->count; other++)
			is_met = is_met || (other != user && meet(sketch, row, user, other) && sketch->last[other] > sketch->alone[user] &&
					    sketch->last[other] > idle_ticks);
		if (!is_met)
			return false;
	}
	return true;
}

struct ref_limiter_result ref_limiter_sketch_take(struct ref_limiter_sketch *sketch, const struct ref_limiter_profile *profile, uint32_t user,
						  ref_int now_ns, uint32_t bytes)
{
	struct ref_limiter_result result = ref_limiter_try(profile, ref_limiter_sketch_vft(sketch, user), now_ns, bytes);

	if (result.color != PST_COLOR_RED) {
		sketch->last[user] = result.vft_ticks;
		sketch->alone[user] = ref_limiter_try(profile, sketch->alone[user], now_ns, bytes).vft_ticks;
	}
	return result;
}
