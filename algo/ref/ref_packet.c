/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_packet.h"

#include <stdlib.h>
#include <string.h>

enum header {
	NOTHING, /* the parse is over */
	LINK,
	ETHERNET,
	BY_ETHERTYPE,
	VLAN,
	PPPOE,
	LABEL,
	BY_VERSION,
	IPV4,
	IPV6,
	BY_PROTO,
	TCP,
	UDP,
	VXLAN,
	GENEVE,
	GTPU,
	GTPU_EXTENSION,
};

/* Every field by itself, to be packed at the end. */
struct found {
	uint64_t source[2], destination[2];
	uint64_t family, proto, dscp, tcp_flags, source_port, destination_port;
	uint64_t vlan, source_mac, destination_mac, vni, teid;
	bool has_mac, has_vlan, has_vni, has_teid, has_ports, has_tcp;
	bool is_ip, is_fragment, is_cut, is_tunnel, is_bad_inside;
	uint8_t reason, outer_family, outer_tos;
	uint32_t length, network_offset;
};

struct walk {
	const uint8_t *data;
	uint32_t captured, wire;
	enum pst_link_type link;
	enum header next;
	uint32_t position, end; /* of the next header; of the packet it belongs to */
	uint32_t ethertype, proto, gtp_next;
	unsigned tags, labels, extensions, gtp_extensions, tunnels;
	bool in_first_fragment;
	uint64_t teid;
	struct found found;
};

static void malformed(struct walk *walk, uint8_t reason)
{
	if (walk->tunnels == 0)
		walk->found.reason = reason;
	else
		walk->found.is_bad_inside = true;
	walk->next = NOTHING;
}

/* Whether `count` bytes lie ahead. If not, the parse is over. */
static bool ahead(struct walk *walk, uint32_t count, uint8_t reason)
{
	uint32_t after = walk->position + count;

	if (after > walk->end) {
		malformed(walk, reason);
		return false;
	}
	if (after > walk->captured) {
		walk->found.is_cut = true;
		walk->next = NOTHING;
		return false;
	}
	return true;
}

/* `count` bytes at `skip` behind the position, most significant first. Reading what was not captured: a defect here. */
static uint64_t number(const struct walk *walk, uint32_t skip, uint32_t count)
{
	uint64_t value = 0;
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (walk->position + skip + i >= walk->captured)
			abort();
		value = value * 256 + walk->data[walk->position + skip + i];
	}
	return value;
}

/* A header says that it and what follows has `count` bytes. */
static bool believe(struct walk *walk, uint64_t count)
{
	if (walk->position + count <= walk->end) {
		walk->end = walk->position + (uint32_t)count;
		return true;
	}
	return walk->in_first_fragment;
}

static void after_ppp_protocol(struct walk *walk, uint64_t protocol)
{
	walk->next = NOTHING;
	if (protocol == 0x21)
		walk->next = IPV4;
	if (protocol == 0x57)
		walk->next = IPV6;
	if (protocol == 0x281 || protocol == 0x283)
		walk->next = LABEL;
}

static void step_fixed_link(struct walk *walk, uint32_t bytes, uint32_t type_at)
{
	if (!ahead(walk, bytes, PST_REASON_SHORT_ETHERNET))
		return;
	walk->ethertype = (uint32_t)number(walk, type_at, 2);
	walk->position += bytes;
	walk->next = BY_ETHERTYPE;
}

static void step_ppp(struct walk *walk)
{
	uint32_t width;

	if (!ahead(walk, 2, PST_REASON_SHORT_ETHERNET))
		return;
	if (number(walk, 0, 2) == 0xff03) {
		walk->position += 2;
		if (!ahead(walk, 2, PST_REASON_SHORT_ETHERNET))
			return;
	} else if (number(walk, 0, 1) == 0x0f || number(walk, 0, 1) == 0x8f) {
		step_fixed_link(walk, 4, 2);
		return;
	}
	width = number(walk, 0, 1) % 2 == 1 ? 1 : 2;
	after_ppp_protocol(walk, number(walk, 0, width));
	walk->position += width;
}

