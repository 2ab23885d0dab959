// SPDX-License-Identifier: MIT OR Apache-2.0
//! Link types of captures, folded to the few that the parser knows.

use penstock_algo::wire;

/// What sits before the network header: `enum pst_link_type` of `wire.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u32)]
pub enum LinkType {
    /// Ethernet.
    #[default]
    Ethernet = wire::PST_LINK_ETHERNET,
    /// IPv4 or IPv6, by the version nibble.
    RawIp = wire::PST_LINK_RAW_IP,
    /// Linux cooked capture v1.
    LinuxSll = wire::PST_LINK_LINUX_SLL,
    /// Linux cooked capture v2.
    LinuxSll2 = wire::PST_LINK_LINUX_SLL2,
    /// BSD loopback.
    Null = wire::PST_LINK_NULL,
    /// Cisco HDLC.
    CiscoHdlc = wire::PST_LINK_CISCO_HDLC,
    /// PPP, with or without address and control bytes.
    Ppp = wire::PST_LINK_PPP,
}

impl LinkType {
    /// The number of Ethernet in a capture file.
    pub const LINKTYPE_ETHERNET: u16 = 1;

    /// Folds a number from a capture file (LINKTYPE_*, and the DLT_* that old files carry in its place).
    #[must_use]
    pub fn from_linktype(linktype: u16) -> Option<Self> {
        Some(match linktype {
            1 => Self::Ethernet,
            0 | 108 => Self::Null,        // NULL; LOOP differs in the byte order only
            9 | 50 => Self::Ppp,          // PPP, PPP_HDLC
            12 | 14 | 101 => Self::RawIp, // DLT_RAW of the BSDs, LINKTYPE_RAW
            228 | 229 => Self::RawIp,     // IPV4, IPV6
            104 => Self::CiscoHdlc,
            113 => Self::LinuxSll,
            276 => Self::LinuxSll2,
            _ => return None,
        })
    }

    /// The link type of one frame: PPP captures hold Cisco HDLC frames too, told by their first two bytes (unicast 0f 00 or
    /// broadcast 8f 00, where PPP has ff 03 or a protocol number that is neither).
    #[must_use]
    pub(crate) fn of_frame(self, data: &[u8]) -> Self {
        match (self, data) {
            (Self::Ppp, [0x0f | 0x8f, 0x00, ..]) => Self::CiscoHdlc,
            _ => self,
        }
    }

    /// The value for C: `enum pst_link_type`.
    #[must_use]
    pub fn wire(self) -> wire::pst_link_type {
        self as wire::pst_link_type
    }
}
