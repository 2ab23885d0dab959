/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* pipeline.h for Rust: one parsed packet at a time, with the random number that the caller drew. Batches: plane.c. */
#include <penstock/pipeline.h>

#include <stddef.h>

void pst_host_pipeline_decide(struct pst_decision *decision, const struct pst_plane *plane,
			      const struct pst_packet *packet, uint64_t now_ns, uint32_t random_u32);

void pst_host_pipeline_decide(struct pst_decision *decision, const struct pst_plane *plane,
			      const struct pst_packet *packet, uint64_t now_ns, uint32_t random_u32)
{
	pst_pipeline_decide(decision, plane, packet, now_ns, random_u32);
}
