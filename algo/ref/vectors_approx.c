/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of approx.h. */
#include "ref_approx.h"
#include "vectors.h"

static uint64_t seed = 1;

static void table(struct ref_cut cut)
{
	static const uint32_t edges[] = { 0, 1, 2, 49, 50, 51, 64, 1500, 9000, 9999, 10000, 10001, UINT32_MAX };
	uint32_t i;

	printf("profile low=%" PRIu32 " high=%" PRIu32 " r_numerator=%" PRIu32 " r_denominator=%" PRIu32
	       " -> intervals=%" PRIu32 "\n", cut.low, cut.high, cut.numerator, cut.denominator, ref_approx_count(cut));
	for (i = 0; i < 13 + 60; i++) {
		uint32_t x = i < 13 ? edges[i] : vectors_draw(&seed, cut.high) + 1;
		uint32_t y = i < 13 ? edges[12 - i] : vectors_draw(&seed, UINT32_C(1) << (1 + vectors_draw(&seed, 14)));
		struct ref_interval interval = ref_approx_interval(cut, x);

		printf("interval value=%" PRIu32 " -> first=%" PRIu64 " last=%" PRIu64 "\n", x, interval.first, interval.last);
		printf("divide x=%" PRIu32 " y=%" PRIu32 " -> q32=%" PRIu64 "\n", x, y, ref_adt_divide_q32(cut, x, y));
		printf("multiply x=%" PRIu32 " y=%" PRIu32 " -> product_x2=%" PRIu64 "\n", x, y,
		       ref_amt_multiply_x2(cut, x, y));
	}
}

static void tcam(uint32_t b)
{
	struct ref_group none;
	int i;

	for (i = 0; i < 40; i++) {
		uint64_t edge = ((uint64_t)1 << (4 * i % 32)) - (unsigned)(i & 1);
		uint64_t operand = i < 8 ? edge : vectors_draw_wide(&seed, (uint64_t)1 << 32);
		uint64_t factor = vectors_draw_wide(&seed, (uint64_t)1 << vectors_draw(&seed, 30));

		printf("tcam b=%" PRIu32 " factor=%" PRIu64 " operand=%" PRIu64 " -> product=%" PRIu64 "\n", b, factor, operand,
		       ref_tcam_multiply(factor, operand, b));
	}
	printf("entries operand_bits=32 b=%" PRIu32 " -> count=%" PRIu32 "\n", b, ref_tcam_groups(&none, 0, 32, b));
}

int main(void)
{
	uint32_t b;

	vectors_header("approx.h: ADT and AMT (both operands cut alike), and the TCAM multiply.");
	table((struct ref_cut){ 1, 10000, 2, 100 });
	table((struct ref_cut){ 3, 20000, 1, 7 });
	for (b = 1; b <= 10; b++)
		tcam(b);
	return 0;
}
