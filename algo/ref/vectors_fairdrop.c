/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of fairdrop.h. */
#include "ref_fairdrop.h"
#include "vectors.h"

static uint64_t seed = 1;

static uint32_t draw(void)
{
	return (uint32_t)vectors_draw_wide(&seed, (uint64_t)1 << (1 + vectors_draw(&seed, 32)));
}

static void chance(uint32_t limit, uint32_t user, uint32_t b, uint32_t random)
{
	printf("chance limit=%" PRIu32 " user=%" PRIu32 " b=%" PRIu32 " random=%" PRIu32 " -> passes=%d\n", limit, user, b, random,
	       ref_fairdrop_passes(limit, user, b, random));
}

int main(void)
{
	static const char *const verdicts[] = { "pass", "mark", "drop" };
	struct ref_fairdrop flow = { 32, 0, 0, 0, 0 };
	uint32_t i;

	vectors_header("fairdrop.h: drops by chance, and periodic ones.");
	chance(1, 3, 0, 1431655765);
	chance(1, 3, 0, 1431655766);
	chance(0, UINT32_MAX, 0, 0);
	chance(UINT32_MAX - 1, UINT32_MAX, 0, UINT32_MAX);
	for (i = 0; i < 100; i++) {
		uint32_t limit = draw(), user = draw();

		chance(limit < user ? limit : user, limit < user ? user : limit, i % 2 ? 5 : 0, (uint32_t)vectors_draw_wide(&seed, (uint64_t)1 << 32));
	}
	printf("flow word=0 const_shift=5\n");
	for (i = 0; i < 300; i++) {
		uint32_t limit = i < 100 ? 20000 : i < 200 ? 900 : 40000, user = limit / 2 + vectors_draw(&seed, 3 * limit);
		uint32_t length = vectors_bytes[vectors_draw(&seed, 8)] * 3;
		bool ect = i % 100 < 70;

		if (i == 200) {
			flow = (struct ref_fairdrop){ 2, 0, 0, 0, 0 };
			printf("flow word=0 const_shift=1\n");
		}
		printf("periodic limit=%" PRIu32 " user=%" PRIu32 " length=%" PRIu32 " ect=%d", limit, user, length, ect);
		printf(" -> verdict=%s\n", verdicts[ref_fairdrop_periodic(&flow, limit, user, length, ect)]);
	}
	return 0;
}
