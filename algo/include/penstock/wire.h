/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * wire.h: every struct that crosses a border: a BPF map, a ring, Rust.
 *
 * Sizes are asserted, padding is explicit, and no struct is written a second time: Rust's copy is generated from here.
 * All structs are plain memory in the host's byte order. A zeroed struct is always valid and means "nothing".
 */
#ifndef PENSTOCK_WIRE_H
#define PENSTOCK_WIRE_H

#include "types.h"
#include "verdict.h"
#include "wire_share.h"

/*
 * A packet as the classifier sees it: eight words, so that a match is (key & mask) == value.
 *
 *   word  bits 63..
 *   0     IPv4: source:32 | destination:32. IPv6: source, high half
 *   1     has:4 | family:4 (4, 6 or 0) | proto:8 | dscp:8 | tcp_flags:8 | sport:16 | dport:16
 *   2     IPv6: source, low half
 *   3, 4  IPv6: destination, high and low half
 *   5     vlan:16 (12 used) | src_mac:48
 *   6     has:16 | dst_mac:48
 *   7     vni:32 (24 used) | teid:32
 *
 * What is absent is 0. Numbers are stored as values, most significant bit first, so a prefix of an address is a mask of
 * leading bits; a match on an address includes the family. Addresses, proto, dscp, ports and flags are those of the
 * innermost IP packet that the parser reached; vlan (outermost tag) and MACs are those of the outer frame. `has` tells
 * vlan 0, port 0, vni 0 and teid 0 from "has none": a match on such a field includes its bit. An IPv4 five-tuple is two
 * words, and these are a pair of the hash: what most packets are looked up by costs least.
 */
#define PST_KEY_WORDS 8

#define PST_KEY_HAS_MAC 0x0001U
#define PST_KEY_HAS_VLAN 0x0002U
#define PST_KEY_HAS_VNI 0x0004U
#define PST_KEY_HAS_TEID 0x0008U
#define PST_KEY_HAS_SHIFT 48 /* in word 6 */

#define PST_KEY_HAS_PORTS 0x10U /* not so for a fragment other than the first */
#define PST_KEY_HAS_TCP 0x20U   /* tcp_flags are valid */
#define PST_KEY_FAMILY 0x0fU
#define PST_KEY_FAMILY_SHIFT 56 /* in word 1, of these three */

struct pst_key {
	uint64_t words[PST_KEY_WORDS];
};
PST_STATIC_ASSERT(sizeof(struct pst_key) == 64, "a key is one cache line");

/* What the parser found. `length` is the outermost IP packet's, in bytes (a non-IP frame: what follows its link header). */
#define PST_PACKET_IS_IP 0x01U
#define PST_PACKET_IS_FRAGMENT 0x02U  /* any fragment, the first included */
#define PST_PACKET_IS_CUT 0x04U       /* the capture ends before the headers do; not an error of the packet */
#define PST_PACKET_IS_TUNNEL 0x08U    /* the key speaks of an inner packet */
#define PST_PACKET_IS_BAD_INSIDE 0x10U /* a header inside a tunnel is unsound: the key speaks of the last sound one */

struct pst_packet {
	struct pst_key key;
	uint32_t length;
	uint16_t network_offset; /* of the outermost IP header: where CE and DSCP are written */
	uint8_t network_family;  /* 4, 6 or 0: of the outermost IP header */
	uint8_t network_tos;     /* its DSCP and ECN */
	uint8_t reason;          /* PST_REASON_NONE or why it is malformed */
	uint8_t flags;           /* PST_PACKET_* */
	uint8_t reserved[6];
};
PST_STATIC_ASSERT(sizeof(struct pst_packet) == 80, "pst_packet layout");

