/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* logical_meter.h for Rust, which owns the memory of profiles and states. */
#include <penstock/logical_meter.h>

#include <stddef.h>

size_t pst_host_logical_meter_bytes(void);
void pst_host_logical_meter_compile(struct pst_logical_meter_profile *out, uint64_t rate_Bps, uint32_t yellow_bytes,
				    uint32_t red_bytes, uint32_t mtu_bytes, uint32_t red_max_q32, uint8_t congestion,
				    uint8_t tcam_bits);
uint32_t pst_host_logical_meter_take(const struct pst_logical_meter_profile *profile, bool is_tcam, uint64_t *queue_nB,
				     uint64_t *last_ns, uint64_t now_ns, uint32_t bytes, bool is_ect,
				     uint32_t random_u32, uint32_t *verdict, uint32_t *reason);
void pst_host_logical_meter_convert(const struct pst_logical_meter_profile *before,
				    const struct pst_logical_meter_profile *after, uint64_t *queue_nB,
				    uint64_t *last_ns, uint64_t now_ns);

size_t pst_host_logical_meter_bytes(void)
{
	return sizeof(struct pst_logical_meter_profile);
}

void pst_host_logical_meter_compile(struct pst_logical_meter_profile *out, uint64_t rate_Bps, uint32_t yellow_bytes,
				    uint32_t red_bytes, uint32_t mtu_bytes, uint32_t red_max_q32, uint8_t congestion,
				    uint8_t tcam_bits)
{
	const struct pst_logical_meter_params params = { rate_Bps,    yellow_bytes, red_bytes, mtu_bytes,
							 red_max_q32, congestion,   tcam_bits };

	pst_logical_meter_compile(out, &params);
}

/* Returns the colour. */
uint32_t pst_host_logical_meter_take(const struct pst_logical_meter_profile *profile, bool is_tcam, uint64_t *queue_nB,
				     uint64_t *last_ns, uint64_t now_ns, uint32_t bytes, bool is_ect,
				     uint32_t random_u32, uint32_t *verdict, uint32_t *reason)
{
	struct pst_logical_meter_state state = { *queue_nB, *last_ns };
	struct pst_logical_meter_result result = is_tcam ? pst_logical_meter_try_tcam(profile, state, now_ns, bytes) :
							   pst_logical_meter_try(profile, state, now_ns, bytes);

	pst_logical_meter_settle(profile, &state, &result, is_ect, random_u32);
	*queue_nB = state.queue_nB;
	*last_ns = state.last_ns;
	*verdict = result.verdict;
	*reason = result.reason;
	return result.color;
}

void pst_host_logical_meter_convert(const struct pst_logical_meter_profile *before,
				    const struct pst_logical_meter_profile *after, uint64_t *queue_nB,
				    uint64_t *last_ns, uint64_t now_ns)
{
	struct pst_logical_meter_state state = { *queue_nB, *last_ns };

	state = pst_logical_meter_convert(before, after, state, now_ns);
	*queue_nB = state.queue_nB;
	*last_ns = state.last_ns;
}
