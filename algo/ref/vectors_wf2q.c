/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Writes the golden vectors of wf2q.h. */
#include "ref_wf2q.h"
#include "vectors.h"

static struct ref_wf2q groups;
static struct ref_compact entry;
static uint64_t seed = 13;

/* ---- groups ---- */

static void print_ends(void)
{
	printf(" ends=%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", (uint64_t)ref_wf2q_end_ns(&groups, 0),
	       (uint64_t)ref_wf2q_end_ns(&groups, 1), (uint64_t)ref_wf2q_end_ns(&groups, 2), (uint64_t)ref_wf2q_end_ns(&groups, 3));
}

static void print_windows(void)
{
	printf(" windows=%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, (uint64_t)groups.window_ns[0], (uint64_t)groups.window_ns[1],
	       (uint64_t)groups.window_ns[2], (uint64_t)groups.window_ns[3]);
	print_ends();
}

static void start(ref_int now, ref_int slide)
{
	ref_wf2q_start(&groups, slide, now);
	printf("start now=%" PRIu64 " slide=%" PRIu64 " -> total=%" PRIu64, (uint64_t)now, (uint64_t)slide, (uint64_t)groups.total_ns);
	print_windows();
}

static void gate(ref_int vft)
{
	printf("gate vft=%" PRIu64 " -> group=%d\n", (uint64_t)vft, ref_wf2q_gate(&groups, vft));
}

static void schedule(int group, ref_int vst, ref_int now, bool has_room)
{
	static const char *const verdicts[] = { "send", "recirculate", "drop" };

	printf("schedule group=%d vst=%" PRIu64 " now=%" PRIu64 " room=%d -> verdict=%s\n", group, (uint64_t)vst, (uint64_t)now, has_room,
	       verdicts[ref_wf2q_schedule(group, vst, now, has_room)]);
}

static void slide(ref_int now)
{
	ref_wf2q_slide(&groups, now);
	printf("slide now=%" PRIu64 " -> begin=%" PRIu64, (uint64_t)now, (uint64_t)groups.begin_ns);
	print_ends();
}

static void span(ref_int least, ref_int most)
{
	ref_wf2q_span(&groups, least, most);
	printf("span least=%" PRIu64 " most=%" PRIu64 " -> total=%" PRIu64 "\n", (uint64_t)least, (uint64_t)most, (uint64_t)groups.total_ns);
}