/* What sits before the network header: DLT_* of a capture, folded to what the parser knows. */
enum pst_link_type {
	PST_LINK_ETHERNET = 0,
	PST_LINK_RAW_IP = 1,      /* IPv4 or IPv6 by the version nibble */
	PST_LINK_LINUX_SLL = 2,   /* Linux cooked capture v1, 16 bytes */
	PST_LINK_LINUX_SLL2 = 3,  /* v2, 20 bytes */
	PST_LINK_NULL = 4,        /* BSD loopback: a 4-byte address family in the capturing host's order */
	PST_LINK_CISCO_HDLC = 5,  /* 4-byte header, Ethernet protocol numbers */
	PST_LINK_PPP = 6,         /* PPP, with or without FF 03; or Cisco HDLC, told apart by its first byte */
};

/* The hash's secret: NH keys of both lanes (hash.h). */
#define PST_HASH_SECRET_WORDS (PST_KEY_WORDS + 2)
struct pst_hash_secret {
	uint64_t words[PST_HASH_SECRET_WORDS];
};
PST_STATIC_ASSERT(sizeof(struct pst_hash_secret) == 80, "pst_hash_secret layout");

/* One combination of fields (and prefix lengths) that some rule or limits file looks at: tuple space search. */
enum pst_tuple_kind {
	PST_TUPLE_RULES = 0,  /* find it in the rule table: its value is a rule */
	PST_TUPLE_LIMITS = 1, /* find it in the limiter table: its value is a limiter */
};
#define PST_TUPLE_KINDS 2

struct pst_tuple {
	struct pst_key mask;
	uint64_t salt;            /* sets this tuple's keys apart from all others' */
	uint32_t specificity_q8;  /* bits fixed by the match, in 1/256; of the most specific rule in it */
	uint8_t kind;             /* enum pst_tuple_kind */
	uint8_t words;            /* bit i: mask.words[i] is not zero */
	uint8_t reserved[2];
};
PST_STATIC_ASSERT(sizeof(struct pst_tuple) == 80, "pst_tuple layout");

/*
 * One cache line of the limiter table (table.h): three limiters. key: tag:48 | profile:16, 0 when free.
 * state: the virtual finish time in ticks, or, for the RFC meters, the index of a pst_meter_state.
 */
#define PST_BUCKET_SLOTS 3
struct pst_bucket {
	uint64_t keys[PST_BUCKET_SLOTS];
	uint64_t states[PST_BUCKET_SLOTS];
	uint32_t rates[PST_BUCKET_SLOTS]; /* rate codes (fixed.h) */
	uint16_t sequence;                /* odd while a writer is inside */
	uint16_t asked;                   /* readers may write here, to no end but that the line comes (pst_plane_ask) */
};
PST_STATIC_ASSERT(sizeof(struct pst_bucket) == 64, "a bucket is one cache line");

/* Memory that the host owns: an allocation, or a BPF array that it mapped. Zeroed memory is an empty table. */
struct pst_table {
	struct pst_bucket *buckets;
	uint32_t bucket_count; /* even */
};

#define PST_TABLE_MOVES_MAX 4
struct pst_table_move {
	uint32_t from_slot;
	uint32_t to_slot;
};

/* What an insertion did. Side arrays indexed by slot follow by `side[to] = side[from]`, in this order. */
struct pst_table_insertion {
	uint32_t slot;
	uint32_t move_count;
	struct pst_table_move moves[PST_TABLE_MOVES_MAX];
};

/* Where a limiter was when it was copied to another place, and what became of it there until all charge the copy. */
struct pst_limiter_copy {
	uint64_t copied_ticks; /* its state when the copy was made */
	uint64_t switched_ns;  /* when the first packet could be charged to the copy */
	uint64_t last_ticks;   /* its state after the last packet was charged to it */
};

/* Two virtual finish times: all that an RFC meter keeps (srtcm.h, trtcm.h). */
struct pst_meter_state {
	uint64_t committed_ticks;
	uint64_t excess_ticks;
};
PST_STATIC_ASSERT(sizeof(struct pst_meter_state) == 16, "pst_meter_state layout");

/* The limit of a class without a limits file: an entry found by index. */
struct pst_limit {
	uint64_t state;
	uint32_t rate;    /* rate code; 0: no limit */
	uint16_t profile;
	uint16_t owner;   /* a number that follows from its name, for who counts what waits */
};
PST_STATIC_ASSERT(sizeof(struct pst_limit) == 16, "pst_limit layout");

