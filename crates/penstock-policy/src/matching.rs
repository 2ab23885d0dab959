// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a match item says, and the masks and values (`wire.h`: `pst_key`) that say the same.
//!
//! Specificity   the sum over fields of log2(size of the field / size of what is matched), in 1/256 bit. An address family
//!               counts one bit, TCP flags one bit each; that a field is present at all counts nothing.
//! Expansion     a range of numbers becomes at most 2 * width - 2 prefixes; an item with several ranges becomes every
//!               combination of them. All these keys belong to one rule and share its specificity.

use crate::diagnostics::Problem;
use crate::fields::{SCTP, TCP, UDP, protocol_name};
use penstock_algo::wire;

/// Most keys that one match item may expand to.
pub const ITEM_KEYS_MAX: usize = 1_024;
/// One bit of specificity.
pub const BIT_Q8: u32 = 256;

/// An address prefix. IPv4 addresses are the low 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix {
    /// The address; bits below the prefix are 0.
    pub address: u128,
    /// How many leading bits count.
    pub length: u8,
    /// 4 or 6.
    pub family: u8,
}

impl Prefix {
    /// Leading bits of this family's addresses.
    #[must_use]
    pub fn mask(self) -> u128 {
        let width = self.width();
        let host_bits = width - u32::from(self.length).min(width);
        let all = if width == 128 { u128::MAX } else { (1 << width) - 1 };
        all & u128::MAX.checked_shl(host_bits).unwrap_or(0)
    }

    fn width(self) -> u32 {
        if self.family == 4 { 32 } else { 128 }
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match u32::try_from(self.address) {
            Ok(address) if self.family == 4 => write!(f, "{}/{}", std::net::Ipv4Addr::from(address), self.length),
            _ => write!(f, "{}/{}", std::net::Ipv6Addr::from(self.address), self.length),
        }
    }
}

/// Numbers from `low` to `high`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Smallest.
    pub low: u32,
    /// Largest.
    pub high: u32,
}

/// TCP flags: those in `mask` are as in `value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpFlags {
    /// Flags that are looked at.
    pub mask: u8,
    /// Flags that are set, among them.
    pub value: u8,
}

/// One item of a class's `match`: all that is given must hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the fields are those of the policy's format, under their names
pub struct Match {
    pub src: Option<Prefix>,
    pub dst: Option<Prefix>,
    pub proto: Option<u8>,
    pub sport: Option<Range>,
    pub dport: Option<Range>,
    pub dscp: Option<u8>,
    pub vlan: Option<Range>,
    pub vni: Option<Range>,
    pub teid: Option<Range>,
    pub src_mac: Option<u64>,
    pub dst_mac: Option<u64>,
    pub tcp_flags: Option<TcpFlags>,
}

/// A mask and the value under it: one key of the rule table or the limiter table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct MaskedKey {
    /// Bits that count.
    pub mask: wire::Key,
    /// What they must be; 0 outside of the mask.
    pub value: wire::Key,
}

/// Where a number lies in a key: word, shift, width, and the bits that say it is there.
pub(crate) struct Field {
    pub word: usize,
    pub shift: u32,
    pub bits: u32,
    has: Has,
}

/// A word of the key, and bits of it.
pub(crate) type Has = (usize, u64);

pub(crate) const TRANSPORT_WORD: usize = 1;
const ALWAYS: Has = (TRANSPORT_WORD, 0);
pub(crate) const HAS_PORTS: Has = (TRANSPORT_WORD, (wire::PST_KEY_HAS_PORTS as u64) << wire::PST_KEY_FAMILY_SHIFT);
const HAS_TCP: Has = (TRANSPORT_WORD, (wire::PST_KEY_HAS_TCP as u64) << wire::PST_KEY_FAMILY_SHIFT);
const HAS_MAC: Has = (6, (wire::PST_KEY_HAS_MAC as u64) << wire::PST_KEY_HAS_SHIFT);
pub(crate) const HAS_VLAN: Has = (6, (wire::PST_KEY_HAS_VLAN as u64) << wire::PST_KEY_HAS_SHIFT);
pub(crate) const HAS_VNI: Has = (6, (wire::PST_KEY_HAS_VNI as u64) << wire::PST_KEY_HAS_SHIFT);
pub(crate) const HAS_TEID: Has = (6, (wire::PST_KEY_HAS_TEID as u64) << wire::PST_KEY_HAS_SHIFT);

