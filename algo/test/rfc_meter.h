/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * rfc_meter.h: one handle on the three RFC meters and their references, and the properties that all three have.
 *
 * The numbers of the invariants are those of srtcm.h and trtcm.h.
 */
#ifndef PENSTOCK_TEST_RFC_METER_H
#define PENSTOCK_TEST_RFC_METER_H

#include "saturation.h"

#include <penstock/srtcm.h>
#include <penstock/trtcm.h>

#include "ref_srtcm.h"
#include "ref_trtcm.h"
#include "schedule.h"

struct rfc_meter {
	struct pst_profile written;
	uint64_t rate_Bps, second_rate_Bps;
	struct pst_rfc2697_profile srtcm;
	struct pst_rfc2698_profile peak;
	struct pst_rfc4115_profile excess;
	struct pst_meter_state state;
	struct ref_rfc2697 ref_srtcm;
	struct ref_trtcm ref_trtcm;
	uint8_t color_in; /* of the packets of a saturation run */
};

/* Resolves `written` for a rate; full as of now. */
static inline void rfc_meter_init(struct rfc_meter *meter, const struct pst_profile *written, uint64_t rate_Bps,
				  uint64_t second_rate_Bps, ref_int now_ns)
{
	uint32_t rate = pst_rate_encode(rate_Bps);

	memset(meter, 0, sizeof(*meter));
	meter->written = *written;
	meter->written.second_rate = pst_rate_encode(second_rate_Bps);
	meter->rate_Bps = rate_Bps;
	meter->second_rate_Bps = second_rate_Bps;
	meter->state = pst_meter_idle((uint64_t)now_ns);
	if (written->meter == PST_METER_RFC2697) {
		pst_rfc2697_resolve(&meter->srtcm, &meter->written, rate);
		ref_rfc2697_init(&meter->ref_srtcm, &meter->written, rate, now_ns, ref_limiter_idle(now_ns));
	} else {
		pst_rfc2698_resolve(&meter->peak, &meter->written, rate);
		pst_rfc4115_resolve(&meter->excess, &meter->written, rate);
		ref_trtcm_init(&meter->ref_trtcm, &meter->written, rate, now_ns, ref_limiter_idle(now_ns));
	}
}

static inline struct pst_meter_result rfc_meter_try(const struct rfc_meter *meter, uint64_t now_ns, uint32_t bytes,
						    uint8_t color_in)
{
	switch (meter->written.meter) {
	case PST_METER_RFC2697:
		return pst_rfc2697_meter(&meter->srtcm, &meter->state, now_ns, bytes, color_in);
	case PST_METER_RFC2698:
		return pst_rfc2698_meter(&meter->peak, &meter->state, now_ns, bytes, color_in);
	default:
		return pst_rfc4115_meter(&meter->excess, &meter->state, now_ns, bytes, color_in);
	}
}

static inline uint8_t rfc_meter_take(struct rfc_meter *meter, uint64_t now_ns, uint32_t bytes, uint8_t color_in)
{
	struct pst_meter_result result = rfc_meter_try(meter, now_ns, bytes, color_in);

	meter->state = result.state;
	return result.color;
}

static inline uint8_t rfc_meter_saturate(void *meter, uint64_t now_ns, uint32_t bytes)
{
	struct rfc_meter *rfc = meter;

	return rfc_meter_take(rfc, now_ns, bytes, rfc->color_in);
}

/* Depths as resolved: C, and E or P. */
static inline uint64_t rfc_meter_cbs_ticks(const struct rfc_meter *meter)
{
	return meter->written.meter == PST_METER_RFC2697 ? meter->srtcm.cbs_ticks :
	       meter->written.meter == PST_METER_RFC2698 ? meter->peak.cbs_ticks : meter->excess.cbs_ticks;
}

static inline uint64_t rfc_meter_other_ticks(const struct rfc_meter *meter)
{
	return meter->written.meter == PST_METER_RFC2697 ? meter->srtcm.ebs_ticks :
	       meter->written.meter == PST_METER_RFC2698 ? meter->peak.pbs_ticks : meter->excess.ebs_ticks;
}

/* Both buckets empty at `now_ns`. */
static inline void rfc_meter_drain(struct rfc_meter *meter, uint64_t now_ns)
{
	meter->state.committed_ticks = pst_clock_ticks(now_ns) + rfc_meter_cbs_ticks(meter);
	meter->state.excess_ticks = rfc_meter_other_ticks(meter) +
		(meter->written.meter == PST_METER_RFC2697 ? meter->state.committed_ticks : pst_clock_ticks(now_ns));
}

