//! TLS: good, missing and foreign certificates, and certificates that change.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream as BlockingStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::UnixTime;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::{self, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tonic::transport::{Channel, Endpoint, Uri};
use xds_machine::{Delta, type_url};

use crate::messages::*;
use crate::support::{ControlPlane, Dir, LONG, Peer, command};

/// A certificate authority.
struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, in PEM.
struct Identity {
    cert: String,
    key: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    fn sign(&self, name: &str) -> Identity {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![name.into()]).expect("a name");
        let cert = params.signed_by(&key, &self.0).expect("a certificate");
        Identity { cert: cert.pem(), key: key.serialize_pem() }
    }
}

/// The folder of a test: resources, and the files of TLS beside them, which are no resources.
struct Stage {
    dir: Dir,
    authority: Authority,
}

impl Stage {
    fn new(name: &str) -> Self {
        let (dir, authority) = (Dir::new(name), Authority::new());
        dir.put("clusters.json", clusters(&[("c1", 1)]));
        let stage = Self { dir, authority };
        stage.put(&stage.authority.sign("localhost"));
        stage.dir.put("ca.pem", stage.authority.0.pem());
        stage
    }

    fn put(&self, identity: &Identity) {
        self.dir.put("cert.pem", &identity.cert);
        self.dir.put("key.pem", &identity.key);
    }

    fn path(&self, file: &str) -> String {
        self.dir.0.join(file).display().to_string()
    }

    fn start(&self, more: &[&str]) -> ControlPlane {
        let (cert, key) = (self.path("cert.pem"), self.path("key.pem"));
        let arguments: Vec<&str> = ["--tls-cert", &cert, "--tls-key", &key].iter().chain(more).copied().collect();
        ControlPlane::start_with(&self.dir, &arguments)
    }

    /// Connects, and trusts the authority.
    async fn connect(&self, to: &str, as_client: Option<&Identity>) -> io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.0.der().clone()).expect("a root");
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.expect("versions").with_root_certificates(roots);
        let mut config = match as_client {
            None => config.with_no_client_auth(),
            Some(Identity { cert, key }) => {
                let cert = CertificateDer::from_pem_slice(cert.as_bytes()).expect("a certificate");
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
                // Not checked here: the server is to see it as it is.
                let key = ring::default_provider().key_provider.load_private_key(key).expect("a key");
                let identity = SingleCertAndKey::from(CertifiedKey::new(vec![cert], key));
                config.with_client_cert_resolver(Arc::new(identity))
            }
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        let name = ServerName::try_from("localhost").expect("a name");
        TlsConnector::from(Arc::new(config)).connect(name, TcpStream::connect(to).await?).await
    }

    /// Opens a channel over TLS.
    async fn channel(&self, to: &str, as_client: Option<&Identity>) -> Channel {
        let stream = self.connect(to, as_client).await.expect("a handshake");
        let mut stream = Some(TokioIo::new(stream));
        let connector = tower::service_fn(move |_: Uri| {
            let stream = stream.take().ok_or_else(|| io::Error::other("only one connection"));
            async { stream }
        });
        Endpoint::from_static("http://localhost").connect_with_connector(connector).await.expect("a channel")
    }

    /// Returns the certificate that the server shows now.
    async fn shown(&self, to: &str) -> String {
        let stream = self.connect(to, None).await.expect("a handshake");
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let certificates = stream.get_ref().1.peer_certificates().expect("a certificate");
        format!("{:?}", certificates[0])
    }
}

async fn is_served(channel: Channel) -> bool {
    let mut peer = Peer::<Delta>::open(channel, ADS_DELTA).await;
    peer.send(delta_request(type_url::CLUSTER, &[])).await;
    names(&peer.next().await) == ["c1"]
}

