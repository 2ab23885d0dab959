/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * tree.h: a packet's way through a tree of shares, from its leaf to the link and back.
 *
 * What         Up, leaf first: each node's rate is estimated anew; above a ceiling only the part counts that the ceiling lets through (H9).
 *              Down, root first: each node gets its share of what its parent gives (share.h). The leaf's share is the rate of its
 *              limiter (H10): inner nodes compute and drop nothing (H7).
 *              On its way it looks at one more child of each node, in turns: who has stopped (ewma.h) is forgotten (H5).
 * Source       HSDBA (hsdba.txt), Algorithm 1 and section 4.5, in the form of errata H3 to H11. An inner node's estimator has a longer K than
 *              a leaf's (H11 has 16 mean gaps for all): packets of many come like rain, and with 11 gaps the estimate has an error of 15 %, which a child
 *              that just gets what it asks for loses. With 90 it has 5 %, and an inner node has more packets.
 * Units        share.h, ewma.h.
 * Ranges       depth 1 to PST_TREE_DEPTH_MAX below the link; rates below 2^37 Bps; now may wrap.
 * Invariants   I1  every node's sums are those of its children's parts.
 *              I2  saturated sources reach the shares of exact water-filling, to within 3 % or 1 % of the link.
 *              I3  a node that stops is forgotten when its siblings' packets have gone round; its next packet makes it a child again.
 * Overflow     bytes below 2^18, cut to it: bytes_q8 ceiling < 2^26 2^37 = 2^63; in the estimator, over 2^12 ns or more, below 2^44.
 *              A class may have entries for its users: leaves of weight that come with their first packet. An entry is found by two hashes, in
 *              two sets of four; it is free again when its user is gone. Who finds no free one shares the class's last entry with others who do not.
 * Concurrency  one CPU at a time works in the tree of a link (pst_tree_share); the others' bytes count with the next packets of their leaves. A CPU
 *              holds the link's lock for one packet, and nobody waits for it; a lock of 4 s is that of somebody who was killed. A leaf's limiter commits by compare-and-swap (limiter.h).
 *              pst_tree_cut's store may undo one such charge, when a leaf comes again on two CPUs at once.
 * Not done     nothing is forgotten where nobody sends: who hosts it calls pst_tree_tend now and then.
 */
#ifndef PENSTOCK_TREE_H
#define PENSTOCK_TREE_H

#include "ewma.h"
#include "hash.h"
#include "limiter.h"
#include "plane.h"
#include "share.h"

#define PST_TREE_DEPTH_MAX 8
#define PST_TREE_LEAF_GAPS 11
#define PST_TREE_INNER_GAPS 90
#define PST_TREE_CREDIT_NSEC 1000000
#define PST_TREE_CREDIT_PACKETS 3
#define PST_TREE_NEW_STAMPS 8 /* for so long one has just come: some times as long as its rate takes to be known */
#define PST_TREE_GAP_NSEC (UINT64_C(1) << 24) /* of a user who is seen for the first time: before its first packet */
#define PST_TREE_NO_CEILING_BPS (UINT64_C(1) << 36)
#define PST_TREE_LOCK_SHIFT 20  /* a stamp is 1.05 ms */
#define PST_TREE_LOCK_STAMPS 4096 /* 4.3 s: who has had the lock for so long is dead */
#define PST_TREE_WAYS 4 /* entries of a set */
#define PST_TREE_BYTES_MAX ((UINT32_C(1) << 18) - 1) /* what a packet counts at most (ewma.h): four times a packet's largest length on a wire */
#define PST_TREE_LATE_MAX (UINT32_C(1) << 17)        /* of it, what it brings along of others */

/* A packet on its way. */
struct pst_tree_walk {
	uint64_t now_ns;
	uint64_t user;      /* of a class whose users have entries; 0: none */
	uint64_t share_Bps; /* down: of the node that was seen last */
	uint32_t weight;    /* of the user */
	uint32_t place;     /* of its class */
	uint32_t bytes_q8;  /* up: what counts at the next node */
	uint32_t leaf;      /* its node: the class's, or an entry */
	uint32_t random_u32;
	uint32_t bytes;     /* of the packet, and those that it brings along */
};

