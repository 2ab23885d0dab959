/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * ref_packet.h: what packet.h must find, byte by byte, as a machine that is always in front of one header.
 */
#ifndef REF_PACKET_H
#define REF_PACKET_H

#include <penstock/wire.h>

void ref_packet_parse(struct pst_packet *out, const uint8_t *data, uint32_t captured_bytes, uint32_t wire_bytes,
		      enum pst_link_type link);

/* The Internet checksum (RFC 1071) of `bytes` bytes, an even number. 0 over a header that holds a right one. */
uint16_t ref_packet_checksum(const uint8_t *data, uint32_t bytes);

#endif /* REF_PACKET_H */
