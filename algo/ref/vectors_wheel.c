/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of wheel.h. */
#include "ref_wheel.h"
#include "vectors.h"

static struct ref_wheel wheel;
static uint64_t seed = 9;

static void put(int item, uint64_t due)
{
	printf("put item=%d due=%" PRIu64 " -> put=%d\n", item, due, ref_wheel_put(&wheel, item, due));
}

static int take(uint64_t now)
{
	int item = ref_wheel_take(&wheel, now);

	printf("take now=%" PRIu64 " -> item=%" PRIu32 "\n", now, (uint32_t)item);
	return item;
}

static void run(uint64_t now, int bits)
{
	int item;

	printf("start now=%" PRIu64 "\n", now);
	ref_wheel_start(&wheel, now);
	for (item = 0; item < 100; item++) {
		put(item, now + vectors_draw_wide(&seed, (uint64_t)1 << (1 + vectors_draw(&seed, (uint32_t)bits))));
		if (item % 7 == 0)
			now += vectors_draw_wide(&seed, (uint64_t)1 << (bits - 4));
		if (item % 3 == 0)
			take(now);
	}
	while (wheel.count > 0) {
		if (take(now) == REF_WHEEL_NONE)
			now += (uint64_t)1 << (bits - 2);
	}
}

int main(void)
{
	vectors_header("wheel.h: what waits, and when it is taken.");
	run(0, 20);
	run(123456789, 30);
	run((uint64_t)1 << 40, 37);
	return 0;
}
