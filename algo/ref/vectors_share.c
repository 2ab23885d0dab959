/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of share.h. */
#include "ref_share.h"
#include "vectors.h"

#define CHILDREN 6

static uint64_t seed = 1;
static struct ref_share_child children[CHILDREN];

static void parent(uint32_t count)
{
	uint32_t i;

	printf("parent\n");
	for (i = 0; i < count; i++)
		printf("child index=%" PRIu32 " guarantee=%" PRIu64 " ceiling=%" PRIu64 " weight=%" PRIu32 "\n", i, children[i].guarantee_Bps,
		       children[i].ceiling_Bps, children[i].weight);
}

static void sums(void)
{
	struct ref_share_sums all = ref_share_sums(children, CHILDREN);

	printf("sums=%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", all.taken_Bps, all.held_Bps, all.weight, all.weight_taken);
}

static void step(uint32_t child, uint64_t rate_Bps, uint64_t demand_Bps)
{
	static const char *const states[] = { "idle", "satisfied", "unsatisfied", "held" };
	uint64_t share_Bps = ref_share_step(children, CHILDREN, (int)child, rate_Bps, demand_Bps);

	printf("step child=%" PRIu32 " rate_Bps=%" PRIu64 " demand_Bps=%" PRIu64 " -> share=%" PRIu64 " state=%s taken=%" PRIu64 " ", child, rate_Bps,
	       demand_Bps, share_Bps, states[children[child].state], children[child].taken_Bps);
	sums();
}

/* Children of all kinds, a rate that changes now and then, some that leave. */
static void family(uint64_t rate_Bps)
{
	uint32_t i;

	for (i = 0; i < CHILDREN; i++) {
		children[i] = (struct ref_share_child){ 0, UINT64_C(1) << 36, vectors_draw(&seed, 5), REF_SHARE_IDLE, 0 };
		if (vectors_draw(&seed, 3) == 0)
			children[i].ceiling_Bps = 1 + vectors_draw_wide(&seed, rate_Bps);
		if (vectors_draw(&seed, 3) == 0)
			children[i].guarantee_Bps = vectors_draw_wide(&seed, 1 + rate_Bps / 3);
		if (vectors_draw(&seed, 8) == 0)
			children[i].weight = 1 << 24;
	}
	parent(CHILDREN);
	for (i = 0; i < 60; i++) {
		uint32_t child = vectors_draw(&seed, CHILDREN);

		if (vectors_draw(&seed, 8) == 0 && children[child].state != REF_SHARE_IDLE) {
			ref_share_leave(&children[child]);
			printf("leave child=%" PRIu32 " -> ", child);
			sums();
		}
		step(child, i == 40 ? rate_Bps / 3 : rate_Bps, vectors_draw(&seed, 10) ? vectors_draw_wide(&seed, 1 + rate_Bps) : 0);
	}
}

int main(void)
{
	vectors_header("share.h: a parent and its children.");
	family(50);
	family(12500000);
	family(UINT64_C(125000000000));
	return 0;
}
