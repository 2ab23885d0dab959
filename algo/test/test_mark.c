/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* CE and DSCP: the incremental checksum against one computed from scratch, for every value that a checksum can have. */
#include <penstock/mark.h>

#include "packet_fixtures.h"
#include "packet_text.h"
#include "ref_packet.h"

#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

#define HEADER_BYTES 20U

static const struct pst_packet raw_ipv4 = {.network_family = 4};
static const struct pst_packet raw_ipv6 = {.network_family = 6};

/* A header that differs by its identification, so that 65536 of them have all checksums; with its right checksum. */
static void make_ipv4(uint8_t header[HEADER_BYTES], uint32_t id, uint8_t tos)
{
	static const uint8_t plain[HEADER_BYTES] = {0x45, 0, 0, 20, 0, 0,  0, 0, 64, 255,
						    0,    0, 10, 0, 0, 1, 10, 0, 0,  2};
	uint16_t checksum;

	memcpy(header, plain, HEADER_BYTES);
	header[1] = tos;
	header[4] = (uint8_t)(id >> 8);
	header[5] = (uint8_t)id;
	checksum = ref_packet_checksum(header, HEADER_BYTES);
	header[10] = (uint8_t)(checksum >> 8);
	header[11] = (uint8_t)checksum;
}

/* I1, I2: as if the header had been made with this traffic class; the sender's 0x0000 is not turned into 0xffff. */
static void ipv4_checksums(void **state)
{
	uint8_t header[HEADER_BYTES], expected[HEADER_BYTES];
	uint32_t id, dscp, zeros = 0;
	uint8_t ecn;

	(void)state;
	for (id = 0; id < 65536; id++) {
		for (ecn = 1; ecn <= 3; ecn++) {
			make_ipv4(header, id, (uint8_t)(0x28U | ecn));
			make_ipv4(expected, id, 0x2b);
			zeros += expected[10] == 0 && expected[11] == 0;
			assert_true(pst_packet_mark_ce(header, header + HEADER_BYTES, &raw_ipv4));
			assert_memory_equal(header, expected, HEADER_BYTES);
		}
		for (dscp = 0; dscp < 64; dscp++) {
			ecn = (uint8_t)(id + dscp) & 3U;
			make_ipv4(header, id, (uint8_t)(id & 0xfcU) | ecn);
			make_ipv4(expected, id, (uint8_t)(dscp << 2) | ecn);
			assert_true(pst_packet_set_dscp(header, header + HEADER_BYTES, &raw_ipv4, (uint8_t)dscp));
			assert_memory_equal(header, expected, HEADER_BYTES);
		}
	}
	assert_true(zeros > 0);
}

/* I1: a right one written as 0xffff stays right, a wrong one stays wrong by as much. 0 and 0xffff are one number. */
static void ipv4_checksums_of_others(void **state)
{
	uint8_t header[HEADER_BYTES];
	uint32_t stored;

	(void)state;
	for (stored = 0; stored < 65536; stored++) {
		uint16_t before, after;

		make_ipv4(header, 0x1234, 0xb9);
		header[10] = (uint8_t)(stored >> 8);
		header[11] = (uint8_t)stored;
		before = ref_packet_checksum(header, HEADER_BYTES);
		assert_true(pst_packet_mark_ce(header, header + HEADER_BYTES, &raw_ipv4));
		after = ref_packet_checksum(header, HEADER_BYTES);
		assert_int_equal(after % 0xffff, before % 0xffff);
	}
	for (stored = 0; stored < 65536; stored++) {
		make_ipv4(header, stored, 0x01);
		if (header[10] || header[11])
			continue;
		header[10] = header[11] = 0xff;
		assert_int_equal(ref_packet_checksum(header, HEADER_BYTES), 0);
		assert_true(pst_packet_set_dscp(header, header + HEADER_BYTES, &raw_ipv4, 46));
		assert_int_equal(ref_packet_checksum(header, HEADER_BYTES), 0);
		return;
	}
	fail_msg("no header has checksum 0");
}

/* I3. */
static void not_ecn_capable(void **state)
{
	uint8_t header[HEADER_BYTES], before[HEADER_BYTES];
	uint32_t dscp;

	(void)state;
	for (dscp = 0; dscp < 64; dscp++) {
		make_ipv4(header, 7, (uint8_t)(dscp << 2));
		memcpy(before, header, HEADER_BYTES);
		assert_false(pst_packet_mark_ce(header, header + HEADER_BYTES, &raw_ipv4));
		assert_memory_equal(header, before, HEADER_BYTES);
	}
}