static void step_loopback(struct walk *walk)
{
	uint64_t family, big, little;

	if (!ahead(walk, 4, PST_REASON_SHORT_ETHERNET))
		return;
	big = number(walk, 0, 4);
	little = number(walk, 0, 1) + (number(walk, 1, 1) << 8) + (number(walk, 2, 1) << 16) +
		 (number(walk, 3, 1) << 24);
	family = big < little ? big : little;
	walk->next = NOTHING;
	if (family == 2)
		walk->next = IPV4;
	if (family == 10 || family == 24 || family == 28 || family == 30)
		walk->next = IPV6;
	walk->position += 4;
}

static void step_link(struct walk *walk)
{
	switch (walk->link) {
	case PST_LINK_ETHERNET:
		walk->next = ETHERNET;
		return;
	case PST_LINK_RAW_IP:
		if (ahead(walk, 1, PST_REASON_SHORT_IPV4))
			walk->next = number(walk, 0, 1) / 16 == 6 ? IPV6 : IPV4;
		return;
	case PST_LINK_LINUX_SLL:
		step_fixed_link(walk, 16, 14);
		return;
	case PST_LINK_LINUX_SLL2:
		step_fixed_link(walk, 20, 0);
		return;
	case PST_LINK_NULL:
		step_loopback(walk);
		return;
	case PST_LINK_CISCO_HDLC:
		step_fixed_link(walk, 4, 2);
		return;
	case PST_LINK_PPP:
		step_ppp(walk);
		return;
	}
	walk->next = NOTHING;
}

static void step_ethernet(struct walk *walk)
{
	if (!ahead(walk, 14, PST_REASON_SHORT_ETHERNET))
		return;
	if (walk->tunnels == 0) {
		walk->found.has_mac = true;
		walk->found.destination_mac = number(walk, 0, 6);
		walk->found.source_mac = number(walk, 6, 6);
	}
	walk->ethertype = (uint32_t)number(walk, 12, 2);
	walk->position += 14;
	walk->next = BY_ETHERTYPE;
}

static void step_by_ethertype(struct walk *walk)
{
	switch (walk->ethertype) {
	case 0x8100:
	case 0x88a8:
	case 0x9100:
		walk->next = VLAN;
		break;
	case 0x8864:
		walk->next = PPPOE;
		break;
	case 0x8847:
	case 0x8848:
		walk->next = LABEL;
		break;
	case 0x0800:
		walk->next = IPV4;
		break;
	case 0x86dd:
		walk->next = IPV6;
		break;
	default:
		walk->next = NOTHING;
	}
}

static void step_vlan(struct walk *walk)
{
	if (walk->tags == 4) {
		malformed(walk, PST_REASON_TOO_MANY_LAYERS);
		return;
	}
	if (!ahead(walk, 4, PST_REASON_SHORT_VLAN))
		return;
	if (walk->tunnels == 0 && walk->tags == 0) {
		walk->found.has_vlan = true;
		walk->found.vlan = number(walk, 0, 2) % 4096;
	}
	walk->tags++;
	walk->ethertype = (uint32_t)number(walk, 2, 2);
	walk->position += 4;
	walk->next = BY_ETHERTYPE;
}

static void step_pppoe(struct walk *walk)
{
	if (!ahead(walk, 8, PST_REASON_SHORT_PPPOE))
		return;
	if (number(walk, 0, 1) != 0x11 || number(walk, 1, 1) != 0 || number(walk, 4, 2) < 2 ||
	    !believe(walk, 6 + number(walk, 4, 2))) {
		malformed(walk, PST_REASON_BAD_PPPOE);
		return;
	}
	after_ppp_protocol(walk, number(walk, 6, 2));
	walk->position += 8;
}

