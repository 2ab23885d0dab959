/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_fairdrop.h"

#include "ref_approx.h"

bool ref_fairdrop_passes(uint32_t limit, uint32_t user, uint32_t b, uint32_t random)
{
	if (user <= limit)
		return true;
	if (b)
		return random / 1048576 < ref_prefix_divide_q12(limit, user, b);
	return (unsigned __int128)random * user < (unsigned __int128)limit * 4294967296;
}

static uint64_t start(const struct ref_fairdrop *flow, uint64_t limit, uint64_t length)
{
	uint64_t parts = limit * flow->times > length * 8 ? limit * flow->times : length * 8;

	return parts < UINT32_MAX ? parts : UINT32_MAX;
}

int ref_fairdrop_periodic(struct ref_fairdrop *flow, uint32_t limit, uint32_t user, uint32_t length, bool can_be_marked)
{
	if (user <= limit)
		return 0;
	if (flow->since_drop >= flow->drop_after) {
		flow->since_drop = flow->since_mark = 0;
		flow->drop_after = start(flow, limit, length);
		flow->mark_after = flow->drop_after / 4;
		return 2;
	}
	flow->since_drop += length;
	if (can_be_marked && flow->since_mark >= flow->mark_after) {
		flow->since_mark = 0;
		flow->mark_after = start(flow, limit, length) / 4;
		return 1;
	}
	flow->since_mark += length;
	return 0;
}
