// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may speak to a controller, and how its clients find the one that leads.

#![allow(clippy::unwrap_used)] // a test may panic

use penstock_api::controller::{AskError, Controllers, LEADER, connect_controller};
use penstock_api::tls::{Caller, Peer, Role, Tls, TlsError, TlsFiles, is_name};
use penstock_api::v1;
use penstock_api::v1::controller_server::{Controller, ControllerServer};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;
use time::OffsetDateTime;
use tokio::net::TcpListener;
use tokio_stream::Stream;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity, Server};
use tonic::{Request, Response, Status, Streaming};

/// A controller that says who asks, or where the leader is.
struct Stub {
    leader: Option<String>,
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Controller for Stub {
    type AttendStream = Answers<v1::Order>;
    type GetNetworkStream = Answers<v1::NetworkPart>;

    async fn attend(&self, _: Request<Streaming<v1::Report>>) -> Result<Response<Self::AttendStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn put_network(
        &self,
        _: Request<Streaming<v1::NetworkPart>>,
    ) -> Result<Response<v1::PutNetworkReply>, Status> {
        Err(Status::permission_denied("reading is all you may"))
    }

    async fn get_network(&self, _: Request<v1::GetNetworkRequest>) -> Result<Response<Self::GetNetworkStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn get_standing(
        &self,
        request: Request<v1::GetStandingRequest>,
    ) -> Result<Response<v1::StandingReply>, Status> {
        if let Some(leader) = &self.leader {
            let mut status = Status::unavailable("another one leads");
            status.metadata_mut().insert(LEADER, leader.parse().unwrap());
            return Err(status);
        }
        let replica = format!("{:?}", Caller::of(&request));
        Ok(Response::new(v1::StandingReply { replica, ..Default::default() }))
    }

    async fn list_audit(&self, _: Request<v1::ListAuditRequest>) -> Result<Response<v1::AuditReply>, Status> {
        Err(Status::unimplemented(""))
    }
}

/// Serves until the test ends, and returns the address.
async fn serve(tls: Option<&Tls>, leader: Option<&str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut server = Server::builder();
    if let Some(tls) = tls {
        server = server.tls_config(tls.server()).unwrap();
    }
    let stub = ControllerServer::new(Stub { leader: leader.map(str::to_owned) });
    tokio::spawn(server.add_service(stub).serve_with_incoming(TcpListenerStream::new(listener)));
    address
}

/// A CA and what it signed.
struct Ca {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Ca {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        std::fs::write(folder.path().join("ca.crt"), params.self_signed(&key).unwrap().pem()).unwrap();
        Self { folder, issuer: Issuer::new(params, key) }
    }

    fn files(&self, name: &str) -> TlsFiles {
        let path = |name: String| self.folder.path().join(name);
        TlsFiles {
            ca: path("ca.crt".into()),
            certificate: path(format!("{name}.crt")),
            key: path(format!("{name}.key")),
        }
    }

    /// A certificate with other names, which holds from and until so many days from now.
    fn write(&self, name: &str, uris: &[&str], dns: &str, days: (i64, i64)) -> TlsFiles {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([]).unwrap();
        params.subject_alt_names = uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap())).collect();
        params.subject_alt_names.push(SanType::DnsName(dns.try_into().unwrap()));
        let from_now = |days: i64| OffsetDateTime::now_utc() + time::Duration::days(days);
        (params.not_before, params.not_after) = (from_now(days.0), from_now(days.1));
        let files = self.files(name);
        std::fs::write(&files.certificate, params.signed_by(&key, &self.issuer).unwrap().pem()).unwrap();
        std::fs::write(&files.key, key.serialize_pem()).unwrap();
        files
    }

    fn issue(&self, uri: &str, dns: &str) -> Tls {
        Tls::load(&self.write("some", &[uri], dns, (-1, 1))).unwrap()
    }
}

async fn standing(address: &str, tls: Option<&Tls>) -> Result<String, AskError> {
    let controllers = Controllers::new(&[address.to_owned()], tls)?;
    let ask = controllers.ask(async |mut client| client.get_standing(v1::GetStandingRequest::default()).await);
    Ok(ask.await?.into_inner().replica)
}

