/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Where packets wait, without packets: the timing wheel, and DragonKing's groups. Of `backlog` limiters each has one packet that waits;
 * when it leaves, the next one comes, at a rate of a million packets a second in all, whatever the backlog.
 *
 * wheel        put and take.
 * groups       what waits circulates: each slide (5 us) every packet comes by once, is given a group by its finish time, and is sent from
 *              the front group if its start time has come. On a switch a pass takes a port's bandwidth; here it takes a look at a packet.
 *              T spans all finish times, and groups share it alike, as redistributions make it when all are as busy.
 *
 * Times are CPU time, medians of ROUNDS, which go by turns.
 */
#define _GNU_SOURCE
#include <penstock/rng.h>
#include <penstock/wf2q.h>
#include <penstock/wheel.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 5
#define GAP_NSEC 1000U
#define SIZES 4
#define LEAST_CPU_NSEC 1e8 /* of a measurement */

struct waiting {
	uint64_t vst_ns;
	uint64_t vft_ns;
};

struct group {
	uint32_t *packets;
	uint32_t count;
};

static const uint32_t sizes[SIZES] = { 1, 1000, 100000, 1000000 };
static uint64_t rng = 1;

static double cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void *room(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	if (!memory) {
		fputs("bench: no memory\n", stderr);
		exit(1);
	}
	return memory;
}

/* When the next packet of a limiter leaves: limiters are not all as fast. */
static uint64_t after(uint64_t now_ns, uint32_t backlog)
{
	uint64_t period_ns = (uint64_t)backlog * GAP_NSEC;

	return now_ns + period_ns / 2 + period_ns * pst_rng_next(&rng) / UINT32_MAX;
}

/* ns a packet. */
static double wheel(uint32_t backlog)
{
	struct pst_wheel *wheel = room(1, sizeof(*wheel));
	struct pst_wheel_item *items = room(backlog, sizeof(*items));
	uint64_t now_ns = 0, end_ns, sent = 0;
	double start = 0, spent = 0;
	uint32_t i, item;

	pst_wheel_start(wheel, 0);
	for (i = 0; i < backlog; i++)
		pst_wheel_put(wheel, items, i, after(0, backlog));
	end_ns = 2 * (uint64_t)backlog * GAP_NSEC; /* until all have left once or more, nothing is counted */
	while (spent < LEAST_CPU_NSEC) {
		for (; now_ns < end_ns; now_ns += GAP_NSEC)
			while ((item = pst_wheel_take(wheel, items, now_ns)) != PST_NONE) {
				pst_wheel_put(wheel, items, item, after(now_ns, backlog));
				sent++;
			}
		if (start > 0)
			spent = cpu_ns() - start;
		else {
			sent = 0;
			start = cpu_ns();
		}
		end_ns += 1000000 * (uint64_t)GAP_NSEC;
	}
	free(items);
	free(wheel);
	return spent / (double)sent;
}

struct ring {
	struct pst_wf2q groups;
	struct group group[PST_WF2Q_GROUPS];
	struct group next[PST_WF2Q_GROUPS]; /* where they are after this pass */
	struct waiting *packets;
	uint32_t backlog;
	uint64_t looks;
	uint64_t sent;
};

static void look(struct ring *ring, uint32_t group, uint32_t index, uint64_t now_ns)
{
	struct waiting *packet = &ring->packets[index];
	struct group *to;

	ring->looks++;
	if (pst_wf2q_schedule(group, packet->vst_ns, now_ns, true) == PST_WF2Q_SEND) {
		ring->sent++;
		packet->vst_ns = packet->vft_ns;
		packet->vft_ns += (uint64_t)ring->backlog * GAP_NSEC;
	}
	to = &ring->next[pst_wf2q_gate(&ring->groups, packet->vft_ns)];
	to->packets[to->count++] = index;
}

static void pass(struct ring *ring, uint64_t now_ns)
{
	uint32_t i, j;

	pst_wf2q_slide(&ring->groups, now_ns);
	for (i = 0; i < PST_WF2Q_GROUPS; i++)
		for (j = 0; j < ring->group[i].count; j++)
			look(ring, i, ring->group[i].packets[j], now_ns);
	for (i = 0; i < PST_WF2Q_GROUPS; i++) {
		struct group done = ring->group[i];

		ring->group[i] = ring->next[i];
		ring->next[i] = done;
		ring->next[i].count = 0;
	}
}

static void fill(struct ring *ring, uint32_t backlog)
{
	uint32_t bandwidth_q16[PST_WF2Q_GROUPS] = { 0 };
	uint64_t period_ns = (uint64_t)backlog * GAP_NSEC;
	uint32_t i;

	ring->backlog = backlog;
	ring->packets = room(backlog, sizeof(*ring->packets));
	pst_wf2q_start(&ring->groups, PST_WF2Q_SLIDE_NSEC, 0);
	pst_wf2q_span(&ring->groups, 0, 2 * period_ns);
	pst_wf2q_redistribute(&ring->groups, bandwidth_q16);
	for (i = 0; i < PST_WF2Q_GROUPS; i++) {
		ring->group[i].packets = room(backlog, sizeof(uint32_t));
		ring->next[i].packets = room(backlog, sizeof(uint32_t));
	}
	for (i = 0; i < backlog; i++) {
		struct waiting *packet = &ring->packets[i];
		struct group *to;

		/* As it is after a while: a finish time is a period after its start time, and in the front group half of one later. */
		packet->vft_ns = period_ns / 2 + period_ns * pst_rng_next(&rng) / UINT32_MAX;
		packet->vst_ns = packet->vft_ns - period_ns;
		to = &ring->group[pst_wf2q_gate(&ring->groups, packet->vft_ns)];
		to->packets[to->count++] = i;
	}
}

/* ns a packet, and looks. Packets that leave late count all the same: of fewer than five limiters, each slide sends one packet each. */
static double circulate(uint32_t backlog, double *looks)
{
	struct ring ring = { 0 };
	uint64_t now_ns = 0;
	double start, spent;
	uint32_t i;

	fill(&ring, backlog);
	for (i = 0; i < 100; i++)
		pass(&ring, now_ns += PST_WF2Q_SLIDE_NSEC);
	ring.looks = 0;
	ring.sent = 0;
	start = cpu_ns();
	do {
		for (i = 0; i < 50; i++)
			pass(&ring, now_ns += PST_WF2Q_SLIDE_NSEC);
		spent = cpu_ns() - start;
	} while (spent < LEAST_CPU_NSEC || ring.sent == 0);
	*looks = (double)ring.looks / (double)ring.sent;
	for (i = 0; i < PST_WF2Q_GROUPS; i++) {
		free(ring.group[i].packets);
		free(ring.next[i].packets);
	}
	free(ring.packets);
	return spent / (double)ring.sent;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(double), compare);
	return values[ROUNDS / 2];
}

int main(void)
{
	double times[2][SIZES][ROUNDS], looks[SIZES];
	int round, i;

	for (round = 0; round < ROUNDS; round++)
		for (i = 0; i < SIZES; i++) {
			times[0][i][round] = wheel(sizes[i]);
			times[1][i][round] = circulate(sizes[i], &looks[i]);
		}
	printf("packets that wait: ns for each that leaves, at 1 M a second; medians of %d rounds\n", ROUNDS);
	printf("%9s %9s %12s %17s\n", "backlog", "wheel", "groups", "looks at each");
	for (i = 0; i < SIZES; i++)
		printf("%9u %9.1f %12.1f %17.1f\n", sizes[i], median(times[0][i]), median(times[1][i]), looks[i]);
	return 0;
}