static void step_label(struct walk *walk)
{
	bool is_last;

	if (walk->labels == 8) {
		malformed(walk, PST_REASON_TOO_MANY_LAYERS);
		return;
	}
	if (!ahead(walk, 4, PST_REASON_SHORT_MPLS))
		return;
	is_last = number(walk, 0, 4) / 256 % 2 == 1;
	walk->labels++;
	walk->position += 4;
	walk->next = is_last ? BY_VERSION : LABEL;
}

static void step_by_version(struct walk *walk)
{
	uint64_t version;

	if (!ahead(walk, 1, PST_REASON_SHORT_MPLS))
		return;
	version = number(walk, 0, 1) / 16;
	walk->next = version == 4 ? IPV4 : version == 6 ? IPV6 : NOTHING;
}

static void enter_ip(struct walk *walk, uint8_t family, uint64_t proto, uint64_t tos)
{
	struct found *found = &walk->found;

	found->family = family;
	found->proto = walk->proto = (uint32_t)proto;
	found->dscp = tos / 4;
	found->tcp_flags = found->source_port = found->destination_port = 0;
	found->has_ports = found->has_tcp = false;
	walk->next = BY_PROTO;
	if (walk->tunnels > 0) {
		found->is_tunnel = true;
		return;
	}
	found->is_ip = true;
	found->length = walk->end - walk->position;
	found->network_offset = walk->position;
	found->outer_family = family;
	found->outer_tos = (uint8_t)tos;
}

static void step_ipv4(struct walk *walk)
{
	uint64_t header, total, fragment_offset;
	bool more;

	if (!ahead(walk, 20, PST_REASON_SHORT_IPV4))
		return;
	header = number(walk, 0, 1) % 16 * 4;
	total = number(walk, 2, 2);
	more = number(walk, 6, 2) / 8192 % 2 == 1;
	fragment_offset = number(walk, 6, 2) % 8192;
	if (number(walk, 0, 1) / 16 != 4) {
		malformed(walk, PST_REASON_BAD_IPV4_VERSION);
		return;
	}
	if (header < 20) {
		malformed(walk, PST_REASON_BAD_IPV4_HEADER_LENGTH);
		return;
	}
	if (total != 0 && (total < 20 || !believe(walk, total))) {
		malformed(walk, PST_REASON_BAD_IPV4_TOTAL_LENGTH);
		return;
	}
	if (walk->position + header > walk->end) {
		malformed(walk, PST_REASON_BAD_IPV4_HEADER_LENGTH);
		return;
	}
	enter_ip(walk, 4, number(walk, 9, 1), number(walk, 1, 1));
	walk->found.source[0] = walk->found.destination[0] = 0;
	walk->found.source[1] = number(walk, 12, 4);
	walk->found.destination[1] = number(walk, 16, 4);
	if (more || fragment_offset)
		walk->found.is_fragment = walk->in_first_fragment = true;
	if (fragment_offset)
		walk->next = NOTHING;
	/* In IPv4 these numbers are no extension headers: nothing is known of what follows. */
	if (walk->proto == 0 || walk->proto == 43 || walk->proto == 44 || walk->proto == 51 || walk->proto == 60)
		walk->next = NOTHING;
	walk->position += (uint32_t)header;
}

static void step_ipv6(struct walk *walk)
{
	uint64_t payload, proto;

	if (!ahead(walk, 40, PST_REASON_SHORT_IPV6))
		return;
	if (number(walk, 0, 1) / 16 != 6) {
		malformed(walk, PST_REASON_BAD_IPV6_VERSION);
		return;
	}
	payload = number(walk, 4, 2);
	proto = number(walk, 6, 1);
	if (payload == 0 && proto != 59)
		payload = walk->end - walk->position - 40;
	if (!believe(walk, 40 + payload)) {
		malformed(walk, PST_REASON_BAD_IPV6_PAYLOAD_LENGTH);
		return;
	}
	enter_ip(walk, 6, proto, number(walk, 0, 2) / 16 % 256);
	walk->found.source[0] = number(walk, 8, 8);
	walk->found.source[1] = number(walk, 16, 8);
	walk->found.destination[0] = number(walk, 24, 8);
	walk->found.destination[1] = number(walk, 32, 8);
	walk->extensions = 0;
	walk->position += 40;
}

