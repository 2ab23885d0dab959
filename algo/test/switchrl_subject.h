/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* switchrl_subject.h: one limiter under test, of any of the five kinds of switchrl.h, behind one function. */
#ifndef PENSTOCK_TEST_SWITCHRL_SUBJECT_H
#define PENSTOCK_TEST_SWITCHRL_SUBJECT_H

#include <penstock/rng.h>
#include <penstock/switchrl.h>

#define BILLION UINT64_C(1000000000)

/* The ADT of section 6. */
static uint32_t adt_starts[296];
static uint64_t adt_values[295 * 295];
static struct pst_approx_table adt;

static inline int  build_adt(void **unused)
{
	const struct pst_approx_params paper = { 1, 10000, 2, 100 };

	(void)unused;
	if (!pst_approx_axis_build(&adt.x, &paper, adt_starts, 296))
		return -1;
	adt.y = adt.x;
	pst_adt_build(&adt, adt_values);
	return 0;
}

enum kind { METERRL, PACKETRL, OPTPACKETRL, SWITCHRL, SWITCHRL_ADT, KINDS };
static const char *const kind_names[] = { "meterrl", "packetrl", "optpacketrl", "switchrl", "switchrl_adt" };

struct subject {
	enum kind kind;
	struct pst_meterrl_profile meterrl;
	struct pst_packetrl_profile packetrl;
	struct pst_switchrl_adt_profile switchrl; /* its inner profile serves the exact forms */
	uint64_t state[2];                        /* as golden vectors have it */
};

/* CBS = CTW * CIR for the algorithms that count bytes. Algorithm 3 has the whole window as its CTW. */
static inline struct subject subject_start(enum kind kind, uint64_t rate_Bps, struct pst_switchrl_params params,
					   uint64_t now_ns)
{
	uint32_t burst_bytes = (uint32_t)((unsigned __int128)rate_Bps * (params.ctw_ns + params.etw_ns) / BILLION);
	struct pst_meterrl_params meterrl = { rate_Bps, 4000000, burst_bytes, params.mtu_bytes };
	struct pst_packetrl_params packetrl = { rate_Bps, burst_bytes, params.mtu_bytes };
	struct subject subject = { .kind = kind };

	params.rate_Bps = rate_Bps;
	pst_meterrl_compile(&subject.meterrl, &meterrl);
	pst_packetrl_compile(&subject.packetrl, &packetrl);
	if (kind == SWITCHRL_ADT)
		pst_switchrl_adt_compile(&subject.switchrl, &params, &adt, (uint32_t)(rate_Bps / 125000));
	else
		pst_switchrl_compile(&subject.switchrl.switchrl, &params);
	if (kind == METERRL) {
		subject.state[0] = pst_meterrl_full(&subject.meterrl).tokens_nB;
	} else if (kind == PACKETRL) {
		subject.state[0] = pst_packetrl_full(&subject.packetrl, now_ns).tokens_nB;
		subject.state[1] = now_ns;
	} else {
		subject.state[0] = pst_switchrl_full(now_ns).accu_ticks;
	}
	return subject;
}

static inline struct pst_switchrl_result subject_take(struct subject *subject, uint64_t now_ns, uint32_t bytes,
						      uint32_t random)
{
	struct pst_meterrl_state meterrl = { subject->state[0] };
	struct pst_packetrl_state packetrl = { subject->state[0], subject->state[1] };
	struct pst_switchrl_state switchrl = { subject->state[0] };
	struct pst_switchrl_result result = { 0 };

	switch (subject->kind) {
	case METERRL:
		result.color = pst_meterrl_take(&meterrl, bytes);
		subject->state[0] = meterrl.tokens_nB;
		break;
	case PACKETRL:
		result.color = pst_packetrl_take(&subject->packetrl, &packetrl, now_ns, bytes);
		subject->state[0] = packetrl.tokens_nB;
		subject->state[1] = packetrl.prev_ns;
		break;
	case OPTPACKETRL:
		result.color = pst_optpacketrl_take(&subject->switchrl.switchrl, &switchrl, now_ns, bytes);
		subject->state[0] = switchrl.accu_ticks;
		break;
	case SWITCHRL:
		result = pst_switchrl_take(&subject->switchrl.switchrl, &switchrl, now_ns, bytes, random);
		subject->state[0] = switchrl.accu_ticks;
		break;
	default:
		result = pst_switchrl_adt_take(&subject->switchrl, &switchrl, now_ns, bytes, random);
		subject->state[0] = switchrl.accu_ticks;
		break;
	}
	if (subject->kind <= OPTPACKETRL && result.color == PST_COLOR_RED) {
		result.verdict = PST_VERDICT_DROP;
		result.reason = PST_REASON_OVER_RATE;
	}
	return result;
}

static inline void  subject_refill(struct subject *subject)
{
	struct pst_meterrl_state meterrl = { subject->state[0] };

	pst_meterrl_refill(&subject->meterrl, &meterrl);
	subject->state[0] = meterrl.tokens_nB;
}

/* Takes the burst away, so that what follows is the steady part. */
static inline void subject_exhaust(struct subject *subject, uint64_t now_ns)
{
	subject->state[0] = subject->kind <= PACKETRL ? 0 : pst_clock_ticks(now_ns);
	subject->state[1] = now_ns;
}

/* For saturation.h: green is what passed, red what was dropped, early or late. */
static inline uint8_t subject_passes(void *meter, uint64_t now_ns, uint32_t bytes)
{
	static uint64_t rng = 1;
	struct subject *subject = (struct subject *)meter;
	struct pst_switchrl_result result = subject_take(subject, now_ns, bytes, pst_rng_next(&rng));

	return result.verdict == PST_VERDICT_DROP ? PST_COLOR_RED : PST_COLOR_GREEN;
}

#endif /* PENSTOCK_TEST_SWITCHRL_SUBJECT_H */
