/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of circulation.h. */
#include "ref_circulation.h"
#include "vectors.h"

#define ARRIVALS 70
#define FLOWS 6

static struct ref_circulation circulation;
static uint64_t seed = 15;

static void print_four(const char *name, const ref_int *four)
{
	printf(" %s=%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, name, (uint64_t)four[0], (uint64_t)four[1], (uint64_t)four[2],
	       (uint64_t)four[3]);
}

static void start(ref_int slide, ref_int now)
{
	struct ref_control *control = &circulation.control;

	ref_control_start(control, slide, now);
	ref_circulation_start(&circulation, now);
	printf("profile");
	print_four("capacity_Bps", control->capacity_Bps);
	print_four("room_bytes", circulation.room_bytes);
	printf(" loop=%" PRIu64 " monitor=%" PRIu64 " slide=%" PRIu64 " h=%" PRIu64 " variance=%" PRIu32 " alpha=%" PRIu64,
	       (uint64_t)circulation.loop_ns, (uint64_t)control->monitor_ns, (uint64_t)slide, (uint64_t)control->h_ns,
	       control->variance_q16, (uint64_t)control->alpha_ns);
	printf(" delta=%" PRIu32 " redistributes=%d schedules=%d packets=%d now=%" PRIu64 "\n", (uint32_t)control->delta_q16,
	       control->redistributes, control->schedules, circulation.packets_max, (uint64_t)now);
}

static bool put(ref_int now, ref_int vst, ref_int vft, uint32_t bytes, int tag)
{
	struct ref_circulating packet = { vst, vft, 0, bytes, 0, tag };
	bool was_taken = ref_circulation_put(&circulation, packet, now);

	printf("put now=%" PRIu64 " vst=%" PRIu64 " vft=%" PRIu64 " bytes=%" PRIu32 " tag=%d -> put=%d\n", (uint64_t)now, (uint64_t)vst,
	       (uint64_t)vft, bytes, tag, was_taken);
	return was_taken;
}

/* All that leaves until then. */
static void run(ref_int until)
{
	struct ref_circulating sent;

	while (ref_circulation_run(&circulation, until, &sent))
		printf("run until=%" PRIu64 " -> sent=1 at=%" PRIu64 " tag=%d vst=%" PRIu64 " bytes=%" PRIu64 "\n", (uint64_t)until,
		       (uint64_t)sent.end_ns, sent.tag, (uint64_t)sent.vst_ns, (uint64_t)sent.bytes);
	printf("run until=%" PRIu64 " -> sent=0\n", (uint64_t)until);
}

static void state(void)
{
	printf("state -> waiting=%d", circulation.count);
	print_four("passed", circulation.passed_bytes);
	print_four("windows", circulation.control.groups.window_ns);
	printf("\n");
}

/* The paper's, on pipelines of 100 Gbit/s with a loop of 1 us. */
static void set_paper(ref_int room_bytes, int packets_max)
{
	struct ref_control *control = &circulation.control;
	int i;

	control->monitor_ns = 5000;
	control->h_ns = 40000;
	control->variance_q16 = 6553;
	control->alpha_ns = 1000;
	control->delta_q16 = -1638;
	control->redistributes = true;
	control->schedules = true;
	circulation.loop_ns = 1000;
	circulation.packets_max = packets_max;
	for (i = 0; i < REF_WF2Q_GROUPS; i++) {
		control->capacity_Bps[i] = 12500000000;
		circulation.room_bytes[i] = room_bytes;
	}
}

static ref_int set_drawn(void)
{
	struct ref_control *control = &circulation.control;
	int i;

	set_paper(0, 4 + (int)vectors_draw(&seed, 60));
	control->monitor_ns = 1000 + vectors_draw(&seed, UINT32_C(1) << (10 + vectors_draw(&seed, 8)));
	control->h_ns = vectors_draw(&seed, 50000);
	control->delta_q16 = -(ref_int)vectors_draw(&seed, 8000);
	control->redistributes = vectors_draw(&seed, 4) != 0;
	control->schedules = vectors_draw(&seed, 4) != 0;
	circulation.loop_ns = 500 + vectors_draw(&seed, 2000);
	for (i = 0; i < REF_WF2Q_GROUPS; i++) {
		control->capacity_Bps[i] = 1250000000 + vectors_draw(&seed, 1000000000);
		circulation.room_bytes[i] = 9000 + vectors_draw(&seed, UINT32_C(1) << (10 + vectors_draw(&seed, 8)));
	}
	return 1000 + vectors_draw(&seed, 20000);
}

/* Limits of 60 MB/s and more, each packet of which starts when the one before finishes; and then until all have left. */
static void arrive(ref_int slide, ref_int now)
{
	ref_int lft[FLOWS], cost_q8[FLOWS];
	int i;

	start(slide, now);
	for (i = 0; i < FLOWS; i++) {
		lft[i] = now;
		cost_q8[i] = 1 + vectors_draw(&seed, UINT32_C(1) << (1 + vectors_draw(&seed, 12)));
	}
	for (i = 0; i < ARRIVALS; i++) {
		int flow = (int)vectors_draw(&seed, FLOWS);
		uint32_t bytes = vectors_bytes[vectors_draw(&seed, 8)];
		ref_int vst = lft[flow] > now ? lft[flow] : now, vft = vst + 1 + bytes * cost_q8[flow] / 256;

		if (put(now, vst, vft, bytes, i))
			lft[flow] = vft;
		now += vectors_draw(&seed, 3) ? vectors_draw(&seed, 3000) : 0;
		if (i % 2)
			run(now);
		if (i % 10 == 0)
			state();
	}
	while (circulation.count > 0) {
		now += 100000;
		run(now);
	}
	state();
}

/* Who waits behind many is later than its finish time, and its successor goes before it (I4). */
static void overtake(void)
{
	int i;

	set_paper(5000000, 100);
	circulation.control.monitor_ns = 1000000;
	start(5000, 0);
	for (i = 0; i < 84; i++) /* 60 us a round */
		put(0, 60000, 60720, 9000, i);
	put(0, 30000, 35000, 1500, 84);
	run(36000);
	put(36000, 35000, 40000, 1500, 85);
	run(200000);
	state();
}

int main(void)
{
	int i;

	vectors_header("circulation.h: which packets are taken in, and when they leave.");
	set_paper(5000000, 64);
	arrive(5000, 0);
	set_paper(20000, 64);
	arrive(5000, ((ref_int)1 << 64) - 50000); /* across the end of the clock */
	set_paper(5000000, 5);
	arrive(5000, ((ref_int)1 << 63) - 50000);
	for (i = 0; i < 5; i++)
		arrive(set_drawn(), (ref_int)vectors_draw_wide(&seed, (uint64_t)1 << 60));
	overtake();
	return 0;
}