static void step_extension(struct walk *walk)
{
	uint64_t bytes, proto, fragment_offset = 0;

	if (walk->extensions == 8) {
		malformed(walk, PST_REASON_TOO_MANY_LAYERS);
		return;
	}
	if (!ahead(walk, 8, PST_REASON_BAD_IPV6_EXTENSION))
		return;
	proto = number(walk, 0, 1);
	bytes = 8 + 8 * number(walk, 1, 1);
	if (walk->proto == 44)
		bytes = 8;
	if (walk->proto == 51)
		bytes = 8 + 4 * number(walk, 1, 1);
	if (!ahead(walk, (uint32_t)bytes, PST_REASON_BAD_IPV6_EXTENSION))
		return;
	if (walk->proto == 44) {
		fragment_offset = number(walk, 2, 2) / 8;
		if (fragment_offset || number(walk, 3, 1) % 2)
			walk->found.is_fragment = walk->in_first_fragment = true;
	}
	walk->found.proto = walk->proto = (uint32_t)proto;
	walk->extensions++;
	walk->position += (uint32_t)bytes;
	walk->next = fragment_offset ? NOTHING : BY_PROTO;
}

static void enter_ports(struct walk *walk)
{
	walk->found.has_ports = true;
	walk->found.source_port = number(walk, 0, 2);
	walk->found.destination_port = number(walk, 2, 2);
}

static void step_by_proto(struct walk *walk)
{
	switch (walk->proto) {
	case 0:
	case 43:
	case 44:
	case 51:
	case 60:
		step_extension(walk);
		return;
	case 6:
		walk->next = TCP;
		return;
	case 17:
		walk->next = UDP;
		return;
	case 1:
		ahead(walk, 8, PST_REASON_SHORT_TRANSPORT);
		break;
	case 58:
		ahead(walk, 4, PST_REASON_SHORT_TRANSPORT);
		break;
	case 132:
		if (ahead(walk, 12, PST_REASON_SHORT_TRANSPORT))
			enter_ports(walk);
		break;
	case 136:
		if (ahead(walk, 8, PST_REASON_SHORT_TRANSPORT))
			enter_ports(walk);
		break;
	}
	walk->next = NOTHING;
}

static void step_tcp(struct walk *walk)
{
	uint64_t bytes;

	if (!ahead(walk, walk->in_first_fragment ? 16 : 20, PST_REASON_SHORT_TRANSPORT))
		return;
	bytes = number(walk, 12, 1) / 16 * 4;
	if (bytes < 20 || (walk->position + bytes > walk->end && !walk->in_first_fragment)) {
		malformed(walk, PST_REASON_BAD_TCP_HEADER_LENGTH);
		return;
	}
	enter_ports(walk);
	walk->found.has_tcp = true;
	walk->found.tcp_flags = number(walk, 13, 1);
	walk->next = NOTHING;
}

static void step_udp(struct walk *walk)
{
	uint64_t bytes;

	if (!ahead(walk, 8, PST_REASON_SHORT_TRANSPORT))
		return;
	bytes = number(walk, 4, 2);
	if (bytes == 0 && walk->found.family == 6)
		bytes = walk->end - walk->position;
	if (bytes < 8 || !believe(walk, bytes)) {
		malformed(walk, PST_REASON_BAD_UDP_LENGTH);
		return;
	}
	enter_ports(walk);
	walk->next = NOTHING;
	if (walk->found.destination_port == 4789)
		walk->next = VXLAN;
	if (walk->found.destination_port == 6081)
		walk->next = GENEVE;
	if (walk->found.destination_port == 2152)
		walk->next = GTPU;
	walk->position += 8;
	if (walk->tunnels == 2 || walk->end - walk->position < 8)
		walk->next = NOTHING;
}

