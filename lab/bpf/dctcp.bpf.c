/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Data Center TCP as a congestion control of the kernel, by BPF struct_ops.
 *
 * What       sender     every window of data:  M = bytes acknowledged with ECE / bytes acknowledged
 *                                              alpha = alpha * (1 - g) + g * M
 *                       first ECE of a window: cwnd = cwnd * (1 - alpha / 2);  a loss: cwnd / 2;  otherwise as Reno
 *            receiver   ECE says whether the last packet bore CE. Where that changes while an ACK is delayed, that ACK goes out at
 *                       once and with the old answer, so that the sender counts bytes right.
 * Source     RFC 8257 sections 3.2 (receiver), 3.3 (sender), 3.5 (loss), 4.2 (g = 1/16, alpha starts at 1).
 * Units      alpha and M in 2^-20, windows in packets, sequence numbers and counts in bytes.
 * Overflow   a window is below 2^30 bytes and shifted by 20; cwnd < 2^32 times alpha <= 2^20: both fit 64 bits.
 * Not done   SYN and RST with ECT beyond what the kernel does for a congestion control that needs ECN.
 *
 * The kernel cuts the window once in a window of data by itself: it asks ssthresh() when it enters CWR.
 */
#include <linux/types.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <stdbool.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define ALPHA_BITS 20
#define ALPHA_ONE (1U << ALPHA_BITS)
#define G_SHIFT 4 /* g = 1/16 */
#define WINDOW_MIN_PACKETS 2U

/* What is used of the kernel's structs; their offsets come from the running kernel's BTF. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {
};

struct inet_connection_sock {
	struct {
		__u8 pending;
	} icsk_ack;
	__u64 icsk_ca_priv[13];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 rcv_nxt;
	__u32 snd_nxt;
	__u32 snd_una;
	__u32 snd_cwnd;
	__u32 snd_ssthresh;
	__u8 ecn_flags;
};

struct tcp_congestion_ops {
	char name[16];
	__u32 flags;
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, int event);
	void (*in_ack_event)(struct sock *sk, __u32 flags);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
};

#pragma clang attribute pop

/* The kernel's names and values, which programs may not include. */
enum { TCP_CONG_NEEDS_ECN = 0x2 };
enum { TCP_ECN_DEMAND_CWR = 4 };
enum { ICSK_ACK_TIMER = 2, ICSK_ACK_NOW = 16 };
enum { TCP_CA_RECOVERY = 3 };
enum { CA_ACK_ECE = 4 };
enum { CA_EVENT_LOSS = 3, CA_EVENT_ECN_NO_CE = 4, CA_EVENT_ECN_IS_CE = 5 };

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;

/* What the lab and its tests look at. Of all sockets together, and not exact when several write at once. */
struct totals {
	__u64 windows;
	__u64 reductions;
	__u64 losses;
	__u64 echoes_changed;
	__u32 alpha;
	/* The latest reduction of the socket with the most windows: one that carries a test's orders, say, has a few. */
	__u32 reduced_from;
	__u32 reduced_to;
	__u32 reduced_by_alpha;
	__u32 reduced_windows;
} totals = {};

/* In the socket. */
struct dctcp {
	__u32 alpha;
	__u32 window_end;
	__u32 prior_una;
	__u32 acked_bytes;
	__u32 marked_bytes;
	__u32 prior_rcv_nxt;
	__u32 loss_cwnd;
	__u32 ce;
	__u32 windows;
};

