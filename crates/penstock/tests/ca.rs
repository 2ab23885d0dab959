// SPDX-License-Identifier: MIT OR Apache-2.0
//! `penstock ca` as a person runs it.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test may panic

mod support;

use penstock_api::tls::{Peer, Role, Tls, TlsFiles};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Lab, penstock};

/// Exit code, standard output and standard error.
fn ca(arguments: &[&str]) -> (i32, String, String) {
    let output = penstock().arg("ca").args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn fine(arguments: &[&str]) -> String {
    let (code, out, err) = ca(arguments);
    assert_eq!((code, err.as_str()), (0, ""), "{arguments:?}");
    out
}

fn wrong(arguments: &[&str], says: &str) {
    let (code, out, err) = ca(arguments);
    assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
    assert!(err.contains(says), "{arguments:?}: {err}");
}

/// A folder with a CA in it.
fn made() -> (Lab, PathBuf, String) {
    let lab = Lab::new();
    let folder = lab.path("deep/ca");
    let name = folder.display().to_string();
    fine(&["init", &name]);
    (lab, folder, name)
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

fn openssl(arguments: &[&str]) -> String {
    let output = Command::new("openssl").args(arguments).output().expect("cannot run `openssl`; is it installed?");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn files(folder: &Path, name: &str) -> TlsFiles {
    let path = |name: String| folder.join(name);
    TlsFiles { ca: path("ca.crt".into()), certificate: path(format!("{name}.crt")), key: path(format!("{name}.key")) }
}

fn text_of(path: &Path) -> String {
    openssl(&["x509", "-noout", "-text", "-in", path.to_str().unwrap()])
}

#[test]
fn a_ca_issues_what_others_can_read() {
    let (_lab, folder, name) = made();
    assert_eq!((mode(&folder.join("ca.key")), mode(&folder.join("ca.crt"))), (0o600, 0o644));
    assert!(text_of(&folder.join("ca.crt")).contains("CA:TRUE"));
    let told = fine(&["issue", &name, "--node", "leaf-1"]);
    assert!(told.contains("leaf-1.crt is penstock://node/leaf-1 for 365 days; its key is "), "{told}");
    fine(&["issue", &name, "--read", "bob"]);
    fine(&["issue", &name, "--write", "ada"]);
    fine(&["issue", &name, "--controller", "c1", "--host", "c1.example", "--host", "192.0.2.1", "--host", "::1"]);
    for (role, bearer) in [(Role::Node, "leaf-1"), (Role::Read, "bob"), (Role::Write, "ada"), (Role::Controller, "c1")]
    {
        let files = files(&folder, bearer);
        Tls::load(&files).unwrap();
        assert_eq!(mode(&files.key), 0o600);
        let purpose = if role == Role::Controller { "sslserver" } else { "sslclient" };
        let (authority, certificate) = (files.ca.to_str().unwrap(), files.certificate.to_str().unwrap());
        openssl(&["verify", "-x509_strict", "-purpose", purpose, "-CAfile", authority, certificate]);
        let der = folder.join("der");
        openssl(&["x509", "-in", certificate, "-outform", "DER", "-out", der.to_str().unwrap()]);
        let peer = Peer::of_certificate(&std::fs::read(der).unwrap());
        assert_eq!(peer, Some(Peer { role, name: bearer.to_owned() }));
    }
    let controller = text_of(&folder.join("c1.crt"));
    for name in ["DNS:controller", "DNS:c1.example", "IP Address:192.0.2.1", "IP Address:0:0:0:0:0:0:0:1"] {
        assert!(controller.contains(name), "{name}: {controller}");
    }
    assert!(!text_of(&folder.join("leaf-1.crt")).contains("DNS:"));
}

#[test]
fn days_and_folders_are_chosen() {
    let (lab, folder, name) = made();
    let out = lab.path("home/ada");
    fine(&["issue", &name, "--write", "ada", "--days", "2", "--out", &out.display().to_string()]);
    let certificate = out.join("ada.crt");
    let ends_within = |seconds: &str| {
        let check = ["x509", "-noout", "-in", certificate.to_str().unwrap(), "-checkend", seconds];
        !Command::new("openssl").args(check).output().unwrap().status.success()
    };
    assert_eq!((ends_within("86400"), ends_within("259200")), (false, true));
    assert!(!folder.join("ada.crt").exists());
}

#[test]
fn nothing_is_written_over() {
    let (lab, folder, name) = made();
    let before = std::fs::read(folder.join("ca.key")).unwrap();
    wrong(&["init", &name], "exists, and is not written over");
    fine(&["issue", &name, "--node", "n1"]);
    wrong(&["issue", &name, "--read", "n1"], "n1.crt: it exists");
    std::fs::remove_file(folder.join("n1.crt")).unwrap();
    wrong(&["issue", &name, "--read", "n1"], "n1.key: it exists");
    wrong(&["issue", &name, "--node", "ca"], "ca.crt: it exists");
    assert_eq!(std::fs::read(folder.join("ca.key")).unwrap(), before);
    let empty = lab.path("empty").display().to_string();
    wrong(&["issue", &empty, "--node", "n1"], "no CA is there; make one with `penstock ca init");
    assert!(!lab.path("empty").exists());
}

#[test]
fn what_makes_no_sense_is_said() {
    let (lab, folder, name) = made();
    for bad in ["", "a/b", "../x", ".x", "a b", "é", &"x".repeat(129)] {
        wrong(&["issue", &name, &format!("--node={bad}")], "a name has letters, digits and");
    }
    wrong(&["issue", &name], "required");
    wrong(&["issue", &name, "--node", "a", "--write", "b"], "cannot be used with");
    wrong(&["issue", &name, "--node", "a", "--host", "h"], "cannot be used with");
    wrong(&["issue", &name, "--controller", "a", "--host", "h h"], "neither a host's name nor an address");
    wrong(&["issue", &name, "--node", "a", "--days", "0"], "1..=3650");
    // Another CA's key beside the certificate.
    let other = lab.path("other").display().to_string();
    fine(&["init", &other]);
    std::fs::copy(lab.path("other").join("ca.key"), folder.join("ca.key")).unwrap();
    wrong(&["issue", &name, "--node", "a"], "do they belong together?");
    std::fs::write(folder.join("ca.crt"), "nothing").unwrap();
    wrong(&["issue", &name, "--node", "a"], "there is no certificate in it");
}