/* The header of a tunnel is sound. */
static void enter_tunnel(struct walk *walk, enum header next)
{
	walk->tunnels++;
	walk->tags = walk->labels = 0;
	walk->next = next;
}

static void enter_vni(struct walk *walk)
{
	if (!walk->found.has_vni)
		walk->found.vni = number(walk, 4, 3);
	walk->found.has_vni = true;
}

static void step_vxlan(struct walk *walk)
{
	if (!ahead(walk, 8, PST_REASON_SHORT_TUNNEL))
		return;
	walk->next = NOTHING;
	if (number(walk, 0, 1) / 8 % 2 == 0)
		return;
	enter_vni(walk);
	walk->position += 8;
	enter_tunnel(walk, ETHERNET);
}

static void step_geneve(struct walk *walk)
{
	uint32_t bytes;

	if (!ahead(walk, 8, PST_REASON_SHORT_TUNNEL))
		return;
	if (number(walk, 0, 1) / 64 != 0) {
		walk->next = NOTHING;
		return;
	}
	bytes = (uint32_t)(8 + number(walk, 0, 1) % 64 * 4);
	if (!ahead(walk, bytes, PST_REASON_SHORT_TUNNEL))
		return;
	enter_vni(walk);
	walk->ethertype = (uint32_t)number(walk, 2, 2);
	walk->position += bytes;
	enter_tunnel(walk, walk->ethertype == 0x6558 ? ETHERNET : BY_ETHERTYPE);
}

static void step_gtpu(struct walk *walk)
{
	uint64_t flags;

	if (!ahead(walk, 8, PST_REASON_SHORT_TUNNEL))
		return;
	flags = number(walk, 0, 1);
	if (flags / 32 != 1 || flags / 16 % 2 != 1 || number(walk, 1, 1) != 255) {
		walk->next = NOTHING;
		return;
	}
	if (!believe(walk, 8 + number(walk, 2, 2))) {
		malformed(walk, PST_REASON_BAD_TUNNEL);
		return;
	}
	walk->teid = number(walk, 4, 4);
	walk->position += 8;
	walk->gtp_extensions = 0;
	walk->gtp_next = 0;
	if (flags % 8 != 0) {
		if (!ahead(walk, 4, PST_REASON_SHORT_TUNNEL))
			return;
		if (flags / 4 % 2 == 1)
			walk->gtp_next = (uint32_t)number(walk, 3, 1);
		walk->position += 4;
	}
	walk->next = GTPU_EXTENSION;
}

static void step_gtpu_extension(struct walk *walk)
{
	uint32_t bytes;

	if (walk->gtp_next == 0) {
		if (!walk->found.has_teid)
			walk->found.teid = walk->teid;
		walk->found.has_teid = true;
		enter_tunnel(walk, BY_VERSION);
		return;
	}
	if (walk->gtp_extensions == 4) {
		malformed(walk, PST_REASON_TOO_MANY_LAYERS);
		return;
	}
	if (!ahead(walk, 4, PST_REASON_SHORT_TUNNEL))
		return;
	bytes = (uint32_t)number(walk, 0, 1) * 4;
	if (bytes == 0) {
		malformed(walk, PST_REASON_BAD_TUNNEL);
		return;
	}
	if (!ahead(walk, bytes, PST_REASON_SHORT_TUNNEL))
		return;
	walk->gtp_next = (uint32_t)number(walk, bytes - 1, 1);
	walk->gtp_extensions++;
	walk->position += bytes;
}

