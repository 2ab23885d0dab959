/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* lpf.h for Rust: what a policy compiles its slices with. */
#include <penstock/lpf.h>

struct pst_lpf_scale pst_host_slice_scale(uint64_t nominal_Bps, uint32_t tau_shift);

struct pst_lpf_scale pst_host_slice_scale(uint64_t nominal_Bps, uint32_t tau_shift)
{
	struct pst_lpf_scale scale;

	pst_lpf_scale_compile(&scale, nominal_Bps, 1, tau_shift);
	return scale;
}
