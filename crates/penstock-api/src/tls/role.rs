// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the bearer of a certificate may do, by a URI among its other names: `penstock://ROLE/NAME`.

use tonic::Request;
use tonic::transport::server::{TcpConnectInfo, TlsConnectInfo};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

/// What a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Attends, under its own name.
    Node,
    /// Asks.
    Read,
    /// Asks, and changes.
    Write,
    /// Is a replica.
    Controller,
}

impl Role {
    /// As certificates have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Read => "read",
            Self::Write => "write",
            Self::Controller => "controller",
        }
    }
}

/// The bearer of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// What it may do.
    pub role: Role,
    /// Who it is.
    pub name: String,
}

impl Peer {
    /// Of a certificate in DER. None: it has no role, or more than one, of which nobody could say which is meant.
    pub fn of_certificate(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let names = certificate.subject_alternative_name().ok()??;
        let mut uris = names.value.general_names.iter().filter_map(|name| match name {
            GeneralName::URI(uri) => Self::of_uri(uri),
            _ => None,
        });
        let peer = uris.next();
        peer.filter(|_| uris.next().is_none())
    }

    /// As certificates have it.
    pub fn uri(&self) -> String {
        format!("penstock://{}/{}", self.role.as_str(), self.name)
    }

    fn of_uri(uri: &str) -> Option<Self> {
        let (role, name) = uri.strip_prefix("penstock://")?.split_once('/')?;
        let roles = [Role::Node, Role::Read, Role::Write, Role::Controller];
        let role = roles.into_iter().find(|known| known.as_str() == role)?;
        is_name(name).then(|| Self { role, name: name.to_owned() })
    }
}

/// Longest name, as the network file has it.
const NAME_BYTES_MAX: usize = 128;
/// What a name may have beside letters and digits.
const NAME_SIGNS: &str = "-_.:@+=~";

/// Whether a certificate may have this name: what needs no escape in a URI, and no second thought in a log or as a file.
pub fn is_name(name: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || NAME_SIGNS.contains(c);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(is_fine) && !name.starts_with(['-', '.'])
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// Somebody on this machine: there is no TLS. It may do everything.
    Local,
    /// The bearer of a certificate.
    Known(Peer),
    /// The bearer of a certificate that has no role. It may do nothing.
    Unknown,
}

impl Caller {
    /// Of a request that tonic's server took, by TCP with or without TLS.
    pub fn of<T>(request: &Request<T>) -> Self {
        let Some(info) = request.extensions().get::<TlsConnectInfo<TcpConnectInfo>>() else { return Self::Local };
        let certificates = info.peer_certs();
        let first = certificates.as_ref().and_then(|certificates| certificates.first());
        first.and_then(|certificate| Peer::of_certificate(certificate)).map_or(Self::Unknown, Self::Known)
    }

    /// For the audit log.
    pub fn name(&self) -> &str {
        match self {
            Self::Local => "local",
            Self::Known(peer) => &peer.name,
            Self::Unknown => "unknown",
        }
    }

    /// Whether it may ask.
    pub fn may_read(&self) -> bool {
        self.has(|peer| peer.role != Role::Node)
    }

    /// Whether it may change things.
    pub fn may_write(&self) -> bool {
        self.has(|peer| matches!(peer.role, Role::Write | Role::Controller))
    }

    /// Whether it may attend as this node.
    pub fn may_attend(&self, node: &str) -> bool {
        self.has(|peer| peer.role == Role::Controller || (peer.role == Role::Node && peer.name == node))
    }

    fn has(&self, role: impl FnOnce(&Peer) -> bool) -> bool {
        match self {
            Self::Local => true,
            Self::Known(peer) => role(peer),
            Self::Unknown => false,
        }
    }
}
