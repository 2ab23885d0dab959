/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * packet.h: from the bytes of a frame to the key of its packet.
 *
 * What         A layer is
 *                  [Ethernet] [VLAN tags] [PPPoE session] [MPLS labels] IP [extension headers] [transport] [tunnel]
 *              each part optional and in this order. A tunnel (VXLAN, GENEVE, GTP-U) opens the next layer. The key
 *              holds addresses, ports and DSCP of the innermost IP packet reached; MACs and VLAN of the outer frame;
 *              VNI and TEID of the outermost tunnel that has one, since a tenant can add tunnels inside, not outside.
 *              A header contributes when all of it was captured and all its checks hold, or not at all (of IPv4
 *              options and TCP options only the length is checked).
 *              Three ways to end early:
 *                malformed   a header runs past the bytes that were on the wire, or contradicts itself: `reason` says
 *                            how. Only the outermost packet, its tunnel header included, can make a frame malformed.
 *                bad inside  the same behind a tunnel header: PST_PACKET_IS_BAD_INSIDE. The key keeps the last sound
 *                            header, so the packet is charged to whoever that names (VNI and TEID included): breaking
 *                            an inner header is no way around a limit, and a sound outer packet is not lost.
 *                cut         the capture stopped before the wire did (snap length): PST_PACKET_IS_CUT.
 *              A UDP payload that does not begin like a tunnel header of its port is no tunnel, but plain UDP.
 * Source       IEEE 802.1Q; RFC 2516, 1661 (PPPoE, PPP); RFC 3032 (MPLS); RFC 791, 8200, 4302, 2675 (IP); RFC 9293,
 *              768, 3828, 9260 (ports); RFC 1858 (tiny fragments); RFC 7348 (VXLAN); RFC 8926 (GENEVE); 3GPP TS 29.281
 *              section 5 (GTP-U).
 * Units        bytes; offsets count from the first captured byte.
 * Ranges       VLAN tags, MPLS labels, extension headers and tunnels up to the PST_PACKET_*_MAX below. One tag, label
 *              or extension more: PST_REASON_TOO_MANY_LAYERS. One tunnel more stays closed.
 * Invariants   I1  no byte outside [data, end) is read, and the work is bounded whatever the bytes are.
 *              I2  cutting a sound frame with wire_bytes kept never makes it malformed.
 *              I3  `length` is right as soon as the fixed part of the outermost IP header was captured.
 *              I4  bytes behind the end of the outermost IP packet (padding) change nothing but a length that no header
 *                  declares.
 *              I5  a frame that is malformed or bad inside still names every header before the unsound one.
 * Length       IPv4 total length, or 40 + IPv6 payload length. Declared as 0 (segmentation offload, jumbogram): what
 *              the wire has from the IP header on. Not IP, or no sound IP header: what the wire has after the last
 *              header understood before it. Up to UINT32_MAX: a host whose limiters take less clamps it.
 * Fragments    a fragment other than the first has no ports. The first one is parsed on, tunnels included (else an
 *              inner packet that fills the MTU would escape the limits that smaller ones meet), and a length declared
 *              in it may exceed it; a header that it should hold and does not is malformed.
 * Overflow     offset < 2^16: 3 layers of at most 21 KB of headers. offset + a 16-bit length < 2^17 + 40.
 * Concurrency  pure.
 * Not done     checksums are not verified, IPv4's neither (a router or receiver drops such packets). LLC/SNAP,
 *              pseudo-wires, PPPoE discovery and GTP-U with Ethernet inside count as not IP. GRE, IP-in-IP and IPv4 AH
 *              are IP packets without ports. No reassembly. Whether a tunnel is the operator's or one that a tenant
 *              made to choose its own key cannot be seen here.
 */
#ifndef PENSTOCK_PACKET_H
#define PENSTOCK_PACKET_H

#include "packet_link.h"

#define PST_PACKET_EXTENSIONS_MAX 8U
#define PST_PACKET_GTP_EXTENSIONS_MAX 4U
#define PST_PACKET_TUNNELS_MAX 2U

