/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* ref_wheel.h: what wheel.h does, as a heap of things that is searched from end to end. */
#ifndef REF_WHEEL_H
#define REF_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#define REF_WHEEL_ITEMS 4096
#define REF_WHEEL_NONE (-1)

struct ref_wheel {
	__int128 at_ns; /* no slot before this one is used any more */
	int count;
	struct {
		__int128 slot_ns;
		int item;
	} waiting[REF_WHEEL_ITEMS]; /* in the order in which they came */
};

void ref_wheel_start(struct ref_wheel *wheel, __int128 now_ns);
bool ref_wheel_put(struct ref_wheel *wheel, int item, __int128 due_ns);
int ref_wheel_take(struct ref_wheel *wheel, __int128 now_ns);

#endif /* REF_WHEEL_H */