/// Returns whether the server closes a connection without a byte of HTTP/2: in TLS 1.3 the client's handshake is done
/// before the server looks at its certificate.
async fn is_refused(connected: io::Result<TlsStream<TcpStream>>) -> bool {
    let Ok(mut stream) = connected else { return true };
    let _ = stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await;
    !matches!(stream.read(&mut [0]).await, Ok(1))
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_served_over_tls_and_plain_connections_are_refused() {
    let stage = Stage::new("cp-tls");
    let control_plane = stage.start(&[]);
    assert!(is_served(stage.channel(&control_plane.address, None).await).await);

    // Stalled handshakes delay no other client.
    let stalled: Vec<_> =
        (0..100).map(|_| BlockingStream::connect(&control_plane.address).expect("connected")).collect();
    assert!(is_served(stage.channel(&control_plane.address, None).await).await);
    drop(stalled);

    let mut plain = BlockingStream::connect(&control_plane.address).expect("connected");
    plain.set_read_timeout(Some(LONG)).expect("set");
    plain.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("sent");
    let peer = plain.local_addr().expect("an address");
    let error = "no TLS connection: received corrupt message of type InvalidContentType";
    control_plane.complaint(&format!("{peer}: {error}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_clients_with_a_certificate_of_the_authority_are_served() {
    let stage = Stage::new("cp-mtls");
    let ca = stage.path("ca.pem");
    let control_plane = stage.start(&["--tls-client-ca", &ca]);
    let good = stage.authority.sign("client");
    assert!(is_served(stage.channel(&control_plane.address, Some(&good)).await).await);

    assert!(is_refused(stage.connect(&control_plane.address, None).await).await);
    let foreign = Authority::new().sign("client");
    assert!(is_refused(stage.connect(&control_plane.address, Some(&foreign)).await).await);
    assert!(!is_refused(stage.connect(&control_plane.address, Some(&good)).await).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_connections_use_a_changed_certificate_unless_it_is_invalid() {
    let stage = Stage::new("cp-tls-change");
    let control_plane = stage.start(&[]);
    let first = stage.shown(&control_plane.address).await;
    let mut open = Peer::<Delta>::open(stage.channel(&control_plane.address, None).await, ADS_DELTA).await;
    open.send(delta_request(type_url::CLUSTER, &[])).await;
    let response = open.next().await;
    open.send(delta_answer(type_url::CLUSTER, &response.nonce, None)).await;

    stage.dir.put("cert.pem", "no certificate");
    let bad = format!("{}: no certificate in PEM (new connections use the old certificate)", stage.path("cert.pem"));
    control_plane.complaint(&bad);
    assert_eq!(stage.shown(&control_plane.address).await, first);

    stage.put(&stage.authority.sign("localhost"));
    control_plane.complaint(&format!("{}: new connections use the new certificate", stage.path("cert.pem")));
    assert_ne!(stage.shown(&control_plane.address).await, first);
    let lines = control_plane.complaints();
    assert_eq!(lines.iter().filter(|line| **line == bad).count(), 1, "said once");

    // Open streams stay open.
    stage.dir.put("clusters.json", clusters(&[("c2", 1)]));
    assert_eq!(names(&open.next().await), ["c2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_client_authority_applies_to_new_connections() {
    let stage = Stage::new("cp-mtls-change");
    let ca = stage.path("ca.pem");
    let control_plane = stage.start(&["--tls-client-ca", &ca]);
    let other = Authority::new();
    let client = other.sign("client");
    assert!(is_refused(stage.connect(&control_plane.address, Some(&client)).await).await);
    stage.dir.put("ca.pem", other.0.pem());
    let end = Instant::now() + LONG;
    while is_refused(stage.connect(&control_plane.address, Some(&client)).await).await {
        assert!(Instant::now() < end, "the new authority counts");
    }
}

/// A certificate of X.509 version 1, which the library that makes the others can't make, and its key.
const OLD_CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBJDCBywIULKrtADrzQgvdVQcIdF4lETrl7V4wCgYIKoZIzj0EAwIwFDESMBAG
A1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyODA1NTU0M1oYDzIxMjYxMTA0MDU1NTQz
WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AASq7w7wO3jtV+PxoVoyVDEYRdUJqEVrx6GlCuWN6D2Xo6vhxVXPoXuJTwa8kg/C
vYczPi9Pa/wk2fSpwvY3D+wUMAoGCCqGSM49BAMCA0gAMEUCIQCX5PVGyHPjKiKh
Fu7gw9sWpsprZu1Ask1uGNsSRqObSgIgHrPmjZ2oCM6mh+pLf++8Mvf9LZd6V160
5oryx945oL0=
-----END CERTIFICATE-----
";
const OLD_KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgKECMzDnWnovD+ln4
IO/+BnBmew7xZOXVQohx+7135k6hRANCAASq7w7wO3jtV+PxoVoyVDEYRdUJqEVr
x6GlCuWN6D2Xo6vhxVXPoXuJTwa8kg/CvYczPi9Pa/wk2fSpwvY3D+wU
-----END PRIVATE KEY-----
";

/// Trusts every certificate: the library that checks them reads none of version 1.
#[derive(Debug)]
struct Trusting;

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_x509_version_1_is_shown_to_clients() {
    let stage = Stage::new("cp-tls-v1");
    stage.put(&Identity { cert: OLD_CERTIFICATE.into(), key: OLD_KEY.into() });
    let control_plane = stage.start(&[]);
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let config = config.dangerous().with_custom_certificate_verifier(Arc::new(Trusting)).with_no_client_auth();
    let stream = TcpStream::connect(&control_plane.address).await.expect("connected");
    let name = ServerName::try_from("localhost").expect("a name");
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("a handshake");
    let shown = stream.get_ref().1.peer_certificates().expect("a certificate");
    assert_eq!(shown[0], CertificateDer::from_pem_slice(OLD_CERTIFICATE.as_bytes()).expect("a certificate"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_client_is_named_with_the_reason() {
    let stage = Stage::new("cp-tls-refused");
    let ca = stage.path("ca.pem");
    let control_plane = stage.start(&["--tls-client-ca", &ca]);
    let foreign = Authority::new().sign("client");
    let old = Identity { cert: OLD_CERTIFICATE.into(), key: OLD_KEY.into() };
    for client in [None, Some(&foreign), Some(&old)] {
        let _ = is_refused(stage.connect(&control_plane.address, client).await).await;
    }
    for why in [
        "the client has no certificate",
        "the client's certificate is not of --tls-client-ca",
        "the client's certificate is of X.509 version 1, which has to be version 3",
    ] {
        control_plane.ending(&format!(": no TLS connection: {why}"));
    }
}

#[test]
fn an_invalid_tls_file_prevents_the_start_and_is_named() {
    let stage = Stage::new("cp-tls-bad");
    let fails = |files: [&str; 3], line: String| {
        let [cert, key, ca] = files.map(|file| stage.path(file));
        let arguments = ["--listen", "127.0.0.1:0", "--tls-cert", &cert, "--tls-key", &key, "--tls-client-ca", &ca];
        let output = command().args(arguments).output().expect("started");
        assert_eq!(String::from_utf8_lossy(&output.stderr), format!("control_plane: {line}\n"));
        assert_eq!((output.stdout.len(), output.status.code()), (0, Some(1)));
    };
    let missing = std::fs::read(stage.path("none.pem")).expect_err("no file");
    for place in 0..3 {
        let mut files = ["cert.pem", "key.pem", "ca.pem"];
        files[place] = "none.pem";
        fails(files, format!("{}: {missing}", stage.path("none.pem")));
    }
    stage.dir.put("other.pem", stage.authority.sign("other").key);
    let (cert, key) = (stage.path("cert.pem"), stage.path("other.pem"));
    fails(["cert.pem", "other.pem", "ca.pem"], format!("{key}: it is not the key of {cert}"));
    let junk = "-----BEGIN CERTIFICATE-----\nMAAA\n-----END CERTIFICATE-----\n";
    stage.dir.put("junk.pem", junk);
    let why = "the certificate can't be used: BadEncoding";
    fails(["junk.pem", "key.pem", "ca.pem"], format!("{}: {why}", stage.path("junk.pem")));
    fails(["cert.pem", "key.pem", "junk.pem"], format!("{}: {why}", stage.path("junk.pem")));
    stage.dir.put("old.pem", OLD_CERTIFICATE);
    let (old, key) = (stage.path("old.pem"), stage.path("key.pem"));
    fails(["old.pem", "key.pem", "ca.pem"], format!("{key}: it is not the key of {old}"));
}

/// Runs an `xds_client` that polls, and returns its first line.
fn poll(address: &str, arguments: &[&str]) -> Value {
    let port = address.rsplit(':').next().expect("a port");
    let mut command = Command::new(env!("CARGO_BIN_EXE_xds_client"));
    command.args(["--server", &format!("https://localhost:{port}"), "--variant", "rest", "--subscribe", "cds"]);
    let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    child.kill().expect("the program runs");
    child.wait().expect("the program ends");
    serde_json::from_str(&line).expect("JSON")
}

#[test]
fn polls_over_tls_need_a_client_certificate_and_a_trusted_server() {
    let stage = Stage::new("cp-tls-rest");
    let (ca, cert, key) = (stage.path("ca.pem"), stage.path("client.pem"), stage.path("client.key"));
    let client = stage.authority.sign("client");
    stage.dir.put("client.pem", &client.cert);
    stage.dir.put("client.key", &client.key);
    let control_plane = stage.start(&["--tls-client-ca", &ca]);
    control_plane.news(1); // its files are read

    let first = poll(&control_plane.address, &["--tls-ca", &ca, "--tls-cert", &cert, "--tls-key", &key]);
    let server = first["open"]["server"].as_str().expect("an open");
    assert!(server.starts_with("https://localhost:"), "{server}");
    let first = poll(&control_plane.address, &["--tls-ca", &ca]);
    let reason = first["close"]["reason"].as_str().expect("a close");
    assert!(reason.contains("CertificateRequired"), "{reason}");
    let foreign = stage.path("foreign.pem");
    stage.dir.put("foreign.pem", Authority::new().0.pem());
    let first = poll(&control_plane.address, &["--tls-ca", &foreign, "--tls-cert", &cert, "--tls-key", &key]);
    assert_eq!(first["close"]["reason"], "invalid peer certificate: BadSignature");
}