#define PST_PROTO_HOP_BY_HOP 0U
#define PST_PROTO_ICMP 1U
#define PST_PROTO_TCP 6U
#define PST_PROTO_UDP 17U
#define PST_PROTO_ROUTING 43U
#define PST_PROTO_FRAGMENT 44U
#define PST_PROTO_AH 51U
#define PST_PROTO_ICMPV6 58U
#define PST_PROTO_NO_NEXT 59U
#define PST_PROTO_DESTINATION 60U
#define PST_PROTO_SCTP 132U
#define PST_PROTO_UDPLITE 136U

#define PST_PORT_GTPU 2152U
#define PST_PORT_VXLAN 4789U
#define PST_PORT_GENEVE 6081U

/* Enters a sound IP header at the offset: word 1 begins anew, and what it had of an outer packet is forgotten. */
PST_INLINE void pst_packet_set_network(const struct pst_cursor *at, struct pst_packet *out, uint8_t family, uint8_t tos)
{
	out->key.words[1] = ((uint64_t)family << PST_KEY_FAMILY_SHIFT) | ((uint64_t)at->proto << 48) |
			    ((uint64_t)(tos >> 2) << 40);
	if (at->tunnels > 0) {
		out->flags |= PST_PACKET_IS_TUNNEL;
		return;
	}
	out->length = at->limit - at->offset;
	out->network_offset = (uint16_t)at->offset;
	out->network_family = family;
	out->network_tos = tos;
	out->flags |= PST_PACKET_IS_IP;
}

/* False when there is nothing more to learn: no such header, or a fragment without its beginning. */
PST_INLINE bool pst_packet_parse_ipv4(struct pst_cursor *at, struct pst_packet *out)
{
	const uint8_t *header = pst_packet_peek(at, out, 20, PST_REASON_SHORT_IPV4);
	uint32_t header_bytes, total_bytes, fragment;

	if (!header)
		return false;
	if (header[0] >> 4 != 4)
		return pst_packet_refuse(at, out, PST_REASON_BAD_IPV4_VERSION);
	header_bytes = (header[0] & 15U) * 4U;
	if (header_bytes < 20)
		return pst_packet_refuse(at, out, PST_REASON_BAD_IPV4_HEADER_LENGTH);
	total_bytes = pst_load_be16(header + 2);
	if (total_bytes && (total_bytes < 20 || !pst_cursor_narrow(at, total_bytes)))
		return pst_packet_refuse(at, out, PST_REASON_BAD_IPV4_TOTAL_LENGTH);
	if (at->offset + header_bytes > at->limit)
		return pst_packet_refuse(at, out, PST_REASON_BAD_IPV4_HEADER_LENGTH);
	at->proto = header[9];
	pst_packet_set_network(at, out, 4, header[1]);
	out->key.words[0] = pst_load_be64(header + 12);
	out->key.words[2] = 0;
	out->key.words[3] = 0;
	out->key.words[4] = 0;
	pst_cursor_advance(at, header_bytes);
	fragment = pst_load_be16(header + 6) & 0x3fffU; /* more fragments, and the offset */
	if (!fragment)
		return true;
	out->flags |= PST_PACKET_IS_FRAGMENT;
	at->is_partial = true;
	return fragment == 0x2000U;
}
/* Takes one extension header. False for a fragment other than the first: what follows is not a header. */
PST_INLINE bool pst_packet_parse_extension(struct pst_cursor *at, struct pst_packet *out)
{
	const uint8_t *header = pst_packet_peek(at, out, 8, PST_REASON_BAD_IPV6_EXTENSION);
	uint32_t bytes = 8, fragment = 0;

	if (!header)
		return false;
	if (at->proto == PST_PROTO_FRAGMENT)
		fragment = pst_load_be16(header + 2) & 0xfff9U; /* the offset, and more fragments */
	else if (at->proto == PST_PROTO_AH)
		bytes = (header[1] + 2U) * 4U;
	else
		bytes = (header[1] + 1U) * 8U;
	if (!pst_packet_peek(at, out, bytes, PST_REASON_BAD_IPV6_EXTENSION))
		return false;
	pst_cursor_advance(at, bytes);
	at->proto = header[0];
	out->key.words[1] = (out->key.words[1] & ~(UINT64_C(0xff) << 48)) | ((uint64_t)at->proto << 48);
	if (!fragment)
		return true;
	out->flags |= PST_PACKET_IS_FRAGMENT;
	at->is_partial = true;
	return fragment == 1;
}

