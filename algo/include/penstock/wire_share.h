/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * wire_share.h: the part of wire.h that fair shares need: trees of shares, and slices of users without entries.
 */
#ifndef PENSTOCK_WIRE_SHARE_H
#define PENSTOCK_WIRE_SHARE_H

#include "types.h"

/* A rate that is estimated from packets (ewma.h). */
struct pst_ewma {
	uint64_t last_ns;
	uint64_t rate_Bps_q8;
	uint32_t gap_ns_q4; /* mean gap, in 2^-4; 0: none yet */
	uint32_t more;      /* bits 0 to 3: log2 of K, above PST_EWMA_SHIFT_MIN; 8 to 15: length of the longest gap of late, and packets since */
};
PST_STATIC_ASSERT(sizeof(struct pst_ewma) == 24, "pst_ewma layout");

/* What the policy says of a node (share.h). */
struct pst_share_terms {
	uint64_t guarantee_Bps; /* 0: none */
	uint64_t ceiling_Bps;   /* of no ceiling: above every rate */
	uint32_t weight;        /* 0 counts as 1 */
	uint32_t reserved;
};

/* What a parent knows of its children. */
struct pst_share_sums {
	uint64_t taken_Bps;    /* by those that are satisfied, or held at their guarantees */
	uint64_t held_Bps;     /* of that, by the latter */
	uint64_t weight;       /* of those that share the rest */
	uint64_t weight_taken; /* of those that are satisfied */
};

enum pst_share_state {
	PST_SHARE_IDLE = 0,
	PST_SHARE_SATISFIED = 1,
	PST_SHARE_UNSATISFIED = 2,
	PST_SHARE_HELD = 3, /* by its guarantee it takes more than its fair share */
};

/* What a node has put into its parent's sums. */
struct pst_share_part {
	uint64_t taken_Bps;
	uint32_t weight;
	uint32_t state; /* enum pst_share_state */
};

/* A node of a tree of shares (tree.h): the state of a class, a link, or a user that has an entry. */
struct pst_tree_node {
	struct pst_ewma demand;
	struct pst_share_sums children;
	struct pst_share_part part; /* in its parent's sums */
	uint64_t share_Bps;         /* as its last packet found it; a link's is its rate */
	uint64_t vft_ticks;         /* of a leaf's limiter */
	uint64_t late_bytes;        /* of a leaf: packets that came while another CPU was at work in its tree */
	uint32_t hand;              /* which child is looked at next, by its number among the users or its place */
	uint32_t lock;              /* of a link: since when somebody is at work in its tree; 0: nobody */
	uint64_t user;              /* of an entry: whose it is; 0: nobody's */
	uint32_t weight;            /* of an entry */
	uint32_t comes;             /* the child whose packet is being counted; of a leaf: when it came */
	uint64_t passed_bytes;      /* of an entry */
};
PST_STATIC_ASSERT(sizeof(struct pst_tree_node) == 128, "a node is two cache lines");

/*
 * Where a class or a link stands in its tree. A class's is at its own index, a link's behind all classes'. Nodes lie likewise; behind them those of
 * users. PST_NONE: no such thing.
 */
struct pst_tree_place {
	struct pst_share_terms terms;
	uint32_t parent;       /* a place; of a link, and of a class whose link shares nothing: PST_NONE */
	uint32_t first_child;  /* a place */
	uint32_t next_sibling; /* a place */
	uint32_t link;         /* a place */
	uint32_t profile;      /* how a leaf is held to its share; of an inner node PST_NONE */
	uint32_t owner;        /* of what waits: as a limit's */
	uint32_t users;        /* the tuple that tells its users apart by IPv4 addresses; the next one: by IPv6 addresses */
	uint32_t slice;        /* of users without entries */
	uint32_t first_user;   /* of users with entries: a node */
	uint32_t user_count;   /* a power of two, 8 at least; 0: its users have no entries */
};
PST_STATIC_ASSERT(sizeof(struct pst_tree_place) == 64, "a place is one cache line");

/* What finds the limit of a slice (threshold.h). */
struct pst_threshold_state {
	uint64_t limit;   /* the epoch's number in the upper 32 bits, T in the lower */
	uint64_t low;     /* filters of what would pass under T - D, */
	uint64_t middle;  /* T */
	uint64_t high;    /* and T + D, */
	uint64_t demand;  /* of all that came, */
	uint64_t largest; /* and the largest user's peak */
	uint64_t passed;  /* what did pass, where that may be another than T says; else 0 */
	uint32_t gain_q16; /* what C is multiplied with, so that C passes */
	uint32_t reserved;
};

/* What a byte is in parts (lpf.h): factor / 2^shift. */
struct pst_lpf_scale {
	uint32_t factor; /* 0 only where nothing was compiled */
	uint32_t shift;
};

/* A class whose users have no entries: its state, and what the policy says of it. */
#define PST_SLICE_PERIODIC 1U /* TCP is dropped and marked at intervals, not by chance (fairdrop.h) */
#define PST_SLICE_LIMITERS 2U /* who is above its share is held to it by a limiter (limiter_sketch.h) */
struct pst_slice {
	struct pst_threshold_state threshold;
	uint64_t nominal_Bps; /* what parts are parts of: the rate of its link, or its ceiling */
	struct pst_lpf_scale scale; /* of nominal_Bps, at a weight of 1 */
	uint32_t tau_shift;
	uint32_t epoch_shift;
	uint32_t flags; /* PST_SLICE_* */
	uint32_t reserved_2;
	uint64_t reserved_3[4];
};
PST_STATIC_ASSERT(sizeof(struct pst_slice) == 128, "a slice is two cache lines");

/* The sketch of all slices' users (sketch.h); its filters are words of 64 bits, rows << column_bits of them, and as many limiters behind. */
#define PST_SKETCH_ROWS_MAX 4
#define PST_SKETCH_COLUMN_BITS_MAX 20
struct pst_sketch {
	uint64_t seeds[PST_SKETCH_ROWS_MAX];
	uint32_t rows;
	uint32_t column_bits;
};
PST_STATIC_ASSERT(sizeof(struct pst_sketch) == 40, "pst_sketch layout");

#endif /* PENSTOCK_WIRE_SHARE_H */