#[tokio::test]
async fn who_has_a_certificate_is_known() {
    let ca = Ca::new();
    let address = serve(Some(&ca.issue("penstock://controller/c1", "controller")), None).await;
    for (uri, is) in [
        ("penstock://node/leaf-1", r#"Known(Peer { role: Node, name: "leaf-1" })"#),
        ("penstock://write/ada", r#"Known(Peer { role: Write, name: "ada" })"#),
        ("penstock://read/bob", r#"Known(Peer { role: Read, name: "bob" })"#),
        ("penstock://admin/bob", "Unknown"),
        ("penstock://read/", "Unknown"),
        ("https://read/bob", "Unknown"),
    ] {
        assert_eq!(standing(&address, Some(&ca.issue(uri, "x"))).await.unwrap(), is);
    }
    let two = ca.write("two", &["penstock://node/a", "penstock://write/b"], "x", (-1, 1));
    assert_eq!(standing(&address, Some(&Tls::load(&two).unwrap())).await.unwrap(), "Unknown");
    // Without TLS.
    let address = serve(None, None).await;
    assert_eq!(standing(&address, None).await.unwrap(), "Local");
}

/// What is refused, and by whom.
#[tokio::test]
async fn who_is_not_is_refused() {
    let (ca, other) = (Ca::new(), Ca::new());
    let address = serve(Some(&ca.issue("penstock://controller/c1", "controller")), None).await;
    let ask = async |identity: Option<&TlsFiles>| {
        let read = |path: &Path| std::fs::read(path).unwrap();
        let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(&ca.files("").ca)));
        tls = tls.domain_name("controller");
        if let Some(files) = identity {
            tls = tls.identity(Identity::from_pem(read(&files.certificate), read(&files.key)));
        }
        let endpoint = Endpoint::from_shared(format!("https://{address}")).unwrap().tls_config(tls).unwrap();
        let mut client = v1::controller_client::ControllerClient::new(endpoint.connect_lazy());
        client.get_standing(v1::GetStandingRequest::default()).await.map_err(|status| format!("{status:?}"))
    };
    let good = ca.write("good", &["penstock://read/bob"], "x", (-1, 1));
    assert!(ask(Some(&good)).await.is_ok());
    let foreign = other.write("foreign", &["penstock://read/bob"], "x", (-1, 1));
    let expired = ca.write("expired", &["penstock://read/bob"], "x", (-2, -1));
    let early = ca.write("early", &["penstock://read/bob"], "x", (1, 2));
    for (who, alert) in [
        (None, "CertificateRequired"),
        (Some(&foreign), "DecryptError"),
        (Some(&expired), "CertificateExpired"),
        (Some(&early), "CertificateExpired"),
    ] {
        // Sometimes the connection ends before the reason is read.
        let mut refused = Vec::new();
        while refused.len() < 20 && !refused.last().is_some_and(|why: &String| why.contains(alert)) {
            refused.push(ask(who).await.unwrap_err());
        }
        assert!(refused.last().unwrap().contains(alert), "{alert}: {refused:?}");
    }
    // Clients refuse, too: a controller of another CA, and a certificate that is no controller's.
    let refused = standing(&address, Some(&other.issue("penstock://read/bob", "x"))).await.unwrap_err().to_string();
    assert!(refused.contains("invalid peer certificate"), "{refused}");
    let node = serve(Some(&ca.issue("penstock://node/n1", "n1")), None).await;
    let refused = standing(&node, Some(&ca.issue("penstock://read/bob", "x"))).await.unwrap_err().to_string();
    assert!(refused.contains("not valid for name"), "{refused}");
    // To speak TLS to one that does not, and the other way.
    let plain = serve(None, None).await;
    assert!(matches!(
        standing(&plain, Some(&ca.issue("penstock://read/bob", "x"))).await,
        Err(AskError::Unreachable(_))
    ));
    let refused = standing(&address, None).await.unwrap_err();
    assert!(matches!(&refused, AskError::Unreachable(why) if why.contains("does it want certificates?")), "{refused}");
    // Somebody who takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, tls) = (silent.local_addr().unwrap().to_string(), ca.issue("penstock://read/bob", "x"));
    let refused =
        tokio::time::timeout(Duration::from_secs(5), standing(&address, Some(&tls))).await.unwrap().unwrap_err();
    assert!(matches!(&refused, AskError::Unreachable(why) if why.contains("within half a second")), "{refused}");
}

#[test]
fn what_roles_may() {
    let known = |role| Caller::Known(Peer { role, name: String::from("n") });
    let may = |caller: Caller| (caller.may_read(), caller.may_write(), caller.may_attend("n"), caller.may_attend("m"));
    assert_eq!(may(known(Role::Node)), (false, false, true, false));
    assert_eq!(may(known(Role::Read)), (true, false, false, false));
    assert_eq!(may(known(Role::Write)), (true, true, false, false));
    assert_eq!(may(known(Role::Controller)), (true, true, true, true));
    assert_eq!(may(Caller::Local), (true, true, true, true));
    assert_eq!(may(Caller::Unknown), (false, false, false, false));
    assert!(["a", "leaf-1.x_y", "A:9"].into_iter().all(is_name));
    assert!(!["", "-a", ".a", "a/b", "a b", "é", "a%2f", &"a".repeat(129)].into_iter().any(is_name));
}

#[test]
fn files_that_cannot_be_used() {
    let ca = Ca::new();
    let good = ca.write("good", &["penstock://read/a"], "x", (-1, 1));
    let old = ca.write("old", &["penstock://read/a"], "x", (-2, -1));
    let nothing = ca.folder.path().join("nothing");
    let noise = ca.folder.path().join("noise.crt");
    std::fs::write(&noise, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    let with = |change: &dyn Fn(&mut TlsFiles)| {
        let mut files = good.clone();
        change(&mut files);
        Tls::load(&files).unwrap_err()
    };
    let error = with(&|files| files.ca = nothing.clone());
    assert!(matches!(&error, TlsError::Io { path, .. } if *path == nothing), "{error}");
    let error = with(&|files| files.ca = good.key.clone());
    assert!(matches!(&error, TlsError::Missing { path, label: "CERTIFICATE", .. } if *path == good.key), "{error}");
    let error = with(&|files| files.key = good.certificate.clone());
    assert!(matches!(&error, TlsError::Missing { label: "PRIVATE KEY", .. }), "{error}");
    let error = with(&|files| files.certificate = noise.clone());
    assert!(matches!(&error, TlsError::Damaged { path, .. } if *path == noise), "{error}");
    let error = with(&|files| *files = old.clone());
    assert!(matches!(&error, TlsError::Expired { path, .. } if *path == old.certificate), "{error}");
    let error = with(&|files| files.key = old.key.clone());
    assert!(matches!(&error, TlsError::Mismatch { .. }), "{error}");
    assert!(error.to_string().contains("good.crt and ") && error.to_string().contains("old.key: "), "{error}");
    Tls::load(&good).unwrap();
}

#[tokio::test]
async fn the_leader_is_found() {
    let leader = serve(None, None).await;
    let follower = serve(None, Some(&leader)).await;
    let orphan = serve(None, Some("")).await;
    // Somebody who never answers, and a port where nobody is.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    let silent = silent.local_addr().unwrap().to_string();
    let ask = async |addresses: &[&String]| {
        let addresses: Vec<_> = addresses.iter().map(|address| (*address).clone()).collect();
        let controllers = Controllers::new(&addresses, None).unwrap();
        let ask = controllers.ask(async |mut client| client.get_standing(v1::GetStandingRequest::default()).await);
        tokio::time::timeout(Duration::from_secs(30), ask).await.unwrap().map(|reply| reply.into_inner().replica)
    };
    assert_eq!(ask(&[&follower]).await.unwrap(), "Local");
    assert_eq!(ask(&[&gone, &orphan, &follower]).await.unwrap(), "Local");
    assert_eq!(ask(&[&gone, &leader]).await.unwrap(), "Local");
    assert_eq!(ask(&[&silent, &leader]).await.unwrap(), "Local");
    let error = ask(&[&orphan, &gone]).await.unwrap_err();
    assert!(matches!(&error, AskError::NoLeader(why) if why.contains(&gone)), "{error}");
    let error = ask(&[&gone]).await.unwrap_err();
    assert!(matches!(&error, AskError::Unreachable(why) if why.contains(&gone)), "{error}");
    // Two that each say the other leads do not keep a caller for ever.
    let lost = serve(None, Some(&gone)).await;
    assert!(matches!(ask(&[&lost]).await, Err(AskError::NoLeader(_))));

    connect_controller(&[gone, leader.clone()], None).await.unwrap();
    let controllers = Controllers::new(&[leader], None).unwrap();
    let put = controllers.ask(async |mut client| client.put_network(tokio_stream::empty()).await).await;
    let error = put.unwrap_err();
    assert!(matches!(&error, AskError::Refused(_)), "{error:?}");
    assert_eq!(error.to_string(), "reading is all you may");
    for wrong in ["here", ":1", "a:b", "http://a:1", ""] {
        assert!(matches!(Controllers::new(&[wrong.to_owned()], None), Err(AskError::Address(_))), "{wrong}");
    }
    assert!(matches!(Controllers::new(&[], None), Err(AskError::Nowhere)));
}
