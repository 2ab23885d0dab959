/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the fixtures of test/ as inputs of fuzz_packet.c, one file each, into the directory that is named. */
#include "packet_fixtures.h"
#include "packet_text.h"

int main(int count, char **arguments)
{
	uint8_t bytes[PACKET_BYTES_MAX];
	char path[4096];
	size_t i;

	if (count != 2) {
		fprintf(stderr, "usage: seed_packet DIRECTORY\n");
		return 2;
	}
	for (i = 0; i < PACKET_FIXTURES; i++) {
		uint8_t head[3] = {(uint8_t)packet_fixtures[i].link, 0, 0};
		uint32_t size = packet_from_hex(bytes, packet_fixtures[i].hex);
		FILE *file;

		snprintf(path, sizeof(path), "%s/fixture-%zu", arguments[1], i);
		file = fopen(path, "wb");
		if (!file || fwrite(head, 1, sizeof(head), file) != sizeof(head) ||
		    fwrite(bytes, 1, size, file) != size || fclose(file)) {
			perror(path);
			return 1;
		}
	}
	return 0;
}
