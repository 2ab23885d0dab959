/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * packet_fixtures.h: frames in hexadecimal, and what the parser must say of them, as packet_text.h writes it.
 *
 * Each encapsulation has its hit and its near misses. Lengths are spelled out, because they are what goes wrong.
 */
#ifndef PACKET_FIXTURES_H
#define PACKET_FIXTURES_H

#include <penstock/wire.h>

struct packet_fixture {
	const char *name;
	const char *hex;
	const char *want;
	enum pst_link_type link;
	bool is_open_ended; /* no IP header declares the length: it is what the wire has */
};

#define ETH(type) "020000000001 020000000002" type
/* Outer packets: DSCP 46; 10.0.0.1 > 10.0.0.2, 2001:db8::1 > ::2. */
#define IP4(total, proto) IP4_FRAGMENT(total, proto, "0000")
#define IP4_FRAGMENT(total, proto, fragment) "45b8" total "0001" fragment "40" proto "0000 0a000001 0a000002"
#define IP6(payload, next) \
	"6b800000" payload next "40 20010db8000000000000000000000001 20010db8000000000000000000000002"
/* Inner packets: DSCP 0; 192.168.0.1 > 192.168.0.2, fd00::1 > ::2. */
#define IN4(total, proto) IN4_FRAGMENT(total, proto, "0000")
#define IN4_FRAGMENT(total, proto, fragment) "4500" total "0001" fragment "40" proto "0000 c0a80001 c0a80002"
#define IN6(payload, next) \
	"60000000" payload next "40 fd000000000000000000000000000001 fd000000000000000000000000000002"
/* 20 bytes: 8080 > 80, SYN and ACK. */
#define TCP "1f90 0050 00000001 00000002 5012 ffff 0000 0000"
/* 8 bytes: from port 4660. `length` counts them. */
#define UDP(port, length) "1234" port length "0000"
#define VXLAN(vni) "08000000" vni "00"
#define INNER_TCP IN4("0028", "06") TCP /* 40 bytes */
#define INNER_ETH ETH("0800") INNER_TCP /* 54 bytes */
#define TAG(vid) "8100" vid
#define LABEL "00010040"
#define LAST_LABEL "00020140"
#define OPTION(next) next "00 010400000000" /* an extension header of 8 bytes */

#define OUTER "ip4 10.0.0.1>10.0.0.2 dscp=46"
#define OUTER6 "ip6 20010db8:00000000:00000000:00000001>20010db8:00000000:00000000:00000002 dscp=46"
#define INNER "ip4 192.168.0.1>192.168.0.2 dscp=0"
#define INNER6 "ip6 fd000000:00000000:00000000:00000001>fd000000:00000000:00000000:00000002 dscp=0"
#define TCP_SEEN "proto=6 ports=8080>80 tcp=12"

