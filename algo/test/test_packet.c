/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The packet parser: a table of frames, every cut of each, and random damage, compared with the reference. Frames lie
 * in heap buffers of their exact size, so that the address sanitizer sees a read past either end (packet.h, I1).
 */
#include <penstock/packet.h>
#include <penstock/rng.h>

#include "packet_fixtures.h"
#include "packet_text.h"
#include "ref_packet.h"

#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

#define MUTATIONS 400000

/* Parses with both, from exact-size memory; the result does not depend on what `out` held. */
static struct pst_packet parse(const uint8_t *bytes, uint32_t captured, uint32_t wire, enum pst_link_type link)
{
	uint8_t *frame = malloc(captured ? captured : 1);
	struct pst_packet packet, expected;
	struct packet_text got, want;

	assert_non_null(frame);
	memcpy(frame, bytes, captured);
	memset(&packet, 0xa5, sizeof(packet));
	pst_packet_parse(&packet, frame, frame + captured, wire, link);
	ref_packet_parse(&expected, frame, captured, wire, link);
	free(frame);
	packet_to_text(&got, &packet);
	packet_to_text(&want, &expected);
	assert_string_equal(got.text, want.text);
	assert_memory_equal(&packet, &expected, sizeof(packet));
	return packet;
}

static struct pst_packet parse_hex(const char *hex, enum pst_link_type link)
{
	uint8_t bytes[PACKET_BYTES_MAX];
	uint32_t count = packet_from_hex(bytes, hex);

	return parse(bytes, count, count, link);
}

/* The text names all fields but the MACs, and not which bits hold them: once by hand. */
static void key_layout(void **state)
{
	struct pst_packet packet = parse_hex("0a0b0c0d0e0f 101112131415 8100 0123 0800" IP4("0028", "06") TCP,
					     PST_LINK_ETHERNET);

	(void)state;
	assert_int_equal(packet.key.words[0], UINT64_C(0x0a0000010a000002));
	assert_int_equal(packet.key.words[1], UINT64_C(0x34062e121f900050));
	assert_int_equal(packet.key.words[2], 0);
	assert_int_equal(packet.key.words[3], 0);
	assert_int_equal(packet.key.words[4], 0);
	assert_int_equal(packet.key.words[5], UINT64_C(0x0123101112131415));
	assert_int_equal(packet.key.words[6], UINT64_C(0x00030a0b0c0d0e0f));
	assert_int_equal(packet.key.words[7], 0);
	packet = parse_hex(IP6("0060", "11") UDP("0868", "0060") "30ff0050 89abcdef" IN4("0050", "11")
			   UDP("12b5", "003c") "08000000 fedcba00" ETH("0800") IN4("001e", "11") UDP("ffff", "000a")
			   "0000", PST_LINK_RAW_IP);
	assert_int_equal(packet.key.words[1], UINT64_C(0x141100001234ffff));
	assert_int_equal(packet.key.words[5], 0);
	assert_int_equal(packet.key.words[6], UINT64_C(0x000c000000000000));
	assert_int_equal(packet.key.words[7], UINT64_C(0x00fedcba89abcdef));
}

static void fixtures(void **state)
{
	unsigned long failures = 0;
	size_t i;

	(void)state;
	for (i = 0; i < PACKET_FIXTURES; i++) {
		const struct packet_fixture *fixture = &packet_fixtures[i];
		struct pst_packet packet = parse_hex(fixture->hex, fixture->link);
		struct packet_text got;

		packet_to_text(&got, &packet);
		if (strcmp(got.text, fixture->want) == 0)
			continue;
		print_error("%s\n  got  %s\n  want %s\n", fixture->name, got.text, fixture->want);
		failures++;
	}
	assert_int_equal(failures, 0);
}

static void every_reason_has_a_fixture(void **state)
{
	uint32_t seen[256] = {0};
	size_t i;
	uint8_t reason;

	(void)state;
	for (i = 0; i < PACKET_FIXTURES; i++)
		seen[parse_hex(packet_fixtures[i].hex, packet_fixtures[i].link).reason]++;
	for (reason = PST_REASON_SHORT_ETHERNET; reason <= PST_REASON_TOO_MANY_LAYERS; reason++) {
		if (!seen[reason])
			fail_msg("no fixture is malformed with reason %u", reason);
	}
}

