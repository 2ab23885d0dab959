/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the kernel program costs a packet, beside an empty program and the token buckets that XDP examples have: by BPF_PROG_RUN
 * here, with live frames in veth.c. Programs take turns in rounds, and each figure is the median of its rounds; a cost is the time
 * less the empty one's. Also: how many entries of the limiter table a second can be rewritten while the program runs on another CPU.
 */
#define _GNU_SOURCE

#include "contest.h"

#include <bpf/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 9
#define REPEATS 1000000
#define PROGRAMS 4

static const char *const programs[PROGRAMS] = { "bench_empty", "bench_penstock", "bench_hash", "bench_lru" };

/* ns a packet of one run. */
static double run(const struct contest *contest, const char *program)
{
	uint8_t frame[BENCH_FRAME_BYTES], out[BENCH_FRAME_BYTES + 256];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = sizeof(frame), .data_out = out,
		    .data_size_out = sizeof(out), .repeat = REPEATS);

	bench_frame(frame);
	if (bpf_prog_test_run_opts(contest_program(contest, program), &options))
		bench_fail(program);
	return options.duration;
}

static void rewrite(const struct contest *contest)
{
	struct rewriter rewriter = { .contest = contest };
	pthread_t thread;
	double judged;

	pthread_create(&thread, NULL, rewriter_run, &rewriter);
	run(contest, "bench_penstock");
	judged = run(contest, "bench_penstock");
	rewriter.stops = true;
	pthread_join(thread, NULL);
	printf("%9u  rewriting %.1f M entries/s meanwhile: %.0f ns a packet\n", contest->flows, rewriter.per_second / 1e6, judged);
}

static void bench(const char *path, uint32_t flows)
{
	struct contest contest = { .flows = flows, .rate_Bps = UINT64_C(1140000000) / flows / 2 + 1 };
	double times[PROGRAMS][ROUNDS], empty;
	int round, i;

	contest_open(&contest, path);
	for (round = -1; round < ROUNDS; round++)
		for (i = 0; i < PROGRAMS; i++) {
			double time = run(&contest, programs[i]);

			if (round >= 0)
				times[i][round] = time;
		}
	empty = bench_median(times[0], ROUNDS);
	for (i = 0; i < PROGRAMS; i++) {
		double time = bench_median(times[i], ROUNDS);

		printf("%9u  %-14s %8.0f %8.0f\n", flows, programs[i], time, time - empty);
	}
	if (flows >= 1000 && sysconf(_SC_NPROCESSORS_ONLN) > 1)
		rewrite(&contest);
	fflush(stdout);
	contest_close(&contest);
}

int main(int count, char **arguments)
{
	uint32_t flows[16] = { 1, 1000, 100000, 2000000 };
	int i, sizes = 4;

	if (count < 2) {
		fprintf(stderr, "usage: %s KERNEL.bpf.o [LIMITERS...]\n", arguments[0]);
		return 2;
	}
	for (i = 2; i < count && i - 2 < 16; i++) {
		flows[i - 2] = (uint32_t)strtoul(arguments[i], NULL, 10);
		sizes = i - 1;
	}
	bench_pin(0);
	/* Interfaces of our own, that are gone when we are. */
	if (unshare(CLONE_NEWNET))
		bench_fail("a network namespace");
	printf("%9s  %-14s %8s %8s   (BPF_PROG_RUN, random flows, medians of %d rounds)\n", "limiters", "program", "ns",
	       "less empty", ROUNDS);
	for (i = 0; i < sizes; i++)
		bench(arguments[1], flows[i]);
	veth_bench(arguments[1], flows, sizes);
	return 0;
}
