// SPDX-License-Identifier: MIT OR Apache-2.0
//! `penstock ca`: certificates for tests and small installations.

use crate::failure::Failure;
use crate::output::outln;
use anyhow::Context;
use clap::{ArgGroup, Args, Subcommand};
use penstock_api::tls::{self, CONTROLLER_DOMAIN, Peer, Role, is_name};
use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use time::{Duration, OffsetDateTime};

/// Certificates hold from a little before now: clocks differ.
const EARLIER: Duration = Duration::HOUR;
const CA_DAYS: i64 = 3650;

/// What to do with a CA.
#[derive(Debug, Subcommand)]
pub enum Ca {
    Init(Init),
    Issue(Issue),
}

/// Make a CA in a folder: ca.crt, which everybody gets, and ca.key, which nobody else may have
///
/// It is for tests and small installations: its key lies in a file, and nothing it signed can be taken back.
#[derive(Debug, Args)]
#[command(after_help = "Example: penstock ca init /etc/penstock/ca")]
pub struct Init {
    /// Folder, created if missing
    pub folder: PathBuf,
}

/// Issue a certificate: NAME.crt and NAME.key
///
/// It says what its bearer may do. A node attends a controller, under its own name; who reads asks; who writes asks and puts networks; a
/// controller is a replica, and serves the others.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("role").required(true)), after_help = "Examples:
  penstock ca issue /etc/penstock/ca --controller c1 --host c1.example
  penstock ca issue /etc/penstock/ca --node leaf-1
  penstock ca issue /etc/penstock/ca --write ada --days 30 --out keys")]
pub struct Issue {
    /// Folder of the CA
    pub folder: PathBuf,
    /// For the node of this name, which is the network file's switch
    #[arg(long, value_name = "NAME", group = "role")]
    pub node: Option<String>,
    /// For somebody who asks
    #[arg(long, value_name = "NAME", group = "role")]
    pub read: Option<String>,
    /// For somebody who asks and changes
    #[arg(long, value_name = "NAME", group = "role")]
    pub write: Option<String>,
    /// For a replica of the controller
    #[arg(long, value_name = "NAME", group = "role")]
    pub controller: Option<String>,
    /// With --controller: a name or address of its machine, for programs other than penstock; may be repeated
    #[arg(long = "host", value_name = "HOST", conflicts_with_all = ["node", "read", "write"])]
    pub hosts: Vec<String>,
    /// How long it holds
    #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = clap::value_parser!(i64).range(1..=CA_DAYS))]
    pub days: i64,
    /// Folder for the two files, created if missing, instead of the CA's
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
}

/// Runs the command.
pub fn run(command: &Ca) -> Result<(), Failure> {
    match command {
        Ca::Init(arguments) => init(&arguments.folder),
        Ca::Issue(arguments) => issue(arguments),
    }
}

fn init(folder: &Path) -> Result<(), Failure> {
    let files = Files::new(folder, "ca")?;
    let key = KeyPair::generate().context("cannot make a key")?;
    let mut params = params("penstock test CA", CA_DAYS)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = params.self_signed(&key).context("cannot make a certificate")?;
    files.write(&certificate.pem(), &key)?;
    outln!("a CA is in {}; keep {} to yourself", folder.display(), files.key.display());
    Ok(())
}

fn issue(arguments: &Issue) -> Result<(), Failure> {
    let peer = peer(arguments)?;
    let issuer = load(&arguments.folder)?;
    let files = Files::new(arguments.out.as_deref().unwrap_or(&arguments.folder), &peer.name)?;
    let mut params = params(&peer.name, arguments.days)?;
    params.subject_alt_names = vec![SanType::URI(ascii(&peer.uri())?)];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
    if peer.role == Role::Controller {
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
        params.subject_alt_names.push(SanType::DnsName(ascii(CONTROLLER_DOMAIN)?));
        for host in &arguments.hosts {
            params.subject_alt_names.push(match host.parse::<IpAddr>() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) => SanType::DnsName(ascii(host)?),
            });
        }
    }
    let key = KeyPair::generate().context("cannot make a key")?;
    let certificate = params.signed_by(&key, &issuer).context("cannot sign a certificate")?;
    files.write(&certificate.pem(), &key)?;
    outln!(
        "{} is {} for {} days; its key is {}",
        files.certificate.display(),
        peer.uri(),
        arguments.days,
        files.key.display()
    );
    Ok(())
}

