/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* switchrl.h for Rust, which owns the memory of profiles and states. A take returns the colour. */
#include <penstock/switchrl.h>

#include <stddef.h>

size_t pst_host_meterrl_bytes(void);
void pst_host_meterrl_compile(struct pst_meterrl_profile *out, uint64_t rate_Bps, uint64_t interval_ns,
			      uint32_t burst_bytes, uint32_t mtu_bytes);
uint64_t pst_host_meterrl_full(const struct pst_meterrl_profile *profile);
void pst_host_meterrl_refill(const struct pst_meterrl_profile *profile, uint64_t *tokens_nB);
uint32_t pst_host_meterrl_take(uint64_t *tokens_nB, uint32_t bytes);
size_t pst_host_packetrl_bytes(void);
void pst_host_packetrl_compile(struct pst_packetrl_profile *out, uint64_t rate_Bps, uint32_t burst_bytes,
			       uint32_t mtu_bytes);
uint64_t pst_host_packetrl_full(const struct pst_packetrl_profile *profile);
uint32_t pst_host_packetrl_take(const struct pst_packetrl_profile *profile, uint64_t *tokens_nB, uint64_t *prev_ns,
				uint64_t now_ns, uint32_t bytes);
size_t pst_host_switchrl_bytes(void);
void pst_host_switchrl_compile(struct pst_switchrl_profile *out, uint64_t rate_Bps, uint64_t ctw_ns, uint64_t etw_ns,
			       uint32_t mtu_bytes, uint32_t drop_max_q32);
uint64_t pst_host_switchrl_full(uint64_t now_ns);
uint32_t pst_host_optpacketrl_take(const struct pst_switchrl_profile *profile, uint64_t *accu_ticks, uint64_t now_ns,
				   uint32_t bytes);
uint32_t pst_host_switchrl_take(const struct pst_switchrl_profile *profile, uint64_t *accu_ticks, uint64_t now_ns,
				uint32_t bytes, uint32_t random_u32, uint32_t *verdict, uint32_t *reason);
size_t pst_host_switchrl_adt_bytes(void);
void pst_host_switchrl_adt_compile(struct pst_switchrl_adt_profile *out, const struct pst_approx_table *table,
				   uint32_t rate_Mbps, uint64_t ctw_ns, uint64_t etw_ns, uint32_t mtu_bytes,
				   uint32_t drop_max_q32);
uint32_t pst_host_switchrl_adt_take(const struct pst_switchrl_adt_profile *profile, uint64_t *accu_ticks,
				    uint64_t now_ns, uint32_t bytes, uint32_t random_u32, uint32_t *verdict,
				    uint32_t *reason);

/* 1: MeterRL. */

size_t pst_host_meterrl_bytes(void)
{
	return sizeof(struct pst_meterrl_profile);
}

void pst_host_meterrl_compile(struct pst_meterrl_profile *out, uint64_t rate_Bps, uint64_t interval_ns,
			      uint32_t burst_bytes, uint32_t mtu_bytes)
{
	const struct pst_meterrl_params params = { rate_Bps, interval_ns, burst_bytes, mtu_bytes };

	pst_meterrl_compile(out, &params);
}

uint64_t pst_host_meterrl_full(const struct pst_meterrl_profile *profile)
{
	return pst_meterrl_full(profile).tokens_nB;
}

void pst_host_meterrl_refill(const struct pst_meterrl_profile *profile, uint64_t *tokens_nB)
{
	struct pst_meterrl_state state = { *tokens_nB };

	pst_meterrl_refill(profile, &state);
	*tokens_nB = state.tokens_nB;
}

uint32_t pst_host_meterrl_take(uint64_t *tokens_nB, uint32_t bytes)
{
	struct pst_meterrl_state state = { *tokens_nB };
	uint8_t color = pst_meterrl_take(&state, bytes);

	*tokens_nB = state.tokens_nB;
	return color;
}

/* 2: PacketRL. */

size_t pst_host_packetrl_bytes(void)
{
	return sizeof(struct pst_packetrl_profile);
}

