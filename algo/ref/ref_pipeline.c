/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_pipeline.h"

#include "ref_red.h"

#include <string.h>

/* What a meter says of a packet. */
struct ref_judgement {
	enum pst_color color;
	uint32_t drop_q32;
	ref_int wait_ticks;
	ref_int vft_ticks; /* of the window, if the packet is charged */
};

void ref_limit_init(struct ref_limit *limit, const struct pst_profile *profile, uint32_t rate, ref_int now_ns,
		    ref_int word)
{
	limit->profile = *profile;
	limit->rate = rate;
	limit->vft_ticks = word;
	ref_rfc2697_init(&limit->srtcm, profile, rate, now_ns, word);
	ref_trtcm_init(&limit->trtcm, profile, rate, now_ns, word);
}

void ref_limit_words(const struct ref_limit *limit, uint64_t words[2])
{
	if (limit->profile.meter == PST_METER_WINDOW) {
		words[0] = (uint64_t)limit->vft_ticks;
		words[1] = 0;
	} else if (limit->profile.meter == PST_METER_RFC2697) {
		words[0] = (uint64_t)limit->srtcm.words[0];
		words[1] = (uint64_t)limit->srtcm.words[1];
	} else {
		words[0] = (uint64_t)limit->trtcm.words[0];
		words[1] = (uint64_t)limit->trtcm.words[1];
	}
}

/* AF11 is 10, and a class is 8 code points: x1 green, x2 yellow, x3 red (RFC 2597, section 6). */
static enum pst_color ref_color_in(uint8_t tos)
{
	static const uint8_t assured_yellow[] = { 12, 20, 28, 36 }, assured_red[] = { 14, 22, 30, 38 };

	if (memchr(assured_yellow, tos / 4, sizeof(assured_yellow)))
		return PST_COLOR_YELLOW;
	return memchr(assured_red, tos / 4, sizeof(assured_red)) ? PST_COLOR_RED : PST_COLOR_GREEN;
}

/* Without anybody who holds packets, a limit that shapes is one that drops. */
static struct pst_profile ref_profile_now(const struct ref_limit *limit, const struct ref_arrival *arrival)
{
	struct pst_profile profile = limit->profile;

	if (arrival->is_absent && profile.red_action == PST_ACTION_HOLD)
		profile.red_action = PST_ACTION_DROP;
	return profile;
}

static struct ref_judgement ref_judge_window(const struct ref_limit *limit, const struct ref_arrival *arrival,
					     uint32_t bytes)
{
	struct pst_profile profile = ref_profile_now(limit, arrival);
	struct ref_limiter_profile window = ref_limiter_resolve(&profile, limit->rate);
	struct ref_limiter_result result = ref_limiter_try(&window, limit->vft_ticks, arrival->now_ns, bytes);
	struct ref_judgement judgement = { result.color, 0, result.wait_ticks, result.vft_ticks };

	if (result.color == PST_COLOR_YELLOW)
		judgement.drop_q32 = ref_red_probability_q32((uint64_t)result.depth_ticks, (uint64_t)window.green_ticks,
							     (uint64_t)window.window_ticks, limit->profile.red_max_q32);
	return judgement;
}

/* The RFC meters charge at once. RED looks at the tokens that the second bucket lacks after the packet. */
static struct ref_judgement ref_judge_rfc(struct ref_limit *limit, const struct ref_arrival *arrival, uint32_t bytes)
{
	struct ref_judgement judgement = { PST_COLOR_RED, 0, 0, 0 };
	enum pst_color color_in = ref_color_in(arrival->tos);
	ref_int size, lacks;

	if (limit->profile.meter == PST_METER_RFC2697) {
		judgement.color = ref_rfc2697_take(&limit->srtcm, arrival->now_ns, bytes, color_in);
		size = limit->srtcm.ebs;
		lacks = size - limit->srtcm.te;
	} else {
		judgement.color = ref_trtcm_take(&limit->trtcm, arrival->now_ns, bytes, color_in);
		size = limit->trtcm.depth[1];
		lacks = size - limit->trtcm.tokens[1];
	}
	if (judgement.color == PST_COLOR_YELLOW)
		judgement.drop_q32 = ref_red_probability_q32((uint64_t)lacks, 0, (uint64_t)size,
							     limit->profile.red_max_q32);
	return judgement;
}

/* What an action makes of a packet. The columns: */
enum ref_case {
	REF_YELLOW_LUCKY,   /* yellow, and RED spares it */
	REF_YELLOW_UNLUCKY, /* yellow, and RED would drop it */
	REF_RED_WAITS,      /* red, and its turn is yet to come */
	REF_RED,
	REF_CASES,
};

