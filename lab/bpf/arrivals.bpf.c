/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * When bytes arrive at a receiver, a millisecond exactly: much finer than programs that receive can tell.
 *
 * What         bins[tenant * bins_each + (now - start) / 1 ms] += length of the frames
 * Units        bytes with Ethernet's header, as limits count them; ns of CLOCK_MONOTONIC.
 * How          at the device's ingress, by the destination's last octet. There the kernel has put segments of TCP together (GRO): each of
 *              them had headers of its own.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <linux/types.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define BIN_NSEC 1000000
#define ETHERTYPE_IPV4_BE 0x0008
#define PROTOCOL_TCP 6
#define HEADERS 54 /* Ethernet's, IPv4's and TCP's without options */
#define OCTET_FIRST 10
#define GOES_ON 0 /* TC_ACT_OK */

struct settings {
	__u64 start_ns;
	__u32 bins_each;
	__u32 tenants;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} bins SEC(".maps");

static __always_inline __u32 wire_bytes(const struct __sk_buff *skb, const __u8 *headers)
{
	__u32 segments = skb->gso_segs;

	if (headers[23] != PROTOCOL_TCP || segments < 2)
		return skb->len;
	return skb->len + (segments - 1) * (14 + (headers[14] & 15) * 4 + (headers[46] >> 4) * 4);
}

SEC("tc")
int arrives(struct __sk_buff *skb)
{
	const struct settings *set;
	__u64 now_ns = bpf_ktime_get_ns(), bin, *bytes;
	__u32 zero = 0, tenant, index;
	__u8 headers[HEADERS] = { 0 };

	if (bpf_skb_load_bytes(skb, 0, headers, 42) || *(__u16 *)&headers[12] != ETHERTYPE_IPV4_BE)
		return GOES_ON;
	(void)bpf_skb_load_bytes(skb, 42, &headers[42], HEADERS - 42); /* a short datagram ends before */
	set = bpf_map_lookup_elem(&settings, &zero);
	tenant = headers[33] - OCTET_FIRST;
	if (!set || tenant >= set->tenants || now_ns < set->start_ns)
		return GOES_ON;
	bin = (now_ns - set->start_ns) / BIN_NSEC;
	if (bin >= set->bins_each)
		return GOES_ON;
	index = tenant * set->bins_each + (__u32)bin;
	bytes = bpf_map_lookup_elem(&bins, &index);
	if (bytes)
		__sync_fetch_and_add(bytes, wire_bytes(skb, headers));
	return GOES_ON;
}
