/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * packet_link.h: from the first byte of a layer to its IP header. The first half of packet.h, which says it all.
 */
#ifndef PENSTOCK_PACKET_LINK_H
#define PENSTOCK_PACKET_LINK_H

#include "wire.h"

#define PST_PACKET_VLANS_MAX 4U
#define PST_PACKET_LABELS_MAX 8U

#define PST_ETHERTYPE_IPV4 0x0800U
#define PST_ETHERTYPE_IPV6 0x86ddU
#define PST_ETHERTYPE_VLAN 0x8100U
#define PST_ETHERTYPE_QINQ 0x88a8U
#define PST_ETHERTYPE_QINQ_OLD 0x9100U
#define PST_ETHERTYPE_PPPOE 0x8864U
#define PST_ETHERTYPE_MPLS 0x8847U
#define PST_ETHERTYPE_MPLS_UPSTREAM 0x8848U
#define PST_ETHERTYPE_ETHERNET 0x6558U
/* Above the 16 bits of the wire: what only this parser says. */
#define PST_ETHERTYPE_BY_VERSION 0x10000U /* an IP packet, or not, by its first four bits */
#define PST_ETHERTYPE_NONE 0x10001U       /* nothing that can hold IP */

/* Where the parser is. */
struct pst_cursor {
	const uint8_t *data;
	const uint8_t *end;
	uint32_t offset;    /* of the next header */
	uint32_t limit;     /* where the bytes of the innermost header's packet end on the wire */
	uint32_t ethertype; /* what the next header is, before IP */
	uint32_t proto;     /* what the next header is, after IP */
	uint32_t tunnels;   /* opened so far */
	bool is_partial;    /* in a first fragment: a declared length may exceed the limit */
};

/* A word at any address. For BPF clang makes single bytes of a memcpy, and the kernels that it is for take any address. */
#ifdef __bpf__
#define PST_LOAD(type, at) (*(const type *)(const void *)(at))
#else
#define PST_LOAD(type, at)                                       \
	({                                                       \
		type pst_word;                                   \
		__builtin_memcpy(&pst_word, (at), sizeof(type)); \
		pst_word;                                        \
	})
#endif

PST_INLINE uint32_t pst_load_be16(const uint8_t *at)
{
	uint16_t word = PST_LOAD(uint16_t, at);

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	word = __builtin_bswap16(word);
#endif
	return word;
}

PST_INLINE uint32_t pst_load_be32(const uint8_t *at)
{
	uint32_t word = PST_LOAD(uint32_t, at);

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	word = __builtin_bswap32(word);
#endif
	return word;
}

PST_INLINE uint64_t pst_load_be64(const uint8_t *at)
{
	uint64_t word = PST_LOAD(uint64_t, at);

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	return word;
}

/* Ends the parse: something is wrong. Always false, so that callers can return it. */
PST_INLINE bool pst_packet_refuse(const struct pst_cursor *at, struct pst_packet *out, uint8_t reason)
{
	if (at->tunnels > 0)
		out->flags |= PST_PACKET_IS_BAD_INSIDE;
	else
		out->reason = reason;
	return false;
}

/* The next `bytes`, or null after saying why not: the wire had no more (`reason`), or the capture has no more. */
PST_INLINE const uint8_t *pst_packet_peek(const struct pst_cursor *at, struct pst_packet *out, uint32_t bytes,
					  uint8_t reason)
{
	const uint8_t *header = at->data + at->offset;

	if (at->offset + bytes > at->limit) {
		pst_packet_refuse(at, out, reason);
		return 0;
	}
	if (header + bytes > at->end) {
		out->flags |= PST_PACKET_IS_CUT;
		return 0;
	}
	return header;
}

/*
 * Goes on behind `bytes`. The BPF verifier would follow every combination of header lengths as a path of its own; xor
 * with a word that it does not know, twice, leaves the value and makes it forget all but the 15 bits that the mask
 * grants. They suffice: the offset stays within 1 KB of what was captured, and XDP's linear part is no longer than a
 * page or a jumbo frame.
 */
PST_INLINE void pst_cursor_advance(struct pst_cursor *at, uint32_t bytes)
{
	at->offset += bytes;
#ifdef __bpf__
	__asm__ volatile("%0 ^= %1\n\t%0 ^= %1" : "+r"(at->offset) : "r"(at->limit));
	at->offset &= 0x7fffU;
#endif
}