#define REF_OUTCOME(verdict, reason) (PST_VERDICT_##verdict << 8 | PST_REASON_##reason)
#define REF_PASS REF_OUTCOME(PASS, NONE)
#define REF_EARLY REF_OUTCOME(DROP, EARLY_DROP)
#define REF_OVER REF_OUTCOME(DROP, OVER_RATE)
#define REF_CE REF_OUTCOME(MARK, CE_MARK)
#define REF_DSCP REF_OUTCOME(MARK, DSCP_MARK)
#define REF_LATE REF_OUTCOME(DROP, YELLOW)
#define REF_HELD REF_OUTCOME(HOLD, HELD)
#define REF_HELD_CE REF_OUTCOME(HOLD, HELD_CE)

static const uint16_t ref_plain[][REF_CASES] = {
	[PST_ACTION_PASS] = { REF_PASS, REF_PASS, REF_PASS, REF_PASS },
	[PST_ACTION_DROP] = { REF_LATE, REF_LATE, REF_OVER, REF_OVER },
	[PST_ACTION_MARK] = { REF_PASS, REF_EARLY, REF_OVER, REF_OVER }, /* of a packet that cannot be marked */
	[PST_ACTION_DSCP] = { REF_PASS, REF_PASS, REF_PASS, REF_PASS },  /* of a packet without a DSCP */
	[PST_ACTION_RED] = { REF_PASS, REF_EARLY, REF_OVER, REF_OVER },
	[PST_ACTION_HOLD] = { REF_PASS, REF_PASS, REF_HELD, REF_PASS },
};

static uint16_t ref_outcome(uint8_t action, enum ref_case of, const struct ref_arrival *arrival)
{
	if (action > PST_ACTION_HOLD)
		return REF_PASS;
	if (action == PST_ACTION_MARK && arrival->is_ip && arrival->tos % 4 != 0)
		return REF_CE;
	if (action == PST_ACTION_DSCP && arrival->is_ip)
		return REF_DSCP;
	return ref_plain[action][of];
}

/* A packet that a limit which shapes would let go now, or hold. */
static uint16_t ref_hold(const struct ref_limit *limit, const struct ref_arrival *arrival,
			 const struct ref_judgement *judgement)
{
	const struct pst_profile *profile = &limit->profile;
	ref_int now_ticks = arrival->now_ns * REF_TICKS_PER_NSEC;
	ref_int packet = ref_rate_cost(limit->rate, profile->mtu_bytes);
	ref_int most = profile->hold_ticks ? (ref_int)profile->hold_ticks : REF_AHEAD_MAX_TICKS;
	ref_int bytes = profile->hold_bytes < 1 << 30 ? profile->hold_bytes : (1 << 30) - 1;
	ref_int backlog = ref_rate_cost(limit->rate, (uint64_t)bytes);
	/* Its departure is a whole number of ns. */
	ref_int wait_ns = -ref_divide_down(-judgement->wait_ticks, REF_TICKS_PER_NSEC);

	if (most < packet)
		most = packet;
	if (backlog < 2 * packet)
		backlog = 2 * packet;
	if (most > (ref_int)68000000000 * REF_TICKS_PER_NSEC)
		most = (ref_int)68000000000 * REF_TICKS_PER_NSEC;
	if (judgement->wait_ticks > 0 && (judgement->wait_ticks > most ||
					  judgement->vft_ticks > now_ticks + REF_AHEAD_MAX_TICKS))
		return REF_OUTCOME(DROP, HORIZON);
	if (judgement->wait_ticks > 0 && bytes && judgement->vft_ticks > now_ticks + backlog)
		return REF_OUTCOME(DROP, BACKLOG);
	if (arrival->is_full)
		return REF_OUTCOME(DROP, NO_ROOM);
	if (profile->ce_ns && wait_ns > profile->ce_ns && arrival->is_ip && arrival->tos % 4 != 0)
		return REF_HELD_CE;
	return REF_HELD;
}