static void step(struct walk *walk)
{
	switch (walk->next) {
	case NOTHING:
		break;
	case LINK:
		step_link(walk);
		break;
	case ETHERNET:
		step_ethernet(walk);
		break;
	case BY_ETHERTYPE:
		step_by_ethertype(walk);
		break;
	case VLAN:
		step_vlan(walk);
		break;
	case PPPOE:
		step_pppoe(walk);
		break;
	case LABEL:
		step_label(walk);
		break;
	case BY_VERSION:
		step_by_version(walk);
		break;
	case IPV4:
		step_ipv4(walk);
		break;
	case IPV6:
		step_ipv6(walk);
		break;
	case BY_PROTO:
		step_by_proto(walk);
		break;
	case TCP:
		step_tcp(walk);
		break;
	case UDP:
		step_udp(walk);
		break;
	case VXLAN:
		step_vxlan(walk);
		break;
	case GENEVE:
		step_geneve(walk);
		break;
	case GTPU:
		step_gtpu(walk);
		break;
	case GTPU_EXTENSION:
		step_gtpu_extension(walk);
		break;
	}
}

static void pack(struct pst_packet *out, const struct found *found)
{
	uint64_t has = 0, has_transport = 0;

	has += found->has_mac ? PST_KEY_HAS_MAC : 0;
	has += found->has_vlan ? PST_KEY_HAS_VLAN : 0;
	has += found->has_vni ? PST_KEY_HAS_VNI : 0;
	has += found->has_teid ? PST_KEY_HAS_TEID : 0;
	has_transport += found->has_ports ? PST_KEY_HAS_PORTS : 0;
	has_transport += found->has_tcp ? PST_KEY_HAS_TCP : 0;
	memset(out, 0, sizeof(*out));
	if (found->family == 4) {
		out->key.words[0] = found->source[1] << 32 | found->destination[1];
	} else {
		out->key.words[0] = found->source[0];
		out->key.words[2] = found->source[1];
		out->key.words[3] = found->destination[0];
		out->key.words[4] = found->destination[1];
	}
	out->key.words[1] = (found->family + has_transport) << 56 | found->proto << 48 | found->dscp << 40 |
			    found->tcp_flags << 32 | found->source_port << 16 | found->destination_port;
	out->key.words[5] = found->vlan << 48 | found->source_mac;
	out->key.words[6] = has << 48 | found->destination_mac;
	out->key.words[7] = found->vni << 32 | found->teid;
	out->length = found->length;
	out->network_offset = (uint16_t)found->network_offset;
	out->network_family = found->outer_family;
	out->network_tos = found->outer_tos;
	out->reason = found->reason;
	out->flags = (uint8_t)(out->flags | (found->is_ip ? PST_PACKET_IS_IP : 0));
	out->flags = (uint8_t)(out->flags | (found->is_fragment ? PST_PACKET_IS_FRAGMENT : 0));
	out->flags = (uint8_t)(out->flags | (found->is_cut ? PST_PACKET_IS_CUT : 0));
	out->flags = (uint8_t)(out->flags | (found->is_tunnel ? PST_PACKET_IS_TUNNEL : 0));
	out->flags = (uint8_t)(out->flags | (found->is_bad_inside ? PST_PACKET_IS_BAD_INSIDE : 0));
}

void ref_packet_parse(struct pst_packet *out, const uint8_t *data, uint32_t captured_bytes, uint32_t wire_bytes,
		      enum pst_link_type link)
{
	struct walk walk;

	memset(&walk, 0, sizeof(walk));
	walk.data = data;
	walk.captured = captured_bytes;
	walk.wire = wire_bytes < captured_bytes ? captured_bytes : wire_bytes;
	walk.end = walk.wire;
	walk.link = link;
	for (walk.next = LINK; walk.next != NOTHING;) {
		step(&walk);
		if (!walk.found.is_ip)
			walk.found.length = walk.wire - walk.position;
	}
	pack(out, &walk.found);
}

uint16_t ref_packet_checksum(const uint8_t *data, uint32_t bytes)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < bytes; i += 2)
		sum += (uint64_t)data[i] * 256 + data[i + 1];
	while (sum > 0xffff)
		sum = sum % 65536 + sum / 65536;
	return (uint16_t)(0xffff - sum);
}
