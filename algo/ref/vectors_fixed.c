/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of fixed.h. */
#include "vectors.h"

static const uint64_t rates_Bps[] = {
	0, 1, 63, 64, 65, 100, 1000, 1001, 7500, 8192, 12500, 99999, 125000, 1000000, 1024000, 1953125, 12500000,
	16777215, 16777216, 16777217, 125000000, 1234567890, 1250000000, 12500000000, 31415926535, 50000000000,
	124999999999, 125000000000, 125000000001, UINT64_MAX,
};

static const uint32_t bytes[] = { 0, 1, 63, 64, 65, 1499, 1500, 1514, 9000, 65535, 131071, (1U << 30) - 1 };

int main(void)
{
	uint64_t seed = 1;
	size_t i, j;

	vectors_header("fixed.h: rate codes, costs, bytes.");
	for (i = 0; i < sizeof(rates_Bps) / sizeof(rates_Bps[0]); i++) {
		uint32_t rate = ref_rate_code(rates_Bps[i]);

		printf("encode rate_Bps=%" PRIu64 " -> rate=%" PRIu32 "\n", rates_Bps[i], rate);
		for (j = 0; j < sizeof(bytes) / sizeof(bytes[0]); j++) {
			printf("cost rate=%" PRIu32 " bytes=%" PRIu32 " -> ticks=%" PRIu64 "\n", rate, bytes[j],
			       (uint64_t)ref_rate_cost(rate, bytes[j]));
		}
		for (j = 0; j < 6; j++) {
			uint64_t ticks = ((uint64_t)vectors_draw(&seed, UINT32_C(1) << 31) << 22) >> (9 * j);

			printf("bytes rate=%" PRIu32 " ticks=%" PRIu64 " -> bytes_q8=%" PRIu64 "\n", rate, ticks,
			       (uint64_t)ref_rate_bytes_q8(rate, ticks));
		}
	}
	return 0;
}
