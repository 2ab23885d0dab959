/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * fair_link.h: flows that send evenly into one slice, in virtual time, and what AHAB or HCSFQ lets pass of each.
 *
 * Algorithms are run as a host runs them, packet by packet. What is measured: how long after each change of the flows the limit is within 10 % of
 * the exact max-min share, when it stays there, and what each flow got.
 */
#ifndef PENSTOCK_TEST_FAIR_LINK_H
#define PENSTOCK_TEST_FAIR_LINK_H

#include <math.h>
#include <string.h>

#include <penstock/fairdrop.h>
#include <penstock/hcsfq.h>
#include <penstock/rng.h>
#include <penstock/sketch.h>
#include <penstock/threshold.h>

#include "cells.h"
#include "ref_threshold.h"

#define FLOWS_MAX 16
#define CHANGES_MAX 16
#define COLUMN_BITS 11 /* "a CMS-LPF estimator with size 3 x 2048", section VI-A */
#define MSEC UINT64_C(1000000)

enum fair_kind { FAIR_AHAB, FAIR_AHAB_FAITHFUL, FAIR_HCSFQ };

struct flow {
	uint64_t rate_Bps;
	uint64_t start_ns;
	uint64_t end_ns;
	uint32_t weight;
	/* measured */
	uint64_t passed_bytes;
	uint64_t sent_bytes;
	/* state */
	uint64_t due_ns;
	struct pst_hcsfq_user user;
	struct pst_lpf_scale scale;
};

struct change {
	uint64_t at_ns;
	double reached_ns; /* until the limit was within 10 % for the first time, or on the other side */
	double first_ns;   /* until it was seen within 10 % */
	double stays_ns;   /* until it was for good */
	bool from_above;
};

struct fair_link {
	enum fair_kind kind;
	uint64_t rate_Bps;
	uint32_t bytes;
	uint64_t from_ns; /* passed_bytes counts from here on */
	struct flow flows[FLOWS_MAX];
	uint32_t count;
	struct change changes[CHANGES_MAX];
	uint32_t changes_count;
	struct pst_hcsfq_params hcsfq_params;
	/* measured: the limit over the share, from from_ns on */
	double limit_sum;
	double limit_worst;
	uint64_t packets;
	double last_limit;
	/* state */
	double share;
	uint64_t share_until_ns;
	uint64_t rng;
	uint64_t backlog_nB, backlog_ns;
	uint64_t words[3 << COLUMN_BITS];
	struct pst_plane plane;
	struct pst_threshold_profile threshold;
	struct pst_threshold_state slice;
	struct pst_fairdrop_profile drops;
	struct pst_lpf_scale scale;
	struct pst_hcsfq_profile hcsfq;
	struct pst_hcsfq_node node;
};

#define START_NS (1000 * MSEC)

static inline void fair_add(struct fair_link *link, uint64_t rate_Bps, uint64_t start_ms, uint64_t end_ms, uint32_t weight)
{
	struct flow *flow = &link->flows[link->count++];

	flow->rate_Bps = rate_Bps;
	flow->start_ns = START_NS + start_ms * MSEC;
	flow->end_ns = START_NS + end_ms * MSEC;
	flow->weight = weight;
}

/* A change of the flows, after which the limit has to come down, or up. */
static inline void fair_change(struct fair_link *link, uint64_t at_ms, bool from_above)
{
	struct change *change = &link->changes[link->changes_count++];

	change->at_ns = START_NS + at_ms * MSEC;
	change->from_above = from_above;
	change->reached_ns = change->first_ns = change->stays_ns = -1;
}

static inline void fair_prepare(struct fair_link *link, uint64_t seed)
{
	uint32_t i;

	link->rng = pst_rng_seed(seed);
	link->plane.filters = link->words;
	link->plane.filter_count = 3 << COLUMN_BITS;
	link->plane.sketch.rows = 3;
	link->plane.sketch.column_bits = COLUMN_BITS;
	for (i = 0; i < 3; i++)
		link->plane.sketch.seeds[i] = (uint64_t)pst_rng_next(&link->rng) << 32 | pst_rng_next(&link->rng);
	link->threshold.capacity_parts = pst_lpf_parts_of_rate(link->rate_Bps, link->rate_Bps);
	link->threshold.tau_shift = PST_LPF_TAU_SHIFT;
	link->threshold.epoch_shift = PST_THRESHOLD_EPOCH_SHIFT;
	link->threshold.divide_bits = link->kind == FAIR_AHAB_FAITHFUL ? 6 : 0;
	link->slice = pst_threshold_start(&link->threshold, START_NS);
	link->drops = pst_fairdrop_default(PST_LPF_TAU_SHIFT);
	link->drops.divide_bits = link->threshold.divide_bits;
	pst_lpf_scale_compile(&link->scale, link->rate_Bps, 1, 0);
	pst_hcsfq_compile(&link->hcsfq, &link->hcsfq_params);
	link->node = pst_hcsfq_start(&link->hcsfq, START_NS);
	link->backlog_ns = START_NS;
	for (i = 0; i < link->count; i++) {
		struct flow *flow = &link->flows[i];

		flow->due_ns = flow->start_ns + pst_rng_next(&link->rng) % 50000;
		pst_lpf_scale_compile(&flow->scale, link->rate_Bps, flow->weight, 0);
	}
}