/* I2, I3: the capture ends at any byte, and the wire had it all. */
static void a_cut_is_not_malformed(void **state)
{
	uint8_t bytes[PACKET_BYTES_MAX];
	size_t i;
	uint32_t captured;

	(void)state;
	for (i = 0; i < PACKET_FIXTURES; i++) {
		uint32_t count = packet_from_hex(bytes, packet_fixtures[i].hex);
		struct pst_packet whole = parse(bytes, count, count, packet_fixtures[i].link);
		uint32_t fixed = whole.network_offset + (whole.network_family == 4 ? 20U : 40U);

		for (captured = 0; captured < count; captured++) {
			struct pst_packet cut = parse(bytes, captured, count, packet_fixtures[i].link);

			if (cut.flags & PST_PACKET_IS_CUT)
				assert_int_equal(cut.reason, PST_REASON_NONE);
			else
				assert_memory_equal(&cut, &whole, sizeof(cut));
			if (!(whole.flags & PST_PACKET_IS_IP) || captured < fixed)
				continue;
			assert_int_equal(cut.length, whole.length);
			assert_int_equal(cut.network_offset, whole.network_offset);
			assert_int_equal(cut.network_tos, whole.network_tos);
		}
	}
}

/* The wire itself ended early: then an IP packet that declares its length is malformed, at every byte. */
static void a_truncated_packet_is_malformed(void **state)
{
	uint8_t bytes[PACKET_BYTES_MAX];
	size_t i;
	uint32_t count, kept;

	(void)state;
	for (i = 0; i < PACKET_FIXTURES; i++) {
		struct pst_packet whole = parse_hex(packet_fixtures[i].hex, packet_fixtures[i].link);

		count = packet_from_hex(bytes, packet_fixtures[i].hex);
		for (kept = 0; kept < count; kept++) {
			struct pst_packet packet = parse(bytes, kept, kept, packet_fixtures[i].link);

			assert_false(packet.flags & PST_PACKET_IS_CUT);
			assert_true(packet.length <= kept);
			if (!packet_fixtures[i].is_open_ended && kept < whole.network_offset + whole.length)
				assert_true(pst_reason_is_malformed(packet.reason));
		}
	}
}

/* I4: what a switch appends to a short frame is no part of the packet. */
static void padding_is_ignored(void **state)
{
	uint8_t bytes[PACKET_BYTES_MAX];
	size_t i;

	(void)state;
	for (i = 0; i < PACKET_FIXTURES; i++) {
		uint32_t count = packet_from_hex(bytes, packet_fixtures[i].hex);
		struct pst_packet packet = parse(bytes, count, count, packet_fixtures[i].link);
		struct pst_packet padded;

		memset(bytes + count, 0xff, 46);
		padded = parse(bytes, count + 46, count + 46, packet_fixtures[i].link);
		if (!packet_fixtures[i].is_open_ended)
			assert_memory_equal(&padded, &packet, sizeof(packet));
	}
}

/* A capture that claims more bytes than the wire had is believed. */
static void a_wire_shorter_than_the_capture(void **state)
{
	uint8_t bytes[PACKET_BYTES_MAX];
	uint32_t count = packet_from_hex(bytes, ETH("0800") IP4("0028", "06") TCP);
	struct pst_packet whole = parse(bytes, count, count, PST_LINK_ETHERNET);
	struct pst_packet packet = parse(bytes, count, 0, PST_LINK_ETHERNET);

	(void)state;
	assert_memory_equal(&packet, &whole, sizeof(packet));
}

