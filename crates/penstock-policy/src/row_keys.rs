// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tells rows of a limits file apart, and users of a class: addresses, flows, VLANs, VNIs, TEIDs.

use crate::diagnostics::{Problem, quote};
use crate::fields;
use crate::matching::{MaskedKey, Prefix};
use penstock_algo::wire;

/// A column that says which packets a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyColumn {
    /// Destination.
    Dst,
    /// Source.
    Src,
    /// One direction of a connection.
    FiveTuple,
    /// Outermost VLAN identifier.
    Vlan,
    /// VXLAN or GENEVE network identifier.
    Vni,
    /// GTP-U tunnel endpoint.
    Teid,
}

/// Key columns under their names.
pub const KEY_COLUMNS: [(&str, KeyColumn); 6] = [
    ("dst", KeyColumn::Dst),
    ("src", KeyColumn::Src),
    ("five_tuple", KeyColumn::FiveTuple),
    ("vlan", KeyColumn::Vlan),
    ("vni", KeyColumn::Vni),
    ("teid", KeyColumn::Teid),
];

impl KeyColumn {
    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        KEY_COLUMNS.iter().find(|&&(_, column)| column == self).map_or("", |&(name, _)| name)
    }
}

/// A five_tuple beside an address, if there is one.
pub(crate) fn five_tuple_and_address(columns: &[KeyColumn]) -> Option<Problem> {
    let has = |column| columns.contains(&column);
    (has(KeyColumn::FiveTuple) && (has(KeyColumn::Src) || has(KeyColumn::Dst))).then(|| {
        let message = "a five_tuple has source and destination: `src` and `dst` say them again";
        Problem::new(message, "remove them")
    })
}

/// The bits of a packet that tell one user from another: whole addresses, so that there is a mask for either family (4 or 6).
#[must_use]
pub fn user_mask(columns: &[KeyColumn], family: u8) -> wire::Key {
    let any = Prefix { address: 0, length: if family == 4 { 32 } else { 128 }, family };
    let mut key = MaskedKey::default();
    for column in columns {
        match column {
            KeyColumn::Dst => key.require_dst(any),
            KeyColumn::Src => key.require_src(any),
            KeyColumn::FiveTuple => {
                key.require_src(any);
                key.require_dst(any);
                key.require_flow(0, 0, 0);
            }
            KeyColumn::Vlan => key.require_vlan(0),
            KeyColumn::Vni => key.require_vni(0),
            KeyColumn::Teid => key.require_teid(0),
        }
    }
    key.mask
}

/// The key columns of a row, gathered.
#[derive(Default)]
pub(crate) struct KeyCells {
    pub key: MaskedKey,
    /// Bits that they fix.
    pub bits: u32,
    family: Option<u8>,
    has_prefix: bool,
}

impl KeyCells {
    /// Whether each address is a single one.
    pub fn is_whole(&self) -> bool {
        !self.has_prefix
    }

    /// Takes a column of the row.
    pub fn take(&mut self, column: KeyColumn, cell: &str) -> Result<(), Problem> {
        match column {
            KeyColumn::Dst => {
                let prefix = fields::parse_prefix(cell)?;
                self.key.require_dst(prefix);
                self.address(prefix)
            }
            KeyColumn::Src => {
                let prefix = fields::parse_prefix(cell)?;
                self.key.require_src(prefix);
                self.address(prefix)
            }
            KeyColumn::FiveTuple => {
                let flow = parse_five_tuple(cell)?;
                self.key.require_src(flow.src);
                self.key.require_dst(flow.dst);
                self.key.require_flow(flow.proto, flow.sport, flow.dport);
                self.bits += 8 + 16 + 16;
                self.address(flow.src)?;
                self.address(flow.dst)
            }
            KeyColumn::Vlan => {
                self.key.require_vlan(fields::parse_number(cell, "VLAN identifier", 4_094)?);
                self.bits += 12;
                Ok(())
            }
            KeyColumn::Vni => {
                self.key.require_vni(fields::parse_number(cell, "VNI", (1 << 24) - 1)?);
                self.bits += 24;
                Ok(())
            }
            KeyColumn::Teid => {
                self.key.require_teid(fields::parse_number(cell, "TEID", u32::MAX)?);
                self.bits += 32;
                Ok(())
            }
        }
    }

    fn address(&mut self, prefix: Prefix) -> Result<(), Problem> {
        self.bits += u32::from(prefix.length) + u32::from(self.family.is_none());
        if self.family.is_some_and(|family| family != prefix.family) {
            let message = "one address is IPv4 and the other IPv6: no packet has both";
            return Err(Problem::new(message, "use addresses of one family"));
        }
        self.family = Some(prefix.family);
        self.has_prefix |= prefix.length < if prefix.family == 4 { 32 } else { 128 };
        Ok(())
    }
}

/// One direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FiveTuple {
    /// tcp, udp or sctp.
    pub proto: u8,
    /// Source address.
    pub src: Prefix,
    /// Source port.
    pub sport: u16,
    /// Destination address.
    pub dst: Prefix,
    /// Destination port.
    pub dport: u16,
}

/// `udp 10.0.0.1:53 -> 10.1.2.3:1000`.
///
/// # Errors
/// Anything else.
pub fn parse_five_tuple(text: &str) -> Result<FiveTuple, Problem> {
    let shape = || {
        let help = "such as `udp 10.0.0.1:53 -> 10.1.2.3:1000` or `tcp [2001:db8::1]:443 -> [2001:db8::2]:50000`";
        Problem::new(format!("{} is not a five-tuple", quote(text)), help)
    };
    let (proto, rest) = text.split_once(' ').ok_or_else(shape)?;
    // Neither addresses nor ports have a dash.
    let (src, dst) = rest.split_once('-').ok_or_else(shape)?;
    let dst = dst.strip_prefix('>').ok_or_else(shape)?;
    let proto = fields::parse_proto(proto)?;
    if ![fields::TCP, fields::UDP, fields::SCTP].contains(&proto) {
        let message = format!("protocol {} has no ports", fields::protocol_name(proto));
        return Err(Problem::new(message, "a five_tuple is of tcp, udp or sctp"));
    }
    let (src, sport) = endpoint(src.trim_ascii()).ok_or_else(shape)?;
    let (dst, dport) = endpoint(dst.trim_ascii()).ok_or_else(shape)?;
    Ok(FiveTuple { proto, src, sport, dst, dport })
}

/// `10.0.0.1:53` or `[2001:db8::1]:53`.
fn endpoint(text: &str) -> Option<(Prefix, u16)> {
    let (address, port) = text.rsplit_once(':')?;
    let port = u16::try_from(fields::parse_digits(port)?).ok()?;
    let prefix = match address.strip_prefix('[') {
        Some(rest) => {
            let address: std::net::Ipv6Addr = rest.strip_suffix(']')?.parse().ok()?;
            Prefix { address: u128::from(address), length: 128, family: 6 }
        }
        None => Prefix { address: u128::from(fields::parse_ipv4(address)?), length: 32, family: 4 },
    };
    Some((prefix, port))
}
