/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * packet_text.h: frames from hexadecimal, and a parsed packet as one line that holds everything in it but the MACs:
 *
 *   mac vlan=V vni=N teid=T ipF SRC>DST dscp=D proto=P ports=S>D tcp=FLAGS length=L at=OFFSET/FAMILY/TOS FLAGS reason=R
 */
#ifndef PACKET_TEXT_H
#define PACKET_TEXT_H

#include <penstock/wire.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACKET_BYTES_MAX 512U
#define PACKET_TEXT_MAX 512U

/* Reads hexadecimal digits, blanks between them ignored. Returns the number of bytes. */
static inline uint32_t packet_from_hex(uint8_t bytes[PACKET_BYTES_MAX], const char *hex)
{
	uint32_t digits = 0;

	memset(bytes, 0, PACKET_BYTES_MAX);
	for (; *hex; hex++) {
		char digit[2] = {*hex, 0};
		char *rest;
		unsigned long value = strtoul(digit, &rest, 16);

		if (*hex == ' ')
			continue;
		if (*rest || digits == 2 * PACKET_BYTES_MAX)
			abort();
		bytes[digits / 2] = (uint8_t)(bytes[digits / 2] * 16U + value);
		digits++;
	}
	if (digits % 2)
		abort();
	return digits / 2;
}

struct packet_text {
	char text[PACKET_TEXT_MAX];
	size_t used;
};

__attribute__((format(printf, 2, 3)))
static inline void packet_text_add(struct packet_text *out, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (out->used > 0)
		out->text[out->used++] = ' ';
	out->used += (size_t)vsnprintf(out->text + out->used, PACKET_TEXT_MAX - out->used, format, arguments);
	va_end(arguments);
}

static inline void packet_text_address(char out[40], uint64_t family, uint64_t high, uint64_t low)
{
	if (family == 4 && high == 0 && low >> 32 == 0)
		snprintf(out, 40, "%u.%u.%u.%u", (unsigned)(low >> 24), (unsigned)(low >> 16) & 255,
			 (unsigned)(low >> 8) & 255, (unsigned)low & 255);
	else
		snprintf(out, 40, "%08x:%08x:%08x:%08x", (unsigned)(high >> 32), (unsigned)high, (unsigned)(low >> 32),
			 (unsigned)low);
}

static inline void packet_text_fields(struct packet_text *out, const struct pst_packet *packet)
{
	const uint64_t *words = packet->key.words;
	uint64_t family = words[1] >> 56 & 15, has = words[6] >> 48, has_transport = words[1] >> 56;
	char source[40], destination[40];

	if (has & PST_KEY_HAS_MAC)
		packet_text_add(out, "mac");
	if (has & PST_KEY_HAS_VLAN)
		packet_text_add(out, "vlan=%u", (unsigned)(words[5] >> 48));
	if (has & PST_KEY_HAS_VNI)
		packet_text_add(out, "vni=%u", (unsigned)(words[7] >> 32));
	if (has & PST_KEY_HAS_TEID)
		packet_text_add(out, "teid=%u", (unsigned)words[7]);
	if (family) {
		bool is_ipv4 = family == 4 && !words[2] && !words[3] && !words[4];

		packet_text_address(source, family, is_ipv4 ? 0 : words[0], is_ipv4 ? words[0] >> 32 : words[2]);
		packet_text_address(destination, family, words[3], is_ipv4 ? words[0] & UINT32_MAX : words[4]);
		packet_text_add(out, "ip%u %s>%s dscp=%u proto=%u", (unsigned)family, source, destination,
				(unsigned)(words[1] >> 40) & 255, (unsigned)(words[1] >> 48) & 255);
	}
	if (has_transport & PST_KEY_HAS_PORTS)
		packet_text_add(out, "ports=%u>%u", (unsigned)(words[1] >> 16) & 0xffff, (unsigned)words[1] & 0xffff);
	if (has_transport & PST_KEY_HAS_TCP)
		packet_text_add(out, "tcp=%02x", (unsigned)(words[1] >> 32) & 255);
}

static inline void packet_to_text(struct packet_text *out, const struct pst_packet *packet)
{
	out->used = 0;
	out->text[0] = 0;
	packet_text_fields(out, packet);
	packet_text_add(out, "length=%u", packet->length);
	if (packet->flags & PST_PACKET_IS_IP)
		packet_text_add(out, "at=%u/%u/%02x", packet->network_offset, packet->network_family,
				packet->network_tos);
	if (packet->flags & PST_PACKET_IS_FRAGMENT)
		packet_text_add(out, "fragment");
	if (packet->flags & PST_PACKET_IS_CUT)
		packet_text_add(out, "cut");
	if (packet->flags & PST_PACKET_IS_TUNNEL)
		packet_text_add(out, "tunnel");
	if (packet->flags & PST_PACKET_IS_BAD_INSIDE)
		packet_text_add(out, "bad_inside");
	if (packet->reason)
		packet_text_add(out, "reason=%u", packet->reason);
}

#endif /* PACKET_TEXT_H */
