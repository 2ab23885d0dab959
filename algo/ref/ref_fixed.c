/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
#include "ref_fixed.h"

ref_int ref_divide_down(ref_int numerator, ref_int divisor)
{
	ref_int quotient = numerator / divisor;

	return numerator % divisor < 0 ? quotient - 1 : quotient;
}

ref_int ref_divide_near(ref_int numerator, ref_int divisor)
{
	return ref_divide_down(2 * numerator + divisor, 2 * divisor);
}

/* The finest scale whose mantissa has 27 bits. */
uint32_t ref_rate_code(uint64_t rate_Bps)
{
	ref_int rate = rate_Bps, mantissa;
	uint32_t exponent = 0;

	if (rate < 64)
		rate = 64;
	if (rate > 125000000000)
		rate = 125000000000;
	while ((mantissa = ref_divide_near(REF_TICKS_PER_SEC * REF_UNITS_PER_TICK, rate << exponent)) >= (1 << 27))
		exponent++;
	return (uint32_t)mantissa + exponent * (UINT32_C(1) << 27);
}

ref_int ref_rate_units_per_byte(uint32_t code)
{
	return (ref_int)(code % (UINT32_C(1) << 27)) << (code / (UINT32_C(1) << 27));
}

ref_int ref_rate_cost(uint32_t code, uint64_t bytes)
{
	return ref_divide_near(ref_rate_units_per_byte(code) * bytes, REF_UNITS_PER_TICK);
}

ref_int ref_rate_bytes_q8(uint32_t code, ref_int ticks)
{
	ref_int units_per_byte = ref_rate_units_per_byte(code);

	return units_per_byte ? ref_divide_down(ticks * REF_UNITS_PER_TICK * 256, units_per_byte) : 0;
}
