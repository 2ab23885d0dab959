/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of wf2q_control.h. */
#include "ref_wf2q_control.h"
#include "vectors.h"

#define ENTRIES 10

static struct ref_control control;
static uint64_t seed = 14;

static void print_groups(void)
{
	const struct ref_wf2q *groups = &control.groups;
	ref_int next = control.slide_at_ns < control.monitor_at_ns ? control.slide_at_ns : control.monitor_at_ns;

	printf(" total=%" PRIu64 " windows=%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, (uint64_t)groups->total_ns,
	       (uint64_t)groups->window_ns[0], (uint64_t)groups->window_ns[1], (uint64_t)groups->window_ns[2],
	       (uint64_t)groups->window_ns[3]);
	printf(" ends=%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 " next=%" PRIu64 "\n", (uint64_t)ref_wf2q_end_ns(groups, 0),
	       (uint64_t)ref_wf2q_end_ns(groups, 1), (uint64_t)ref_wf2q_end_ns(groups, 2), (uint64_t)ref_wf2q_end_ns(groups, 3),
	       (uint64_t)next);
}

static void start(ref_int slide, ref_int now)
{
	ref_control_start(&control, slide, now);
	printf("profile capacity_Bps=%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, (uint64_t)control.capacity_Bps[0],
	       (uint64_t)control.capacity_Bps[1], (uint64_t)control.capacity_Bps[2], (uint64_t)control.capacity_Bps[3]);
	printf(" monitor=%" PRIu64 " slide=%" PRIu64 " h=%" PRIu64 " variance=%" PRIu32 " alpha=%" PRIu64 " delta=%" PRIu32,
	       (uint64_t)control.monitor_ns, (uint64_t)slide, (uint64_t)control.h_ns, control.variance_q16, (uint64_t)control.alpha_ns,
	       (uint32_t)control.delta_q16);
	printf(" redistributes=%d schedules=%d now=%" PRIu64 " ->", control.redistributes, control.schedules, (uint64_t)now);
	print_groups();
}

static void see(ref_int vst, ref_int vft)
{
	printf("see vft=%" PRIu64 "\n", (uint64_t)vft);
	ref_control_see(&control, (struct ref_seen){ -1, vst, vft, 0 });
}

static void pass(int group, ref_int vst, ref_int vft, uint32_t bytes)
{
	printf("pass group=%d vst=%" PRIu64 " vft=%" PRIu64 " bytes=%" PRIu32 "\n", group, (uint64_t)vst, (uint64_t)vft, bytes);
	ref_control_see(&control, (struct ref_seen){ group, vst, vft, bytes });
}

static void front(uint32_t in, uint32_t out)
{
	printf("front in=%" PRIu32 " out=%" PRIu32 "\n", in, out);
	control.front_in += in;
	control.front_out += out;
}

static void reading(void)
{
	ref_int time;

	printf("reading -> bytes=%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 " in=%" PRIu64 " out=%" PRIu64,
	       (uint64_t)ref_control_bytes(&control, 0), (uint64_t)ref_control_bytes(&control, 1), (uint64_t)ref_control_bytes(&control, 2),
	       (uint64_t)ref_control_bytes(&control, 3), (uint64_t)control.front_in, (uint64_t)control.front_out);
	if (ref_control_least_vst_ns(&control, &time))
		printf(" least_vst=%" PRIu64, (uint64_t)time);
	if (ref_control_most_vft_ns(&control, &time))
		printf(" most_vft=%" PRIu64, (uint64_t)time);
	printf("\n");
}

static void tick(ref_int now)
{
	bool is_used = ref_control_tick(&control, now);

	printf("tick now=%" PRIu64 " -> used=%d redistributions=%" PRIu64 " begin=%" PRIu64, (uint64_t)now, is_used,
	       (uint64_t)control.redistributions, (uint64_t)control.groups.begin_ns);
	print_groups();
}

/* Some packets, of slow limits and of fast ones, that are due or late or neither. */
static void watch(ref_int now, uint32_t reach_ns)
{
	uint32_t packets = vectors_draw(&seed, 4) ? vectors_draw(&seed, 7) : 0;

	for (; packets > 0; packets--) {
		int pipeline = (int)vectors_draw(&seed, 5) - 1;
		ref_int vst = now + vectors_draw(&seed, reach_ns);
		ref_int vft;

		vst = vst > reach_ns / 2 ? vst - reach_ns / 2 : 0;
		vft = vst + (ref_int)vectors_draw_wide(&seed, (uint64_t)1 << (7 + vectors_draw(&seed, 30)));
		if (pipeline < 0)
			see(vst, vft);
		else
			pass(pipeline, vst, vft, vectors_bytes[vectors_draw(&seed, 8)] * (1 + vectors_draw(&seed, 40)));
	}
	if (vectors_draw(&seed, 2))
		front(vectors_draw(&seed, 60), vectors_draw(&seed, 60));
}