pub(crate) const PROTO: Field = Field { word: TRANSPORT_WORD, shift: 48, bits: 8, has: ALWAYS };
const DSCP: Field = Field { word: TRANSPORT_WORD, shift: 40, bits: 6, has: ALWAYS };
const TCP_FLAGS_SHIFT: u32 = 32;
pub(crate) const SPORT: Field = Field { word: TRANSPORT_WORD, shift: 16, bits: 16, has: HAS_PORTS };
pub(crate) const DPORT: Field = Field { word: TRANSPORT_WORD, shift: 0, bits: 16, has: HAS_PORTS };
pub(crate) const VLAN: Field = Field { word: 5, shift: 48, bits: 12, has: HAS_VLAN };
pub(crate) const VNI: Field = Field { word: 7, shift: 32, bits: 24, has: HAS_VNI };
pub(crate) const TEID: Field = Field { word: 7, shift: 0, bits: 32, has: HAS_TEID };
const SRC_MAC: Field = Field { word: 5, shift: 0, bits: 48, has: HAS_MAC };
const DST_MAC: Field = Field { word: 6, shift: 0, bits: 48, has: HAS_MAC };

/// Where an address lies: the words of an IPv6 address, and the shift of an IPv4 address in word 0.
pub(crate) struct Address {
    pub high: usize,
    pub low: usize,
    pub ipv4_shift: u32,
}

pub(crate) const SRC: Address = Address { high: 0, low: 2, ipv4_shift: 32 };
pub(crate) const DST: Address = Address { high: 3, low: 4, ipv4_shift: 0 };
pub(crate) const IPV4_WORD: usize = 0;
/// The bit that 4 and 6 share and 0 has not: "is an IP packet".
const FAMILY_IP: u64 = 4;

impl MaskedKey {
    /// Whether every packet of this key has the other one too.
    #[must_use]
    pub fn is_inside(&self, outer: &MaskedKey) -> bool {
        let words = self.mask.words.iter().zip(&self.value.words).zip(outer.mask.words.iter().zip(&outer.value.words));
        words.into_iter().all(|((mask, value), (outer_mask, outer_value))| {
            mask & outer_mask == *outer_mask && value & outer_mask == *outer_value
        })
    }

    /// Adds bits that must hold. Bits that are there already must agree; they do, as each field is given once.
    fn require(&mut self, word: usize, mask: u64, value: u64) {
        self.mask.words[word] |= mask;
        self.value.words[word] |= value & mask;
    }

    /// Adds the leading `length` bits of a number, and its presence.
    fn require_number(&mut self, field: &Field, number: u64, length: u32) {
        let all = (1_u64 << field.bits) - 1;
        let mask = all & !((1_u64 << (field.bits - length)) - 1);
        // A whole word of the key may be one field: mask the unused bits of a field too, they are 0.
        self.require(field.word, mask << field.shift, number << field.shift);
        self.require_bits(field.has);
    }

    fn require_bits(&mut self, (word, bits): Has) {
        self.require(word, bits, bits);
    }

    fn require_family(&mut self, mask: u64, family: u64) {
        let shift = wire::PST_KEY_FAMILY_SHIFT;
        self.require(TRANSPORT_WORD, mask << shift, family << shift);
    }

    fn require_prefix(&mut self, place: &Address, prefix: Prefix) {
        let (mask, address) = (prefix.mask(), prefix.address);
        if prefix.family == 4 {
            self.require(IPV4_WORD, low_half(mask) << place.ipv4_shift, low_half(address) << place.ipv4_shift);
        } else {
            self.require(place.high, high_half(mask), high_half(address));
            self.require(place.low, low_half(mask), low_half(address));
        }
        self.require_family(u64::from(wire::PST_KEY_FAMILY), u64::from(prefix.family));
    }

    /// Requires the source address.
    pub fn require_src(&mut self, prefix: Prefix) {
        self.require_prefix(&SRC, prefix);
    }

    /// Requires the destination address.
    pub fn require_dst(&mut self, prefix: Prefix) {
        self.require_prefix(&DST, prefix);
    }

    /// Requires the VLAN identifier.
    pub fn require_vlan(&mut self, vlan: u32) {
        self.require_number(&VLAN, u64::from(vlan), VLAN.bits);
    }

    /// Requires the VXLAN or GENEVE network identifier.
    pub fn require_vni(&mut self, vni: u32) {
        self.require_number(&VNI, u64::from(vni), VNI.bits);
    }

