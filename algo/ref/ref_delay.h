/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* ref_delay.h: a delay line as it is defined, in numbers that have room for it. */
#ifndef REF_DELAY_H
#define REF_DELAY_H

#include <penstock/wire.h>

#include "ref_fixed.h"

uint64_t ref_delay_seed(const struct pst_line *line);
ref_int ref_delay_draw_ns(const struct pst_line *line, uint64_t nth, ref_int jitter_ns);
ref_int ref_delay_ns(const struct pst_line *line, uint64_t turn_ns);
bool ref_delay_loses(const struct pst_line *line, uint64_t number);

#endif /* REF_DELAY_H */