static __always_inline struct tcp_sock *tcp_of(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct dctcp *state_of(struct sock *sk)
{
	return (struct dctcp *)tcp_of(sk)->inet_conn.icsk_ca_priv;
}

static __always_inline void start_window(const struct tcp_sock *tp, struct dctcp *ca)
{
	ca->window_end = tp->snd_nxt;
	ca->acked_bytes = 0;
	ca->marked_bytes = 0;
}

SEC("struct_ops")
void BPF_PROG(dctcp_init, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_of(sk);
	struct dctcp *ca = state_of(sk);

	ca->alpha = ALPHA_ONE;
	ca->prior_una = tp->snd_una;
	ca->prior_rcv_nxt = tp->rcv_nxt;
	ca->loss_cwnd = 0;
	ca->ce = 0;
	ca->windows = 0;
	start_window(tp, ca);
}

/* Section 3.3, steps 1 to 8. */
SEC("struct_ops")
void BPF_PROG(dctcp_in_ack_event, struct sock *sk, __u32 flags)
{
	const struct tcp_sock *tp = tcp_of(sk);
	struct dctcp *ca = state_of(sk);
	__u32 bytes = tp->snd_una - ca->prior_una;
	__u64 marked = 0;

	ca->prior_una = tp->snd_una;
	ca->acked_bytes += bytes;
	if (flags & CA_ACK_ECE)
		ca->marked_bytes += bytes;
	if ((__s32)(tp->snd_una - ca->window_end) <= 0)
		return;
	if (ca->acked_bytes)
		marked = ((__u64)ca->marked_bytes << ALPHA_BITS) / ca->acked_bytes;
	ca->alpha += (__u32)(marked >> G_SHIFT) - (ca->alpha >> G_SHIFT);
	if (ca->alpha > ALPHA_ONE)
		ca->alpha = ALPHA_ONE;
	ca->windows++;
	totals.windows++;
	totals.alpha = ca->alpha;
	start_window(tp, ca);
}

static __always_inline __u32 at_least(__u32 packets)
{
	return packets > WINDOW_MIN_PACKETS ? packets : WINDOW_MIN_PACKETS;
}

/* Section 3.3, step 9. */
SEC("struct_ops")
__u32 BPF_PROG(dctcp_ssthresh, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_of(sk);
	struct dctcp *ca = state_of(sk);
	__u32 cwnd = tp->snd_cwnd, to;

	ca->loss_cwnd = cwnd;
	to = at_least(cwnd - (__u32)(((__u64)cwnd * ca->alpha) >> (ALPHA_BITS + 1)));
	totals.reductions++;
	if (ca->windows >= totals.reduced_windows) {
		totals.reduced_from = cwnd;
		totals.reduced_to = to;
		totals.reduced_by_alpha = ca->alpha;
		totals.reduced_windows = ca->windows;
	}
	return to;
}

/* Section 3.5: a loss is answered as any other TCP would. */
static __always_inline void react_to_loss(struct sock *sk)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct dctcp *ca = state_of(sk);

	ca->loss_cwnd = tp->snd_cwnd;
	tp->snd_ssthresh = at_least(tp->snd_cwnd / 2);
	totals.losses++;
}

SEC("struct_ops")
void BPF_PROG(dctcp_set_state, struct sock *sk, __u8 new_state)
{
	if (new_state == TCP_CA_RECOVERY)
		react_to_loss(sk);
}

/* Section 3.2: the receiver's two states. */
static __always_inline void echo(struct sock *sk, bool ce)
{
	struct tcp_sock *tp = tcp_of(sk);
	struct dctcp *ca = state_of(sk);

	if (!!ca->ce != ce) {
		if (tp->inet_conn.icsk_ack.pending & ICSK_ACK_TIMER) {
			if (ca->ce)
				tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
			else
				tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
			bpf_tcp_send_ack(tp, ca->prior_rcv_nxt);
		}
		tp->inet_conn.icsk_ack.pending |= ICSK_ACK_NOW;
		totals.echoes_changed++;
	}
	ca->prior_rcv_nxt = tp->rcv_nxt;
	ca->ce = ce;
	if (ce)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

SEC("struct_ops")
void BPF_PROG(dctcp_cwnd_event, struct sock *sk, int event)
{
	if (event == CA_EVENT_ECN_IS_CE)
		echo(sk, true);
	else if (event == CA_EVENT_ECN_NO_CE)
		echo(sk, false);
	else if (event == CA_EVENT_LOSS)
		react_to_loss(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(dctcp_undo_cwnd, struct sock *sk)
{
	__u32 cwnd = tcp_of(sk)->snd_cwnd, before = state_of(sk)->loss_cwnd;

	return cwnd > before ? cwnd : before;
}

SEC("struct_ops")
void BPF_PROG(dctcp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

/* A link: the kernel takes it out when the process that holds it ends, however it ends. */
SEC(".struct_ops.link")
struct tcp_congestion_ops dctcp = {
	.name = "pst_dctcp",
	.flags = TCP_CONG_NEEDS_ECN,
	.init = (void *)dctcp_init,
	.in_ack_event = (void *)dctcp_in_ack_event,
	.ssthresh = (void *)dctcp_ssthresh,
	.set_state = (void *)dctcp_set_state,
	.cwnd_event = (void *)dctcp_cwnd_event,
	.undo_cwnd = (void *)dctcp_undo_cwnd,
	.cong_avoid = (void *)dctcp_cong_avoid,
};