PST_INLINE bool pst_proto_is_extension(uint32_t proto)
{
	return proto == PST_PROTO_HOP_BY_HOP || proto == PST_PROTO_ROUTING || proto == PST_PROTO_FRAGMENT ||
	       proto == PST_PROTO_AH || proto == PST_PROTO_DESTINATION;
}

PST_INLINE bool pst_packet_parse_ipv6(struct pst_cursor *at, struct pst_packet *out)
{
	const uint8_t *header = pst_packet_peek(at, out, 40, PST_REASON_SHORT_IPV6);
	uint32_t payload_bytes, i;

	if (!header)
		return false;
	if (header[0] >> 4 != 6)
		return pst_packet_refuse(at, out, PST_REASON_BAD_IPV6_VERSION);
	at->proto = header[6];
	payload_bytes = pst_load_be16(header + 4);
	if ((payload_bytes || at->proto == PST_PROTO_NO_NEXT) && !pst_cursor_narrow(at, 40 + payload_bytes))
		return pst_packet_refuse(at, out, PST_REASON_BAD_IPV6_PAYLOAD_LENGTH);
	pst_packet_set_network(at, out, 6, (uint8_t)(pst_load_be16(header) >> 4));
	out->key.words[0] = pst_load_be64(header + 8);
	out->key.words[2] = pst_load_be64(header + 16);
	out->key.words[3] = pst_load_be64(header + 24);
	out->key.words[4] = pst_load_be64(header + 32);
	pst_cursor_advance(at, 40);
	for (i = 0; i < PST_PACKET_EXTENSIONS_MAX && pst_proto_is_extension(at->proto); i++) {
		if (!pst_packet_parse_extension(at, out))
			return false;
	}
	if (pst_proto_is_extension(at->proto))
		return pst_packet_refuse(at, out, PST_REASON_TOO_MANY_LAYERS);
	return true;
}

PST_INLINE void pst_packet_set_ports(struct pst_packet *out, const uint8_t *header, uint32_t has)
{
	out->key.words[1] |= ((uint64_t)has << PST_KEY_FAMILY_SHIFT) | pst_load_be32(header);
}

/* Of a header cut by fragmentation, 16 bytes hold all that is looked at (RFC 1858, section 3.2.1). */
PST_INLINE void pst_packet_parse_tcp(const struct pst_cursor *at, struct pst_packet *out)
{
	const uint8_t *header = pst_packet_peek(at, out, at->is_partial ? 16 : 20, PST_REASON_SHORT_TRANSPORT);
	uint32_t bytes;

	if (!header)
		return;
	bytes = (header[12] >> 4) * 4U;
	if (bytes < 20 || (at->offset + bytes > at->limit && !at->is_partial)) {
		pst_packet_refuse(at, out, PST_REASON_BAD_TCP_HEADER_LENGTH);
		return;
	}
	out->key.words[1] |= (uint64_t)header[13] << 32;
	pst_packet_set_ports(out, header, PST_KEY_HAS_PORTS | PST_KEY_HAS_TCP);
}

/* The destination port, with the offset at the payload; 0 when the parse ends here. */
PST_INLINE uint32_t pst_packet_parse_udp(struct pst_cursor *at, struct pst_packet *out)
{
	const uint8_t *header = pst_packet_peek(at, out, 8, PST_REASON_SHORT_TRANSPORT);
	uint32_t bytes;

	if (!header)
		return 0;
	bytes = pst_load_be16(header + 4);
	/* RFC 2675, section 4: all that IP has. Receivers take it whether or not it is a jumbogram. */
	if (bytes == 0 && (out->key.words[1] >> PST_KEY_FAMILY_SHIFT & PST_KEY_FAMILY) == 6)
		bytes = at->limit - at->offset;
	if (bytes < 8 || !pst_cursor_narrow(at, bytes)) {
		pst_packet_refuse(at, out, PST_REASON_BAD_UDP_LENGTH);
		return 0;
	}
	pst_packet_set_ports(out, header, PST_KEY_HAS_PORTS);
	pst_cursor_advance(at, 8);
	return pst_load_be16(header + 2);
}

