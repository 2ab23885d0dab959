/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Packets a second of live frames (BPF_F_TEST_XDP_LIVE_FRAMES), which one core both sends into one end of a veth pair and judges at the
 * other. First where each is dropped at once: the programs. Then where each goes on as a packet of the kernel and out by a second
 * pair: qdiscs there, and our program in front of none.
 */
#define _GNU_SOURCE

#include "contest.h"

#include <bpf/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 7
#define FRAMES 2000000
#define BATCH 64

/* A frame's way: sent into the first, judged at the second; then out by the third, counted at the fourth. */
enum { IN, JUDGE, OUT, END, INTERFACES };
static const char *const interfaces[INTERFACES] = { "pstin", "pstjudge", "pstout", "pstend" };

static void shell(const char *format, ...)
{
	char command[256];
	va_list values;

	va_start(values, format);
	vsnprintf(command, sizeof(command), format, values);
	va_end(values);
	if (system(command))
		bench_fail(command);
}

static uint32_t index_of(int interface)
{
	uint32_t index = if_nametoindex(interfaces[interface]);

	if (!index)
		bench_fail(interfaces[interface]);
	return index;
}

static void make_interfaces(void)
{
	int i;

	shell("ip link add %s type veth peer name %s", interfaces[IN], interfaces[JUDGE]);
	shell("ip link add %s type veth peer name %s", interfaces[OUT], interfaces[END]);
	for (i = 0; i < INTERFACES; i++) {
		shell("f=/proc/sys/net/ipv6/conf/%s/disable_ipv6; [ ! -e $f ] || echo 1 >$f", interfaces[i]);
		shell("ip link set %s up", interfaces[i]);
	}
}

static void attach(const struct contest *contest, const char *program)
{
	if (bpf_xdp_attach((int)index_of(JUDGE), contest_program(contest, program), XDP_FLAGS_DRV_MODE, NULL))
		bench_fail("attaching a program to veth");
}

static double received(const struct contest *contest)
{
	uint64_t of_cpu[1024], sum = 0;
	uint32_t zero = 0;
	int i;

	if (libbpf_num_possible_cpus() > 1024 || bpf_map_lookup_elem(contest_map(contest, "received"), &zero, of_cpu))
		bench_fail("received");
	for (i = 0; i < libbpf_num_possible_cpus(); i++)
		sum += of_cpu[i];
	return (double)sum;
}

/* Millions of packets a second that came to where they are counted. */
static double send_frames(const struct contest *contest, double *lost)
{
	uint8_t frame[BENCH_FRAME_BYTES];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = sizeof(frame), .repeat = FRAMES,
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES, .batch_size = BATCH);
	double before = received(contest), start = bench_now_ns(), packets;

	bench_frame(frame);
	if (bpf_prog_test_run_opts(contest_program(contest, "bench_send"), &options))
		bench_fail("sending live frames");
	packets = received(contest) - before;
	*lost = 1 - packets / FRAMES;
	return packets / (bench_now_ns() - start) * 1e3;
}

static void contest_on_veth(struct contest *contest, const char *path, uint32_t flows, uint64_t rate_Bps)
{
	*contest = (struct contest){ .flows = flows, .rate_Bps = rate_Bps, .ifindex = index_of(JUDGE),
				     .send_ifindex = index_of(IN), .out_ifindex = index_of(OUT) };
	contest_open(contest, path);
}

/* ---- programs ---- */

static void rewrite(const struct contest *contest)
{
	struct rewriter rewriter = { .contest = contest };
	pthread_t thread;
	double rate, lost;

	attach(contest, "live_penstock");
	pthread_create(&thread, NULL, rewriter_run, &rewriter);
	send_frames(contest, &lost);
	rate = send_frames(contest, &lost);
	rewriter.stops = true;
	pthread_join(thread, NULL);
	printf("%9u  rewriting %.1f M entries/s meanwhile: %.2f M packets/s\n", contest->flows, rewriter.per_second / 1e6, rate);
}