    /// Requires the GTP-U tunnel endpoint.
    pub fn require_teid(&mut self, teid: u32) {
        self.require_number(&TEID, u64::from(teid), TEID.bits);
    }

    /// Requires protocol and both ports.
    pub fn require_flow(&mut self, proto: u8, sport: u16, dport: u16) {
        self.require_number(&PROTO, u64::from(proto), PROTO.bits);
        self.require_number(&SPORT, u64::from(sport), SPORT.bits);
        self.require_number(&DPORT, u64::from(dport), DPORT.bits);
    }
}

fn high_half(wide: u128) -> u64 {
    u64::try_from(wide >> 64).unwrap_or(u64::MAX)
}

fn low_half(wide: u128) -> u64 {
    u64::try_from(wide & u128::from(u64::MAX)).unwrap_or(u64::MAX)
}

impl Match {
    /// The address family that src and dst ask for.
    #[must_use]
    pub fn family(&self) -> Option<u8> {
        self.src.or(self.dst).map(|prefix| prefix.family)
    }

    /// What no packet can be.
    ///
    /// # Errors
    /// Fields that exclude each other; ports of a protocol that has none; more than [`ITEM_KEYS_MAX`] keys.
    pub fn check(&self) -> Result<(), Problem> {
        if let (Some(src), Some(dst)) = (self.src, self.dst)
            && src.family != dst.family
        {
            let message = format!("src is IPv{} and dst is IPv{}: no packet has both", src.family, dst.family);
            return Err(Problem::new(message, "write two items"));
        }
        if let Some(proto) = self.proto {
            let has_ports = [TCP, UDP, SCTP].contains(&proto);
            if (self.sport.is_some() || self.dport.is_some()) && !has_ports {
                let message = format!("protocol {} has no ports", protocol_name(proto));
                return Err(Problem::new(message, "sport and dport go with tcp, udp or sctp, or with no proto at all"));
            }
            if self.tcp_flags.is_some() && proto != TCP {
                let message = format!("protocol {} has no TCP flags", protocol_name(proto));
                return Err(Problem::new(message, "tcp_flags go with `proto: tcp`, which they imply"));
            }
        }
        let keys = self.ranges().iter().map(|(_, prefixes)| prefixes.len()).product::<usize>();
        if keys > ITEM_KEYS_MAX {
            let message = format!("the ranges of this item expand to {keys} keys; at most {ITEM_KEYS_MAX} are allowed");
            return Err(Problem::new(message, "use fewer ranges, or ranges that end on powers of two (1024-2047)"));
        }
        Ok(())
    }

    /// Whether every packet that fits this item fits the other one, as far as their fields tell.
    #[must_use]
    pub fn is_inside(&self, outer: &Match) -> bool {
        let address = |inner: Option<Prefix>, outer: Option<Prefix>| match (inner, outer) {
            (_, None) => true,
            // Any address of its family.
            (_, Some(outer)) if outer.length == 0 => self.family() == Some(outer.family),
            (None, _) => false,
            (Some(inner), Some(outer)) => {
                let is_longer = inner.family == outer.family && inner.length >= outer.length;
                is_longer && inner.address & outer.mask() == outer.address
            }
        };
        let ranges = self.each_range().into_iter().zip(outer.each_range()).all(|((_, inner), (_, outer))| {
            outer.is_none_or(|outer| inner.is_some_and(|inner| outer.low <= inner.low && inner.high <= outer.high))
        });
        let flags = outer.tcp_flags.is_none_or(|outer| {
            let is_same = |own: TcpFlags| own.mask & outer.mask == outer.mask && own.value & outer.mask == outer.value;
            self.tcp_flags.is_some_and(is_same)
        });
        address(self.src, outer.src)
            && address(self.dst, outer.dst)
            && ranges
            && flags
            && (outer.proto.is_none() || self.proto_or_implied() == outer.proto)
            && (outer.dscp.is_none() || self.dscp == outer.dscp)
            && (outer.src_mac.is_none() || self.src_mac == outer.src_mac)
            && (outer.dst_mac.is_none() || self.dst_mac == outer.dst_mac)
    }