/* UDP's destination port, or 0: nothing that could be a tunnel. */
PST_INLINE uint32_t pst_packet_parse_transport(struct pst_cursor *at, struct pst_packet *out)
{
	const uint8_t *header;

	switch (at->proto) {
	case PST_PROTO_UDP:
		return pst_packet_parse_udp(at, out);
	case PST_PROTO_TCP:
		pst_packet_parse_tcp(at, out);
		return 0;
	case PST_PROTO_ICMP:
		pst_packet_peek(at, out, 8, PST_REASON_SHORT_TRANSPORT);
		return 0;
	case PST_PROTO_ICMPV6:
		pst_packet_peek(at, out, 4, PST_REASON_SHORT_TRANSPORT);
		return 0;
	case PST_PROTO_SCTP:
		header = pst_packet_peek(at, out, 12, PST_REASON_SHORT_TRANSPORT);
		break;
	case PST_PROTO_UDPLITE:
		header = pst_packet_peek(at, out, 8, PST_REASON_SHORT_TRANSPORT);
		break;
	default:
		return 0;
	}
	if (header)
		pst_packet_set_ports(out, header, PST_KEY_HAS_PORTS);
	return 0;
}

/* The outermost one stays: whoever owns it cannot be spoken for from inside. */
PST_INLINE void pst_packet_set_vni(struct pst_packet *out, uint32_t vni)
{
	if (out->key.words[6] & ((uint64_t)PST_KEY_HAS_VNI << PST_KEY_HAS_SHIFT))
		return;
	out->key.words[7] |= (uint64_t)vni << 32;
	pst_packet_set_present(out, PST_KEY_HAS_VNI);
}

PST_INLINE bool pst_packet_open_vxlan(struct pst_cursor *at, struct pst_packet *out, const uint8_t *header)
{
	if (!(header[0] & 0x08U)) /* flag I: the VNI is valid */
		return false;
	pst_packet_set_vni(out, pst_load_be32(header + 4) >> 8);
	at->ethertype = PST_ETHERTYPE_ETHERNET;
	pst_cursor_advance(at, 8);
	return true;
}

PST_INLINE bool pst_packet_open_geneve(struct pst_cursor *at, struct pst_packet *out, const uint8_t *header)
{
	uint32_t bytes = 8 + (header[0] & 0x3fU) * 4U;

	if (header[0] >> 6) /* version 0 */
		return false;
	if (!pst_packet_peek(at, out, bytes, PST_REASON_SHORT_TUNNEL))
		return false;
	pst_packet_set_vni(out, pst_load_be32(header + 4) >> 8);
	at->ethertype = pst_load_be16(header + 2);
	pst_cursor_advance(at, bytes);
	return true;
}

/* GTP-U's extension headers: a length in words of four bytes, the content, the next one's type. */
PST_INLINE bool pst_packet_skip_gtpu_extensions(struct pst_cursor *at, struct pst_packet *out, uint32_t next)
{
	uint32_t i;

	for (i = 0; i < PST_PACKET_GTP_EXTENSIONS_MAX && next; i++) {
		const uint8_t *header = pst_packet_peek(at, out, 4, PST_REASON_SHORT_TUNNEL);

		if (!header)
			return false;
		if (header[0] == 0)
			return pst_packet_refuse(at, out, PST_REASON_BAD_TUNNEL);
		pst_cursor_advance(at, header[0] * 4U - 1);
		header = pst_packet_peek(at, out, 1, PST_REASON_SHORT_TUNNEL);
		if (!header)
			return false;
		next = header[0];
		pst_cursor_advance(at, 1);
	}
	if (next)
		return pst_packet_refuse(at, out, PST_REASON_TOO_MANY_LAYERS);
	return true;
}

