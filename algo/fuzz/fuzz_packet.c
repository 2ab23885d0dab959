/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Any bytes as a frame: the parser reads nothing outside them, equals the reference, and what it found can be marked.
 *
 * An input is the link type, by how much the wire had more than the capture (16 bits, big endian), and the frame.
 */
#include <penstock/mark.h>

#include "ref_packet.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_BYTES 3U

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static void require(bool is_so)
{
	if (!is_so)
		abort();
}

/* Only the header changes, and its checksum by as much as before. */
static void mark(uint8_t *frame, uint32_t captured, const struct pst_packet *packet)
{
	uint8_t *header = frame + packet->network_offset;
	uint16_t before = 0, after = 0;

	if (packet->network_family == 4)
		before = ref_packet_checksum(header, 20);
	require(pst_packet_set_dscp(frame, frame + captured, packet, 46) == (packet->network_family != 0));
	pst_packet_mark_ce(frame, frame + captured, packet);
	if (packet->network_family == 4)
		after = ref_packet_checksum(header, 20);
	require(before % 0xffff == after % 0xffff);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct pst_packet packet, expected;
	enum pst_link_type link;
	uint32_t captured, wire;
	uint8_t *frame;

	if (size < HEAD_BYTES)
		return 0;
	captured = (uint32_t)(size - HEAD_BYTES);
	wire = captured + input[1] * 256U + input[2];
	link = (enum pst_link_type)(input[0] % 8);
	frame = malloc(captured ? captured : 1);
	require(frame != NULL);
	memcpy(frame, input + HEAD_BYTES, captured);
	memset(&packet, 0xa5, sizeof(packet));
	pst_packet_parse(&packet, frame, frame + captured, wire, link);
	ref_packet_parse(&expected, frame, captured, wire, link);
	require(memcmp(&packet, &expected, sizeof(packet)) == 0);
	mark(frame, captured, &packet);
	free(frame);
	return 0;
}
