/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_wheel.h"

#define SLOT 4096 /* ns */

static __int128 slot_before(__int128 time_ns)
{
	return time_ns / SLOT * SLOT;
}

static __int128 slot_after(__int128 time_ns)
{
	return slot_before(time_ns + SLOT - 1);
}

void ref_wheel_start(struct ref_wheel *wheel, __int128 now_ns)
{
	wheel->at_ns = slot_before(now_ns);
	wheel->count = 0;
}

/* 4094 blocks of 4096 slots: further ahead nothing is taken in. */
bool ref_wheel_put(struct ref_wheel *wheel, int item, __int128 due_ns)
{
	__int128 slot_ns = slot_after(due_ns);

	if (slot_ns < wheel->at_ns)
		slot_ns = wheel->at_ns;
	if (slot_ns - wheel->at_ns > (__int128)4094 * 4096 * SLOT)
		return false;
	wheel->waiting[wheel->count].slot_ns = slot_ns;
	wheel->waiting[wheel->count].item = item;
	wheel->count++;
	return true;
}

/* The one in the earliest slot, and of those the one that came first, if its slot has come. */
int ref_wheel_take(struct ref_wheel *wheel, __int128 now_ns)
{
	int best = REF_WHEEL_NONE, i, item;

	for (i = 0; i < wheel->count; i++) {
		if (best == REF_WHEEL_NONE || wheel->waiting[i].slot_ns < wheel->waiting[best].slot_ns)
			best = i;
	}
	if (best == REF_WHEEL_NONE || wheel->waiting[best].slot_ns > now_ns) {
		if (slot_before(now_ns) > wheel->at_ns)
			wheel->at_ns = slot_before(now_ns);
		return REF_WHEEL_NONE;
	}
	item = wheel->waiting[best].item;
	wheel->at_ns = wheel->waiting[best].slot_ns;
	for (i = best + 1; i < wheel->count; i++)
		wheel->waiting[i - 1] = wheel->waiting[i];
	wheel->count--;
	return item;
}