PST_INLINE bool pst_packet_open_gtpu(struct pst_cursor *at, struct pst_packet *out, const uint8_t *header)
{
	uint32_t flags = header[0], teid = pst_load_be32(header + 4), next = 0;

	if (flags >> 4 != 3 || header[1] != 255) /* version 1, GTP and not GTP'; a G-PDU */
		return false;
	if (!pst_cursor_narrow(at, 8 + pst_load_be16(header + 2)))
		return pst_packet_refuse(at, out, PST_REASON_BAD_TUNNEL);
	pst_cursor_advance(at, 8);
	if (flags & 0x07U) { /* E, S or PN: all three optional fields are there */
		header = pst_packet_peek(at, out, 4, PST_REASON_SHORT_TUNNEL);
		if (!header)
			return false;
		if (flags & 0x04U)
			next = header[3];
		pst_cursor_advance(at, 4);
	}
	if (!pst_packet_skip_gtpu_extensions(at, out, next))
		return false;
	if (!(out->key.words[6] & ((uint64_t)PST_KEY_HAS_TEID << PST_KEY_HAS_SHIFT))) {
		out->key.words[7] |= teid;
		pst_packet_set_present(out, PST_KEY_HAS_TEID);
	}
	at->ethertype = PST_ETHERTYPE_BY_VERSION;
	return true;
}

/* Opens what UDP carries to `port`. False: it is no tunnel, or cannot be opened. */
PST_INLINE bool pst_packet_open_tunnel(struct pst_cursor *at, struct pst_packet *out, uint32_t port)
{
	const uint8_t *header;
	bool is_open;

	if (port != PST_PORT_VXLAN && port != PST_PORT_GENEVE && port != PST_PORT_GTPU)
		return false;
	if (at->tunnels == PST_PACKET_TUNNELS_MAX || at->offset + 8 > at->limit)
		return false;
	header = pst_packet_peek(at, out, 8, PST_REASON_SHORT_TUNNEL);
	if (!header)
		return false;
	if (port == PST_PORT_VXLAN)
		is_open = pst_packet_open_vxlan(at, out, header);
	else if (port == PST_PORT_GENEVE)
		is_open = pst_packet_open_geneve(at, out, header);
	else
		is_open = pst_packet_open_gtpu(at, out, header);
	at->tunnels += is_open;
	return is_open;
}

/* True when what follows is a transport's header. */
PST_INLINE bool pst_packet_parse_network(struct pst_cursor *at, struct pst_packet *out)
{
	if (at->ethertype == PST_ETHERTYPE_IPV4)
		return pst_packet_parse_ipv4(at, out);
	return at->ethertype == PST_ETHERTYPE_IPV6 && pst_packet_parse_ipv6(at, out);
}

/* Transport, and into the tunnel if there is one. True when a next layer is open, but for what stands before its IP. */
PST_INLINE bool pst_packet_parse_payload(struct pst_cursor *at, struct pst_packet *out)
{
	if (!pst_packet_open_tunnel(at, out, pst_packet_parse_transport(at, out)))
		return false;
	return at->ethertype != PST_ETHERTYPE_ETHERNET || pst_packet_parse_ethernet(at, out);
}

/*
 * The frame that nearly all are: Ethernet, a sound IPv4 header without options, no fragment, UDP or TCP, no tunnel. Returns
 * false for any other, which then takes the way of all layers; what this one writes is what that would have written.
 */