enum pst_meter {
	PST_METER_WINDOW = 0,  /* the one-number limiter (limiter.h) */
	PST_METER_RFC2697 = 1,
	PST_METER_RFC2698 = 2,
	PST_METER_RFC4115 = 3,
};

enum pst_action {
	PST_ACTION_PASS = 0,
	PST_ACTION_DROP = 1,
	PST_ACTION_MARK = 2, /* CE for ECT packets, RED for the rest */
	PST_ACTION_DSCP = 3, /* pass with another DSCP */
	PST_ACTION_RED = 4,  /* drop at random, rising with the depth (SwitchRL's random drop) */
	PST_ACTION_HOLD = 5, /* shape */
};

#define PST_PROFILE_COLOR_AWARE 0x01U
#define PST_PROFILE_SHADOW 0x02U /* decide and count, let everything pass */

/*
 * What many limits share: everything but the rate. Depths are a time plus a number of bytes, so that a burst written
 * either way needs no profile per rate; `mtu_bytes` widens them for slow rates (erratum S2, limiter.h).
 */
struct pst_profile {
	uint64_t burst_ticks;
	uint64_t excess_ticks;
	uint32_t burst_bytes;
	uint32_t excess_bytes;
	uint32_t mtu_bytes;      /* largest packet, the link's overhead included */
	uint32_t second_rate;    /* rate code of the PIR (RFC 2698) or EIR (RFC 4115) */
	uint32_t red_max_q32;    /* largest early-drop probability, at the end of yellow */
	uint32_t class_index;
	uint8_t meter;           /* enum pst_meter */
	uint8_t flags;           /* PST_PROFILE_* */
	uint8_t yellow_action;   /* enum pst_action */
	uint8_t red_action;
	uint8_t yellow_dscp;     /* for PST_ACTION_DSCP: 0..63 */
	uint8_t red_dscp;
	uint16_t weight;         /* of a user that is known by its row; 0 counts as 1 */
	uint64_t hold_ticks;     /* shape: the longest that a packet may wait; 0: PST_AHEAD_MAX_TICKS */
	uint32_t hold_bytes;     /* shape: the most that may wait; 0: whatever hold_ticks allows */
	uint32_t ce_ns;          /* shape: who waits longer is marked CE, if it can be; 0: nobody */
};
PST_STATIC_ASSERT(sizeof(struct pst_profile) == 64, "a profile is one cache line");

/* A rule of the rule table: what a match item of a class compiles to. */
struct pst_rule {
	uint32_t class_index;
	uint32_t specificity_q8;
};
PST_STATIC_ASSERT(sizeof(struct pst_rule) == 8, "pst_rule layout");

#define PST_NONE UINT32_MAX /* "no such index" */

/* A class: its own limit, or the tuples of its limits file when it also has a match (range into the tuple array). */
struct pst_class {
	uint32_t limit_index; /* into the pst_limit array, or PST_NONE */
	uint32_t tuple_first;
	uint32_t tuple_count;
	uint16_t link_index;
	uint16_t line;        /* the delay line of its packets, be it the link's (delay.h); the first one is nobody's */
};
PST_STATIC_ASSERT(sizeof(struct pst_class) == 16, "pst_class layout");

#define PST_LINKS_MAX 65536 /* in all; where links are copied for each port (pst_port), copies count */

/* A link: where its tuples lie, most specific first, and what happens to packets that none of them takes. */
struct pst_link {
	uint32_t tuple_first;
	uint32_t tuple_count;
	uint32_t overhead_bytes;  /* added to the IP packet's length (default 14) */
	uint32_t unmatched_class; /* or PST_NONE */
	uint8_t unmatched_action; /* PST_ACTION_PASS or PST_ACTION_DROP */
	uint8_t malformed_action;
	uint16_t line;            /* the delay line of packets that have no class */
	uint8_t reserved[4];
};
PST_STATIC_ASSERT(sizeof(struct pst_link) == 24, "pst_link layout");

#define PST_DELAY_JITTER_MAX_NSEC 1000000000