/* Narrows the limit to a declared length, counted from the offset. False when there cannot be that much. */
PST_INLINE bool pst_cursor_narrow(struct pst_cursor *at, uint32_t bytes)
{
	if (at->offset + bytes > at->limit)
		return at->is_partial;
	at->limit = at->offset + bytes;
	return true;
}

PST_INLINE void pst_packet_set_present(struct pst_packet *out, uint32_t bits)
{
	out->key.words[6] |= (uint64_t)bits << PST_KEY_HAS_SHIFT;
}

PST_INLINE bool pst_packet_parse_ethernet(struct pst_cursor *at, struct pst_packet *out)
{
	const uint8_t *header = pst_packet_peek(at, out, 14, PST_REASON_SHORT_ETHERNET);

	if (!header)
		return false;
	if (at->tunnels == 0) {
		out->key.words[5] = ((uint64_t)pst_load_be16(header + 6) << 32) | pst_load_be32(header + 8);
		out->key.words[6] = ((uint64_t)pst_load_be16(header) << 32) | pst_load_be32(header + 2);
		pst_packet_set_present(out, PST_KEY_HAS_MAC);
	}
	at->ethertype = pst_load_be16(header + 12);
	pst_cursor_advance(at, 14);
	return true;
}

PST_INLINE uint32_t pst_packet_ppp_ethertype(uint32_t protocol)
{
	switch (protocol) {
	case 0x0021:
		return PST_ETHERTYPE_IPV4;
	case 0x0057:
		return PST_ETHERTYPE_IPV6;
	case 0x0281:
	case 0x0283:
		return PST_ETHERTYPE_MPLS;
	default:
		return PST_ETHERTYPE_NONE;
	}
}

/* A link header of `bytes` whose only interesting field is the EtherType at `type_offset`. */
PST_INLINE bool pst_packet_parse_typed(struct pst_cursor *at, struct pst_packet *out, uint32_t bytes,
				       uint32_t type_offset)
{
	const uint8_t *header = pst_packet_peek(at, out, bytes, PST_REASON_SHORT_ETHERNET);

	if (!header)
		return false;
	at->ethertype = pst_load_be16(header + type_offset);
	pst_cursor_advance(at, bytes);
	return true;
}

/*
 * PPP: the address and control bytes FF 03 may be compressed away, and so may the protocol's high byte (RFC 1661, 6.5
 * and 6.6). Captures of Cisco HDLC go by this name too: it begins with 0F or 8F, which no PPP frame does.
 */
PST_INLINE bool pst_packet_parse_ppp(struct pst_cursor *at, struct pst_packet *out)
{
	const uint8_t *header = pst_packet_peek(at, out, 2, PST_REASON_SHORT_ETHERNET);

	if (!header)
		return false;
	if (header[0] == 0x0fU || header[0] == 0x8fU)
		return pst_packet_parse_typed(at, out, 4, 2);
	if (pst_load_be16(header) == 0xff03U) {
		pst_cursor_advance(at, 2);
		header = pst_packet_peek(at, out, 2, PST_REASON_SHORT_ETHERNET);
		if (!header)
			return false;
	}
	if (header[0] & 1U) {
		at->ethertype = pst_packet_ppp_ethertype(header[0]);
		pst_cursor_advance(at, 1);
	} else {
		at->ethertype = pst_packet_ppp_ethertype(pst_load_be16(header));
		pst_cursor_advance(at, 2);
	}
	return true;
}

/* BSD loopback: the address family in either byte order; IPv6 has had four numbers. */
PST_INLINE uint32_t pst_packet_null_ethertype(uint32_t family)
{
	if (!(family & 0xffffU))
		family = __builtin_bswap32(family);
	switch (family) {
	case 2:
		return PST_ETHERTYPE_IPV4;
	case 10:
	case 24:
	case 28:
	case 30:
		return PST_ETHERTYPE_IPV6;
	default:
		return PST_ETHERTYPE_NONE;
	}
}

PST_INLINE bool pst_packet_parse_link(struct pst_cursor *at, struct pst_packet *out, enum pst_link_type link)
{
	const uint8_t *header;

	switch (link) {
	case PST_LINK_ETHERNET:
		return pst_packet_parse_ethernet(at, out);
	case PST_LINK_RAW_IP:
		header = pst_packet_peek(at, out, 1, PST_REASON_SHORT_IPV4);
		if (!header)
			return false;
		at->ethertype = header[0] >> 4 == 6 ? PST_ETHERTYPE_IPV6 : PST_ETHERTYPE_IPV4;
		return true;
	case PST_LINK_LINUX_SLL:
		return pst_packet_parse_typed(at, out, 16, 14);
	case PST_LINK_LINUX_SLL2:
		return pst_packet_parse_typed(at, out, 20, 0);
	case PST_LINK_NULL:
		header = pst_packet_peek(at, out, 4, PST_REASON_SHORT_ETHERNET);
		if (!header)
			return false;
		at->ethertype = pst_packet_null_ethertype(pst_load_be32(header));
		pst_cursor_advance(at, 4);
		return true;
	case PST_LINK_CISCO_HDLC:
		return pst_packet_parse_typed(at, out, 4, 2);
	case PST_LINK_PPP:
		return pst_packet_parse_ppp(at, out);
	default:
		return true; /* not IP */
	}
}

