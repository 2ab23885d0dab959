/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* wheel.h for Rust, which owns the memory. */
#include <penstock/wheel.h>

void pst_host_wheel_start(struct pst_wheel *wheel, uint64_t now_ns);
bool pst_host_wheel_put(struct pst_wheel *wheel, struct pst_wheel_item *items, uint32_t item, uint64_t due_ns);
uint32_t pst_host_wheel_take(struct pst_wheel *wheel, struct pst_wheel_item *items, uint64_t now_ns);
bool pst_host_wheel_next(const struct pst_wheel *wheel, uint64_t *next_ns);

void pst_host_wheel_start(struct pst_wheel *wheel, uint64_t now_ns)
{
	pst_wheel_start(wheel, now_ns);
}

bool pst_host_wheel_put(struct pst_wheel *wheel, struct pst_wheel_item *items, uint32_t item, uint64_t due_ns)
{
	return pst_wheel_put(wheel, items, item, due_ns);
}

uint32_t pst_host_wheel_take(struct pst_wheel *wheel, struct pst_wheel_item *items, uint64_t now_ns)
{
	return pst_wheel_take(wheel, items, now_ns);
}

bool pst_host_wheel_next(const struct pst_wheel *wheel, uint64_t *next_ns)
{
	return pst_wheel_next(wheel, next_ns);
}