PST_INLINE bool pst_packet_parse_plain(struct pst_packet *out, const uint8_t *data, const uint8_t *end,
				       uint32_t wire_bytes)
{
	uint32_t total_bytes, proto, has = 4 | PST_KEY_HAS_PORTS;
	uint64_t tcp_flags = 0;

	if (data + 42 > end || pst_load_be16(data + 12) != PST_ETHERTYPE_IPV4 || data[14] != 0x45)
		return false;
	total_bytes = pst_load_be16(data + 16);
	proto = data[23];
	if ((pst_load_be16(data + 20) & 0x3fffU) || total_bytes + 14 > wire_bytes)
		return false;
	if (proto == PST_PROTO_UDP) {
		uint32_t port = pst_load_be16(data + 36), udp_bytes = pst_load_be16(data + 38);

		if (udp_bytes < 8 || udp_bytes + 20 > total_bytes || port == PST_PORT_GTPU || port == PST_PORT_VXLAN ||
		    port == PST_PORT_GENEVE)
			return false;
	} else {
		uint32_t tcp_bytes;

		if (proto != PST_PROTO_TCP || data + 54 > end)
			return false;
		tcp_bytes = (data[46] >> 4) * 4U;
		if (tcp_bytes < 20 || tcp_bytes + 20 > total_bytes)
			return false;
		tcp_flags = data[47];
		has |= PST_KEY_HAS_TCP;
	}
	out->key.words[0] = pst_load_be64(data + 26);
	out->key.words[1] = ((uint64_t)has << PST_KEY_FAMILY_SHIFT) | ((uint64_t)proto << 48) |
			    ((uint64_t)(data[15] >> 2) << 40) | (tcp_flags << 32) | pst_load_be32(data + 34);
	out->key.words[2] = 0;
	out->key.words[3] = 0;
	out->key.words[4] = 0;
	out->key.words[5] = pst_load_be64(data + 6) >> 16;
	out->key.words[6] = ((uint64_t)PST_KEY_HAS_MAC << PST_KEY_HAS_SHIFT) | (pst_load_be64(data) >> 16);
	out->key.words[7] = 0;
	out->length = total_bytes;
	out->network_offset = 14;
	out->network_family = 4;
	out->network_tos = data[15];
	out->reason = PST_REASON_NONE;
	out->flags = PST_PACKET_IS_IP;
	__builtin_memset(out->reserved, 0, sizeof(out->reserved));
	return true;
}

/* What comes before IP. Every field of `out` is written. True when a layer is open. */
PST_INLINE bool pst_packet_parse_outer(struct pst_cursor *at, struct pst_packet *out, const uint8_t *data, const uint8_t *end,
				       uint32_t wire_bytes, enum pst_link_type link)
{
	struct pst_cursor begin = {data, end, 0, wire_bytes, PST_ETHERTYPE_NONE, 0, 0, false};
	uint32_t captured_bytes = (uint32_t)(end - data);
	bool is_open;

	__builtin_memset(out, 0, sizeof(*out));
	if (begin.limit < captured_bytes)
		begin.limit = captured_bytes;
	*at = begin;
	is_open = pst_packet_parse_link(at, out, link) && pst_packet_parse_shims(at, out);
	out->length = begin.limit - at->offset;
	return is_open;
}

/* Any frame, layer by layer. */
PST_OUTLINE void pst_packet_parse_layers(struct pst_packet *out, const uint8_t *data, const uint8_t *end,
					 uint32_t wire_bytes, enum pst_link_type link)
{
	struct pst_cursor at;
	bool is_open = pst_packet_parse_outer(&at, out, data, end, wire_bytes, link);
	uint32_t layer;

	for (layer = 0; is_open && layer <= PST_PACKET_TUNNELS_MAX; layer++)
		is_open = pst_packet_parse_network(&at, out) && pst_packet_parse_payload(&at, out) &&
			  pst_packet_parse_shims(&at, out);
}

/*
 * Parses the frame [data, end), of which the wire had `wire_bytes`. A wire shorter than the capture is not possible and
 * reads as one of the capture's length. Every field of `out` is written.
 */
PST_INLINE void pst_packet_parse(struct pst_packet *out, const uint8_t *data, const uint8_t *end, uint32_t wire_bytes,
				 enum pst_link_type link)
{
	if (link != PST_LINK_ETHERNET || !pst_packet_parse_plain(out, data, end, wire_bytes))
		pst_packet_parse_layers(out, data, end, wire_bytes, link);
}

#endif /* PENSTOCK_PACKET_H */