/* Of a length in 2^-8 bytes, what a ceiling lets through of a node that asks for `demand_Bps`. */
PST_INLINE uint32_t pst_tree_effective_q8(uint32_t bytes_q8, uint64_t ceiling_Bps, uint64_t demand_Bps)
{
	return demand_Bps <= ceiling_Bps ? bytes_q8 : (uint32_t)(bytes_q8 * ceiling_Bps / demand_Bps);
}

PST_INLINE uint64_t pst_tree_demand_Bps(const struct pst_tree_node *node)
{
	return node->demand.rate_Bps_q8 >> 8;
}

/* Packets of many come to it: those of its children, or of users without entries. */
PST_INLINE bool pst_place_has_many(const struct pst_tree_place *place)
{
	return place->first_child != PST_NONE || place->users != PST_NONE;
}

PST_INLINE bool pst_place_is_in_tree(const struct pst_tree_place *place)
{
	return place->parent != PST_NONE;
}

/* Forgets a node that sends no more. */
PST_INLINE void pst_tree_fade(struct pst_tree_node *node, struct pst_tree_node *parent, uint64_t now_ns)
{
	if (node->part.state != PST_SHARE_IDLE && pst_ewma_has_stopped(&node->demand, now_ns))
		pst_share_leave(&parent->children, &node->part);
}

/* The node after the one that was looked at last, among a place's children or its entries. */
PST_INLINE uint32_t pst_tree_next(const struct pst_plane *plane, struct pst_tree_node *node, uint32_t index, const struct pst_tree_place *place)
{
	const struct pst_tree_place *last;

	if (place->user_count) {
		node->hand = node->hand < place->user_count ? node->hand + 1 : 0; /* the one for who finds none is the last */
		return place->first_user + node->hand;
	}
	last = pst_plane_place(plane, node->hand);
	node->hand = last && last->parent == index && last->next_sibling != PST_NONE ? last->next_sibling : place->first_child;
	return node->hand;
}

/* Looks at the next child of a node that is not the one whose packet has come. */
PST_INLINE void pst_tree_look(const struct pst_plane *plane, uint32_t index, uint64_t now_ns)
{
	const struct pst_tree_place *place = pst_plane_place(plane, index);
	struct pst_tree_node *node = pst_plane_node(plane, index), *child;
	uint32_t next;

	if (!place || !node)
		return;
	next = pst_tree_next(plane, node, index, place);
	child = pst_plane_node(plane, next);
	if (child && next != node->comes)
		pst_tree_fade(child, node, now_ns);
}

/*
 * A leaf that has just come, and asks for more than half of its share, has credit for a few packets only: else it would send far more than its share
 * for as long as a burst may last. Who asks for less keeps its burst. A state that is ahead of now by more than any packet waits reads as idle
 * (limiter.h I5).
 */
PST_INLINE void pst_tree_cut(struct pst_tree_node *leaf, const struct pst_tree_walk *walk)
{
	uint64_t packets = (uint64_t)PST_TREE_CREDIT_PACKETS * walk->bytes * PST_TICKS_PER_SEC;
	uint64_t credit_ticks = packets / (walk->share_Bps > PST_RATE_MIN_BPS ? walk->share_Bps : PST_RATE_MIN_BPS);
	uint64_t least_ticks;

	if (credit_ticks < pst_clock_ticks(PST_TREE_CREDIT_NSEC))
		credit_ticks = pst_clock_ticks(PST_TREE_CREDIT_NSEC);
	least_ticks = pst_clock_ticks(walk->now_ns) - credit_ticks;
	if (leaf->vft_ticks - least_ticks > credit_ticks + PST_AHEAD_MAX_TICKS)
		leaf->vft_ticks = least_ticks;
}

/* What a leaf's new share means for its limiter. `was`: its state before. */
PST_INLINE void pst_tree_start(struct pst_tree_node *leaf, const struct pst_tree_walk *walk, uint32_t was)
{
	uint32_t stamp = (uint32_t)(walk->now_ns >> PST_TREE_LOCK_SHIFT);

	if (was == PST_SHARE_IDLE)
		leaf->comes = stamp; /* a leaf has no children: it is when it came */
	if (was == PST_SHARE_IDLE && !leaf->share_Bps)
		leaf->vft_ticks = pst_limiter_idle(walk->now_ns);
	if (stamp - leaf->comes <= PST_TREE_NEW_STAMPS && pst_tree_demand_Bps(leaf) > walk->share_Bps / 2)
		pst_tree_cut(leaf, walk);
}