/* A delay line: what a wire adds behind a link or a class (delay.h). */
struct pst_line {
	uint64_t packets;   /* that came, to one that loses some: which are lost follows from this, and the seed */
	uint64_t seed;
	uint64_t delay_ns;
	uint64_t jitter_ns; /* at most delay_ns */
	uint32_t loss_q32;
	uint32_t owner;     /* as a limit's */
};
PST_STATIC_ASSERT(sizeof(struct pst_line) == 40, "pst_line layout");

/* What was decided for one packet. `slot` counts table slots (bucket * 3 + slot) and tells which limiter it was. */
struct pst_decision {
	uint64_t departure_ns;  /* now, or later when held */
	uint32_t length;        /* bytes charged: IP packet plus overhead */
	uint32_t class_index;   /* or PST_NONE */
	uint32_t slot;          /* limiter-table slot, or PST_NONE */
	uint32_t limit_index;   /* pst_limit, or PST_NONE */
	uint8_t verdict;        /* enum pst_verdict */
	uint8_t color;          /* enum pst_color */
	uint8_t reason;         /* enum pst_reason */
	uint8_t dscp;           /* new DSCP when reason is PST_REASON_DSCP_MARK */
	uint8_t shadow;         /* 1: verdict is what would have happened; let the packet pass */
	uint8_t reserved;
	uint16_t link;          /* index of the link that took it; of PST_LINKS_MAX */
	uint32_t owner;         /* who its limiter is to those that count what waits (hold.h); 0: to nobody */
	uint32_t cost_ns;       /* held: what it takes at its limit's rate, 4.2 s at most */
};
PST_STATIC_ASSERT(sizeof(struct pst_decision) == 40, "pst_decision layout");

/* What is counted for a class or a limit. Red is what is offered and neither green nor yellow; without shadow, passed is
 * what is offered and not dropped. */
struct pst_counters {
	uint64_t offered_packets;
	uint64_t offered_bytes;
	uint64_t dropped_packets;
	uint64_t dropped_bytes;
	uint64_t green_packets;
	uint64_t yellow_packets;
	uint64_t marked_packets;
	uint64_t held_packets;
};
PST_STATIC_ASSERT(sizeof(struct pst_counters) == 64, "counters are one cache line");

/* A frame as a userspace host hands it in. */
struct pst_frame {
	const uint8_t *data;
	uint64_t now_ns;
	uint32_t captured_bytes; /* at data */
	uint32_t wire_bytes;     /* of the frame when it was on the wire */
	uint32_t link_type;      /* enum pst_link_type */
	uint32_t reserved;
};

/*
 * Where a packet came in, for a kernel host: an array by interface index. Links are copied for each port that packets come in
 * by, so that those it offers to lie side by side; pst_decision.link is then an index among these copies.
 */
#define PST_PORT_ACTIVE 0x01U  /* this interface has packets to decide about */
#define PST_PORT_FORWARD 0x02U /* what passes leaves by the paired port, else it goes on into the kernel */
#define PST_PORT_PROMISCUOUS 0x04U /* it was made so for this, and is to be made as it was */
#define PST_PORT_UNSTRIPPED 0x08U  /* it was told to leave VLAN tags in their frames, likewise */
#define PST_SHAPER_QUEUES 64
struct pst_port {
	uint32_t link_first;
	uint32_t link_count;
	uint32_t flags;
	uint32_t shaper_first; /* who holds packets that come in by its first queue: one a queue, of PST_SHAPER_QUEUES */
};
PST_STATIC_ASSERT(sizeof(struct pst_port) == 16, "pst_port layout");

/*
 * A packet that was dropped or marked, as a kernel host tells of some of them through a ring: one a CPU in PST_SAMPLE_GAP_NSEC.
 * A thousand a second and CPU are more than anybody reads, and few enough to cost a flood of drops nothing.
 */
#define PST_SAMPLE_GAP_NSEC 1000000
struct pst_sample {
	uint64_t time_ns;
	struct pst_key key;
	struct pst_decision decision;
	uint32_t ifindex;        /* the interface that it came in by */
	uint32_t reserved;
};
PST_STATIC_ASSERT(sizeof(struct pst_sample) == 120, "pst_sample layout");