static void ref_judge(struct pst_decision *decision, struct ref_limit *limit, const struct ref_arrival *arrival)
{
	const struct pst_profile *profile = &limit->profile;
	bool is_window = profile->meter == PST_METER_WINDOW;
	struct ref_judgement judgement = is_window ? ref_judge_window(limit, arrival, decision->length)
						   : ref_judge_rfc(limit, arrival, decision->length);
	bool is_unlucky = ref_red_drops(judgement.drop_q32, arrival->random);
	uint16_t outcome = REF_PASS;

	decision->color = judgement.color;
	decision->shadow = (profile->flags & PST_PROFILE_SHADOW) != 0;
	if (judgement.color == PST_COLOR_YELLOW)
		outcome = ref_outcome(profile->yellow_action, is_unlucky ? REF_YELLOW_UNLUCKY : REF_YELLOW_LUCKY,
				      arrival);
	else if (judgement.color == PST_COLOR_RED)
		outcome = ref_outcome(profile->red_action, judgement.wait_ticks > 0 ? REF_RED_WAITS : REF_RED, arrival);
	if (is_window && profile->red_action == PST_ACTION_HOLD) {
		if (arrival->is_absent)
			outcome = judgement.color == PST_COLOR_RED ? REF_OUTCOME(DROP, NO_SHAPER) : outcome;
		else if (outcome >> 8 != PST_VERDICT_DROP && (judgement.wait_ticks > 0 || arrival->is_waiting))
			outcome = ref_hold(limit, arrival, &judgement);
	}
	decision->verdict = (uint8_t)(outcome >> 8);
	decision->reason = (uint8_t)outcome;
	if (decision->reason == PST_REASON_DSCP_MARK)
		decision->dscp = judgement.color == PST_COLOR_RED ? profile->red_dscp : profile->yellow_dscp;
	if (decision->verdict == PST_VERDICT_HOLD) {
		ref_int ahead_ticks = judgement.vft_ticks - arrival->now_ns * REF_TICKS_PER_NSEC - judgement.wait_ticks;
		ref_int cost_ns = ahead_ticks > 0 ? ref_divide_down(ahead_ticks, REF_TICKS_PER_NSEC) : 0;

		decision->cost_ns = (uint32_t)(cost_ns < UINT32_MAX ? cost_ns : UINT32_MAX);
		decision->departure_ns =
			(uint64_t)(arrival->now_ns - ref_divide_down(-judgement.wait_ticks, REF_TICKS_PER_NSEC));
	}
	if (is_window && decision->verdict != PST_VERDICT_DROP)
		limit->vft_ticks = judgement.vft_ticks;
}

static uint32_t ref_length(const struct pst_link *link, const struct ref_arrival *arrival)
{
	ref_int length = (ref_int)arrival->length + link->overhead_bytes;

	return length > 1 << 20 ? 1 << 20 : (uint32_t)length;
}

static struct pst_decision ref_undecided(uint32_t link_index, const struct pst_link *link,
					 const struct ref_arrival *arrival)
{
	struct pst_decision decision = {
		.departure_ns = (uint64_t)arrival->now_ns, .length = ref_length(link, arrival),
		.class_index = PST_NONE, .slot = PST_NONE, .limit_index = PST_NONE,
		.color = PST_COLOR_NONE, .link = (uint16_t)link_index,
	};

	return decision;
}

static struct pst_decision ref_dispose(struct pst_decision decision, uint8_t action, uint8_t drop_reason,
				       uint8_t pass_reason)
{
	bool is_drop = action == PST_ACTION_DROP;

	decision.verdict = is_drop ? PST_VERDICT_DROP : PST_VERDICT_PASS;
	decision.reason = is_drop ? drop_reason : pass_reason;
	return decision;
}

struct pst_decision ref_pipeline_decide(struct ref_plane *plane, const struct pst_key *key,
					const struct ref_arrival *arrival)
{
	struct pst_decision decision = ref_undecided(0, &plane->links[0], arrival);
	struct ref_match match;
	uint32_t number;

	if (arrival->malformed != PST_REASON_NONE)
		return ref_dispose(decision, plane->links[0].malformed_action, arrival->malformed, arrival->malformed);
	match = ref_classify(&plane->policy, key);
	decision = ref_undecided(match.link, &plane->links[match.link], arrival);
	decision.class_index = match.class_index;
	if (match.class_index == PST_NONE)
		return ref_dispose(decision, plane->links[match.link].unmatched_action, PST_REASON_UNMATCHED,
				   PST_REASON_NONE);
	if (match.row != PST_NONE)
		decision.slot = match.row;
	else
		decision.limit_index = plane->class_limits[match.class_index];
	number = match.row != PST_NONE ? match.row : decision.limit_index;
	if (number != PST_NONE && plane->limits[number].rate != 0)
		ref_judge(&decision, &plane->limits[number], arrival);
	return decision;
}