/* One step up: a node's rate, and what of a packet's length goes on to its parent. Returns the parent's place. */
PST_STAGE uint32_t pst_tree_ask(const struct pst_plane *plane, struct pst_tree_walk *walk, uint32_t index)
{
	const struct pst_tree_place *place;
	struct pst_tree_node *node, *parent;
	bool has_many;

	if (PST_IS_ABSENT(plane) || PST_IS_ABSENT(walk))
		return PST_NONE;
	place = pst_plane_place(plane, index);
	node = pst_plane_node(plane, index);
	parent = pst_plane_node(plane, place ? place->parent : walk->place);
	if (!node || !parent)
		return PST_NONE;
	has_many = place && pst_place_has_many(place);
	pst_ewma_add(&node->demand, walk->now_ns, walk->bytes_q8, has_many ? PST_TREE_INNER_GAPS : PST_TREE_LEAF_GAPS);
	if (place)
		walk->bytes_q8 = pst_tree_effective_q8(walk->bytes_q8, place->terms.ceiling_Bps, pst_tree_demand_Bps(node));
	parent->comes = index;
	return place ? place->parent : walk->place;
}

/* One step down: what the child whose packet it is gets of its parent. Returns the child. */
PST_STAGE uint32_t pst_tree_grant(const struct pst_plane *plane, struct pst_tree_walk *walk, uint32_t index)
{
	struct pst_share_terms terms = { 0, PST_TREE_NO_CEILING_BPS, 1, 0 };
	const struct pst_tree_place *place;
	struct pst_tree_node *parent, *child;
	uint32_t comes, was;

	if (PST_IS_ABSENT(plane) || PST_IS_ABSENT(walk))
		return PST_NONE;
	parent = pst_plane_node(plane, index);
	if (!parent)
		return PST_NONE;
	comes = parent->comes;
	child = pst_plane_node(plane, comes);
	if (!child)
		return PST_NONE;
	pst_tree_look(plane, index, walk->now_ns);
	place = pst_plane_place(plane, comes);
	if (place)
		terms = place->terms;
	else
		terms.weight = child->weight;
	was = child->part.state;
	walk->share_Bps = pst_share_step(&terms, &parent->children, &child->part, walk->share_Bps, pst_tree_demand_Bps(child));
	if (comes == walk->leaf)
		pst_tree_start(child, walk, was);
	child->share_Bps = walk->share_Bps;
	return comes;
}

/* A packet of a leaf, of a CPU that has the tree to itself. True when the leaf has its share. */
PST_INLINE bool pst_tree_go(const struct pst_plane *plane, struct pst_tree_walk *walk, uint32_t link)
{
	const struct pst_tree_place *top = pst_plane_place(plane, link);
	uint32_t node = walk->leaf, steps;

	if (!top)
		return false;
	for (steps = 0; steps <= PST_TREE_DEPTH_MAX && node != link; steps++)
		node = pst_tree_ask(plane, walk, node);
	if (node != link)
		return false;
	walk->share_Bps = top->terms.ceiling_Bps;
	for (steps = 0; steps <= PST_TREE_DEPTH_MAX && node != walk->leaf; steps++)
		node = pst_tree_grant(plane, walk, node);
	return node == walk->leaf;
}

/* Where the i-th of the entries lies that a user may have: two sets, which a hash of the user picks. */
PST_INLINE uint32_t pst_tree_entry_at(const struct pst_tree_place *place, uint64_t user, uint32_t i)
{
	uint32_t sets = place->user_count / PST_TREE_WAYS;
	uint32_t hash = i < PST_TREE_WAYS ? (uint32_t)(user >> 32) : (uint32_t)(pst_hash_mix(user) >> 32);

	return place->first_user + pst_scale_u32(hash, sets) * PST_TREE_WAYS + i % PST_TREE_WAYS;
}

