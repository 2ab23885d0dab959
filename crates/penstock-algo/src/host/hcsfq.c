/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* hcsfq.h for Rust, which owns the memory: one node, the users below it, and the queue that says whether the link is congested. */
#include <penstock/hcsfq.h>

#include <stddef.h>

#define QUEUE_PACKETS 100   /* that wait at most */
#define CONGESTED_PACKETS 10 /* more than these, and the link is congested */

struct pst_host_hcsfq {
	struct pst_hcsfq_profile profile;
	struct pst_hcsfq_node node;
	uint64_t rate_Bps, packet_bytes;
	uint64_t backlog_nB, backlog_ns;
	struct pst_hcsfq_user users[];
};

size_t pst_host_hcsfq_bytes(uint32_t users);
void pst_host_hcsfq_start(struct pst_host_hcsfq *link, uint64_t rate_Bps, uint32_t packet_bytes, uint64_t window_ns,
			  uint32_t smooth_shift, uint32_t decrease_shift, uint32_t increase_shift, uint64_t now_ns);
bool pst_host_hcsfq_take(struct pst_host_hcsfq *link, uint32_t user, uint32_t weight_shift, uint64_t now_ns, uint32_t bytes,
			 uint32_t random_u32);
uint64_t pst_host_hcsfq_limit_Bps(const struct pst_host_hcsfq *link);

size_t pst_host_hcsfq_bytes(uint32_t users)
{
	return sizeof(struct pst_host_hcsfq) + users * sizeof(struct pst_hcsfq_user);
}

/* The memory is zeros. */
void pst_host_hcsfq_start(struct pst_host_hcsfq *link, uint64_t rate_Bps, uint32_t packet_bytes, uint64_t window_ns,
			  uint32_t smooth_shift, uint32_t decrease_shift, uint32_t increase_shift, uint64_t now_ns)
{
	struct pst_hcsfq_params params = { rate_Bps, window_ns, smooth_shift, decrease_shift, increase_shift };

	pst_hcsfq_compile(&link->profile, &params);
	link->node = pst_hcsfq_start(&link->profile, now_ns);
	link->rate_Bps = rate_Bps;
	link->packet_bytes = packet_bytes;
	link->backlog_ns = now_ns;
}

/* A packet of a user that is there. Returns whether it passes the node and finds room in the queue. */
bool pst_host_hcsfq_take(struct pst_host_hcsfq *link, uint32_t user, uint32_t weight_shift, uint64_t now_ns, uint32_t bytes,
			 uint32_t random_u32)
{
	uint64_t elapsed_ns = now_ns - link->backlog_ns, packet_nB = PST_NSEC_PER_SEC * link->packet_bytes;
	uint64_t all_ns = link->backlog_nB / link->rate_Bps; /* when nothing waits any more; also keeps the product in range */
	struct pst_hcsfq_packet packet = { bytes, weight_shift, random_u32, false };

	link->backlog_nB = elapsed_ns > all_ns ? 0 : link->backlog_nB - elapsed_ns * link->rate_Bps;
	link->backlog_ns = now_ns;
	packet.is_congested = link->backlog_nB > CONGESTED_PACKETS * packet_nB;
	if (!pst_hcsfq_take(&link->profile, &link->node, &link->users[user], &packet, now_ns))
		return false;
	if (link->backlog_nB >= QUEUE_PACKETS * packet_nB)
		return false;
	link->backlog_nB += PST_NSEC_PER_SEC * bytes;
	return true;
}

/* alpha, for a weight of 1. */
uint64_t pst_host_hcsfq_limit_Bps(const struct pst_host_hcsfq *link)
{
	/* Studied at up to 100 Gbit/s with windows below 1 s: 2^42 times 2^30 would not fit, so the window goes first. */
	uint64_t per_ns_q20 = (link->node.alpha_q8 << 12) / link->profile.window_ns;

	return per_ns_q20 < UINT64_C(1) << 34 ? per_ns_q20 * PST_NSEC_PER_SEC >> 20 : UINT64_MAX >> 20;
}