static inline void rfc_meter_draw(struct rfc_meter *meter, uint64_t *rng, uint8_t kind, ref_int now_ns)
{
	struct pst_profile written;
	uint64_t rate_Bps = draw_rate_Bps(rng), second_Bps = rate_Bps;

	memset(&written, 0, sizeof(written));
	written.meter = kind;
	written.mtu_bytes = MTU_BYTES;
	written.flags = below(rng, 2) ? PST_PROFILE_COLOR_AWARE : 0;
	if (below(rng, 2))
		written.burst_ticks = draw(rng) >> (28 + below(rng, 12));
	if (below(rng, 2))
		written.burst_bytes = below(rng, 200000);
	if (below(rng, 2))
		written.excess_ticks = draw(rng) >> (28 + below(rng, 12));
	if (below(rng, 2))
		written.excess_bytes = below(rng, 200000);
	if (kind == PST_METER_RFC2698)
		second_Bps += below(rng, 2) ? rate_Bps * below(rng, 10) : rate_Bps / 100;
	else
		second_Bps = rate_Bps / 10 + rate_Bps * below(rng, 10);
	rfc_meter_init(meter, &written, rate_Bps, second_Bps, now_ns);
}

/* Gives it buckets of up to 73 minutes. */
static inline void rfc_meter_deepen(struct rfc_meter *meter, uint64_t *rng, ref_int now_ns)
{
	struct pst_profile written = meter->written;

	written.burst_ticks = draw(rng) >> (12 + below(rng, 16));
	written.excess_ticks = draw(rng) >> (12 + below(rng, 16));
	rfc_meter_init(meter, &written, meter->rate_Bps, meter->second_rate_Bps, now_ns);
}

/* The rate at which packets pass when more is offered. */
static inline uint64_t rfc_meter_pass_Bps(const struct rfc_meter *meter)
{
	return meter->written.meter == PST_METER_RFC2697 ? meter->rate_Bps :
	       meter->written.meter == PST_METER_RFC2698 ? meter->second_rate_Bps :
							   meter->rate_Bps + meter->second_rate_Bps;
}

static inline uint8_t draw_color(uint64_t *rng)
{
	static const uint8_t colors[] = { 0, 0, 0, 0, 1, 1, 1, 2 };

	return colors[below(rng, 8)];
}

/* --- I2: equal to the RFC's counters --- */

static inline void rfc_check_reference(uint8_t kind)
{
	uint64_t rng = pst_rng_seed(100 + kind), colors[3] = { 0, 0, 0 };
	int schedule, i;

	for (schedule = 0; schedule < SCHEDULES; schedule++) {
		ref_int now_ns = draw_start_ns(&rng);
		struct rfc_meter meter;

		rfc_meter_draw(&meter, &rng, kind, now_ns);
		for (i = 0; i < PACKETS; i++) {
			uint32_t bytes = draw_bytes(&rng);
			uint8_t in = draw_color(&rng), color = rfc_meter_take(&meter, (uint64_t)now_ns, bytes, in);
			ref_int *words = kind == PST_METER_RFC2697 ? meter.ref_srtcm.words : meter.ref_trtcm.words;
			enum pst_color wanted = kind == PST_METER_RFC2697 ?
				ref_rfc2697_take(&meter.ref_srtcm, now_ns, bytes, (enum pst_color)in) :
				ref_trtcm_take(&meter.ref_trtcm, now_ns, bytes, (enum pst_color)in);

			assert_int_equal(color, wanted);
			assert_int_equal(meter.state.committed_ticks, (uint64_t)words[0]);
			assert_int_equal(meter.state.excess_ticks, (uint64_t)words[1]);
			colors[color]++;
			now_ns += draw_gap_ns(&rng, rfc_meter_pass_Bps(&meter), rfc_meter_cbs_ticks(&meter));
		}
	}
	for (i = 0; i < 3; i++)
		assert_true(colors[i] > SCHEDULES * PACKETS / 20);
}

/* --- I1: the envelopes --- */