/* Ticks on time, late, and before any timer. */
static void run(ref_int slide, ref_int now, uint32_t reach_ns)
{
	int i;

	start(slide, now);
	for (i = 0; i < 14; i++) {
		ref_int next = control.slide_at_ns < control.monitor_at_ns ? control.slide_at_ns : control.monitor_at_ns;

		watch(now, reach_ns);
		now = vectors_draw(&seed, 4) ? next : now + vectors_draw(&seed, 2 * (uint32_t)slide);
		if (vectors_draw(&seed, 2))
			reading();
		tick(now);
	}
}

/* The paper's, on pipelines of 100 Gbit/s. */
static void set_paper(bool redistributes, bool schedules)
{
	int i;

	control.monitor_ns = 5000;
	control.h_ns = 40000;
	control.variance_q16 = 6553;
	control.alpha_ns = 1000;
	control.delta_q16 = -1638;
	control.redistributes = redistributes;
	control.schedules = schedules;
	for (i = 0; i < REF_WF2Q_GROUPS; i++)
		control.capacity_Bps[i] = 12500000000;
}

/* Windows that are shared for a long T, and then T is short, and nothing is uneven: the front's alone is made to fit. */
static void run_shorter(void)
{
	set_paper(true, false);
	start(5000, 0);
	pass(1, 0, 1000000, 31250);
	tick(5000);
	see(5000, 6000);
	tick(10000);
}

static void run_drawn(ref_int now)
{
	int i;

	control.monitor_ns = 1 + vectors_draw(&seed, (uint32_t)1 << (1 + vectors_draw(&seed, 22)));
	control.h_ns = vectors_draw(&seed, 100000);
	control.variance_q16 = vectors_draw(&seed, 10000);
	control.alpha_ns = vectors_draw(&seed, 3000);
	control.delta_q16 = (ref_int)vectors_draw(&seed, 8000) - 6000;
	control.redistributes = vectors_draw(&seed, 4) != 0;
	control.schedules = vectors_draw(&seed, 4) != 0;
	for (i = 0; i < REF_WF2Q_GROUPS; i++)
		control.capacity_Bps[i] = 1000 + (ref_int)vectors_draw_wide(&seed, (uint64_t)1 << (10 + vectors_draw(&seed, 25)));
	run(1 + vectors_draw(&seed, 20000), now, 2000000);
}

static void print_entries(const struct ref_compact *entries)
{
	int i;

	printf(" lft=");
	for (i = 0; i < ENTRIES; i++)
		printf("%s%" PRIu32, i ? "," : "", (uint32_t)entries[i].lft);
}

/* A few at a time, behind now and before it, until all were asked. */
static void age(ref_int now, uint32_t count)
{
	struct ref_compact entries[ENTRIES] = { { 0, 0 } };
	uint32_t from = 0;
	int i;

	for (i = 0; i < ENTRIES; i++)
		entries[i].lft = now / 64 - 50 + vectors_draw(&seed, 100);
	do {
		printf("age now=%" PRIu64 " from=%" PRIu32 " count=%" PRIu32, (uint64_t)now, from, count);
		print_entries(entries);
		from = ref_control_age(entries, ENTRIES, from, count, now);
		printf(" -> from=%" PRIu32, from);
		print_entries(entries);
		printf("\n");
	} while (from);
}

int main(void)
{
	int i;

	vectors_header("wf2q_control.h: what was seen, and where DragonKing's control plane puts the groups.");
	for (i = 0; i < 4; i++) {
		set_paper(i & 1, i & 2);
		run(5000, (ref_int)i * 1000000, 20000);
	}
	set_paper(true, true);
	run(5000, ((ref_int)1 << 64) - 30000, 200000); /* across the end of the clock */
	run(5000, ((ref_int)1 << 63) - 30000, 200000);
	run_shorter();
	for (i = 0; i < 8; i++)
		run_drawn((ref_int)vectors_draw_wide(&seed, (uint64_t)1 << 60));
	age((ref_int)1 << 40, 3);
	age((ref_int)1 << 38, 1);
	age(((ref_int)1 << 64) + 640, 100);
	return 0;
}