/* The entry of those who find none. */
PST_INLINE uint32_t pst_tree_crowd(const struct pst_tree_place *place)
{
	return place->first_user + place->user_count;
}

/* A user's entry; PST_NONE where it has none. */
PST_STAGE uint32_t pst_tree_find(const struct pst_plane *plane, const struct pst_tree_walk *walk)
{
	const struct pst_tree_place *place;
	uint32_t i;

	if (PST_IS_ABSENT(plane) || PST_IS_ABSENT(walk))
		return PST_NONE;
	place = pst_plane_place(plane, walk->place);
	if (!place)
		return PST_NONE;
	for (i = 0; i < 2 * PST_TREE_WAYS; i++) {
		uint32_t index = pst_tree_entry_at(place, walk->user, i);
		const struct pst_tree_node *entry = pst_plane_node(plane, index);

		if (entry && *(const volatile uint64_t *)&entry->user == walk->user)
			return index;
	}
	return PST_NONE;
}

/* Gives a user an entry that is nobody's, or whose user is gone. Of a CPU that has the tree to itself. */
PST_STAGE uint32_t pst_tree_admit(const struct pst_plane *plane, const struct pst_tree_walk *walk)
{
	const struct pst_tree_place *place;
	struct pst_tree_node *parent, *entry;
	uint32_t i, vacant = PST_NONE;

	if (PST_IS_ABSENT(plane) || PST_IS_ABSENT(walk))
		return PST_NONE;
	place = pst_plane_place(plane, walk->place);
	parent = pst_plane_node(plane, walk->place);
	if (!place || !parent)
		return PST_NONE;
	for (i = 0; i < 2 * PST_TREE_WAYS; i++) {
		uint32_t index = pst_tree_entry_at(place, walk->user, i);

		entry = pst_plane_node(plane, index);
		if (entry && entry->user == walk->user)
			return index; /* another CPU was faster */
		if (entry && vacant == PST_NONE && (!entry->user || pst_ewma_has_stopped(&entry->demand, walk->now_ns)))
			vacant = index;
	}
	entry = pst_plane_node(plane, vacant);
	if (!entry)
		return pst_tree_crowd(place);
	if (entry->part.state != PST_SHARE_IDLE)
		pst_share_leave(&parent->children, &entry->part);
	entry->demand.rate_Bps_q8 = 0;
	entry->demand.gap_ns_q4 = entry->demand.more = 0;
	entry->demand.last_ns = walk->now_ns - PST_TREE_GAP_NSEC;
	entry->share_Bps = entry->late_bytes = entry->passed_bytes = 0;
	entry->vft_ticks = pst_limiter_idle(walk->now_ns);
	entry->weight = walk->weight;
	*(volatile uint64_t *)&entry->user = walk->user;
	return vacant;
}

/*
 * Whether this CPU is the one that works in a tree now: the lock says since when, so that one who was killed in there does not keep it. Returns what
 * is to be given back; 0: somebody else is at work.
 */
PST_INLINE uint32_t pst_tree_enter(struct pst_tree_node *link, uint64_t now_ns)
{
	uint32_t stamp = (uint32_t)(now_ns >> PST_TREE_LOCK_SHIFT) | 1;
#ifdef PST_ONE_THREAD
	(void)link;
#else
	uint32_t lock = *(volatile uint32_t *)&link->lock;

	if (lock && (int32_t)(stamp - lock) < PST_TREE_LOCK_STAMPS)
		return 0;
	if (__sync_val_compare_and_swap(&link->lock, lock, stamp) != lock)
		return 0;
#endif
	return stamp;
}

PST_INLINE void pst_tree_exit(struct pst_tree_node *link, uint32_t stamp)
{
#ifdef PST_ONE_THREAD
	(void)link;
	(void)stamp;
#else
	__sync_val_compare_and_swap(&link->lock, stamp, 0);
#endif
}

/* What a leaf's packet counts: its own bytes, and those of packets that came while another CPU was at work. */
PST_INLINE uint32_t pst_tree_bytes(struct pst_tree_node *leaf, uint32_t bytes)
{
	uint64_t late_bytes = *(volatile uint64_t *)&leaf->late_bytes;

	if (late_bytes > PST_TREE_LATE_MAX)
		late_bytes = PST_TREE_LATE_MAX;
	if (late_bytes)
		__sync_fetch_and_add(&leaf->late_bytes, 0 - late_bytes);
	late_bytes += bytes;
	return (uint32_t)(late_bytes < PST_TREE_BYTES_MAX ? late_bytes : PST_TREE_BYTES_MAX);
}