    /// Bits that this item fixes, in 1/256.
    #[must_use]
    pub fn specificity_q8(&self) -> u32 {
        let bits = [
            self.src.map_or(0, |prefix| u32::from(prefix.length)),
            self.dst.map_or(0, |prefix| u32::from(prefix.length)),
            u32::from(self.family().is_some()),
            self.proto_or_implied().map_or(0, |_| PROTO.bits),
            self.dscp.map_or(0, |_| DSCP.bits),
            self.src_mac.map_or(0, |_| SRC_MAC.bits),
            self.dst_mac.map_or(0, |_| DST_MAC.bits),
            self.tcp_flags.map_or(0, |flags| flags.mask.count_ones()),
        ];
        let of_ranges = self.each_range().into_iter().filter_map(|(field, range)| {
            let size = u64::from(range?.high - range?.low) + 1;
            Some(field.bits * BIT_Q8 - log2_q8(size))
        });
        bits.iter().sum::<u32>() * BIT_Q8 + of_ranges.sum::<u32>()
    }

    /// The keys that say the same: one, or several when there are ranges.
    #[must_use]
    pub fn keys(&self) -> Vec<MaskedKey> {
        let mut fixed = MaskedKey::default();
        if let Some(prefix) = self.src {
            fixed.require_src(prefix);
        }
        if let Some(prefix) = self.dst {
            fixed.require_dst(prefix);
        }
        if self.proto_or_implied().is_some() || self.dscp.is_some() {
            fixed.require_family(FAMILY_IP, FAMILY_IP);
        }
        if let Some(proto) = self.proto_or_implied() {
            fixed.require_number(&PROTO, u64::from(proto), PROTO.bits);
        }
        if let Some(dscp) = self.dscp {
            fixed.require_number(&DSCP, u64::from(dscp), DSCP.bits);
        }
        if let Some(mac) = self.src_mac {
            fixed.require_number(&SRC_MAC, mac, SRC_MAC.bits);
        }
        if let Some(mac) = self.dst_mac {
            fixed.require_number(&DST_MAC, mac, DST_MAC.bits);
        }
        if let Some(flags) = self.tcp_flags {
            let (mask, value) = (u64::from(flags.mask), u64::from(flags.value));
            fixed.require(TRANSPORT_WORD, mask << TCP_FLAGS_SHIFT, value << TCP_FLAGS_SHIFT);
            fixed.require_bits(HAS_TCP);
        }
        let mut keys = vec![fixed];
        for (field, prefixes) in self.ranges() {
            keys = keys
                .iter()
                .flat_map(|key| {
                    prefixes.iter().map(|&(number, length)| {
                        let mut key = *key;
                        key.require_number(field, u64::from(number), length);
                        key
                    })
                })
                .collect();
        }
        keys
    }

    /// TCP flags are nothing that a UDP packet could have, whatever its bits.
    fn proto_or_implied(&self) -> Option<u8> {
        self.proto.or(self.tcp_flags.map(|_| TCP))
    }

    fn each_range(&self) -> [(&'static Field, Option<Range>); 5] {
        [(&SPORT, self.sport), (&DPORT, self.dport), (&VLAN, self.vlan), (&VNI, self.vni), (&TEID, self.teid)]
    }

    fn ranges(&self) -> Vec<(&'static Field, Vec<(u32, u32)>)> {
        let given = self.each_range().into_iter().filter_map(|(field, range)| Some((field, range?)));
        given.map(|(field, range)| (field, range.prefixes(field.bits))).collect()
    }
}

impl Range {
    /// The fewest prefixes that cover it exactly: (number, length) in a field of `bits`.
    #[must_use]
    pub fn prefixes(self, bits: u32) -> Vec<(u32, u32)> {
        let mut prefixes = Vec::new();
        let (mut low, high) = (u64::from(self.low), u64::from(self.high));
        while low <= high {
            // The largest aligned block that starts at `low` and does not pass `high`.
            let aligned = if low == 0 { bits } else { low.trailing_zeros().min(bits) };
            let fits = (high - low + 1).ilog2();
            let block = aligned.min(fits);
            prefixes.push((u32::try_from(low).unwrap_or(u32::MAX), bits - block));
            low += 1 << block;
        }
        prefixes
    }
}

/// log2 in 1/256, rounded down, for 1 ..= 2^32: eight squarings give eight fraction bits.
#[must_use]
pub fn log2_q8(value: u64) -> u32 {
    let whole = value.max(1).ilog2();
    let mut fraction = 0;
    // The mantissa in [1, 2) as 1.63 fixed point.
    let mut mantissa = u128::from(value.max(1)) << (63 - whole);
    for _ in 0..8 {
        mantissa = (mantissa * mantissa) >> 63;
        fraction <<= 1;
        if mantissa >= 1 << 64 {
            fraction |= 1;
            mantissa >>= 1;
        }
    }
    whole * 256 + fraction
}