/* What a kernel host's program is loaded with: the verifier knows these, and leaves out what they rule out. */
struct pst_constants {
	struct pst_hash_secret secret;
	uint64_t seed;       /* what the secret was drawn from: for a process that adopts the program */
	uint32_t links_max;  /* that packets of one port are offered to */
	uint32_t tuples_max; /* of one link, or inside of one class */
	uint32_t bucket_counts[PST_TUPLE_KINDS];
	uint32_t link_count; /* of the generation, as all that follows */
	uint32_t tuple_count;
	uint32_t rule_count;
	uint32_t class_count;
	uint32_t profile_count;
	uint32_t line_count;
	uint32_t place_count;
	uint32_t node_count;
	uint32_t slice_count;
	uint32_t filter_count;
	uint32_t countdown_part_count;
	uint32_t reserved_2;
	struct pst_sketch sketch;
	uint8_t has_buffer_length; /* the kernel tells the length of frames in several buffers (Linux 5.18) */
	uint8_t uses_random;       /* some profile drops early */
	uint8_t is_test;           /* time and chance come from pst_test */
	uint8_t counts_limits;     /* each limit has counters of its own */
	uint8_t asks_ahead;        /* the limiter table is larger than a cache: its lines are asked for ahead (pst_plane_ask) */
	uint8_t shapes;            /* some profile holds packets */
	uint8_t reserved[10];
	uint64_t layout; /* of what stands in maps: a process that does not know this one leaves them alone */
	uint64_t build;  /* of the program: a newer one takes its place */
};
PST_STATIC_ASSERT(sizeof(struct pst_constants) == 224, "pst_constants layout");

/*
 * Who holds the packets of one queue, for a kernel host: a part of memory that both write. Packets are counted before they are on their
 * way, and until they have left.
 */
#define PST_SHAPERS_MAX 4096
#define PST_WAITING_MAX 65536 /* counts of what waits, by owner */
#define PST_SHAPER_STALL_NSEC 500000000
#define PST_SHAPER_LEAVING 1
struct pst_shaper {
	uint64_t alive_ns;   /* when it was last seen at work; PST_SHAPER_LEAVING: it takes nothing, and lets go what waits */
	uint32_t chunks;     /* that packets take (PST_HOLD_CHUNK_BYTES) */
	uint32_t chunks_max;
	uint64_t reserved[6];
};
PST_STATIC_ASSERT(sizeof(struct pst_shaper) == 64, "pst_shaper layout");

/* What a packet brings along to who holds it, in front of its frame. */
struct pst_held {
	uint64_t due_ns;
	uint64_t came_ns;
	uint32_t owner; /* counted modulo PST_WAITING_MAX */
	uint32_t class_index;
	uint32_t length;  /* which the chunks that it takes follow from */
	uint32_t cost_ns; /* as a decision's */
};
PST_STATIC_ASSERT(sizeof(struct pst_held) == 32, "pst_held layout");

/* BPF_PROG_RUN with time, chance and whoever holds packets as given, and the decision to look at. */
struct pst_test {
	uint64_t now_ns;
	uint32_t random_u32;
	uint8_t holder;     /* enum pst_holder */
	uint8_t is_waiting; /* packets of every limit */
	uint8_t reserved[2];
	struct pst_decision decision;
};
PST_STATIC_ASSERT(sizeof(struct pst_test) == 56, "pst_test layout");

/* What waits in a timing wheel (wheel.h): the host has an array of these, and numbers what waits by it. */
struct pst_wheel_item {
	uint64_t due_ns;
	uint32_t next;  /* in its list, unless it is the last */
	uint32_t owner; /* the host's */
};
PST_STATIC_ASSERT(sizeof(struct pst_wheel_item) == 16, "pst_wheel_item layout");

struct pst_wheel_list {
	uint32_t first;
	uint32_t last;
};

