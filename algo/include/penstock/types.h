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

/*
 * A host may define PST_ONE_THREAD when one thread alone reads and writes its tables. It pays for no bus lock and no sequences.
 * In exchange it changes no table between finding an entry and judging by it, and holds no view of one across a charge of
 * another packet: between pst_batch_start and the last pst_pipeline_judge it only judges.
 */

/*
 * One of the few functions that a packet's way through BPF is cut into. They are global there: the verifier looks at each once,
 * with anything for arguments, and the paths through one do not multiply with those through the next. It takes pointers
 * for absent until they are tested. Each returns a number: older kernels want one.
 */
#ifdef __bpf__
#define PST_STAGE __attribute__((noinline))
#define PST_RARE_STAGE PST_STAGE
#define PST_IS_ABSENT(pointer) (!(pointer))
#else
#define PST_STAGE PST_INLINE
#define PST_RARE_STAGE PST_OUTLINE
#define PST_IS_ABSENT(pointer) ((void)(pointer), false)
#endif

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
#define INT64_MAX 0x7fffffffffffffffLL
#define INT64_MIN (-INT64_MAX - 1)
#endif

#endif /* PENSTOCK_TYPES_H */
