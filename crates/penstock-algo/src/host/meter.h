/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* meter.h: what the hosts in this folder share of the RFC meters. */
#ifndef PENSTOCK_HOST_METER_H
#define PENSTOCK_HOST_METER_H

#include <penstock/meter.h>

struct pst_meter_state pst_host_meter_convert(const struct pst_profile *before, uint32_t before_rate,
					      const struct pst_profile *after, uint32_t after_rate,
					      const struct pst_meter_state *state, uint64_t now_ns);
void pst_host_meter_change(const struct pst_profile *before, uint32_t before_rate, const struct pst_profile *after,
			   uint32_t after_rate, struct pst_meter_state *state, uint64_t now_ns);

#endif /* PENSTOCK_HOST_METER_H */
