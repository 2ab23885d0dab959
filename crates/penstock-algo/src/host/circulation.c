/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* circulation.h for Rust, which owns the memory: of one of these, and of the packets. */
#include <penstock/circulation.h>

#include <stddef.h>

struct pst_host_circulation {
	struct pst_circulation_profile profile;
	struct pst_circulation state;
};

size_t pst_host_circulation_bytes(void);
size_t pst_host_circulation_packet_bytes(void);
void pst_host_circulation_published(uint64_t *slide_ns, uint64_t *h_ns, uint32_t *variance_q16, uint32_t *alpha_ns,
				    int32_t *delta_q16);
void pst_host_circulation_start(struct pst_host_circulation *circulation, struct pst_circulation_packet *packets,
				uint32_t packet_count, const uint64_t *capacity_Bps, const uint32_t *room_bytes,
				uint64_t monitor_ns, uint64_t slide_ns, uint64_t h_ns, uint64_t loop_ns,
				uint32_t variance_q16, uint32_t alpha_ns, int32_t delta_q16, bool redistributes,
				bool schedules, uint64_t now_ns);
bool pst_host_circulation_put(struct pst_host_circulation *circulation, struct pst_circulation_packet *packets,
			      uint64_t now_ns, uint64_t vst_ns, uint64_t vft_ns, uint32_t bytes, uint32_t tag);
bool pst_host_circulation_run(struct pst_host_circulation *circulation, struct pst_circulation_packet *packets,
			      uint64_t until_ns, uint64_t *sent_ns, uint64_t *vst_ns, uint32_t *bytes, uint32_t *tag);
uint64_t pst_host_circulation_passed_bytes(const struct pst_host_circulation *circulation, uint32_t group);
uint64_t pst_host_circulation_window_ns(const struct pst_host_circulation *circulation, uint32_t group);
uint32_t pst_host_circulation_waiting(const struct pst_host_circulation *circulation);

size_t pst_host_circulation_bytes(void)
{
	return sizeof(struct pst_host_circulation);
}

size_t pst_host_circulation_packet_bytes(void)
{
	return sizeof(struct pst_circulation_packet);
}

/* The paper's parameters, or where it has none what stands for them (wf2q.h). */
void pst_host_circulation_published(uint64_t *slide_ns, uint64_t *h_ns, uint32_t *variance_q16, uint32_t *alpha_ns,
				    int32_t *delta_q16)
{
	*slide_ns = PST_WF2Q_SLIDE_NSEC;
	*h_ns = PST_WF2Q_H_NSEC;
	*variance_q16 = PST_WF2Q_VARIANCE_Q16;
	*alpha_ns = PST_WF2Q_ALPHA_NSEC;
	*delta_q16 = PST_WF2Q_DELTA_Q16;
}

void pst_host_circulation_start(struct pst_host_circulation *circulation, struct pst_circulation_packet *packets,
				uint32_t packet_count, const uint64_t *capacity_Bps, const uint32_t *room_bytes,
				uint64_t monitor_ns, uint64_t slide_ns, uint64_t h_ns, uint64_t loop_ns,
				uint32_t variance_q16, uint32_t alpha_ns, int32_t delta_q16, bool redistributes,
				bool schedules, uint64_t now_ns)
{
	struct pst_circulation_params params = {
		.control = {
			.monitor_ns = monitor_ns,
			.slide_ns = slide_ns,
			.h_ns = h_ns,
			.variance_q16 = variance_q16,
			.alpha_ns = alpha_ns,
			.delta_q16 = delta_q16,
			.redistributes = redistributes,
			.schedules = schedules,
		},
		.loop_ns = loop_ns,
	};
	uint32_t i;

	for (i = 0; i < PST_WF2Q_GROUPS; i++) {
		params.control.capacity_Bps[i] = capacity_Bps[i];
		params.room_bytes[i] = room_bytes[i];
	}
	pst_circulation_compile(&circulation->profile, &params);
	pst_circulation_start(&circulation->profile, &circulation->state, packets, packet_count, now_ns);
}

bool pst_host_circulation_put(struct pst_host_circulation *circulation, struct pst_circulation_packet *packets,
			      uint64_t now_ns, uint64_t vst_ns, uint64_t vft_ns, uint32_t bytes, uint32_t tag)
{
	const struct pst_circulation_packet packet = { .vst_ns = vst_ns, .vft_ns = vft_ns, .bytes = bytes, .tag = tag };

	circulation->state.packets = packets; /* as Rust lends it for the call */
	return pst_circulation_put(&circulation->profile, &circulation->state, &packet, now_ns) ==
	       PST_WF2Q_RECIRCULATE;
}

bool pst_host_circulation_run(struct pst_host_circulation *circulation, struct pst_circulation_packet *packets,
			      uint64_t until_ns, uint64_t *sent_ns, uint64_t *vst_ns, uint32_t *bytes, uint32_t *tag)
{
	struct pst_circulation_packet sent;

	circulation->state.packets = packets;
	if (!pst_circulation_run(&circulation->profile, &circulation->state, until_ns, &sent))
		return false;
	*sent_ns = sent.pass_end_ns;
	*vst_ns = sent.vst_ns;
	*bytes = sent.bytes;
	*tag = sent.tag;
	return true;
}

uint64_t pst_host_circulation_passed_bytes(const struct pst_host_circulation *circulation, uint32_t group)
{
	return circulation->state.pipelines[group].passed_bytes;
}

uint64_t pst_host_circulation_window_ns(const struct pst_host_circulation *circulation, uint32_t group)
{
	return circulation->state.control.groups.window_ns[group];
}

uint32_t pst_host_circulation_waiting(const struct pst_host_circulation *circulation)
{
	return circulation->state.waiting;
}
