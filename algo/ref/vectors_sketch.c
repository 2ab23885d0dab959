/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of sketch.h. */
#include "ref_lpf.h"
#include "ref_sketch.h"
#include "vectors.h"

#define BITS_MAX 6
#define STAMP_TAU 10 /* a tau whose stamps are ns */

static uint64_t seed = 1, seeds[REF_SKETCH_ROWS], words[REF_SKETCH_ROWS][1 << BITS_MAX];

static uint64_t draw(void)
{
	return vectors_draw_wide(&seed, (uint64_t)1 << 62) << 4 ^ vectors_draw(&seed, 1 << 16);
}

static void column(uint64_t user, uint64_t row_seed, uint32_t bits)
{
	printf("column user=%" PRIu64 " seed=%" PRIu64 " bits=%" PRIu32 " -> column=%" PRIu32 "\n", user, row_seed, bits,
	       ref_sketch_column(user, row_seed, bits));
}

static void schedule(uint32_t rows, uint32_t bits, uint32_t users)
{
	uint64_t now = 5000;
	uint32_t row, i;

	for (row = 0; row < REF_SKETCH_ROWS; row++) {
		seeds[row] = draw();
		for (i = 0; i < 1 << BITS_MAX; i++)
			words[row][i] = 0;
	}
	printf("sketch rows=%" PRIu32 " bits=%" PRIu32 " seeds=%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", rows, bits, seeds[0], seeds[1],
	       seeds[2], seeds[3]);
	for (i = 0; i < 100; i++) {
		uint64_t user = vectors_draw(&seed, users) * UINT64_C(0x100000001), least = UINT32_MAX;
		uint32_t parts = vectors_draw(&seed, 1 << 24);
		bool adds = vectors_draw(&seed, 4);

		now += vectors_draw(&seed, 200);
		for (row = 0; row < rows; row++) {
			uint64_t *word = &words[row][ref_sketch_column(user, seeds[row], bits)], value = ref_lpf_value(*word, now, STAMP_TAU);

			if (adds) {
				*word = ref_lpf_next(*word, now, STAMP_TAU, parts);
				value = *word >> 32;
			}
			least = value < least ? value : least;
		}
		if (adds)
			printf("add user=%" PRIu64 " stamp=%" PRIu64 " parts=%" PRIu32 " -> value=%" PRIu64 "\n", user, now, parts, least);
		else
			printf("read user=%" PRIu64 " stamp=%" PRIu64 " -> value=%" PRIu64 "\n", user, now, least);
	}
}

int main(void)
{
	uint32_t i;

	vectors_header("sketch.h: where users lie, and how they read.");
	column(0, 0, 11);
	column(UINT64_MAX, UINT64_MAX, 20);
	column(UINT64_MAX, 1, 20);
	column(1, UINT64_C(1) << 32, 0);
	for (i = 0; i < 60; i++)
		column(i % 2 ? draw() : i, draw(), i % 21);
	schedule(3, 6, 30);
	schedule(1, 2, 10);
	schedule(4, 0, 3);
	return 0;
}
