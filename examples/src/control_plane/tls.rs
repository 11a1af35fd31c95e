//! TLS with certificates that are read again when their files change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, SubjectPublicKeyInfoDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::{CertificateError, Error, InconsistentKeys, RootCertStore, ServerConfig, version};
use tokio_rustls::server::TlsStream;

use super::arguments::Arguments;
use super::listen::Stream;

/// The time between two looks at the files.
const LOOK: Duration = Duration::from_millis(250);

/// The time that a client has for its handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The files of a server's identity, and of the CA of its clients.
#[derive(Clone, Debug)]
pub struct Files {
    cert: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
}

impl Files {
    /// Returns the files that the command line names; `None` without TLS.
    pub fn of(arguments: &Arguments) -> Option<Self> {
        let (cert, key) = (arguments.tls_cert.clone()?, arguments.tls_key.clone()?);
        Some(Self { cert, key, client_ca: arguments.tls_client_ca.clone() })
    }

    fn all(&self) -> impl Iterator<Item = &Path> {
        [&self.cert, &self.key].into_iter().chain(&self.client_ca).map(PathBuf::as_path)
    }

    fn stamps(&self) -> Vec<Stamp> {
        self.all().map(stamp).collect()
    }

    /// Checks that the key is that of the certificate.
    fn check(&self, identity: &CertifiedKey) -> Result<(), String> {
        let fault = match identity.keys_match() {
            Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => return Ok(()),
            Err(fault) => fault,
        };
        // The library reads no certificate of X.509 version 1, and need not to show it: it has the public key's bytes.
        let public = identity.key.public_key();
        let has_key = |public: SubjectPublicKeyInfoDer<'_>| {
            identity.cert[0].windows(public.len()).any(|bytes| bytes == public.as_ref())
        };
        match fault {
            Error::InvalidCertificate(fault) if is_version_1(&fault) && public.is_some_and(has_key) => Ok(()),
            Error::InvalidCertificate(fault) if !is_version_1(&fault) => {
                Err(at(&self.cert, plain(&Error::InvalidCertificate(fault))))
            }
            _ => Err(format!("{}: it is not the key of {}", self.key.display(), self.cert.display())),
        }
    }

    /// Reads the files.
    ///
    /// # Errors
    ///
    /// One line that names the file at fault.
    fn read(&self) -> Result<ServerConfig, String> {
        let chain = certificates(&self.cert)?;
        let key = PrivateKeyDer::from_pem_slice(&read(&self.key)?).map_err(|error| at(&self.key, error))?;
        let provider = Arc::new(ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&version::TLS13, &version::TLS12])
            .map_err(|error| error.to_string())?;
        let signing = provider.key_provider.load_private_key(key);
        let config = match &self.client_ca {
            None => config.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path)? {
                    roots.add(certificate).map_err(|error| at(path, plain(&error)))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                config.with_client_cert_verifier(verifier.map_err(|error| at(path, error))?)
            }
        };
        let key = signing.map_err(|error| at(&self.key, error))?;
        let identity = CertifiedKey::new(chain, key);
        self.check(&identity)?;
        let mut config = config.with_cert_resolver(Arc::new(SingleCertAndKey::from(identity)));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// Returns an error about a certificate that an operator gave, in words that do not blame a peer.
fn plain(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(fault) => format!("the certificate can't be used: {fault}"),
        other => other.to_string(),
    }
}

/// Returns whether a certificate is refused because it is of X.509 version 1. The library that checks certificates has
/// no public name for this fault.
fn is_version_1(fault: &CertificateError) -> bool {
    format!("{fault:?}").contains("UnsupportedCertVersion")
}

/// Returns why a handshake failed, as the operator of a server sees it.
pub fn why(error: &io::Error) -> String {
    let fault = error.get_ref().and_then(|error| error.downcast_ref());
    match fault {
        Some(Error::NoCertificatesPresented) => "the client has no certificate".to_owned(),
        // Another authority, with another name or with the same.
        Some(Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature)) => {
            "the client's certificate is not of --tls-client-ca".to_owned()
        }
        Some(Error::InvalidCertificate(fault)) if is_version_1(fault) => {
            "the client's certificate is of X.509 version 1, which has to be version 3".to_owned()
        }
        Some(Error::InvalidCertificate(fault)) => format!("the client's certificate: {fault}"),
        _ => error.to_string(),
    }
}

/// The state of a file, which changes when the file does.
type Stamp = Option<(u64, SystemTime, u64)>;

fn stamp(path: &Path) -> Stamp {
    let metadata = fs::metadata(path).ok()?;
    #[cfg(unix)]
    let id = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let id = 0;
    Some((metadata.len(), metadata.modified().ok()?, id))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let content = read(path)?;
    let certificates: Vec<_> =
        CertificateDer::pem_slice_iter(&content).collect::<Result<_, _>>().map_err(|error| at(path, error))?;
    if certificates.is_empty() {
        return Err(at(path, "no certificate in PEM"));
    }
    Ok(certificates)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| at(path, error))
}

fn at(path: &Path, error: impl std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

/// The server's side of TLS connections. Its certificate may change while the program runs.
pub struct Tls {
    files: Files,
    current: Mutex<Current>,
}

struct Current {
    acceptor: TlsAcceptor,
    /// The state of the files at the last read, good or bad.
    stamps: Vec<Stamp>,
    /// The fault of the files, until it is reported.
    fault: Option<String>,
}

impl Tls {
    /// Reads the files for the first time.
    ///
    /// # Errors
    ///
    /// One line that names the file at fault.
    pub fn open(files: Files) -> Result<Self, String> {
        let stamps = files.stamps();
        let acceptor = TlsAcceptor::from(Arc::new(files.read()?));
        Ok(Self { files, current: Mutex::new(Current { acceptor, stamps, fault: None }) })
    }

    /// Looks at the files, and takes their content if they changed. Returns whether they did.
    fn look(&self) -> bool {
        let mut current = self.lock();
        let stamps = self.files.stamps();
        if stamps == current.stamps {
            return false;
        }
        current.stamps = stamps;
        current.fault = match self.files.read() {
            Ok(config) => {
                current.acceptor = TlsAcceptor::from(Arc::new(config));
                tracing::info!("{}: new connections use the new certificate", self.files.cert.display());
                None
            }
            Err(error) => Some(error),
        };
        true
    }

    /// Looks at the files periodically, even if no client connects. A fault is reported once it persists, because a
    /// certificate and its key do not change at the same moment.
    pub async fn watch(&self) {
        let mut looks = tokio::time::interval(LOOK);
        loop {
            looks.tick().await;
            if self.look() {
                continue;
            }
            if let Some(fault) = self.lock().fault.take() {
                tracing::warn!("{fault} (new connections use the old certificate)");
            }
        }
    }

    /// Completes the TLS handshake with a client.
    ///
    /// # Errors
    ///
    /// If the client does not use TLS, lacks a required certificate, or is slow.
    pub async fn accept(&self, stream: Box<dyn Stream>) -> io::Result<TlsStream<Box<dyn Stream>>> {
        self.look();
        let acceptor = self.lock().acceptor.clone();
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, format!("not done after {HANDSHAKE:?}"));
        tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await.map_err(late)?
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
