/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * verdict.h: what can happen to a packet, and why.
 *
 * One enumeration of reasons serves every counter, column and label, from the BPF program to a web page. Numbers are
 * part of the wire format: append, never renumber. The names that people read are the lower-case tails
 * (PST_REASON_OVER_RATE is "over_rate") and are generated from this file.
 */
#ifndef PENSTOCK_VERDICT_H
#define PENSTOCK_VERDICT_H

#include "types.h"

enum pst_verdict {
	PST_VERDICT_PASS = 0,
	PST_VERDICT_MARK = 1, /* passes, with ECN CE or another DSCP */
	PST_VERDICT_DROP = 2,
	PST_VERDICT_HOLD = 3, /* leaves later, at its departure time */
};

enum pst_color {
	PST_COLOR_GREEN = 0,
	PST_COLOR_YELLOW = 1,
	PST_COLOR_RED = 2,
	PST_COLOR_NONE = 3, /* no limit applied */
};

enum pst_reason {
	PST_REASON_NONE = 0,
	/* decided by a limit */
	PST_REASON_OVER_RATE = 1,    /* red: dropped */
	PST_REASON_EARLY_DROP = 2,   /* yellow: dropped at random (RED, SwitchRL) */
	PST_REASON_YELLOW = 3,       /* yellow: dropped because the policy says so */
	PST_REASON_CE_MARK = 4,      /* marked ECN CE */
	PST_REASON_DSCP_MARK = 5,    /* another DSCP */
	PST_REASON_HELD = 6,         /* waits for its turn */
	PST_REASON_HORIZON = 9,      /* would wait longer than its limit lets packets wait: dropped */
	PST_REASON_HELD_CE = 10,     /* waits for its turn, so long that it is marked ECN CE */
	PST_REASON_BACKLOG = 11,     /* so many bytes of its limit wait already: dropped */
	PST_REASON_NO_ROOM = 12,     /* so much waits in all: dropped */
	PST_REASON_NO_SHAPER = 13,   /* red, and nobody is there to hold it: dropped */
	/* decided without a limit */
	PST_REASON_DELAYED = 14,     /* is on its way through a delay line */
	PST_REASON_LOST = 15,        /* a delay line loses it: dropped */
	PST_REASON_UNMATCHED = 7,    /* no class takes it, and the link drops such packets */
	PST_REASON_TABLE_BUSY = 8,   /* the entry changed under the reader at every try */
	/* malformed: the parser could not go on */
	PST_REASON_SHORT_ETHERNET = 16,
	PST_REASON_SHORT_VLAN = 17,
	PST_REASON_SHORT_MPLS = 18,
	PST_REASON_SHORT_PPPOE = 19,
	PST_REASON_BAD_PPPOE = 20,
	PST_REASON_SHORT_IPV4 = 21,
	PST_REASON_BAD_IPV4_VERSION = 22,
	PST_REASON_BAD_IPV4_HEADER_LENGTH = 23,
	PST_REASON_BAD_IPV4_TOTAL_LENGTH = 24,
	PST_REASON_SHORT_IPV6 = 25,
	PST_REASON_BAD_IPV6_VERSION = 26,
	PST_REASON_BAD_IPV6_PAYLOAD_LENGTH = 27,
	PST_REASON_BAD_IPV6_EXTENSION = 28,
	PST_REASON_SHORT_TRANSPORT = 29, /* TCP, UDP or ICMP header does not fit the IP packet */
	PST_REASON_BAD_TCP_HEADER_LENGTH = 30,
	PST_REASON_BAD_UDP_LENGTH = 31,
	PST_REASON_SHORT_TUNNEL = 32,    /* VXLAN, GENEVE or GTP-U header does not fit */
	PST_REASON_BAD_TUNNEL = 33,
	PST_REASON_TOO_MANY_LAYERS = 34, /* deeper than the parser's bound */
	/* decided by a share */
	PST_REASON_OVER_SHARE = 35,      /* above its share of a busy link: dropped */
	PST_REASON_NO_ENTRY = 36,        /* above the share of those users who found no entry: dropped */
	PST_REASON_COUNT = 37,
};

#define PST_REASON_MALFORMED_FIRST PST_REASON_SHORT_ETHERNET
#define PST_REASON_MALFORMED_LAST PST_REASON_TOO_MANY_LAYERS

/* Has a packet of this reason another ECN or DSCP field now, be it on its way or waiting? No branch: nobody can predict it. */
PST_INLINE uint32_t pst_reason_is_mark(uint8_t reason)
{
	uint64_t marks = UINT64_C(1) << PST_REASON_CE_MARK | UINT64_C(1) << PST_REASON_DSCP_MARK | UINT64_C(1) << PST_REASON_HELD_CE;

	return (uint32_t)(marks >> (reason & 63)) & 1;
}

PST_INLINE bool pst_reason_is_malformed(uint8_t reason)
{
	return reason >= PST_REASON_MALFORMED_FIRST && reason <= PST_REASON_MALFORMED_LAST;
}

#endif /* PENSTOCK_VERDICT_H */
