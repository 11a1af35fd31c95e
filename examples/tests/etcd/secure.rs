//! TLS to etcd, and logins.

use std::fs;
use std::path::{Path, PathBuf};

use examples::control_plane::etcd::generated::{AuthenticateRequest, AuthenticateResponse, RangeResponse};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tonic::Status;
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

use crate::follow::Followed;
use crate::news::{cluster, kv};
use crate::script::{Call, Etcd};

/// Writes files of a test, and returns their paths.
fn files<const N: usize>(test: &str, files: [(&str, String); N]) -> [String; N] {
    let dir: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    fs::create_dir_all(&dir).expect("a folder");
    files.map(|(name, content)| {
        let path = dir.join(name);
        fs::write(&path, content).expect("a file");
        path.to_str().expect("text").to_owned()
    })
}

#[tokio::test]
async fn an_etcd_with_mutual_tls_is_followed_only_with_a_client_certificate() {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a certificate");
    let sign = |name: &str| {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![name.into()]).expect("a name");
        (params.signed_by(&key, &ca).expect("a certificate").pem(), key.serialize_pem())
    };
    let ((cert, key), (own_cert, own_key)) = (sign("127.0.0.1"), sign("client"));
    let tls = ServerTlsConfig::new().identity(Identity::from_pem(cert, key));
    let mut etcd = Etcd::start_with(Some(tls.client_ca_root(Certificate::from_pem(ca.pem())))).await;
    let files = [("ca.pem", ca.pem()), ("cert.pem", own_cert), ("key.pem", own_key)];
    let [ca, cert, key] = self::files("etcd-tls", files);
    let mut without = Followed::start(&[&etcd.url], &["--etcd-tls-ca", &ca]);
    without.is_there(false).await;
    let certified = ["--etcd-tls-ca", &ca, "--etcd-tls-cert", &cert, "--etcd-tls-key", &key];
    let mut followed = Followed::start(&[&etcd.url], &certified);
    etcd.list(41, vec![kv("_", "a", cluster("a", 1), 9)]).await;
    assert_eq!(followed.change().await, ("loaded", vec!["_ a=1".into()]));
    etcd.watch().await;
}

#[tokio::test]
async fn a_login_gives_a_token_and_an_old_token_is_replaced() {
    let mut etcd = Etcd::start().await;
    let [password] = files("etcd-login", [("password", "secret\n".into())]);
    let mut followed = Followed::start(&[&etcd.url], &["--etcd-user", "u", "--etcd-password-file", &password]);
    for token in ["one", "two"] {
        let Call::Authenticate(request, answer) = etcd.call().await.1 else { panic!("no login") };
        assert_eq!(request, AuthenticateRequest { name: "u".into(), password: "secret".into() });
        let _ = answer.send(Ok(AuthenticateResponse { header: None, token: token.into() }));
        let (metadata, call) = etcd.call().await;
        assert_eq!(metadata.get("token").map(|token| token.as_bytes()), Some(token.as_bytes()));
        let Call::Range(_, answer) = call else { panic!("no listing") };
        let _ = answer.send(match token {
            "one" => Err(Status::unauthenticated("etcdserver: invalid auth token")),
            _ => Ok(RangeResponse { header: Some(etcd.header), ..RangeResponse::default() }),
        });
    }
    assert_eq!(followed.change().await, ("loaded", Vec::new()));
    etcd.watch().await;
}