/* I2 for IPv6: version and flow label share bytes with the traffic class. */
static void ipv6_traffic_class(void **state)
{
	uint8_t frame[PACKET_BYTES_MAX], before[PACKET_BYTES_MAX];
	uint32_t count = packet_from_hex(before, "6005a5a5 0000 3b 40" "00000000000000000000000000000001"
					 "00000000000000000000000000000002"), tos, dscp;

	(void)state;
	for (tos = 0; tos < 256; tos++) {
		before[0] = (uint8_t)(0x60U | tos >> 4);
		before[1] = (uint8_t)((tos << 4 & 0xf0U) | 0x05U);
		memcpy(frame, before, count);
		assert_int_equal(pst_packet_mark_ce(frame, frame + count, &raw_ipv6), (tos & 3U) != 0);
		assert_int_equal((frame[0] & 0x0fU) << 4 | frame[1] >> 4, tos & 3U ? tos | 3U : tos);
		assert_int_equal(frame[0] >> 4, 6);
		assert_int_equal(frame[1] & 0x0fU, 5);
		assert_memory_equal(frame + 2, before + 2, count - 2);
		for (dscp = 0; dscp < 64; dscp++) {
			memcpy(frame, before, count);
			assert_true(pst_packet_set_dscp(frame, frame + count, &raw_ipv6, (uint8_t)dscp));
			assert_int_equal((frame[0] & 0x0fU) << 4 | frame[1] >> 4, dscp << 2 | (tos & 3U));
			assert_int_equal(frame[0] >> 4, 6);
			assert_int_equal(frame[1] & 0x0fU, 5);
			assert_memory_equal(frame + 2, before + 2, count - 2);
		}
	}
}

/* What the parser found need not hold for the bytes at hand: then nothing is touched. */
static void no_header_to_write(void **state)
{
	const struct pst_packet far = {.network_family = 4, .network_offset = PST_NETWORK_OFFSET_MAX + 1};
	const struct pst_packet not_ip = {.network_family = 0};
	uint8_t header[HEADER_BYTES], frame[PST_NETWORK_OFFSET_MAX + 1 + HEADER_BYTES] = {0};

	(void)state;
	make_ipv4(header, 7, 1);
	assert_false(pst_packet_mark_ce(header, header + HEADER_BYTES - 1, &raw_ipv4));
	assert_false(pst_packet_set_dscp(header, header + HEADER_BYTES - 1, &raw_ipv4, 1));
	assert_false(pst_packet_mark_ce(header, header + HEADER_BYTES, &not_ip));
	assert_int_equal(header[1], 1);
	memcpy(frame + far.network_offset, header, HEADER_BYTES);
	assert_false(pst_packet_mark_ce(frame, frame + sizeof(frame), &far));
	assert_int_equal(frame[far.network_offset + 1], 1);
}

/* Of every fixture, cut anywhere: the outermost header is written or nothing is; no byte outside the frame. */
static void where_it_is_written(void **state)
{
	uint8_t bytes[PACKET_BYTES_MAX];
	struct pst_packet packet, again;
	size_t i;
	uint32_t captured, k;

	(void)state;
	for (i = 0; i < PACKET_FIXTURES; i++) {
		uint32_t count = packet_from_hex(bytes, packet_fixtures[i].hex);

		for (captured = 1; captured <= count; captured++) {
			uint8_t *frame = malloc(captured);
			bool is_written;

			assert_non_null(frame);
			memcpy(frame, bytes, captured);
			pst_packet_parse(&packet, frame, frame + captured, count, packet_fixtures[i].link);
			is_written = pst_packet_set_dscp(frame, frame + captured, &packet, 5);
			assert_int_equal(is_written, (packet.flags & PST_PACKET_IS_IP) != 0);
			pst_packet_parse(&again, frame, frame + captured, count, packet_fixtures[i].link);
			if (is_written)
				assert_int_equal(again.network_tos, 5 << 2 | (packet.network_tos & 3));
			for (k = 0; k < captured; k++) {
				bool is_header = k >= packet.network_offset && k < packet.network_offset + 20U;

				assert_true((is_written && is_header) || frame[k] == bytes[k]);
			}
			free(frame);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4_checksums),
		cmocka_unit_test(ipv4_checksums_of_others),
		cmocka_unit_test(not_ecn_capable),
		cmocka_unit_test(ipv6_traffic_class),
		cmocka_unit_test(no_header_to_write),
		cmocka_unit_test(where_it_is_written),
	};

	return cmocka_run_group_tests(tests, 0, 0);
}
