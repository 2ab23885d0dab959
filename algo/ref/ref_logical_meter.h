/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Slow form of logical_meter.h: 128-bit time that never wraps, 128-bit queue. */
#ifndef PENSTOCK_REF_LOGICAL_METER_H
#define PENSTOCK_REF_LOGICAL_METER_H

#include <stdbool.h>
#include <stdint.h>

enum ref_congestion { REF_POLICE = 0, REF_DCTCP = 1, REF_DCQCN = 2 };

struct ref_logical_meter {
	uint64_t rate_Bps;
	uint64_t yellow_bytes;
	uint64_t red_bytes;
	uint64_t mtu_bytes;
	uint32_t red_max_q32;
	enum ref_congestion congestion;
	uint32_t tcam_bits; /* 0: exact */
	/* the state */
	__int128 queue_nB;
	__int128 last_ns;
};

struct ref_logical_meter_result {
	uint8_t color;
	uint8_t verdict;
	uint8_t reason;
};

/* An empty queue; also widens the thresholds for the MTU. */
void ref_logical_meter_start(struct ref_logical_meter *meter, __int128 now_ns);
struct ref_logical_meter_result ref_logical_meter_take(struct ref_logical_meter *meter, __int128 now_ns, uint32_t bytes,
						       bool is_ect, uint32_t random);
/* A new rate and new thresholds (already widened); the bytes stay. */
void ref_logical_meter_change(struct ref_logical_meter *meter, __int128 now_ns, uint64_t rate_Bps,
			      uint64_t yellow_bytes, uint64_t red_bytes);

#endif /* PENSTOCK_REF_LOGICAL_METER_H */