/*
 * A packet of a class, or of a user of it: walk->place, user, weight and now_ns say which. Nobody waits: who finds another CPU at work goes by the
 * share that the leaf has, and leaves its bytes to the leaf's next packet. Returns the leaf's share, and its node in walk->leaf; 0 of what is no leaf.
 */
PST_INLINE uint64_t pst_tree_share(const struct pst_plane *plane, struct pst_tree_walk *walk, uint32_t bytes)
{
	const struct pst_tree_place *place = pst_plane_place(plane, walk->place), *top;
	struct pst_tree_node *leaf, *link;
	uint64_t share_Bps = 0;
	uint32_t entered;

	if (!place || !pst_place_is_in_tree(place) || place->first_child != PST_NONE)
		return 0;
	top = pst_plane_place(plane, place->link);
	link = pst_plane_node(plane, place->link);
	if (!top || !link)
		return 0;
	walk->leaf = place->user_count ? pst_tree_find(plane, walk) : walk->place;
	entered = pst_tree_enter(link, walk->now_ns);
	if (walk->leaf == PST_NONE)
		walk->leaf = entered ? pst_tree_admit(plane, walk) : pst_tree_crowd(place);
	leaf = pst_plane_node(plane, walk->leaf);
	if (leaf && entered) {
		walk->bytes = pst_tree_bytes(leaf, bytes);
		walk->bytes_q8 = walk->bytes << 8;
		share_Bps = pst_tree_go(plane, walk, place->link) ? walk->share_Bps : 0;
	} else if (leaf) {
		__sync_fetch_and_add(&leaf->late_bytes, bytes);
		share_Bps = *(volatile uint64_t *)&leaf->share_Bps;
		share_Bps = share_Bps ? share_Bps : top->terms.ceiling_Bps;
	}
	if (entered)
		pst_tree_exit(link, entered);
	return share_Bps;
}

#ifndef PST_PLANE_HOST /* plane.h: a kernel program has packets to count */

/* Forgets a node that is gone, and adds up what is in its parent's sums of those who are not. */
PST_INLINE void pst_tree_recount(struct pst_share_sums *sums, struct pst_tree_node *node, struct pst_tree_node *parent, uint64_t now_ns)
{
	if (!node || node->part.state == PST_SHARE_IDLE)
		return;
	pst_tree_fade(node, parent, now_ns);
	if (node->part.state != PST_SHARE_IDLE)
		pst_share_join(sums, &node->part);
}

/*
 * Looks at all children of a place, for a host in userspace. Somebody who was killed at work may have left sums that are not those of the children's
 * parts (I1): these are put right. False when somebody is at work: come again.
 */
PST_INLINE bool pst_tree_tend(const struct pst_plane *plane, uint32_t index, uint64_t now_ns)
{
	const struct pst_tree_place *place = pst_plane_place(plane, index), *child = place;
	struct pst_tree_node *node = pst_plane_node(plane, index), *link = place ? pst_plane_node(plane, place->link) : node;
	struct pst_share_sums sums = { 0, 0, 0, 0 };
	uint32_t entered, at, steps;

	if (!place || !node || !link)
		return true;
	entered = pst_tree_enter(link, now_ns);
	if (!entered)
		return false;
	for (at = place->first_child, steps = 0; at != PST_NONE && steps < plane->place_count; at = child->next_sibling, steps++) {
		child = pst_plane_place(plane, at);
		if (!child)
			break;
		pst_tree_recount(&sums, pst_plane_node(plane, at), node, now_ns);
	}
	for (at = 0; place->user_count && at <= place->user_count && at < plane->node_count; at++)
		pst_tree_recount(&sums, pst_plane_node(plane, place->first_user + at), node, now_ns);
	node->children = sums;
	pst_tree_exit(link, entered);
	return true;
}

#endif /* PST_PLANE_HOST */

#endif /* PENSTOCK_TREE_H */