/* What each bucket lets through; for RFC 2697 the second is both buckets together. */
static inline void rfc_check_envelopes(uint8_t kind)
{
	uint64_t rng = pst_rng_seed(110 + kind), closest_permille[2] = { 0, 0 };
	int schedule, i, bucket;

	for (schedule = 0; schedule < SCHEDULES; schedule++) {
		ref_int now_ns = draw_start_ns(&rng), depths[2];
		struct envelope envelopes[2] = { { 0, 0 }, { 0, 0 } };
		struct rfc_meter meter;
		uint64_t rates_Bps[2];

		rfc_meter_draw(&meter, &rng, kind, now_ns);
		rates_Bps[0] = meter.rate_Bps;
		rates_Bps[1] = kind == PST_METER_RFC2697 ? meter.rate_Bps : meter.second_rate_Bps;
		depths[0] = (ref_int)rfc_meter_cbs_ticks(&meter);
		depths[1] = (ref_int)rfc_meter_other_ticks(&meter) + (kind == PST_METER_RFC2697 ? depths[0] : 0);
		for (i = 0; i < PACKETS; i++) {
			uint32_t bytes = draw_bytes(&rng);
			uint8_t color = rfc_meter_take(&meter, (uint64_t)now_ns, bytes, draw_color(&rng));
			ref_int gap_ns = draw_gap_ns(&rng, rfc_meter_pass_Bps(&meter), (uint64_t)depths[0]);
			bool in_second = kind == PST_METER_RFC4115 ? color == PST_COLOR_YELLOW : color != PST_COLOR_RED;

			if (color == PST_COLOR_GREEN)
				envelope_pass(&envelopes[0], rates_Bps[0], bytes);
			if (in_second)
				envelope_pass(&envelopes[1], rates_Bps[1], bytes);
			for (bucket = 0; bucket < 2; bucket++) {
				ref_int most = depths[bucket] * REF_UNITS_PER_TICK;
				ref_int excess = envelopes[bucket].excess_units;

				assert_true(excess <= most);
				if (most && 1000 * excess / most > closest_permille[bucket])
					closest_permille[bucket] = (uint64_t)(1000 * excess / most);
				envelope_advance(&envelopes[bucket], gap_ns);
			}
			now_ns += gap_ns;
		}
	}
	assert_true(closest_permille[0] >= 999 && closest_permille[1] >= 999);
}

/* --- I3, I4, I6 --- */

static inline void rfc_check_single_packets(uint8_t kind)
{
	uint64_t rng = pst_rng_seed(120 + kind);
	int i;

	for (i = 0; i < SCHEDULES * 20; i++) {
		uint64_t now_ns = draw(&rng), now = pst_clock_ticks(now_ns), shift_ns = draw(&rng);
		struct rfc_meter meter, shifted, blind;
		uint32_t bytes = draw_bytes(&rng);
		uint8_t in = draw_color(&rng);
		struct pst_meter_result a, b;

		rfc_meter_draw(&meter, &rng, kind, 0);
		meter.state.committed_ticks = now + draw(&rng) % (rfc_meter_cbs_ticks(&meter) + 1);
		meter.state.excess_ticks = now + draw(&rng) % (rfc_meter_other_ticks(&meter) + 1);
		a = rfc_meter_try(&meter, now_ns, bytes, in);
		if (a.color == PST_COLOR_RED)
			assert_memory_equal(&a.state, &meter.state, sizeof(a.state));
		shifted = meter;
		shifted.state.committed_ticks += pst_clock_ticks(shift_ns);
		shifted.state.excess_ticks += pst_clock_ticks(shift_ns);
		b = rfc_meter_try(&shifted, now_ns + shift_ns, bytes, in);
		assert_int_equal(a.color, b.color);
		assert_int_equal(a.state.committed_ticks + pst_clock_ticks(shift_ns), b.state.committed_ticks);
		assert_int_equal(a.state.excess_ticks + pst_clock_ticks(shift_ns), b.state.excess_ticks);
		blind = meter;
		blind.srtcm.color_aware = blind.peak.color_aware = blind.excess.color_aware = false;
		if (meter.written.flags & PST_PROFILE_COLOR_AWARE) {
			assert_true(a.color >= in);
			assert_int_equal(rfc_meter_try(&meter, now_ns, bytes, PST_COLOR_GREEN).color,
					 rfc_meter_try(&blind, now_ns, bytes, in).color);
		} else {
			assert_int_equal(a.color, rfc_meter_try(&meter, now_ns, bytes, PST_COLOR_GREEN).color);
		}
	}
}