PST_INLINE bool pst_ethertype_is_vlan(uint32_t ethertype)
{
	return ethertype == PST_ETHERTYPE_VLAN || ethertype == PST_ETHERTYPE_QINQ ||
	       ethertype == PST_ETHERTYPE_QINQ_OLD;
}

PST_INLINE bool pst_packet_parse_vlans(struct pst_cursor *at, struct pst_packet *out)
{
	uint32_t tag;

	for (tag = 0; tag < PST_PACKET_VLANS_MAX && pst_ethertype_is_vlan(at->ethertype); tag++) {
		const uint8_t *header = pst_packet_peek(at, out, 4, PST_REASON_SHORT_VLAN);

		if (!header)
			return false;
		if (tag == 0 && at->tunnels == 0) {
			out->key.words[5] |= (uint64_t)(pst_load_be16(header) & 0xfffU) << 48;
			pst_packet_set_present(out, PST_KEY_HAS_VLAN);
		}
		at->ethertype = pst_load_be16(header + 2);
		pst_cursor_advance(at, 4);
	}
	if (pst_ethertype_is_vlan(at->ethertype))
		return pst_packet_refuse(at, out, PST_REASON_TOO_MANY_LAYERS);
	return true;
}

/* PPPoE session: version and type 1, code 0, session, length of what follows; then PPP's protocol number. */
PST_INLINE bool pst_packet_parse_pppoe(struct pst_cursor *at, struct pst_packet *out)
{
	const uint8_t *header = pst_packet_peek(at, out, 8, PST_REASON_SHORT_PPPOE);
	uint32_t payload_bytes;

	if (!header)
		return false;
	payload_bytes = pst_load_be16(header + 4);
	if (pst_load_be16(header) != 0x1100U || payload_bytes < 2 || !pst_cursor_narrow(at, 6 + payload_bytes))
		return pst_packet_refuse(at, out, PST_REASON_BAD_PPPOE);
	at->ethertype = pst_packet_ppp_ethertype(pst_load_be16(header + 6));
	pst_cursor_advance(at, 8);
	return true;
}

PST_INLINE bool pst_packet_parse_mpls(struct pst_cursor *at, struct pst_packet *out)
{
	uint32_t label;

	for (label = 0; label < PST_PACKET_LABELS_MAX; label++) {
		const uint8_t *header = pst_packet_peek(at, out, 4, PST_REASON_SHORT_MPLS);

		if (!header)
			return false;
		pst_cursor_advance(at, 4);
		if (header[2] & 1U) { /* the bottom of the stack */
			at->ethertype = PST_ETHERTYPE_BY_VERSION;
			return true;
		}
	}
	return pst_packet_refuse(at, out, PST_REASON_TOO_MANY_LAYERS);
}

/* From the EtherType to that of the IP header. */
PST_INLINE bool pst_packet_parse_shims(struct pst_cursor *at, struct pst_packet *out)
{
	if (!pst_packet_parse_vlans(at, out))
		return false;
	if (at->ethertype == PST_ETHERTYPE_PPPOE && !pst_packet_parse_pppoe(at, out))
		return false;
	if ((at->ethertype == PST_ETHERTYPE_MPLS || at->ethertype == PST_ETHERTYPE_MPLS_UPSTREAM) &&
	    !pst_packet_parse_mpls(at, out))
		return false;
	if (at->ethertype == PST_ETHERTYPE_BY_VERSION) {
		const uint8_t *header = pst_packet_peek(at, out, 1, PST_REASON_SHORT_MPLS);

		if (!header)
			return false;
		at->ethertype = PST_ETHERTYPE_NONE;
		if (header[0] >> 4 == 4)
			at->ethertype = PST_ETHERTYPE_IPV4;
		else if (header[0] >> 4 == 6)
			at->ethertype = PST_ETHERTYPE_IPV6;
	}
	return true;
}

#endif /* PENSTOCK_PACKET_LINK_H */
