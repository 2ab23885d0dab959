// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mutual TLS between nodes, people and controllers: files, and what a certificate lets its bearer do.

mod role;

pub use role::{Caller, Peer, Role, is_name};

use crate::causes;
use std::io;
use std::path::{Path, PathBuf};
use tonic::transport::{Certificate, ClientTlsConfig, Identity, Server, ServerTlsConfig};
use x509_parser::pem::Pem;
use x509_parser::time::ASN1Time;

/// What the certificate of each controller is called, wherever it runs: clients ask for this name and not for that of an address, which may
/// change.
pub const CONTROLLER_DOMAIN: &str = "controller";

/// What is wrong with a file for TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is something else.
    #[error("{}: there is no {wanted} in it; PEM is wanted, with a line `-----BEGIN {label}-----`", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// What should be in it.
        wanted: &'static str,
        /// As PEM calls it.
        label: &'static str,
    },
    /// It is damaged.
    #[error("{}: the certificate cannot be read: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Its time is over, or has not come.
    #[error("{}: the certificate is good from {from} until {until}, and not now; issue another one, or set the clock", path.display())]
    Expired {
        /// The file.
        path: PathBuf,
        /// From when it holds.
        from: String,
        /// Until when.
        until: String,
    },
    /// Certificate and key are good for nothing.
    #[error("{} and {}: {why}; do they belong together?", certificate.display(), key.display())]
    Mismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What is wrong with them.
        why: String,
    },
}

/// Files of PEM: whom to trust, and who one is.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The CA's certificate.
    pub ca: PathBuf,
    /// The own certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// Whom to trust, and who one is.
#[derive(Debug, Clone)]
pub struct Tls {
    ca: Certificate,
    identity: Identity,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// One cannot be read or is something else, the certificate has expired, or its key is another one's.
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let tls = Self { ca: read_ca(&files.ca)?, identity: read_identity(&files.certificate, &files.key)? };
        Ok(tls)
    }

    /// For a server that wants a certificate of its clients.
    pub fn server(&self) -> ServerTlsConfig {
        ServerTlsConfig::new().identity(self.identity.clone()).client_ca_root(self.ca.clone())
    }

    /// For a client of a controller.
    pub fn client(&self) -> ClientTlsConfig {
        ClientTlsConfig::new()
            .ca_certificate(self.ca.clone())
            .identity(self.identity.clone())
            .domain_name(CONTROLLER_DOMAIN)
    }
}

/// Reads certificates whose signatures are to be trusted.
///
/// # Errors
/// The file cannot be read, or has no certificate that holds now.
pub fn read_ca(path: &Path) -> Result<Certificate, TlsError> {
    read_certificates(path).map(Certificate::from_pem)
}

/// Reads a certificate and its key.
///
/// # Errors
/// A file cannot be read or is something else, the certificate does not hold now, or its key is another one's.
pub fn read_identity(certificate: &Path, key: &Path) -> Result<Identity, TlsError> {
    let certificates = read_certificates(certificate)?;
    let key_bytes = read(key)?;
    let is_key = |pem: &Pem| pem.label.ends_with("PRIVATE KEY");
    if !Pem::iter_from_buffer(&key_bytes).flatten().any(|pem| is_key(&pem)) {
        return Err(TlsError::Missing { path: key.to_owned(), wanted: "private key", label: "PRIVATE KEY" });
    }
    let identity = Identity::from_pem(certificates, key_bytes);
    // A server that is never started: it looks whether they are a pair.
    let trial = Server::builder().tls_config(ServerTlsConfig::new().identity(identity.clone()));
    trial.map(|_| identity).map_err(|error| TlsError::Mismatch {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        why: causes(&error),
    })
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Io { path: path.to_owned(), source })
}

/// A file with at least one certificate, all of which hold now.
fn read_certificates(path: &Path) -> Result<Vec<u8>, TlsError> {
    let bytes = read(path)?;
    let mut any = false;
    for pem in Pem::iter_from_buffer(&bytes).flatten().filter(|pem| pem.label == "CERTIFICATE") {
        let damaged = |why: String| TlsError::Damaged { path: path.to_owned(), why };
        let certificate = pem.parse_x509().map_err(|error| damaged(error.to_string()))?;
        let validity = certificate.validity();
        if !validity.is_valid_at(ASN1Time::now()) {
            let (from, until) = (validity.not_before.to_string(), validity.not_after.to_string());
            return Err(TlsError::Expired { path: path.to_owned(), from, until });
        }
        any = true;
    }
    let missing = || TlsError::Missing { path: path.to_owned(), wanted: "certificate", label: "CERTIFICATE" };
    any.then_some(bytes).ok_or_else(missing)
}