/* A declared length as large as can be, and a wire as long as can be: no sum wraps. */
static void lengths_do_not_wrap(void **state)
{
	uint8_t bytes[PACKET_BYTES_MAX];
	uint32_t count = packet_from_hex(bytes, ETH("0800") IP4("ffff", "11") UDP("12b5", "ffeb") VXLAN("000001")
					 INNER_ETH);
	struct pst_packet packet = parse(bytes, count, UINT32_MAX, PST_LINK_ETHERNET);

	(void)state;
	assert_int_equal(packet.length, 65535);
	assert_int_equal(packet.flags, PST_PACKET_IS_IP | PST_PACKET_IS_TUNNEL);
	count = packet_from_hex(bytes, ETH("86dd") IP6("0000", "06") TCP);
	packet = parse(bytes, count, UINT32_MAX, PST_LINK_ETHERNET);
	assert_int_equal(packet.length, UINT32_MAX - 14);
	count = packet_from_hex(bytes, ETH("0806"));
	packet = parse(bytes, count, UINT32_MAX, PST_LINK_ETHERNET);
	assert_int_equal(packet.length, UINT32_MAX - 14);
}

static uint32_t below(uint64_t *rng, uint32_t bound)
{
	return (uint32_t)(((uint64_t)pst_rng_next(rng) * bound) >> 32);
}

/* Damage of the kind that finds something: bits, bytes, small and extreme lengths, runs copied from another frame. */
static uint32_t mutate(uint8_t bytes[PACKET_BYTES_MAX], uint32_t count, uint64_t *rng)
{
	static const uint16_t extremes[] = {0, 1, 7, 8, 19, 20, 40, 255, 256, 0x1fff, 0x2000, 0x8100, 0x86dd, 0x0800,
					    0xffff};
	uint8_t other[PACKET_BYTES_MAX];
	uint32_t at = count ? below(rng, count) : 0, run;
	uint16_t extreme;

	switch (below(rng, 6)) {
	case 0:
		bytes[at] = (uint8_t)(bytes[at] ^ (1U << below(rng, 8)));
		return count;
	case 1:
		bytes[at] = (uint8_t)pst_rng_next(rng);
		return count;
	case 2:
		extreme = extremes[below(rng, sizeof(extremes) / sizeof(extremes[0]))];
		bytes[at] = (uint8_t)(extreme >> 8);
		bytes[at + 1 < PACKET_BYTES_MAX ? at + 1 : at] = (uint8_t)extreme;
		return count;
	case 3:
		bytes[at] = (uint8_t)(bytes[at] + 1U - 2 * below(rng, 2));
		return count;
	case 4:
		run = packet_from_hex(other, packet_fixtures[below(rng, PACKET_FIXTURES)].hex);
		memcpy(bytes + at, other, run < PACKET_BYTES_MAX - at ? run : PACKET_BYTES_MAX - at);
		return at + run < PACKET_BYTES_MAX ? at + run : PACKET_BYTES_MAX;
	default:
		return at;
	}
}

/* parse() compares with the reference, and the sanitizers watch. */
static void random_damage(void **state)
{
	uint8_t bytes[PACKET_BYTES_MAX];
	uint64_t rng = pst_rng_seed(1);
	uint32_t round;

	(void)state;
	for (round = 0; round < MUTATIONS; round++) {
		const struct packet_fixture *fixture = &packet_fixtures[below(&rng, PACKET_FIXTURES)];
		uint32_t count = packet_from_hex(bytes, fixture->hex), captured, times;
		enum pst_link_type link = below(&rng, 8) ? fixture->link : (enum pst_link_type)below(&rng, 8);

		for (times = below(&rng, 4); times > 0; times--)
			count = mutate(bytes, count, &rng);
		captured = below(&rng, 2) ? count : below(&rng, count + 1);
		parse(bytes, captured, count + (below(&rng, 4) ? 0 : below(&rng, 2000)), link);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key_layout),
		cmocka_unit_test(fixtures),
		cmocka_unit_test(every_reason_has_a_fixture),
		cmocka_unit_test(a_cut_is_not_malformed),
		cmocka_unit_test(a_truncated_packet_is_malformed),
		cmocka_unit_test(padding_is_ignored),
		cmocka_unit_test(a_wire_shorter_than_the_capture),
		cmocka_unit_test(lengths_do_not_wrap),
		cmocka_unit_test(random_damage),
	};

	return cmocka_run_group_tests(tests, 0, 0);
}
