// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is drawn.

/// Small and seeded: xorshift64*.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        u32::try_from((high * u64::from(bound)) >> 32).unwrap_or(0)
    }
}
