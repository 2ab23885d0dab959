/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of lpf.h. */
#include "ref_lpf.h"
#include "vectors.h"

static uint64_t seed = 1, word;

static void filter(uint32_t tau_shift, uint64_t start)
{
	word = start;
	printf("filter tau_shift=%" PRIu32 " word=%" PRIu64 "\n", tau_shift, word);
}

static void add(uint32_t tau_shift, uint64_t now_ns, uint32_t parts)
{
	word = ref_lpf_next(word, now_ns, tau_shift, parts);
	printf("add now=%" PRIu64 " parts=%" PRIu32 " -> value=%" PRIu64 " word=%" PRIu64 "\n", now_ns, parts, word >> 32, word);
}

static void read_at(uint32_t tau_shift, uint64_t now_ns)
{
	printf("read now=%" PRIu64 " -> value=%" PRIu32 "\n", now_ns, ref_lpf_value(word, now_ns, tau_shift));
}

/* The scale by its definition: the 32 highest bits of 10^9 / (nominal weight), cut. */
static void parts(uint64_t nominal_Bps, uint32_t weight, uint32_t tau_shift, uint32_t bytes)
{
	unsigned __int128 divisor = (unsigned __int128)nominal_Bps * weight, product;
	uint32_t steps = 0, shift;
	uint64_t factor, result;

	while ((((unsigned __int128)1000000000 << steps) / divisor) < ((uint64_t)1 << 31))
		steps++;
	factor = (uint64_t)(((unsigned __int128)1000000000 << steps) / divisor);
	shift = steps + tau_shift - 24;
	product = (unsigned __int128)factor * bytes + ((unsigned __int128)1 << (shift - 1));
	result = (uint64_t)(product >> shift);
	result = result > UINT32_MAX ? UINT32_MAX : result ? result : 1;
	printf("parts nominal_Bps=%" PRIu64 " weight=%" PRIu32 " tau_shift=%" PRIu32 " bytes=%" PRIu32 " -> factor=%" PRIu64
	       " shift=%" PRIu32 " parts=%" PRIu64 "\n",
	       nominal_Bps, weight, tau_shift, bytes, factor, shift, result);
}

static void schedule(uint32_t tau_shift, uint64_t now_ns, uint64_t start)
{
	int i;

	filter(tau_shift, start);
	for (i = 0; i < 25; i++) {
		add(tau_shift, now_ns, (uint32_t)vectors_draw_wide(&seed, (uint64_t)1 << (1 + vectors_draw(&seed, 31))));
		now_ns += vectors_draw_wide(&seed, (uint64_t)1 << (tau_shift - 8 + vectors_draw(&seed, 12)));
		read_at(tau_shift, now_ns);
		if (vectors_draw(&seed, 6) == 0)
			now_ns -= vectors_draw_wide(&seed, (uint64_t)1 << (tau_shift + 4));
	}
}

int main(void)
{
	vectors_header("lpf.h: the filter's word, and packets in parts.");
	schedule(22, 1000000000, 0);
	schedule(22, (uint64_t)0 - 5000000, 0xfffffffffffffff0);
	schedule(22, ((uint64_t)1 << 44) - 3000000, (uint64_t)1000000 << 32 | 0xffffff00);
	schedule(10, 77777, 0);
	schedule(30, (uint64_t)1 << 63, 0);
	parts(12500000, 1, 22, 1500);
	parts(125000000, 1, 22, 64);
	parts(125000000, 4, 22, 1500);
	parts(UINT64_C(12500000000), 1, 22, 64);
	parts(UINT64_C(125000000000), 65535, 22, 64);
	parts(1000, 1, 22, 1500);
	parts(8000, 3, 24, 9000);
	return 0;
}
