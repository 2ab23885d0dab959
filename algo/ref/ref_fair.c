/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_fair.h"

#include "ref_sketch.h"

uint32_t ref_fair_rate(uint64_t share_Bps)
{
	ref_int rate = share_Bps < 64 ? 64 : share_Bps, units;
	uint32_t exponent = 0;

	if (rate > 125000000000)
		rate = 125000000000;
	units = REF_TICKS_PER_SEC * REF_UNITS_PER_TICK / rate;
	for (; units >= 1 << 27; units /= 2)
		exponent++;
	return (uint32_t)units + exponent * (UINT32_C(1) << 27);
}

/* One limit that takes every packet. */
static struct pst_decision judge(const struct pst_link *link, struct ref_limit *limit, const struct ref_arrival *arrival)
{
	static const struct pst_key key;
	uint32_t zero = 0;
	struct ref_plane plane = { .policy = { .link_count = 1, .unmatched_classes = &zero }, .links = link, .class_limits = &zero, .limits = limit };

	return ref_pipeline_decide(&plane, &key, arrival);
}

static bool is_marked(const struct pst_decision *decision)
{
	return decision->reason == PST_REASON_CE_MARK || decision->reason == PST_REASON_DSCP_MARK || decision->reason == PST_REASON_HELD_CE;
}

/* The stricter of two. What is only said in shadow gives way to what is done. */
static struct pst_decision join(struct pst_decision limit, struct pst_decision share)
{
	struct pst_decision both = limit;

	if (share.verdict == PST_VERDICT_PASS || (share.shadow && limit.verdict != PST_VERDICT_PASS))
		return limit;
	if (limit.shadow || limit.verdict == PST_VERDICT_PASS || share.verdict == PST_VERDICT_DROP) {
		share.color = limit.color;
		return share;
	}
	if (share.verdict == PST_VERDICT_MARK) {
		if (limit.reason == PST_REASON_HELD)
			both.reason = PST_REASON_HELD_CE;
		return both;
	}
	both.verdict = PST_VERDICT_HOLD;
	if (share.departure_ns >= limit.departure_ns) {
		both.departure_ns = share.departure_ns;
		both.cost_ns = share.cost_ns;
	}
	if (!is_marked(&limit))
		both.reason = share.reason;
	return both;
}

struct pst_decision ref_fair_decide(struct ref_fair *fair, uint32_t class_index, const struct ref_arrival *arrival)
{
	struct pst_decision limit = judge(&fair->link, &fair->limits[class_index], arrival), share;
	struct ref_tree_packet packet = { (uint64_t)arrival->now_ns, (int)class_index + 1, 0, 1, limit.length };
	struct ref_tree_node *leaf = &fair->tree.nodes[class_index + 1];
	struct ref_limit *own = &fair->shares[class_index];
	struct ref_arrival again = *arrival;

	if (limit.verdict == PST_VERDICT_DROP && !limit.shadow)
		return limit;
	own->rate = ref_fair_rate(ref_tree_take(&fair->tree, &packet));
	own->vft_ticks = (ref_int)leaf->vft_ticks;
	again.random = (uint32_t)(ref_sketch_mix(ref_sketch_mix((uint64_t)arrival->random + 1)) / 4294967296);
	share = judge(&fair->link, own, &again);
	leaf->vft_ticks = (uint64_t)own->vft_ticks;
	if (share.verdict != PST_VERDICT_DROP)
		fair->passed_bytes[class_index] += share.length;
	if (share.verdict == PST_VERDICT_DROP && share.reason == PST_REASON_OVER_RATE)
		share.reason = PST_REASON_OVER_SHARE;
	if (fair->limits[class_index].rate == 0)
		limit.color = share.color;
	return join(limit, share);
}
