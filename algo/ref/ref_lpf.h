/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Slow forms of lpf.h. */
#ifndef PENSTOCK_REF_LPF_H
#define PENSTOCK_REF_LPF_H

#include <stdbool.h>
#include <stdint.h>

/* Equation 4 in real numbers. Time does not wrap here. */
struct ref_lpf {
	double value;
	double last_ns;
	bool any;
};
double ref_lpf_read(const struct ref_lpf *lpf, double now_ns, double tau_ns);
void ref_lpf_add(struct ref_lpf *lpf, double now_ns, double tau_ns, double parts);

/* A byte in parts. */
double ref_lpf_parts_per_byte(double nominal_Bps, double weight, double tau_ns);

/* What decay.h promises bit for bit: what is left after x time constants, in 2^-31. */
uint32_t ref_decay_q31(unsigned __int128 x_q32);

/* What lpf.h promises bit for bit: the word after `parts` came (0: a read keeps the value, see ref_lpf_left_q31). */
uint32_t ref_lpf_left_q31(uint64_t stamps);
uint32_t ref_lpf_value(uint64_t word, uint64_t now_ns, uint32_t tau_shift);
uint64_t ref_lpf_next(uint64_t word, uint64_t now_ns, uint32_t tau_shift, uint32_t parts);

#endif /* PENSTOCK_REF_LPF_H */