void pst_host_packetrl_compile(struct pst_packetrl_profile *out, uint64_t rate_Bps, uint32_t burst_bytes,
			       uint32_t mtu_bytes)
{
	const struct pst_packetrl_params params = { rate_Bps, burst_bytes, mtu_bytes };

	pst_packetrl_compile(out, &params);
}

uint64_t pst_host_packetrl_full(const struct pst_packetrl_profile *profile)
{
	return pst_packetrl_full(profile, 0).tokens_nB;
}

uint32_t pst_host_packetrl_take(const struct pst_packetrl_profile *profile, uint64_t *tokens_nB, uint64_t *prev_ns,
				uint64_t now_ns, uint32_t bytes)
{
	struct pst_packetrl_state state = { *tokens_nB, *prev_ns };
	uint8_t color = pst_packetrl_take(profile, &state, now_ns, bytes);

	*tokens_nB = state.tokens_nB;
	*prev_ns = state.prev_ns;
	return color;
}

/* 3: optPacketRL, and 4: SwitchRL. */

size_t pst_host_switchrl_bytes(void)
{
	return sizeof(struct pst_switchrl_profile);
}

void pst_host_switchrl_compile(struct pst_switchrl_profile *out, uint64_t rate_Bps, uint64_t ctw_ns, uint64_t etw_ns,
			       uint32_t mtu_bytes, uint32_t drop_max_q32)
{
	const struct pst_switchrl_params params = { rate_Bps, ctw_ns, etw_ns, mtu_bytes, drop_max_q32 };

	pst_switchrl_compile(out, &params);
}

uint64_t pst_host_switchrl_full(uint64_t now_ns)
{
	return pst_switchrl_full(now_ns).accu_ticks;
}

uint32_t pst_host_optpacketrl_take(const struct pst_switchrl_profile *profile, uint64_t *accu_ticks, uint64_t now_ns,
				   uint32_t bytes)
{
	struct pst_switchrl_state state = { *accu_ticks };
	uint8_t color = pst_optpacketrl_take(profile, &state, now_ns, bytes);

	*accu_ticks = state.accu_ticks;
	return color;
}

uint32_t pst_host_switchrl_take(const struct pst_switchrl_profile *profile, uint64_t *accu_ticks, uint64_t now_ns,
				uint32_t bytes, uint32_t random_u32, uint32_t *verdict, uint32_t *reason)
{
	struct pst_switchrl_state state = { *accu_ticks };
	struct pst_switchrl_result result = pst_switchrl_take(profile, &state, now_ns, bytes, random_u32);

	*accu_ticks = state.accu_ticks;
	*verdict = result.verdict;
	*reason = result.reason;
	return result.color;
}

/* 4 with the ADT. The profile points to the table. */

size_t pst_host_switchrl_adt_bytes(void)
{
	return sizeof(struct pst_switchrl_adt_profile);
}

void pst_host_switchrl_adt_compile(struct pst_switchrl_adt_profile *out, const struct pst_approx_table *table,
				   uint32_t rate_Mbps, uint64_t ctw_ns, uint64_t etw_ns, uint32_t mtu_bytes,
				   uint32_t drop_max_q32)
{
	const struct pst_switchrl_params params = { 0, ctw_ns, etw_ns, mtu_bytes, drop_max_q32 };

	pst_switchrl_adt_compile(out, &params, table, rate_Mbps);
}

uint32_t pst_host_switchrl_adt_take(const struct pst_switchrl_adt_profile *profile, uint64_t *accu_ticks,
				    uint64_t now_ns, uint32_t bytes, uint32_t random_u32, uint32_t *verdict,
				    uint32_t *reason)
{
	struct pst_switchrl_state state = { *accu_ticks };
	struct pst_switchrl_result result = pst_switchrl_adt_take(profile, &state, now_ns, bytes, random_u32);

	*accu_ticks = state.accu_ticks;
	*verdict = result.verdict;
	*reason = result.reason;
	return result.color;
}
