/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the first inputs of fuzz_fair.c into a folder: bytes of all kinds, some of them rare. */
#include <stdint.h>
#include <stdio.h>

#define SEEDS 12
#define BYTES 700

int main(int count, char **arguments)
{
	uint32_t seed, i;

	if (count != 2) {
		fprintf(stderr, "usage: seed_fair DIRECTORY\n");
		return 2;
	}
	for (seed = 0; seed < SEEDS; seed++) {
		uint32_t word = 2654435761U * (seed + 1);
		char path[4096];
		FILE *file;

		snprintf(path, sizeof(path), "%s/seed_%u", arguments[1], seed);
		file = fopen(path, "wb");
		if (!file) {
			perror(path);
			return 1;
		}
		for (i = 0; i < BYTES; i++) {
			word ^= word << 13;
			word ^= word >> 17;
			word ^= word << 5;
			fputc(word % (seed + 1) ? 0 : (int)(word >> 24), file);
		}
		fclose(file);
	}
	return 0;
}
