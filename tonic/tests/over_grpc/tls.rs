//! The client over TLS, against a control plane that asks for certificates: good, no and foreign ones.

use bytes::Bytes;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity, Server, ServerTlsConfig};
use xds_machine::client::Config;
use xds_machine::message::Node;
use xds_machine::server::Resource;
use xds_machine::watch::News;
use xds_machine::{ResourceName, type_url};
use xds_machine_tonic::client::{XdsClient, XdsResource};
use xds_machine_tonic::server::{ControlPlane, Group};

/// A certificate authority.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    fn certificate(&self) -> Certificate {
        Certificate::from_pem(self.0.pem())
    }

    fn sign(&self, name: &str) -> Identity {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![name.into()]).expect("a name");
        let cert = params.signed_by(&key, &self.0).expect("a certificate");
        Identity::from_pem(cert.pem(), key.serialize_pem())
    }
}

#[derive(Debug, PartialEq)]
struct Cluster(Bytes);

impl XdsResource for Cluster {
    const TYPE_URL: &'static str = type_url::CLUSTER;
    type Error = std::convert::Infallible;

    fn decode(_: &ResourceName, body: &Bytes) -> Result<Self, Self::Error> {
        Ok(Self(body.clone()))
    }
}

/// Serves one cluster to clients with certificates of an authority. Returns the URL.
async fn serve(authority: &Authority) -> String {
    let group = Group::new("all");
    group.replace(&type_url::CLUSTER.into(), [Resource::new("c", &b"content"[..])]);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("https://localhost:{}", listener.local_addr().expect("an address").port());
    let tls = ServerTlsConfig::new().identity(authority.sign("localhost")).client_ca_root(authority.certificate());
    let server =
        Server::builder().tls_config(tls).expect("certificates").add_service(ControlPlane::new(group).service());
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    url
}

fn client(url: &str, trusted: &Authority, identity: Option<Identity>) -> XdsClient {
    let tls = ClientTlsConfig::new().ca_certificate(trusted.certificate());
    let tls = identity.into_iter().fold(tls, ClientTlsConfig::identity);
    let endpoint = Endpoint::new(url.to_owned()).expect("a URL").tls_config(tls).expect("certificates");
    XdsClient::builder(Config::new(Node::new("n"))).server(endpoint).start().expect("a client")
}

/// Returns why the first attempt failed.
async fn reason(client: &XdsClient) -> String {
    let _watch = client.watch::<Cluster>("c").await.expect("a name");
    let failed = client.states().until(|states| states[0].last_error.is_some()).await.expect("a client");
    failed[0].last_error.clone().expect("a reason")
}

#[tokio::test]
async fn a_client_with_a_certificate_of_the_authority_is_served() {
    let authority = Authority::new("own");
    let url = serve(&authority).await;
    let client = client(&url, &authority, Some(authority.sign("client")));
    let mut watch = client.watch::<Cluster>("c").await.expect("a name");
    let event = watch.next().await.expect("news");
    assert!(matches!(&event.news, News::Changed(Ok(cluster)) if cluster.0 == "content"), "{event:?}");
    assert_eq!(client.server_states()[0].last_error, None);
    client.close().await;
}

#[tokio::test]
async fn a_server_of_a_foreign_authority_is_not_trusted() {
    let (authority, foreign) = (Authority::new("own"), Authority::new("foreign"));
    let url = serve(&authority).await;
    let client = client(&url, &foreign, Some(authority.sign("client")));
    assert_eq!(reason(&client).await, "transport error: invalid peer certificate: UnknownIssuer");
}

#[tokio::test]
async fn a_client_without_a_certificate_is_refused_with_the_reason() {
    let authority = Authority::new("own");
    let url = serve(&authority).await;
    assert_eq!(
        reason(&client(&url, &authority, None)).await,
        "transport error: connection error: received fatal alert: CertificateRequired"
    );
}

#[tokio::test]
async fn a_client_of_a_foreign_authority_is_refused_with_the_reason() {
    let (authority, foreign) = (Authority::new("own"), Authority::new("foreign"));
    let url = serve(&authority).await;
    assert_eq!(
        reason(&client(&url, &authority, Some(foreign.sign("client")))).await,
        "transport error: connection error: received fatal alert: UnknownCA"
    );
}
