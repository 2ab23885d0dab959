/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * types.h: the words that every other header is written in.
 *
 * The fixed-width integers are those of <stdint.h>. A BPF program that has included
 * vmlinux.h already has them. Nothing here needs a C library: algo/ builds with
 * -ffreestanding, as C11, as C++17 and for the BPF target.
 */
#ifndef PENSTOCK_TYPES_H
#define PENSTOCK_TYPES_H

#ifndef __VMLINUX_H__
#include <stdbool.h>
#include <stdint.h>
#endif

/* Hot functions must vanish into their host: the BPF verifier sees one program, a batch loop one body. */
#define PST_INLINE static inline __attribute__((always_inline, unused))

/* What few packets need stays a call, out of the way of what all of them do. Under BPF a call takes five arguments at most. */
#define PST_OUTLINE static __attribute__((noinline, unused))

#ifdef __cplusplus
#define PST_STATIC_ASSERT(condition, message) static_assert(condition, message)
#else
#define PST_STATIC_ASSERT(condition, message) _Static_assert(condition, message)
#endif

#define PST_NSEC_PER_SEC UINT64_C(1000000000)

#ifdef __VMLINUX_H__
#define UINT64_C(constant) constant##ULL
#define UINT32_MAX 0xffffffffU
#define UINT64_MAX 0xffffffffffffffffULL
#endif

#endif /* PENSTOCK_TYPES_H */
