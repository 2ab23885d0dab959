/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the parts of the kernel bench share: the programs with their tables, loaded for a number of limiters. */
#ifndef PENSTOCK_BENCH_CONTEST_H
#define PENSTOCK_BENCH_CONTEST_H

#include "flow.h"

#include <penstock/table.h>

#include <bpf/libbpf.h>

struct contest {
	struct bpf_object *object;
	uint32_t flows;
	uint32_t ifindex; /* of the port besides the loopback interface; 0: none */
	uint32_t send_ifindex; /* where bench_send sends to, and bench_class redirects to */
	uint32_t out_ifindex;
	uint64_t rate_Bps;
	struct pst_table table;
	struct pst_tuple tuple;
	struct pst_constants constants;
};

/* Says why the bench ends here. */
_Noreturn void bench_fail(const char *what);
double bench_now_ns(void);
/* Sorts them. */
double bench_median(double *values, int count);
void bench_pin(int cpu);
void bench_frame(uint8_t *frame);

void contest_open(struct contest *contest, const char *path);
void contest_close(struct contest *contest);
int contest_program(const struct contest *contest, const char *name);
int contest_map(const struct contest *contest, const char *name);

/* Rewrites limiters, one after the other, until it is stopped. */
struct rewriter {
	const struct contest *contest;
	volatile bool stops;
	double per_second;
};
void *rewriter_run(void *rewriter);

/* veth.c: packets a second of live frames. */
void veth_bench(const char *path, const uint32_t *flows, int count);

#endif /* PENSTOCK_BENCH_CONTEST_H */
