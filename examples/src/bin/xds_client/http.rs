//! Posts polls: JSON over HTTP/1.1, with or without TLS, over a connection that is kept.

use std::fs;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use examples::json;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use xds_machine::poll::{Answer, Transmit};
use xds_machine_tonic::client::Post;

use super::arguments::TlsFiles;

/// The longest body of a response.
const LIMIT: usize = 256 << 20;

/// Tells the server how long this client waits, in milliseconds, as an Envoy does.
const EXPECTED: &str = "x-envoy-expected-rq-timeout-ms";

type Sender = SendRequest<Full<Bytes>>;

/// Where to post to. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Server(Arc<Target>);

struct Target {
    host: String,
    port: u16,
    authority: HeaderValue,
    prefix: String,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

/// Posts the requests of one poll. Each poll has a connection of its own.
pub(crate) struct Http {
    server: Server,
    expected: HeaderValue,
    idle: Arc<Mutex<Option<Sender>>>,
}

impl Server {
    /// # Errors
    ///
    /// One line that says what is wrong with the URL, or which file can't be used.
    pub(crate) fn new(uri: &Uri, files: &TlsFiles<'_>) -> Result<Self, String> {
        let is_tls = uri.scheme_str() == Some("https");
        let host = uri.host().ok_or("the server has no host")?.trim_matches(['[', ']']).to_string();
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let authority = HeaderValue::from_str(authority).map_err(|error| error.to_string())?;
        let tls = match is_tls {
            true => {
                let name = ServerName::try_from(host.clone()).map_err(|error| format!("{host}: {error}"))?;
                Some((TlsConnector::from(Arc::new(tls(files)?)), name))
            }
            false => None,
        };
        let prefix = uri.path().trim_end_matches('/').to_string();
        Ok(Self(Arc::new(Target { host, port, authority, prefix, tls })))
    }

    async fn connect(&self) -> Result<Sender, String> {
        let Target { host, port, tls, .. } = &*self.0;
        let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(|error| error.to_string())?;
        let _ = stream.set_nodelay(true);
        match tls {
            None => begin(stream).await,
            Some((tls, name)) => {
                let stream = tls.connect(name.clone(), stream).await.map_err(|error| error.to_string())?;
                begin(stream).await
            }
        }
    }
}

async fn begin(
    io: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
) -> Result<Sender, String> {
    let (sender, connection) = handshake(TokioIo::new(io)).await.map_err(|error| error.to_string())?;
    tokio::spawn(connection); // which ends with its sender
    Ok(sender)
}

impl Http {
    pub(crate) fn new(server: Server, timeout: Duration) -> Self {
        let expected = HeaderValue::from(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        Self { server, expected, idle: Arc::default() }
    }
}

impl Post for Http {
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn post(&mut self, transmit: Transmit) -> Self::Future {
        let (server, expected, idle) = (self.server.clone(), self.expected.clone(), self.idle.clone());
        Box::pin(async move {
            let request = match json::write_request(&transmit.request) {
                Ok(body) => Bytes::from(body),
                Err(error) => return Answer::Failed(error),
            };
            let kept = lock(&idle).take(); // a poll that is given up drops the connection
            let reused = kept.is_some();
            let mut result = exchange(&server, kept, transmit.path, &expected, request.clone()).await;
            if reused && result.is_err() {
                // The server may have closed the connection between two polls.
                result = exchange(&server, None, transmit.path, &expected, request).await;
            }
            match result {
                Ok((sender, status, body)) => {
                    *lock(&idle) = Some(sender);
                    read(status, body)
                }
                Err(error) => Answer::Failed(error),
            }
        })
    }
}

fn lock(idle: &Mutex<Option<Sender>>) -> std::sync::MutexGuard<'_, Option<Sender>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn exchange(
    server: &Server,
    sender: Option<Sender>,
    path: &str,
    expected: &HeaderValue,
    body: Bytes,
) -> Result<(Sender, StatusCode, Result<Bytes, String>), String> {
    let mut sender = match sender {
        Some(sender) => sender,
        None => server.connect().await?,
    };
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = format!("{}{path}", server.0.prefix).parse().map_err(|error| format!("{error}"))?;
    let headers = request.headers_mut();
    headers.insert(HOST, server.0.authority.clone());
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(EXPECTED, expected.clone());
    sender.ready().await.map_err(|error| error.to_string())?;
    let response = sender.send_request(request).await.map_err(|error| chain(&error))?;
    let status = response.status();
    let body = collect(response).await?;
    Ok((sender, status, body))
}

/// Reads the body. The inner error is that of a body that is too long.
async fn collect(response: Response<Incoming>) -> Result<Result<Bytes, String>, String> {
    match Limited::new(response.into_body(), LIMIT).collect().await {
        Ok(body) => Ok(Ok(body.to_bytes())),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Ok(Err(format!("a body of more than {LIMIT} bytes")))
        }
        Err(error) => Err(format!("the body broke off: {error}")),
    }
}

fn read(status: StatusCode, body: Result<Bytes, String>) -> Answer {
    match (status, body) {
        (StatusCode::OK, Ok(body)) => json::read_response(&body).map_or_else(Answer::Malformed, Answer::Response),
        (StatusCode::OK, Err(error)) => Answer::Malformed(error),
        (StatusCode::NOT_MODIFIED, _) => Answer::NotModified,
        (status, body) => {
            let text = body.unwrap_or_default();
            let text = String::from_utf8_lossy(&text[..text.len().min(200)]).trim().to_string();
            Answer::Failed(if text.is_empty() { status.to_string() } else { format!("{status}: {text}") })
        }
    }
}

/// Returns an error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    error.source().map_or(error.to_string(), |cause| format!("{error}: {}", chain(cause)))
}

fn tls(files: &TlsFiles<'_>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    match files.ca {
        Some(file) => {
            for certificate in certificates(file)? {
                roots.add(certificate).map_err(|error| format!("{}: {error}", file.display()))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    let mut config = match (files.cert, files.key) {
        (Some(cert), Some(key)) => {
            let pem = fs::read(key).map_err(|error| format!("{}: {error}", key.display()))?;
            let private = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| format!("{}: {error}", key.display()))?;
            let chain = certificates(cert)?;
            config.with_client_auth_cert(chain, private).map_err(|error| format!("{}: {error}", cert.display()))?
        }
        _ => config.with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let all: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("{}: {error}", file.display()))?;
    if all.is_empty() { Err(format!("{}: no CERTIFICATE in PEM form", file.display())) } else { Ok(all) }
}