/// Who it is for.
fn peer(arguments: &Issue) -> Result<Peer, Failure> {
    let Issue { node, read, write, controller, .. } = arguments;
    let roles = [(Role::Node, node), (Role::Read, read), (Role::Write, write), (Role::Controller, controller)];
    let given = roles.into_iter().find_map(|(role, name)| Some((role, name.clone()?)));
    let (role, name) = given.unwrap_or((Role::Read, String::new()));
    if !is_name(&name) {
        let what =
            "a name has letters, digits and `-_.:@+=~`, at most 128 of them, and begins with neither `-` nor `.`";
        return Err(Failure::input(format!("--{} `{name}`", role.as_str()), what));
    }
    for host in &arguments.hosts {
        let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        if host.parse::<IpAddr>().is_err() && (host.is_empty() || !host.chars().all(letters)) {
            return Err(Failure::input(format!("--host `{host}`"), "this is neither a host's name nor an address"));
        }
    }
    Ok(Peer { role, name })
}

/// The CA in a folder.
fn load(folder: &Path) -> Result<Issuer<'static, KeyPair>, Failure> {
    let (certificate, key) = (folder.join("ca.crt"), folder.join("ca.key"));
    if !certificate.exists() || !key.exists() {
        let what = format!("no CA is there; make one with `penstock ca init {}`", folder.display());
        return Err(Failure::input(folder.display(), what));
    }
    // Says what is wrong with them.
    tls::read_identity(&certificate, &key).map_err(|error| Failure::Input(format!("error: {error}")))?;
    let text = |path: &Path| std::fs::read_to_string(path).map_err(|error| Failure::input(path.display(), error));
    let pair = KeyPair::from_pem(&text(&key)?).map_err(|error| Failure::input(key.display(), error))?;
    let issuer = Issuer::from_ca_cert_pem(&text(&certificate)?, pair);
    issuer.map_err(|error| Failure::input(certificate.display(), error))
}

fn params(name: &str, days: i64) -> Result<CertificateParams, Failure> {
    let mut params = CertificateParams::new([]).context("cannot make a certificate")?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let now = OffsetDateTime::now_utc();
    (params.not_before, params.not_after) = (now - EARLIER, now + Duration::days(days));
    Ok(params)
}

fn ascii(text: &str) -> Result<Ia5String, Failure> {
    Ia5String::try_from(text).map_err(|error| Failure::input(text, error))
}

/// A certificate and its key, neither of which is there yet.
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

impl Files {
    fn new(folder: &Path, name: &str) -> Result<Self, Failure> {
        let made = DirBuilder::new().recursive(true).mode(0o755).create(folder);
        made.map_err(|error| Failure::input(folder.display(), error))?;
        let files = Self { certificate: folder.join(format!("{name}.crt")), key: folder.join(format!("{name}.key")) };
        for path in [&files.certificate, &files.key] {
            if path.symlink_metadata().is_ok() {
                return Err(exists(path));
            }
        }
        Ok(files)
    }

    /// The key first, which nobody else may read: a certificate that is there has one.
    fn write(&self, certificate: &str, key: &KeyPair) -> Result<(), Failure> {
        for (path, text, mode) in
            [(&self.key, key.serialize_pem().as_str(), 0o600), (&self.certificate, certificate, 0o644)]
        {
            let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
            let written = file.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
            written.map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists => exists(path),
                _ => Failure::Failed(anyhow::Error::new(error).context(format!("cannot write {}", path.display()))),
            })?;
        }
        Ok(())
    }
}

fn exists(path: &Path) -> Failure {
    Failure::input(path.display(), "it exists, and is not written over; move it away, or choose another folder or name")
}