/* The share of C that is fair now, per unit of weight: what alone would be sent, where there is room for all. */
static inline double fair_share(const struct fair_link *link, uint64_t now_ns)
{
	double demands[FLOWS_MAX], weights[FLOWS_MAX], sum = 0, most = 0, share;
	uint32_t i, count = 0;

	for (i = 0; i < link->count; i++) {
		const struct flow *flow = &link->flows[i];

		if (now_ns < flow->start_ns || now_ns >= flow->end_ns)
			continue;
		demands[count] = (double)flow->rate_Bps / (double)link->rate_Bps;
		weights[count] = flow->weight;
		sum += demands[count];
		most = fmax(most, demands[count] / weights[count]);
		count++;
	}
	share = ref_threshold_share(demands, weights, count, 1);
	return isinf(share) ? most + 1 - sum : share;
}

/* The same, computed once between two changes. */
static inline double fair_share_now(struct fair_link *link, uint64_t now_ns)
{
	uint32_t i;

	if (now_ns < link->share_until_ns)
		return link->share;
	link->share = fair_share(link, now_ns);
	link->share_until_ns = UINT64_MAX;
	for (i = 0; i < link->count; i++) {
		const uint64_t moments[2] = { link->flows[i].start_ns, link->flows[i].end_ns };
		int k;

		for (k = 0; k < 2; k++) {
			if (moments[k] > now_ns && moments[k] < link->share_until_ns)
				link->share_until_ns = moments[k];
		}
	}
	return link->share;
}

static inline bool fair_ahab(struct fair_link *link, struct flow *flow, uint64_t now_ns, uint32_t random)
{
	uint32_t index = (uint32_t)(flow - link->flows), stamp = pst_lpf_stamp(now_ns, PST_LPF_TAU_SHIFT);
	uint32_t length = pst_lpf_parts(&flow->scale, link->bytes), limit;
	uint32_t user = pst_sketch_add(&link->plane, cells_of(&link->plane, index * 521 + 7), stamp, length);
	struct pst_threshold_packet packet = { pst_lpf_parts(&link->scale, link->bytes), user, random };
	struct pst_fairdrop_packet decided = { 0, user, length, random, false };

	limit = pst_threshold_take(&link->threshold, &link->slice, now_ns, &packet);
	decided.limit_parts = limit;
	link->last_limit = limit / (double)(1 << PST_LPF_NOMINAL_BITS);
	return pst_fairdrop_by_chance(&link->drops, &decided) == PST_VERDICT_PASS;
}

/* Congested: more than ten packets wait for the link. */
static inline bool fair_hcsfq(struct fair_link *link, struct flow *flow, uint64_t now_ns, uint32_t random)
{
	uint64_t drained_nB = (now_ns - link->backlog_ns) * link->rate_Bps;
	struct pst_hcsfq_packet packet = { link->bytes, flow->weight >> 1, random, false };
	bool passes;

	/* 100 packets at most wait, and drain. */
	link->backlog_nB = link->backlog_nB > drained_nB ? link->backlog_nB - drained_nB : 0;
	link->backlog_ns = now_ns;
	packet.is_congested = link->backlog_nB > UINT64_C(10000000000) * link->bytes;
	passes = pst_hcsfq_take(&link->hcsfq, &link->node, &flow->user, &packet, now_ns);
	if (passes && link->backlog_nB < UINT64_C(100000000000) * link->bytes)
		link->backlog_nB += PST_NSEC_PER_SEC * link->bytes;
	link->last_limit = (double)link->node.alpha_q8 / (double)link->hcsfq.capacity_q8;
	return passes;
}

static inline void fair_measure(struct fair_link *link, uint64_t now_ns)
{
	double ratio = link->last_limit / fair_share_now(link, now_ns);
	struct change *change = NULL;
	uint32_t i;

	for (i = 0; i < link->changes_count; i++) {
		if (link->changes[i].at_ns <= now_ns)
			change = &link->changes[i];
	}
	if (change) {
		double since_ns = (double)(now_ns - change->at_ns);

		if (change->reached_ns < 0 && (change->from_above ? ratio < 1.1 : ratio > 0.9))
			change->reached_ns = since_ns;
		if (fabs(ratio - 1) > 0.1)
			change->stays_ns = -1;
		else if (change->stays_ns < 0)
			change->stays_ns = since_ns;
		if (fabs(ratio - 1) <= 0.1 && change->first_ns < 0)
			change->first_ns = since_ns;
	}
	if (now_ns >= link->from_ns) {
		link->limit_sum += ratio;
		link->limit_worst = fmax(link->limit_worst, fabs(ratio - 1));
		link->packets++;
	}
}

static inline void fair_run(struct fair_link *link, uint64_t seed)
{
	fair_prepare(link, seed);
	for (;;) {
		struct flow *flow = NULL;
		uint64_t now_ns, gap_ns;
		uint32_t i, random;
		bool passes;

		for (i = 0; i < link->count; i++) {
			if (link->flows[i].due_ns < link->flows[i].end_ns && (!flow || link->flows[i].due_ns < flow->due_ns))
				flow = &link->flows[i];
		}
		if (!flow)
			return;
		now_ns = flow->due_ns;
		random = pst_rng_next(&link->rng);
		passes = link->kind == FAIR_HCSFQ ? fair_hcsfq(link, flow, now_ns, random) : fair_ahab(link, flow, now_ns, random);
		if (now_ns >= link->from_ns) {
			flow->sent_bytes += link->bytes;
			flow->passed_bytes += passes ? link->bytes : 0;
		}
		fair_measure(link, now_ns);
		/* Even, but for 2 %, or two flows would keep step. */
		gap_ns = PST_NSEC_PER_SEC * link->bytes / flow->rate_Bps;
		flow->due_ns += gap_ns - gap_ns / 100 + pst_rng_next(&link->rng) % (gap_ns / 50 + 1);
	}
}

#endif /* PENSTOCK_TEST_FAIR_LINK_H */
