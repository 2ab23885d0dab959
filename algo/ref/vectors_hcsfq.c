/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of hcsfq.h. */
#include "ref_hcsfq.h"
#include "vectors.h"

static uint64_t seed = 1;

static void schedule(uint64_t capacity_Bps, uint64_t window_ns, bool halves, uint32_t decrease, uint32_t increase, uint64_t now_ns)
{
	struct ref_hcsfq node = { ref_hcsfq_capacity_q8(capacity_Bps, window_ns), window_ns, { decrease, increase }, halves, 0, 0, 0, { { 0, 0, 0 } } };
	uint32_t i;

	node.alpha_q8 = node.capacity_q8;
	node.window = now_ns / window_ns;
	for (i = 0; i < REF_HCSFQ_USERS; i++)
		node.users[i].window = node.window;
	printf("node capacity_Bps=%" PRIu64 " window_ns=%" PRIu64 " smooth=%d decrease=%" PRIu32 " increase=%" PRIu32 " now=%" PRIu64
	       " -> capacity_q8=%" PRIu64 "\n",
	       capacity_Bps, window_ns, halves ? 1 : 3, decrease, increase, now_ns, node.capacity_q8);
	for (i = 0; i < 100; i++) {
		uint32_t user = vectors_draw(&seed, REF_HCSFQ_USERS), bytes = vectors_bytes[vectors_draw(&seed, 8)], shift = vectors_draw(&seed, 3);
		uint32_t sixteenth = vectors_draw(&seed, 16), congested = vectors_draw(&seed, 3) > 0, below = vectors_draw(&seed, 1 << 28);
		bool passes;

		now_ns += vectors_draw_wide(&seed, vectors_draw(&seed, 20) ? window_ns / 4 : 100 * window_ns);
		if (vectors_draw(&seed, 20) == 0)
			now_ns -= vectors_draw_wide(&seed, 2 * window_ns);
		if (i >= 90) /* as far back as is no time, a window further, and the long way on again */
			now_ns += i % 3 == 0 ? 0 - 65536 * window_ns : i % 3 == 1 ? 65536 * window_ns : 0 - 65537 * window_ns;
		passes = ref_hcsfq_take(&node, user, now_ns, bytes, 1U << shift, sixteenth, congested);
		printf("take user=%" PRIu32 " now=%" PRIu64 " bytes=%" PRIu32 " weight_shift=%" PRIu32 " random=%" PRIu32 " congested=%" PRIu32
		       " -> passes=%d rate_q8=%" PRIu64 " alpha_q8=%" PRIu64 "\n",
		       user, now_ns, bytes, shift, sixteenth << 28 | below, congested, passes, node.users[user].rate_q8, node.alpha_q8);
	}
}

int main(void)
{
	vectors_header("hcsfq.h: a node and four users.");
	schedule(12500000, 204800000, false, 11, 13, UINT64_C(1) << 56);
	schedule(12500000, 2000000, true, 11, 13, UINT64_C(1) << 52);
	schedule(125000, 1000000, true, 3, 6, 777777777777);
	schedule(UINT64_C(125000000000), 1048576, false, 3, 6, UINT64_C(1) << 50);
	schedule(64000, 1000000, true, 2, 9, 1000000000000); /* a window has room for a packet of 64 bytes */
	schedule(512000, 1000000, true, 2, 9, 1000000000000);
	return 0;
}
