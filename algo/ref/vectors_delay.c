/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of delay.h. */
#include "ref_delay.h"
#include "vectors.h"

static uint64_t seed = 12;

static void print_line(const struct pst_line *line)
{
	printf("line seed=%" PRIu64 " owner=%" PRIu32 " delay=%" PRIu64 " jitter=%" PRIu64 " loss=%" PRIu32, line->seed, line->owner,
	       line->delay_ns, line->jitter_ns, line->loss_q32);
	printf(" -> seed=%" PRIu64 "\n", ref_delay_seed(line));
}

static void draw(const struct pst_line *line, uint64_t nth)
{
	uint64_t jitter_ns = 1 + vectors_draw_wide(&seed, 1000000000);

	printf("draw nth=%" PRIu64 " jitter=%" PRIu64 " -> ns=%" PRIu64 "\n", nth, jitter_ns,
	       (uint64_t)ref_delay_draw_ns(line, nth, jitter_ns));
}

static void send(const struct pst_line *line, uint64_t turn_ns)
{
	printf("send turn=%" PRIu64 " -> delay=%" PRIu64 "\n", turn_ns, (uint64_t)ref_delay_ns(line, turn_ns));
}

static void lose(const struct pst_line *line, uint64_t number)
{
	printf("lose number=%" PRIu64 " -> lost=%d\n", number, ref_delay_loses(line, number));
}

/* Over some periods and their ends, where the clock begins and where it ends; and the first packets' fates, and the last one's. */
static void run(struct pst_line line)
{
	uint64_t period_ns = line.jitter_ns ? 4 * line.jitter_ns : 1000, turn_ns = vectors_draw_wide(&seed, (uint64_t)1 << 61);
	int i;

	print_line(&line);
	for (i = 0; i < 3; i++)
		draw(&line, vectors_draw_wide(&seed, (uint64_t)1 << 40) * (uint64_t)i);
	send(&line, 0);
	send(&line, period_ns - 1);
	send(&line, period_ns);
	send(&line, UINT64_MAX);
	for (i = 0; i < 16; i++) {
		send(&line, turn_ns);
		turn_ns += vectors_draw_wide(&seed, period_ns / 2 + 2);
	}
	for (i = 0; i < 16 && line.loss_q32; i++)
		lose(&line, (uint64_t)i);
	if (line.loss_q32)
		lose(&line, UINT64_MAX);
}

int main(void)
{
	int i;

	vectors_header("delay.h: how long packets are on their way, and which ones are lost.");
	run((struct pst_line){ .delay_ns = 5000000 });
	run((struct pst_line){ .delay_ns = 5000000, .jitter_ns = 1000000 });
	run((struct pst_line){ .seed = 1, .delay_ns = 5000000, .jitter_ns = 5000000, .loss_q32 = UINT32_C(1) << 31 });
	run((struct pst_line){ .seed = 1, .owner = 1, .delay_ns = 5000000, .jitter_ns = 5000000, .loss_q32 = UINT32_C(1) << 31 });
	run((struct pst_line){ .seed = 2, .delay_ns = 3, .jitter_ns = 1, .loss_q32 = UINT32_MAX });
	run((struct pst_line){ .seed = UINT64_MAX, .owner = UINT32_MAX, .delay_ns = 1000, .jitter_ns = 7000, .loss_q32 = 42949673 });
	run((struct pst_line){ .seed = 3, .owner = 9, .delay_ns = (uint64_t)1 << 61, .jitter_ns = 1000000000 });
	run((struct pst_line){ .seed = 3, .owner = 9, .delay_ns = (uint64_t)1 << 61, .jitter_ns = 2000000000 });
	/* The one seed that splitmix64 makes 0 of. */
	run((struct pst_line){ .seed = 0x61c8864680b583eb, .delay_ns = 8000, .jitter_ns = 2000, .loss_q32 = UINT32_C(1) << 30 });
	for (i = 0; i < 8; i++) {
		struct pst_line line = { .seed = vectors_draw_wide(&seed, (uint64_t)1 << 62), .owner = vectors_draw(&seed, 100) };

		line.loss_q32 = vectors_draw(&seed, UINT32_C(1) << 31) * 2 + 1;
		line.delay_ns = 1 + vectors_draw_wide(&seed, (uint64_t)1 << (10 + vectors_draw(&seed, 24)));
		line.jitter_ns = vectors_draw_wide(&seed, line.delay_ns);
		run(line);
	}
	return 0;
}