#define PST_WHEEL_NEAR 8192 /* slots */
#define PST_WHEEL_FAR 4096  /* blocks of slots */
#define PST_WHEEL_POUR 8    /* items of the next block that go to their slots each time that one is asked for */
struct pst_wheel {
	uint64_t at_ns; /* where the slot begins that is being emptied */
	uint64_t waiting;
	uint64_t near_bits[PST_WHEEL_NEAR / 64]; /* which lists have items */
	uint64_t far_bits[PST_WHEEL_FAR / 64];
	struct pst_wheel_list near[PST_WHEEL_NEAR];
	struct pst_wheel_list far[PST_WHEEL_FAR];
};
PST_STATIC_ASSERT(sizeof(struct pst_wheel) == 16 + (PST_WHEEL_NEAR + PST_WHEEL_FAR) / 8 * 65, "pst_wheel layout");

/* What a packet that waits takes of memory: pieces of this size, of which its headers and margins leave so much for it. */
#define PST_HOLD_CHUNK_BYTES 2048
#define PST_HOLD_CHUNK_ROOM 1728

/* Where packets wait in virtual time, for a userspace host. */
struct pst_room {
	struct pst_wheel *wheel;
	struct pst_wheel_item *items; /* owner: the chunks that it takes */
	uint32_t free_first;          /* of items that nobody has, linked by next; PST_NONE: there is none */
	int32_t free_chunks;          /* below 0 while more waits than may, since that was made less */
};

#define PST_WF2Q_GROUPS 4 /* a Tofino's pipelines */

/* DragonKing's entry (its Fig. 5): a five-tuple, a rate code and the last finish time (wf2q.h). */
struct pst_compact_entry {
	uint8_t key[13];
	uint16_t rate_code; /* wf2q.h's own */
	uint32_t lft;       /* 64 ns */
} __attribute__((packed));
PST_STATIC_ASSERT(sizeof(struct pst_compact_entry) == 19, "pst_compact_entry layout");

#ifndef PST_PLANE_HOST /* plane.h: such a host has a pst_plane of its own */
/* The memory of one generation in userspace. Everything but the limiters' states is read-only to the packet path. */
struct pst_plane {
	const struct pst_link *links;
	const struct pst_tuple *tuples;
	const struct pst_rule *rules;
	const struct pst_class *classes;
	const struct pst_profile *profiles;
	struct pst_table tables[PST_TUPLE_KINDS]; /* by enum pst_tuple_kind */
	struct pst_limit *limits;
	struct pst_meter_state *meters;
	struct pst_line *lines;
	const struct pst_tree_place *places;
	struct pst_tree_node *nodes;
	struct pst_slice *slices;
	uint64_t *filters;    /* the sketch's */
	uint64_t *countdowns; /* of TCP flows above their share (fairdrop.h); a power of two of them */
	struct pst_sketch sketch;
	struct pst_hash_secret secret;
	uint32_t link_first; /* the links that packets are offered to, in this order */
	uint32_t link_count;
	uint32_t tuple_count;
	uint32_t rule_count;
	uint32_t class_count;
	uint32_t profile_count;
	uint32_t limit_count;
	uint32_t meter_count;
	uint32_t line_count;
	uint32_t place_count;
	uint32_t node_count;
	uint32_t slice_count;
	uint32_t filter_count;
	uint32_t countdown_count;
	const uint64_t *waiting;    /* packets that wait, by owner; absent where nothing is ever late, as in virtual time */
	uint32_t waiting_mask;
	uint32_t room_chunks; /* that packets may still take while they wait (PST_HOLD_CHUNK_BYTES) */
	bool uses_random;     /* some profile drops early; a host draws no number for nothing */
	bool shapes;          /* some profile holds packets */
	bool is_holder_absent;
	bool is_holder_leaving; /* what waits goes still */
};
#endif

/*
 * Where a userspace host counts: one counter a class, a pst_limit and a limiter-table slot; PST_REASON_COUNT reasons. A packet
 * is counted once: at its slot, else at its limit, else at its class.
 */
struct pst_tally {
	struct pst_counters *classes;
	struct pst_counters *limits;
	struct pst_counters *slots;
	uint64_t *reasons;
};

#endif /* PENSTOCK_WIRE_H */