static void race_programs(const char *path, uint32_t flows)
{
	static const char *const programs[] = { "live_empty", "live_penstock", "live_hash", "live_lru" };
	enum { PROGRAMS = sizeof(programs) / sizeof(*programs) };
	double rates[PROGRAMS][ROUNDS], lost[PROGRAMS] = { 0 }, empty_ns = 0;
	struct contest contest;
	int round, i;

	contest_on_veth(&contest, path, flows, UINT64_C(1140000000) / flows / 2 + 1);
	for (round = 0; round < ROUNDS; round++)
		for (i = 0; i < PROGRAMS; i++) {
			attach(&contest, programs[i]);
			rates[i][round] = send_frames(&contest, &lost[i]);
		}
	for (i = 0; i < PROGRAMS; i++) {
		double rate = bench_median(rates[i], ROUNDS);

		if (i == 0)
			empty_ns = 1e3 / rate;
		printf("%9u  %-14s %8.2f %10.0f %9.1f %%\n", flows, programs[i], rate, 1e3 / rate - empty_ns, 100 * lost[i]);
	}
	if (flows >= 1000 && sysconf(_SC_NPROCESSORS_ONLN) > 1)
		rewrite(&contest);
	fflush(stdout);
	contest_close(&contest);
}

/* ---- qdiscs ---- */

/* Adds an HTB with its classes. Returns the seconds that it took. */
static double add_htb(void)
{
	double start = bench_now_ns();
	FILE *tc = popen("tc -batch -", "w");
	uint32_t class;

	if (!tc)
		bench_fail("tc");
	fprintf(tc, "qdisc add dev %s root handle 1: htb default ffff\n", interfaces[OUT]);
	for (class = 1; class <= BENCH_CLASSES; class++)
		fprintf(tc, "class add dev %s parent 1: classid 1:%x htb rate 1gbit quantum 1514\n", interfaces[OUT], class);
	if (pclose(tc))
		bench_fail("adding classes");
	return (bench_now_ns() - start) / 1e9;
}

static void hook(const struct contest *contest, int interface, const char *program)
{
	LIBBPF_OPTS(bpf_tc_hook, place, .ifindex = (int)index_of(interface), .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .prog_fd = contest_program(contest, program), .handle = 1, .priority = 1,
		    .flags = BPF_TC_F_REPLACE);

	(void)bpf_tc_hook_create(&place); /* it may be there */
	if (bpf_tc_attach(&place, &options))
		bench_fail("attaching a classifier");
}

static void race_qdisc(const struct contest *contest, const char *name, const char *program, const char *note)
{
	double rates[ROUNDS], lost = 0;
	int round;

	attach(contest, program);
	send_frames(contest, &lost);
	for (round = 0; round < ROUNDS; round++)
		rates[round] = send_frames(contest, &lost);
	printf("%9s  %-14s %8.2f %10s %9.1f %%   %s\n", "", name, bench_median(rates, ROUNDS), "", 100 * lost, note);
	fflush(stdout);
}

/* Limits that nobody exceeds: what is measured is the way past them. */
static void race_qdiscs(const char *path, uint32_t flows)
{
	struct contest contest;
	char note[96];

	contest_on_veth(&contest, path, flows, 125000000);
	hook(&contest, JUDGE, "bench_class");
	hook(&contest, END, "bench_end");
	printf("%9s  %-14s %8s %10s %11s   (through the kernel and out by a second pair)\n", "", "qdisc", "M/s", "", "lost");
	race_qdisc(&contest, "none", "pass_all", "");
	snprintf(note, sizeof(note), "%u limiters in front", flows);
	race_qdisc(&contest, "none", "pass_penstock", note);
	shell("tc qdisc add dev %s root tbf rate 100gbit burst 10mb limit 100mb", interfaces[OUT]);
	race_qdisc(&contest, "tbf", "pass_all", "1 limit");
	shell("tc qdisc del dev %s root", interfaces[OUT]);
	snprintf(note, sizeof(note), "%u classes, set up in %.1f s", BENCH_CLASSES, add_htb());
	race_qdisc(&contest, "htb", "pass_all", note);
	shell("tc qdisc del dev %s root", interfaces[OUT]);
	contest_close(&contest);
}

void veth_bench(const char *path, const uint32_t *flows, int count)
{
	int i;

	if (system("command -v ip >/dev/null && command -v tc >/dev/null")) {
		puts("NO LIVE FRAMES: they need ip and tc, of iproute2");
		return;
	}
	make_interfaces();
	printf("%9s  %-14s %8s %10s %11s   (live frames over veth, one core sends and judges, medians of %d rounds)\n", "limiters",
	       "program", "M/s", "ns more", "lost", ROUNDS);
	for (i = 0; i < count; i++)
		race_programs(path, flows[i]);
	race_qdiscs(path, flows[count - 1]);
}