static void share(const uint32_t b[REF_WF2Q_GROUPS], uint32_t variance)
{
	printf("uneven bandwidth=%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 " variance=%" PRIu32 " -> uneven=%d\n", b[0], b[1], b[2], b[3],
	       variance, ref_wf2q_is_uneven(b, variance));
	ref_wf2q_redistribute(&groups, b);
	printf("redistribute bandwidth=%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 " ->", b[0], b[1], b[2], b[3]);
	print_windows();
}

static void front(ref_int front_delay, ref_int back_delay, int32_t delta, ref_int h)
{
	ref_wf2q_front_window(&groups, front_delay, back_delay, delta, h);
	printf("front front_delay=%" PRIu64 " back_delay=%" PRIu64 " delta=%" PRIu32 " h=%" PRIu64 " ->", (uint64_t)front_delay,
	       (uint64_t)back_delay, (uint32_t)delta, (uint64_t)h);
	print_windows();
}

static void back(ref_int vst, ref_int now)
{
	printf("back least_vst=%" PRIu64 " now=%" PRIu64 " -> delay=%" PRIu64 "\n", (uint64_t)vst, (uint64_t)now,
	       (uint64_t)ref_wf2q_back_delay_ns(&groups, vst, now));
}

static ref_int around(ref_int time, uint32_t reach)
{
	ref_int by = vectors_draw(&seed, 2 * reach);

	return time + by < reach ? 0 : time + by - reach;
}

static uint32_t bandwidth_q16(void)
{
	return vectors_draw(&seed, 6) ? vectors_draw(&seed, 65537) : vectors_draw(&seed, 3) * 65536;
}

/* Finish times about the ends, packets that are due and that are not, a slide that is early, on time or late; and windows shared anew. */
static void step(ref_int now)
{
	uint32_t b[REF_WF2Q_GROUPS] = { bandwidth_q16(), bandwidth_q16(), bandwidth_q16(), bandwidth_q16() };
	int which = (int)vectors_draw(&seed, REF_WF2Q_GROUPS);
	ref_int end = ref_wf2q_end_ns(&groups, which);

	gate(end - 1);
	gate(end);
	gate(around(groups.begin_ns, (uint32_t)groups.slide_ns * 4));
	schedule((int)vectors_draw(&seed, 4) / 2, around(now, 2), now, vectors_draw(&seed, 2));
	slide(now);
	back(around(now + groups.slide_ns, (uint32_t)groups.slide_ns), now);
	if (vectors_draw(&seed, 2)) {
		ref_int least = around(now, 1000);

		span(least, least + (ref_int)vectors_draw_wide(&seed, (uint64_t)1 << (10 + vectors_draw(&seed, 40))));
	}
	share(b, vectors_draw(&seed, 20000));
	front((ref_int)vectors_draw_wide(&seed, (uint64_t)1 << (10 + vectors_draw(&seed, 34))),
	      (ref_int)vectors_draw_wide(&seed, (uint64_t)1 << (10 + vectors_draw(&seed, 34))), (int32_t)vectors_draw(&seed, 131071) - 65535,
	      vectors_draw(&seed, 50000));
}

static void run(ref_int now, uint32_t slide_ns)
{
	static const uint32_t full[] = { 65536, 70000, 65536, UINT32_MAX }, edge[] = { 30000, 36554, 30000, 30000 };
	int i;

	start(now, slide_ns);
	for (i = 0; i < 20; i++) {
		now += vectors_draw(&seed, 3) * (ref_int)slide_ns / 2;
		step(now);
	}
	span(now + 5, now); /* less than nothing */
	share(full, 0);
	span(now, now + ((ref_int)1 << 47));
	share(edge, 4915); /* one is 4915.5 from the mean */
	share(edge, 4916);
	slide(now > 3 * (ref_int)slide_ns ? now - 3 * (ref_int)slide_ns : 0); /* a clock that goes back */
	front(0, 40000, -1638, 40000);
	front(0, 40001, -1638, 40000);
	front(0, (ref_int)1 << 50, -65535, 0);
	front((ref_int)1 << 50, 0, -65535, 0);
}

/* ---- the front's delay ---- */

static void loads(void)
{
	static const uint32_t in[] = { 0, 0, 5, 1, 50, 99, 100, 101, 255, UINT32_MAX }, out[] = { 0, 9, 0, 200, 100, 100, 100, 100, 256, 1 };
	uint32_t load[40], delay[40], i;

	for (i = 0; i < 40; i++) {
		uint32_t packets_in = i < 10 ? in[i] : vectors_draw(&seed, 1000), packets_out = i < 10 ? out[i] : vectors_draw(&seed, 1000);
		uint32_t alpha = vectors_draw(&seed, 3000);
		ref_int load_q16 = ref_wf2q_load_q16(packets_in, packets_out);

		load[i] = (uint32_t)load_q16;
		delay[i] = vectors_draw(&seed, (uint32_t)1 << (1 + vectors_draw(&seed, 28)));
		printf("load in=%" PRIu32 " out=%" PRIu32 " alpha=%" PRIu32 " -> load=%" PRIu32 " delay=%" PRIu64 "\n", packets_in, packets_out,
		       alpha, load[i], (uint64_t)ref_wf2q_front_delay_ns(alpha, load_q16));
	}
	for (i = 0; i < 40; i++)
		printf("sample first=%d load=%" PRIu32 " delay=%" PRIu32 " -> alpha=%" PRIu64 "\n", i == 0, load[i], delay[i],
		       (uint64_t)ref_wf2q_fit_alpha_ns(load, delay, (int)i + 1));
}

/* ---- entries ---- */

static void rate(uint64_t rate_Bps)
{
	uint16_t code = ref_compact_code(rate_Bps);

	printf("rate rate_Bps=%" PRIu64 " -> code=%u rate_q2=%" PRIu64 "\n", rate_Bps, code, (uint64_t)ref_compact_rate_q2(code));
}

/* Powers of two and their neighbours, what rounds up to the next power, halves, and others of all sizes. */
static void rates(void)
{
	int bits;

	rate(0);
	rate(511);
	rate(7500);
	for (bits = 9; bits <= 42; bits++) {
		uint64_t power = (uint64_t)1 << bits;

		rate(power - 1);
		rate(power);
		rate(power + (power >> 12)); /* a half step up */
		rate(power + vectors_draw_wide(&seed, power));
	}
	rate(UINT64_MAX);
}

static void take(ref_int now, uint32_t bytes)
{
	ref_int wait = 0;
	bool is_taken = ref_compact_take(&entry, now, bytes, &wait);

	printf("take now=%" PRIu64 " bytes=%" PRIu32 " -> taken=%d", (uint64_t)now, bytes, is_taken);
	if (is_taken)
		printf(" wait=%" PRIu64, (uint64_t)wait);
	printf(" lft=%" PRIu32 "\n", (uint32_t)entry.lft);
}

static void age(ref_int now)
{
	ref_compact_age(&entry, now);
	printf("age now=%" PRIu64 " -> lft=%" PRIu32 "\n", (uint64_t)now, (uint32_t)entry.lft);
}

static void begin(uint64_t rate_Bps, ref_int now)
{
	entry = (struct ref_compact){ ref_compact_code(rate_Bps), now / 64 };
	printf("entry code=%u now=%" PRIu64 " -> lft=%" PRIu32 "\n", entry.code, (uint64_t)now, (uint32_t)entry.lft);
}

/* Twice the rate for a while; now and then a pause of up to 68 s, with the ageing that it asks for. */
static void entries(uint64_t rate_Bps, ref_int now)
{
	int i;

	begin(rate_Bps, now);
	for (i = 0; i < 40; i++) {
		uint32_t bytes = vectors_bytes[vectors_draw(&seed, 8)];
		uint64_t packet_ns = (uint64_t)(bytes * (ref_int)4000000000 / ref_compact_rate_q2(entry.code));

		take(now, bytes);
		now += (ref_int)vectors_draw_wide(&seed, packet_ns + 1);
		if (vectors_draw(&seed, 8) == 0) {
			now += (ref_int)vectors_draw_wide(&seed, (uint64_t)1 << (20 + vectors_draw(&seed, 17)));
			age(now);
		}
	}
}

/* As many at once as are let wait, and what takes more than 68 s by itself. */
static void long_waits(ref_int now)
{
	int i;

	begin(512, now);
	for (i = 0; i < 26; i++)
		take(now, 1500);
	now += 60000000000;
	age(now);
	take(now, 40000);
	take(now, 1500);
	now += 60000000000;
	age(now);
	take(now, 35184); /* 68.7 s, just below the most */
	take(now, 35185);
}

int main(void)
{
	vectors_header("wf2q.h: who is of which group and is sent, how groups move, and DragonKing's entry.");
	run(0, 5000);
	run(1000000007, 1);
	run(((ref_int)1 << 63) - 40000, 5000);
	run(((ref_int)1 << 64) - 100000, 12345);
	loads();
	rates();
	entries(0, 0);
	entries(7500, 123456789);
	entries(125000000, ((ref_int)1 << 38) - 50000);
	entries(12500000000, ((ref_int)1 << 64) - 10000);
	entries(512, ((ref_int)1 << 64) - 10000000000);
	long_waits((ref_int)1 << 40);
	return 0;
}