/* Idle for longer than the buckets are deep, and less than a wrap but for what a state may be ahead: full. */
static inline void rfc_check_idle(uint8_t kind)
{
	uint64_t rng = pst_rng_seed(130 + kind);
	int i;

	for (i = 0; i < SCHEDULES * 20; i++) {
		uint64_t now_ns = draw(&rng), now = pst_clock_ticks(now_ns), deep, idle;
		struct rfc_meter meter, full;
		uint32_t bytes = draw_bytes(&rng);

		rfc_meter_draw(&meter, &rng, kind, 0);
		full = meter;
		full.state = pst_meter_idle(now_ns);
		deep = rfc_meter_cbs_ticks(&meter) + rfc_meter_other_ticks(&meter);
		idle = deep + draw(&rng) % (0 - 2 * deep - PST_AHEAD_MAX_TICKS);
		meter.state.committed_ticks = now - idle + draw(&rng) % (deep + 1);
		meter.state.excess_ticks = now - idle + draw(&rng) % (deep + 1);
		assert_int_equal(rfc_meter_take(&meter, now_ns, bytes, 0), rfc_meter_take(&full, now_ns, bytes, 0));
		assert_memory_equal(&meter.state, &full.state, sizeof(full.state));
	}
}

/* --- golden vectors --- */

static inline void rfc_vector_profile(struct vectors *v, struct rfc_meter *meter)
{
	static const char *const kinds[] = { "window", "rfc2697", "rfc2698", "rfc4115" };
	struct pst_profile written;

	memset(&written, 0, sizeof(written));
	written.meter = vectors_name(v, vectors_in_text(v, "meter"), kinds, 4);
	written.burst_ticks = vectors_in_or(v, "burst_ticks", 0);
	written.excess_ticks = vectors_in_or(v, "excess_ticks", 0);
	written.burst_bytes = (uint32_t)vectors_in_or(v, "burst_bytes", 0);
	written.excess_bytes = (uint32_t)vectors_in_or(v, "excess_bytes", 0);
	written.mtu_bytes = (uint32_t)vectors_in_or(v, "mtu_bytes", 0);
	written.flags = vectors_in_or(v, "color_aware", 0) ? PST_PROFILE_COLOR_AWARE : 0;
	rfc_meter_init(meter, &written, vectors_in(v, "rate_Bps"), vectors_in_or(v, "second_rate_Bps", 0), 0);
	meter->state.committed_ticks = vectors_number(v, vectors_in_text(v, "state"), 0);
	meter->state.excess_ticks = vectors_number(v, vectors_in_text(v, "state"), 1);
	assert_int_equal(pst_rate_encode(meter->rate_Bps), vectors_out(v, "rate"));
	if (written.meter != PST_METER_RFC2697)
		assert_int_equal(meter->written.second_rate, vectors_out(v, "second_rate"));
	assert_int_equal(rfc_meter_cbs_ticks(meter), vectors_out(v, "cbs_ticks"));
	assert_int_equal(rfc_meter_other_ticks(meter),
			 vectors_out(v, written.meter == PST_METER_RFC2698 ? "pbs_ticks" : "ebs_ticks"));
}

static inline void rfc_check_vectors(const char *path)
{
	struct rfc_meter meter;
	struct vectors v;

	memset(&meter, 0, sizeof(meter));
	vectors_open(&v, path);
	while (vectors_next(&v)) {
		if (vectors_is(&v, "profile")) {
			rfc_vector_profile(&v, &meter);
		} else if (vectors_is(&v, "take")) {
			uint8_t in = vectors_color(&v, vectors_in_text(&v, "in"));
			uint32_t bytes = (uint32_t)vectors_in(&v, "bytes");
			uint8_t color = rfc_meter_take(&meter, vectors_in(&v, "now"), bytes, in);
			const char *words = vectors_out_text(&v, "state");

			assert_int_equal(color, vectors_color(&v, vectors_out_text(&v, "color")));
			assert_int_equal(meter.state.committed_ticks, vectors_number(&v, words, 0));
			assert_int_equal(meter.state.excess_ticks, vectors_number(&v, words, 1));
		} else {
			fail_msg("%s:%u: unknown verb", v.path, v.line);
		}
	}
	assert_true(v.directives > 500);
}

#endif /* PENSTOCK_TEST_RFC_METER_H */