static const struct packet_fixture packet_fixtures[] = {
	/* Ethernet and IP */
	{"udp", ETH("0800") IP4("0020", "11") UDP("0035", "000c") "61626364",
	 "mac " OUTER " proto=17 ports=4660>53 length=32 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"tcp", ETH("0800") IP4("0028", "06") TCP,
	 "mac " OUTER " " TCP_SEEN " length=40 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"tcp over ipv6", ETH("86dd") IP6("0014", "06") TCP,
	 "mac " OUTER6 " " TCP_SEEN " length=60 at=14/6/b8", PST_LINK_ETHERNET, false},
	{"udp over ipv6", ETH("86dd") IP6("0009", "11") UDP("01bb", "0009") "00",
	 "mac " OUTER6 " proto=17 ports=4660>443 length=49 at=14/6/b8", PST_LINK_ETHERNET, false},
	{"padding to 60 bytes", ETH("0800") IP4("001c", "11") UDP("0035", "0008")
	 "000000000000000000000000000000000000",
	 "mac " OUTER " proto=17 ports=4660>53 length=28 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"arp", ETH("0806") "0001080006040001 020000000002 0a000001 000000000000 0a000002",
	 "mac length=28", PST_LINK_ETHERNET, true},
	{"ieee 802.3 length", ETH("0026") "42420300000000000000", "mac length=10", PST_LINK_ETHERNET, true},
	{"short ethernet", "020000000001 020000000002 08", "length=13 reason=16", PST_LINK_ETHERNET, true},
	{"nothing at all", "", "length=0 reason=16", PST_LINK_ETHERNET, true},
	{"ethernet alone", ETH("0800"), "mac length=0 reason=21", PST_LINK_ETHERNET, true},

	/* IPv4 */
	{"ipv4 options", ETH("0800") "46b8002c00010000400600000a0000010a000002 94040000" TCP,
	 "mac " OUTER " " TCP_SEEN " length=44 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"ipv4 with all its options", ETH("0800") "4fb8004400010000401100000a0000010a000002"
	 "01010101010101010101 01010101010101010101 01010101010101010101 01010101010101010101" UDP("0035", "0008"),
	 "mac " OUTER " proto=17 ports=4660>53 length=68 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"ipv4 header of 16 bytes", ETH("0800") "44b8002800010000400600000a0000010a000002" TCP,
	 "mac length=40 reason=23", PST_LINK_ETHERNET, true},
	{"ipv4 options past the packet", ETH("0800") "4fb8002800010000400600000a0000010a000002" TCP,
	 "mac length=40 reason=23", PST_LINK_ETHERNET, true},
	{"ipv4 header of 19 bytes", ETH("0800") "45b8002800010000400600000a0000010a0000",
	 "mac length=19 reason=21", PST_LINK_ETHERNET, true},
	{"ipv4 with version 5", ETH("0800") "55b8002800010000400600000a0000010a000002" TCP,
	 "mac length=40 reason=22", PST_LINK_ETHERNET, true},
	{"ipv4 total length one too many", ETH("0800") IP4("0029", "06") TCP,
	 "mac length=40 reason=24", PST_LINK_ETHERNET, true},
	{"ipv4 total length of 19", ETH("0800") IP4("0013", "06") TCP,
	 "mac length=40 reason=24", PST_LINK_ETHERNET, true},
	{"ipv4 total length of 0", ETH("0800") IP4("0000", "06") TCP "0000",
	 "mac " OUTER " " TCP_SEEN " length=42 at=14/4/b8", PST_LINK_ETHERNET, true},
	{"ipv4 header alone", ETH("0800") IP4("0014", "ff"),
	 "mac " OUTER " proto=255 length=20 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"first fragment", ETH("0800") IP4_FRAGMENT("0020", "11", "2000") UDP("0035", "0100") "61626364",
	 "mac " OUTER " proto=17 ports=4660>53 length=32 at=14/4/b8 fragment", PST_LINK_ETHERNET, false},
	{"later fragment", ETH("0800") IP4_FRAGMENT("0020", "11", "0001") UDP("0035", "0100") "61626364",
	 "mac " OUTER " proto=17 length=32 at=14/4/b8 fragment", PST_LINK_ETHERNET, false},
	{"middle fragment", ETH("0800") IP4_FRAGMENT("0020", "06", "3fff") UDP("0035", "0100") "61626364",
	 "mac " OUTER " proto=6 length=32 at=14/4/b8 fragment", PST_LINK_ETHERNET, false},
	{"do not fragment", ETH("0800") IP4_FRAGMENT("001c", "11", "4000") UDP("0035", "0008"),
	 "mac " OUTER " proto=17 ports=4660>53 length=28 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"first fragment without the flags of tcp", ETH("0800") IP4_FRAGMENT("001c", "06", "2000") "1f90005000000001",
	 "mac " OUTER " proto=6 length=28 at=14/4/b8 fragment reason=29", PST_LINK_ETHERNET, false},
	{"first fragment with the flags of tcp", ETH("0800") IP4_FRAGMENT("0024", "06", "2000")
	 "1f90 0050 00000001 00000002 5012 ffff",
	 "mac " OUTER " " TCP_SEEN " length=36 at=14/4/b8 fragment", PST_LINK_ETHERNET, false},
	{"first fragment inside tcp options", ETH("0800") IP4_FRAGMENT("0028", "06", "2000")
	 "1f90 0050 00000001 00000002 f012 ffff 0000 0000",
	 "mac " OUTER " " TCP_SEEN " length=40 at=14/4/b8 fragment", PST_LINK_ETHERNET, false},
	{"ah over ipv4", ETH("0800") IP4("0034", "33") "06010000 00000001 00000001" TCP,
	 "mac " OUTER " proto=51 length=52 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"gre", ETH("0800") IP4("0040", "2f") "00000800" IN4("0028", "06") TCP,
	 "mac " OUTER " proto=47 length=64 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"6 in 4", ETH("0800") IP4("0050", "29") IN6("0014", "06") TCP,
	 "mac " OUTER " proto=41 length=80 at=14/4/b8", PST_LINK_ETHERNET, false},

	/* IPv6 */
	{"4 in 6", ETH("86dd") IP6("0028", "04") INNER_TCP,
	 "mac " OUTER6 " proto=4 length=80 at=14/6/b8", PST_LINK_ETHERNET, false},
	{"no next header, padded", ETH("86dd") IP6("0000", "3b") "000000000000",
	 "mac " OUTER6 " proto=59 length=40 at=14/6/b8", PST_LINK_ETHERNET, false},
	{"jumbogram", ETH("86dd") IP6("0000", "00") "0600c2040001001c" TCP,
	 "mac " OUTER6 " " TCP_SEEN " length=68 at=14/6/b8", PST_LINK_ETHERNET, true},
	{"udp of a jumbogram", ETH("86dd") IP6("0000", "00") "1100c20400010012" UDP("0035", "0000") "6162",
	 "mac " OUTER6 " proto=17 ports=4660>53 length=58 at=14/6/b8", PST_LINK_ETHERNET, true},
	{"hop by hop, destination, routing", ETH("86dd") IP6("002c", "00") OPTION("3c") OPTION("2b") OPTION("06") TCP,
	 "mac " OUTER6 " " TCP_SEEN " length=84 at=14/6/b8", PST_LINK_ETHERNET, false},
	{"extension of 16 bytes", ETH("86dd") IP6("0024", "3c") "0601010c000000000000000000000000" TCP,
	 "mac " OUTER6 " " TCP_SEEN " length=76 at=14/6/b8", PST_LINK_ETHERNET, false},
	{"authentication header", ETH("86dd") IP6("0028", "33") "0603000000000001 00000001 aabbccdd aabbccdd" TCP,
	 "mac " OUTER6 " " TCP_SEEN " length=80 at=14/6/b8", PST_LINK_ETHERNET, false},
	{"esp", ETH("86dd") IP6("0010", "32") "00000001 00000001 0011223344556677",
	 "mac " OUTER6 " proto=50 length=56 at=14/6/b8", PST_LINK_ETHERNET, false},
	{"ipv6 first fragment", ETH("86dd") IP6("0014", "2c") "1100000100000001" UDP("0035", "0100") "61626364",
	 "mac " OUTER6 " proto=17 ports=4660>53 length=60 at=14/6/b8 fragment", PST_LINK_ETHERNET, false},
	{"ipv6 later fragment", ETH("86dd") IP6("0014", "2c") "1100000800000001" UDP("0035", "0100") "61626364",
	 "mac " OUTER6 " proto=17 length=60 at=14/6/b8 fragment", PST_LINK_ETHERNET, false},
	{"ipv6 atomic fragment", ETH("86dd") IP6("0010", "2c") "1100000000000001" UDP("0035", "0008"),
	 "mac " OUTER6 " proto=17 ports=4660>53 length=56 at=14/6/b8", PST_LINK_ETHERNET, false},
	{"ipv6 fragment, reserved bits set", ETH("86dd") IP6("0010", "2c") "11ff000600000001" UDP("0035", "0008"),
	 "mac " OUTER6 " proto=17 ports=4660>53 length=56 at=14/6/b8", PST_LINK_ETHERNET, false},
	{"eight extensions", ETH("86dd") IP6("0054", "3c") OPTION("3c") OPTION("3c") OPTION("3c") OPTION("3c")
	 OPTION("3c") OPTION("3c") OPTION("3c") OPTION("06") TCP,
	 "mac " OUTER6 " " TCP_SEEN " length=124 at=14/6/b8", PST_LINK_ETHERNET, false},
	{"nine extensions", ETH("86dd") IP6("005c", "3c") OPTION("3c") OPTION("3c") OPTION("3c") OPTION("3c")
	 OPTION("3c") OPTION("3c") OPTION("3c") OPTION("3c") OPTION("06") TCP,
	 "mac " OUTER6 " proto=60 length=132 at=14/6/b8 reason=34", PST_LINK_ETHERNET, false},
	{"extension past the packet", ETH("86dd") IP6("001c", "3c") "0603010400000000" TCP,
	 "mac " OUTER6 " proto=60 length=68 at=14/6/b8 reason=28", PST_LINK_ETHERNET, false},
	{"extension of 7 bytes", ETH("86dd") IP6("0007", "3c") "06000104000000",
	 "mac " OUTER6 " proto=60 length=47 at=14/6/b8 reason=28", PST_LINK_ETHERNET, false},
	{"ipv6 header of 39 bytes", ETH("86dd")
	 "6b80000000001140 20010db8000000000000000000000001 20010db80000000000000000000000",
	 "mac length=39 reason=25", PST_LINK_ETHERNET, true},
	{"ipv6 with version 4", ETH("86dd") IN4("0028", "06") TCP, "mac length=40 reason=26", PST_LINK_ETHERNET, true},
	{"ipv6 payload one too many", ETH("86dd") IP6("0015", "06") TCP,
	 "mac length=60 reason=27", PST_LINK_ETHERNET, true},

	/* transport */
	{"tcp with options", ETH("0800") IP4("002c", "06") "1f90 0050 00000001 00000002 6012 ffff 0000 0000 020405b4",
	 "mac " OUTER " " TCP_SEEN " length=44 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"tcp of 19 bytes", ETH("0800") IP4("0027", "06") "1f90 0050 00000001 00000002 5012 ffff 0000 00 ff",
	 "mac " OUTER " proto=6 length=39 at=14/4/b8 reason=29", PST_LINK_ETHERNET, false},
	{"tcp header length of 16", ETH("0800") IP4("0028", "06") "1f90 0050 00000001 00000002 4012 ffff 0000 0000",
	 "mac " OUTER " proto=6 length=40 at=14/4/b8 reason=30", PST_LINK_ETHERNET, false},
	{"tcp options past the packet", ETH("0800") IP4("0028", "06")
	 "1f90 0050 00000001 00000002 6012 ffff 0000 0000 0204",
	 "mac " OUTER " proto=6 length=40 at=14/4/b8 reason=30", PST_LINK_ETHERNET, false},
	{"udp of 7 bytes", ETH("0800") IP4("001b", "11") "12340035000800 00",
	 "mac " OUTER " proto=17 length=27 at=14/4/b8 reason=29", PST_LINK_ETHERNET, false},
	{"udp length of 7", ETH("0800") IP4("001c", "11") UDP("0035", "0007"),
	 "mac " OUTER " proto=17 length=28 at=14/4/b8 reason=31", PST_LINK_ETHERNET, false},
	{"udp length of 0 over ipv4", ETH("0800") IP4("001c", "11") UDP("0035", "0000"),
	 "mac " OUTER " proto=17 length=28 at=14/4/b8 reason=31", PST_LINK_ETHERNET, false},
	{"udp length one too many", ETH("0800") IP4("001c", "11") UDP("0035", "0009") "00",
	 "mac " OUTER " proto=17 length=28 at=14/4/b8 reason=31", PST_LINK_ETHERNET, false},
	{"udp lite", ETH("0800") IP4("001c", "88") "1234003500080000",
	 "mac " OUTER " proto=136 ports=4660>53 length=28 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"udp lite of 7 bytes", ETH("0800") IP4("001b", "88") "12340035000800",
	 "mac " OUTER " proto=136 length=27 at=14/4/b8 reason=29", PST_LINK_ETHERNET, false},
	{"sctp", ETH("0800") IP4("0020", "84") "123400350000000100000000",
	 "mac " OUTER " proto=132 ports=4660>53 length=32 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"sctp of 11 bytes", ETH("0800") IP4("001f", "84") "1234003500000001000000",
	 "mac " OUTER " proto=132 length=31 at=14/4/b8 reason=29", PST_LINK_ETHERNET, false},
	{"icmp", ETH("0800") IP4("001c", "01") "0800000000010001",
	 "mac " OUTER " proto=1 length=28 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"icmp of 7 bytes", ETH("0800") IP4("001b", "01") "08000000000100",
	 "mac " OUTER " proto=1 length=27 at=14/4/b8 reason=29", PST_LINK_ETHERNET, false},
	{"icmpv6", ETH("86dd") IP6("0008", "3a") "8000000000010001",
	 "mac " OUTER6 " proto=58 length=48 at=14/6/b8", PST_LINK_ETHERNET, false},
	{"icmpv6 of 3 bytes", ETH("86dd") IP6("0003", "3a") "800000",
	 "mac " OUTER6 " proto=58 length=43 at=14/6/b8 reason=29", PST_LINK_ETHERNET, false},

	/* VLAN, PPPoE, MPLS */
	{"vlan", ETH("8100") "a005 0800" IP4("0028", "06") TCP,
	 "mac vlan=5 " OUTER " " TCP_SEEN " length=40 at=18/4/b8", PST_LINK_ETHERNET, false},
	{"vlan 0", ETH("8100") "e000 0800" IP4("0028", "06") TCP,
	 "mac vlan=0 " OUTER " " TCP_SEEN " length=40 at=18/4/b8", PST_LINK_ETHERNET, false},
	{"vlan of arp", ETH("8100") "0fff 0806 0001", "mac vlan=4095 length=2", PST_LINK_ETHERNET, true},
	{"qinq", ETH("88a8") "0064" TAG("00c8") "86dd" IP6("0014", "06") TCP,
	 "mac vlan=100 " OUTER6 " " TCP_SEEN " length=60 at=22/6/b8", PST_LINK_ETHERNET, false},
	{"four tags", ETH("9100") "0001" TAG("0002") TAG("0003") "88a80004 0800" IP4("0028", "06") TCP,
	 "mac vlan=1 " OUTER " " TCP_SEEN " length=40 at=30/4/b8", PST_LINK_ETHERNET, false},
	{"five tags", ETH("9100") "0001" TAG("0002") TAG("0003") TAG("0004") TAG("0005") "0800" IP4("0028", "06") TCP,
	 "mac vlan=1 length=44 reason=34", PST_LINK_ETHERNET, true},
	{"short tag", ETH("8100") "000508", "mac length=3 reason=17", PST_LINK_ETHERNET, true},
	{"pppoe session", ETH("8864") "110000010016 0021" IP4("0014", "ff"),
	 "mac " OUTER " proto=255 length=20 at=22/4/b8", PST_LINK_ETHERNET, false},
	{"pppoe with ipv6, in a vlan", ETH("8100") "0007 8864 11000001003e 0057" IP6("0014", "06") TCP,
	 "mac vlan=7 " OUTER6 " " TCP_SEEN " length=60 at=26/6/b8", PST_LINK_ETHERNET, false},
	{"pppoe with lcp", ETH("8864") "11000001000a c021 0901000800000000", "mac length=8", PST_LINK_ETHERNET, true},
	{"pppoe discovery", ETH("8863") "110900000004 01010000", "mac length=10", PST_LINK_ETHERNET, true},
	{"pppoe padded", ETH("8864") "110000010016 0021" IP4("0000", "ff") "0000",
	 "mac " OUTER " proto=255 length=20 at=22/4/b8", PST_LINK_ETHERNET, false},
	{"pppoe shorter than its ip packet", ETH("8864") "110000010029 0021" IP4("0028", "06") TCP,
	 "mac length=40 reason=24", PST_LINK_ETHERNET, true},
	{"pppoe code", ETH("8864") "110900010016 0021" IP4("0014", "ff"),
	 "mac length=28 reason=20", PST_LINK_ETHERNET, true},
	{"pppoe version", ETH("8864") "210000010016 0021" IP4("0014", "ff"),
	 "mac length=28 reason=20", PST_LINK_ETHERNET, true},
	{"pppoe length of 1", ETH("8864") "110000010001 0021" IP4("0014", "ff"),
	 "mac length=28 reason=20", PST_LINK_ETHERNET, true},
	{"pppoe length one too many", ETH("8864") "110000010017 0021" IP4("0014", "ff"),
	 "mac length=28 reason=20", PST_LINK_ETHERNET, true},
	{"short pppoe", ETH("8864") "110000010002 00", "mac length=7 reason=19", PST_LINK_ETHERNET, true},
	{"mpls", ETH("8847") LAST_LABEL IP4("0028", "06") TCP,
	 "mac " OUTER " " TCP_SEEN " length=40 at=18/4/b8", PST_LINK_ETHERNET, false},
	{"eight labels of ipv6", ETH("8848") LABEL LABEL LABEL LABEL LABEL LABEL LABEL LAST_LABEL IP6("0014", "06")
	 TCP,
	 "mac " OUTER6 " " TCP_SEEN " length=60 at=46/6/b8", PST_LINK_ETHERNET, false},
	{"nine labels", ETH("8847") LABEL LABEL LABEL LABEL LABEL LABEL LABEL LABEL LAST_LABEL IP4("0014", "ff"),
	 "mac length=24 reason=34", PST_LINK_ETHERNET, true},
	{"pseudo-wire", ETH("8847") LAST_LABEL "00000000" INNER_ETH, "mac length=58", PST_LINK_ETHERNET, true},
	{"short label", ETH("8847") LABEL "000201", "mac length=3 reason=18", PST_LINK_ETHERNET, true},
	{"labels of nothing", ETH("8847") LAST_LABEL, "mac length=0 reason=18", PST_LINK_ETHERNET, true},
	{"mpls in pppoe", ETH("8864") "11000001002e 0281" LAST_LABEL IP4("0028", "06") TCP,
	 "mac " OUTER " " TCP_SEEN " length=40 at=26/4/b8", PST_LINK_ETHERNET, false},

	/* VXLAN */
	{"vxlan", ETH("0800") IP4("005a", "11") UDP("12b5", "0046") VXLAN("123456") INNER_ETH,
	 "mac vni=1193046 " INNER " " TCP_SEEN " length=90 at=14/4/b8 tunnel", PST_LINK_ETHERNET, false},
	{"vxlan over ipv6, vlan inside", ETH("86dd") IP6("004a", "11") UDP("12b5", "004a") VXLAN("000000") ETH("8100")
	 "0009 0800" INNER_TCP,
	 "mac vni=0 " INNER " " TCP_SEEN " length=114 at=14/6/b8 tunnel", PST_LINK_ETHERNET, false},
	{"vxlan, udp inside", ETH("8100") "0003 0800" IP4("0062", "11") UDP("12b5", "004e") VXLAN("000001") ETH("86dd")
	 IN6("0008", "11") UDP("0035", "0008"),
	 "mac vlan=3 vni=1 " INNER6 " proto=17 ports=4660>53 length=98 at=18/4/b8 tunnel", PST_LINK_ETHERNET, false},
	{"vxlan of arp", ETH("0800") IP4("0034", "11") UDP("12b5", "0020") VXLAN("000001") ETH("0806") "0001",
	 "mac vni=1 " OUTER " proto=17 ports=4660>4789 length=52 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"vxlan without its flag", ETH("0800") IP4("005a", "11") UDP("12b5", "0046") "f700000012345600" INNER_ETH,
	 "mac " OUTER " proto=17 ports=4660>4789 length=90 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"vxlan from its port", ETH("0800") IP4("005a", "11") "12b51234004600000800000012345600" INNER_ETH,
	 "mac " OUTER " proto=17 ports=4789>4660 length=90 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"seven bytes to vxlan's port", ETH("0800") IP4("0023", "11") UDP("12b5", "000f") "08000000123456",
	 "mac " OUTER " proto=17 ports=4660>4789 length=35 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"vxlan of half an ethernet header", ETH("0800") IP4("002b", "11") UDP("12b5", "0017") VXLAN("000001")
	 "02000000000102",
	 "mac vni=1 " OUTER " proto=17 ports=4660>4789 length=43 at=14/4/b8 bad_inside", PST_LINK_ETHERNET, false},
	{"vxlan, inner total length too long", ETH("0800") IP4("005a", "11") UDP("12b5", "0046") VXLAN("123456")
	 ETH("0800") IN4("0029", "06") TCP,
	 "mac vni=1193046 " OUTER " proto=17 ports=4660>4789 length=90 at=14/4/b8 bad_inside",
	 PST_LINK_ETHERNET, false},
	{"vxlan, inner tcp header length", ETH("0800") IP4("005a", "11") UDP("12b5", "0046") VXLAN("123456")
	 ETH("0800") IN4("0028", "06") "1f90 0050 00000001 00000002 4012 ffff 0000 0000",
	 "mac vni=1193046 " INNER " proto=6 length=90 at=14/4/b8 tunnel bad_inside", PST_LINK_ETHERNET, false},
	{"vxlan, inner later fragment", ETH("0800") IP4("005a", "11") UDP("12b5", "0046") VXLAN("123456") ETH("0800")
	 IN4_FRAGMENT("0028", "06", "0010") TCP,
	 "mac vni=1193046 " INNER " proto=6 length=90 at=14/4/b8 fragment tunnel", PST_LINK_ETHERNET, false},
	{"vxlan, outer first fragment", ETH("0800") IP4_FRAGMENT("005a", "11", "2000") UDP("12b5", "05d0")
	 VXLAN("123456") ETH("0800") IN4("05b4", "06") TCP,
	 "mac vni=1193046 " INNER " " TCP_SEEN " length=90 at=14/4/b8 fragment tunnel", PST_LINK_ETHERNET, false},
	{"vxlan, outer first fragment ends in an inner header", ETH("0800") IP4_FRAGMENT("003f", "11", "2000")
	 UDP("12b5", "05d0") VXLAN("123456") ETH("0800") "450005b400010000400600 00c0",
	 "mac vni=1193046 " OUTER " proto=17 ports=4660>4789 length=63 at=14/4/b8 fragment bad_inside",
	 PST_LINK_ETHERNET, false},
	{"vxlan in vxlan", ETH("0800") IP4("008c", "11") UDP("12b5", "0078") VXLAN("000001") ETH("0800")
	 IN4("005a", "11") UDP("12b5", "0046") VXLAN("000002") INNER_ETH,
	 "mac vni=1 " INNER " " TCP_SEEN " length=140 at=14/4/b8 tunnel", PST_LINK_ETHERNET, false},
	{"three tunnels: the third stays closed", ETH("0800") IP4("00d2", "11") UDP("12b5", "00be") VXLAN("000001")
	 ETH("0800") IN4("00a0", "11") UDP("12b5", "008c") VXLAN("000002") ETH("86dd") IN6("0046", "11")
	 UDP("12b5", "0046") VXLAN("000003") INNER_ETH,
	 "mac vni=1 " INNER6 " proto=17 ports=4660>4789 length=210 at=14/4/b8 tunnel", PST_LINK_ETHERNET, false},

	/* GENEVE */
	{"geneve", ETH("0800") IP4("005a", "11") UDP("17c1", "0046") "0000655800000700" INNER_ETH,
	 "mac vni=7 " INNER " " TCP_SEEN " length=90 at=14/4/b8 tunnel", PST_LINK_ETHERNET, false},
	{"geneve with options", ETH("0800") IP4("0062", "11") UDP("17c1", "004e") "0240655800000700 01020301aabbccdd"
	 INNER_ETH,
	 "mac vni=7 " INNER " " TCP_SEEN " length=98 at=14/4/b8 tunnel", PST_LINK_ETHERNET, false},
	{"geneve of ipv4", ETH("0800") IP4("004c", "11") UDP("17c1", "0038") "0000080000000700" INNER_TCP,
	 "mac vni=7 " INNER " " TCP_SEEN " length=76 at=14/4/b8 tunnel", PST_LINK_ETHERNET, false},
	{"geneve of mpls", ETH("0800") IP4("0050", "11") UDP("17c1", "003c") "0000884700000700" LAST_LABEL INNER_TCP,
	 "mac vni=7 " INNER " " TCP_SEEN " length=80 at=14/4/b8 tunnel", PST_LINK_ETHERNET, false},
	{"geneve of an unknown protocol", ETH("0800") IP4("004c", "11") UDP("17c1", "0038") "0000000000000700"
	 INNER_TCP,
	 "mac vni=7 " OUTER " proto=17 ports=4660>6081 length=76 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"geneve version 1", ETH("0800") IP4("004c", "11") UDP("17c1", "0038") "4000080000000700" INNER_TCP,
	 "mac " OUTER " proto=17 ports=4660>6081 length=76 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"geneve options past the packet", ETH("0800") IP4("0028", "11") UDP("17c1", "0014")
	 "0240655800000700 01020301",
	 "mac " OUTER " proto=17 ports=4660>6081 length=40 at=14/4/b8 reason=32", PST_LINK_ETHERNET, false},
	{"geneve of nothing", ETH("0800") IP4("0024", "11") UDP("17c1", "0010") "0000080000000700",
	 "mac vni=7 " OUTER " proto=17 ports=4660>6081 length=36 at=14/4/b8 bad_inside", PST_LINK_ETHERNET, false},

	/* GTP-U */
	{"gtp-u", ETH("0800") IP4("004c", "11") UDP("0868", "0038") "30ff0028 deadbeef" INNER_TCP,
	 "mac teid=3735928559 " INNER " " TCP_SEEN " length=76 at=14/4/b8 tunnel", PST_LINK_ETHERNET, false},
	{"gtp-u of ipv6", ETH("0800") IP4("0060", "11") UDP("0868", "004c") "30ff003c 00000000" IN6("0014", "06") TCP,
	 "mac teid=0 " INNER6 " " TCP_SEEN " length=96 at=14/4/b8 tunnel", PST_LINK_ETHERNET, false},
	{"gtp-u with a sequence number", ETH("0800") IP4("0050", "11") UDP("0868", "003c") "32ff002c 00000001 00010085"
	 INNER_TCP,
	 "mac teid=1 " INNER " " TCP_SEEN " length=80 at=14/4/b8 tunnel", PST_LINK_ETHERNET, false},
	{"gtp-u with a pdu session container", ETH("0800") IP4("0054", "11") UDP("0868", "0040")
	 "34ff0030 00000001 00000085 01100900" INNER_TCP,
	 "mac teid=1 " INNER " " TCP_SEEN " length=84 at=14/4/b8 tunnel", PST_LINK_ETHERNET, false},
	{"gtp-u with four extensions", ETH("0800") IP4("0064", "11") UDP("0868", "0050")
	 "34ff0040 00000001 00000085 01000085 0200000000000085 01000085 01000000" INNER_TCP,
	 "mac teid=1 " INNER " " TCP_SEEN " length=100 at=14/4/b8 tunnel", PST_LINK_ETHERNET, false},
	{"gtp-u with five extensions", ETH("0800") IP4("0064", "11") UDP("0868", "0050")
	 "34ff0040 00000001 00000085 01000085 01000085 01000085 01000085 01000000" INNER_TCP,
	 "mac " OUTER " proto=17 ports=4660>2152 length=100 at=14/4/b8 reason=34", PST_LINK_ETHERNET, false},
	{"gtp-u extension of no length", ETH("0800") IP4("0054", "11") UDP("0868", "0040")
	 "34ff0030 00000001 00000085 00100900" INNER_TCP,
	 "mac " OUTER " proto=17 ports=4660>2152 length=84 at=14/4/b8 reason=33", PST_LINK_ETHERNET, false},
	{"gtp-u extension past the packet", ETH("0800") IP4("002c", "11") UDP("0868", "0018")
	 "34ff0008 00000001 00000085 02100900",
	 "mac " OUTER " proto=17 ports=4660>2152 length=44 at=14/4/b8 reason=32", PST_LINK_ETHERNET, false},
	{"gtp-u without its optional fields", ETH("0800") IP4("0026", "11") UDP("0868", "0012")
	 "32ff0002 00000001 0000",
	 "mac " OUTER " proto=17 ports=4660>2152 length=38 at=14/4/b8 reason=32", PST_LINK_ETHERNET, false},
	{"gtp-u length one too many", ETH("0800") IP4("004c", "11") UDP("0868", "0038") "30ff0029 00000001" INNER_TCP,
	 "mac " OUTER " proto=17 ports=4660>2152 length=76 at=14/4/b8 reason=33", PST_LINK_ETHERNET, false},
	{"gtp-u length cuts the inner packet", ETH("0800") IP4("004c", "11") UDP("0868", "0038") "30ff0027 00000001"
	 INNER_TCP,
	 "mac teid=1 " OUTER " proto=17 ports=4660>2152 length=76 at=14/4/b8 bad_inside", PST_LINK_ETHERNET, false},
	{"gtp-u echo request", ETH("0800") IP4("0028", "11") UDP("0868", "0014") "32010004 00000000 00010000",
	 "mac " OUTER " proto=17 ports=4660>2152 length=40 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"gtp prime", ETH("0800") IP4("004c", "11") UDP("0868", "0038") "20ff0028 00000001" INNER_TCP,
	 "mac " OUTER " proto=17 ports=4660>2152 length=76 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"gtp version 2", ETH("0800") IP4("004c", "11") UDP("0868", "0038") "50ff0028 00000001" INNER_TCP,
	 "mac " OUTER " proto=17 ports=4660>2152 length=76 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"gtp-u of ethernet", ETH("0800") IP4("005a", "11") UDP("0868", "0046") "30ff0036 00000001" INNER_ETH,
	 "mac teid=1 " OUTER " proto=17 ports=4660>2152 length=90 at=14/4/b8", PST_LINK_ETHERNET, false},
	{"gtp-u in vxlan", ETH("0800") IP4("007e", "11") UDP("12b5", "006a") VXLAN("000005") ETH("0800")
	 IN4("004c", "11") UDP("0868", "0038") "30ff0028 00000006" INNER_TCP,
	 "mac vni=5 teid=6 " INNER " " TCP_SEEN " length=126 at=14/4/b8 tunnel", PST_LINK_ETHERNET, false},
	{"gtp-u in vxlan, bad header", ETH("0800") IP4("007e", "11") UDP("12b5", "006a") VXLAN("000005") ETH("0800")
	 IN4("004c", "11") UDP("0868", "0038") "30ff0029 00000006" INNER_TCP,
	 "mac vni=5 " INNER " proto=17 ports=4660>2152 length=126 at=14/4/b8 tunnel bad_inside",
	 PST_LINK_ETHERNET, false},

	/* other links */
	{"raw ipv4", IP4("0028", "06") TCP, OUTER " " TCP_SEEN " length=40 at=0/4/b8", PST_LINK_RAW_IP, false},
	{"raw ipv6", IP6("0014", "06") TCP, OUTER6 " " TCP_SEEN " length=60 at=0/6/b8", PST_LINK_RAW_IP, false},
	{"raw, neither", "70000000000000000000 00000000000000000000", "length=20 reason=22", PST_LINK_RAW_IP, true},
	{"raw, empty", "", "length=0 reason=21", PST_LINK_RAW_IP, true},
	{"sll", "0000 0001 0006 020000000002 0000 0800" IP4("0028", "06") TCP,
	 OUTER " " TCP_SEEN " length=40 at=16/4/b8", PST_LINK_LINUX_SLL, false},
	{"sll with a tag", "0000 0001 0006 020000000002 0000 8100 0005 86dd" IP6("0014", "06") TCP,
	 "vlan=5 " OUTER6 " " TCP_SEEN " length=60 at=20/6/b8", PST_LINK_LINUX_SLL, false},
	{"short sll", "0000 0001 0006 020000000002 0000 08", "length=15 reason=16", PST_LINK_LINUX_SLL, true},
	{"sll2", "0800 0000 00000001 0001 00 06 020000000002 0000" IP4("0028", "06") TCP,
	 OUTER " " TCP_SEEN " length=40 at=20/4/b8", PST_LINK_LINUX_SLL2, false},
	{"sll2 of arp", "0806 0000 00000001 0001 00 06 020000000002 0000 0001", "length=2", PST_LINK_LINUX_SLL2, true},
	{"loopback, little endian", "02000000" IP4("0028", "06") TCP,
	 OUTER " " TCP_SEEN " length=40 at=4/4/b8", PST_LINK_NULL, false},
	{"loopback, big endian, ipv6", "0000001e" IP6("0014", "06") TCP,
	 OUTER6 " " TCP_SEEN " length=60 at=4/6/b8", PST_LINK_NULL, false},
	{"loopback, another family", "07000000 0000", "length=2", PST_LINK_NULL, true},
	{"short loopback", "020000", "length=3 reason=16", PST_LINK_NULL, true},
	{"cisco hdlc", "0f000800" IP4("0028", "06") TCP,
	 OUTER " " TCP_SEEN " length=40 at=4/4/b8", PST_LINK_CISCO_HDLC, false},
	{"cisco slarp", "8f008035 000000020000000000000000ffff", "length=14", PST_LINK_CISCO_HDLC, true},
	{"ppp", "ff030021" IP4("0028", "06") TCP, OUTER " " TCP_SEEN " length=40 at=4/4/b8", PST_LINK_PPP, false},
	{"ppp, no address", "0057" IP6("0014", "06") TCP,
	 OUTER6 " " TCP_SEEN " length=60 at=2/6/b8", PST_LINK_PPP, false},
	{"ppp, protocol compressed", "ff0321" IP4("0028", "06") TCP,
	 OUTER " " TCP_SEEN " length=40 at=3/4/b8", PST_LINK_PPP, false},
	{"ppp, mpls", "0281" LAST_LABEL IP4("0028", "06") TCP,
	 OUTER " " TCP_SEEN " length=40 at=6/4/b8", PST_LINK_PPP, false},
	{"ppp that is cisco hdlc", "0f000800" IP4("0028", "06") TCP,
	 OUTER " " TCP_SEEN " length=40 at=4/4/b8", PST_LINK_PPP, false},
	{"ppp that is cisco slarp", "8f008035 000000020000000000000000ffff", "length=14", PST_LINK_PPP, true},
	{"ppp, lcp", "ff03c021 01000004", "length=4", PST_LINK_PPP, true},
	{"short ppp", "ff0300", "length=1 reason=16", PST_LINK_PPP, true},
};

#define PACKET_FIXTURES (sizeof(packet_fixtures) / sizeof(packet_fixtures[0]))

#endif /* PACKET_FIXTURES_H */
