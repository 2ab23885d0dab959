/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * mark.h: writes CE or a DSCP into the outermost IP header of a parsed frame.
 *
 * What         The traffic class byte changes; an IPv4 header checksum follows incrementally:
 *                  HC' = ~(~HC + ~m + m')        m, m': the header's first 16-bit word before and after
 * Source       RFC 3168 section 5 (ECN field); RFC 6040 section 4 (a mark on the outer header reaches the inner one
 *              when the tunnel ends); RFC 2474 (DSCP); RFC 1624 equation 3 (checksum).
 * Units        DSCP 0..63, in the upper six bits of the byte; ECN in the lower two.
 * Ranges       an IP header up to PST_NETWORK_OFFSET_MAX bytes into the frame; the parser's links, tags and labels end
 *              before that.
 * Invariants   I1  a checksum that was right is right afterwards, and one that was wrong stays wrong.
 *              I2  only the traffic class and the IPv4 checksum change. CE leaves the DSCP alone, a DSCP the ECN field.
 *              I3  a packet that is not ECN-capable is never given CE, and CE is never taken away.
 * Overflow     the sum of three 16-bit words is below 2^18; two folds bring it below 2^16.
 * Concurrency  the caller owns the frame.
 * Not done     the inner header of a tunnel is not touched.
 */
#ifndef PENSTOCK_MARK_H
#define PENSTOCK_MARK_H

#include "packet.h"

#define PST_ECN_MASK 0x03U
#define PST_ECN_NOT_ECT 0x00U
#define PST_ECN_CE 0x03U

/* Above link (20), tags (16), PPPoE (8) and labels (32). */
#define PST_NETWORK_OFFSET_MAX 128U

/* The outermost IP header, or null when there is none in [data, end) that can be written. */
PST_INLINE uint8_t *pst_packet_network(uint8_t *data, const uint8_t *end, const struct pst_packet *packet)
{
	uint8_t *header = data + packet->network_offset;

	if (packet->network_family == 0 || packet->network_offset > PST_NETWORK_OFFSET_MAX || header + 20 > end)
		return 0;
	return header;
}

PST_INLINE uint8_t pst_network_tos(const uint8_t *header, uint8_t family)
{
	return family == 4 ? header[1] : (uint8_t)(pst_load_be16(header) >> 4);
}

PST_INLINE void pst_network_set_tos(uint8_t *header, uint8_t family, uint8_t tos)
{
	uint32_t before = pst_load_be16(header), sum;

	if (family == 6) {
		header[0] = (uint8_t)((header[0] & 0xf0U) | (tos >> 4));
		header[1] = (uint8_t)((header[1] & 0x0fU) | ((uint32_t)tos << 4));
		return;
	}
	header[1] = tos;
	sum = (~pst_load_be16(header + 10) & 0xffffU) + (~before & 0xffffU) + pst_load_be16(header);
	sum = (sum & 0xffffU) + (sum >> 16);
	sum = ~((sum & 0xffffU) + (sum >> 16));
	header[10] = (uint8_t)(sum >> 8);
	header[11] = (uint8_t)sum;
}

/* Marks congestion experienced. True when the packet carries CE now; false when it is not ECN-capable or not IP. */
PST_INLINE bool pst_packet_mark_ce(uint8_t *data, const uint8_t *end, const struct pst_packet *packet)
{
	uint8_t *header = pst_packet_network(data, end, packet);
	uint8_t tos;

	if (!header)
		return false;
	tos = pst_network_tos(header, packet->network_family);
	if ((tos & PST_ECN_MASK) == PST_ECN_NOT_ECT)
		return false;
	if ((tos & PST_ECN_MASK) != PST_ECN_CE)
		pst_network_set_tos(header, packet->network_family, (uint8_t)(tos | PST_ECN_CE));
	return true;
}

/* Writes a DSCP (0..63). False when there is no IP header to write to. */
PST_INLINE bool pst_packet_set_dscp(uint8_t *data, const uint8_t *end, const struct pst_packet *packet, uint8_t dscp)
{
	uint8_t *header = pst_packet_network(data, end, packet);
	uint8_t tos;

	if (!header)
		return false;
	tos = pst_network_tos(header, packet->network_family);
	pst_network_set_tos(header, packet->network_family, (uint8_t)((uint32_t)dscp << 2 | (tos & PST_ECN_MASK)));
	return true;
}

#endif /* PENSTOCK_MARK_H */
