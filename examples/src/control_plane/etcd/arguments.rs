//! The part of the command line that is about etcd.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity, Uri};

/// An etcd that has the resources.
#[derive(Args, Clone, Debug)]
pub struct Etcd {
    /// Serve the resources of an etcd instead of a folder: the URLs of its members
    #[arg(long = "etcd", value_name = "URL", value_delimiter = ',', value_parser = url, conflicts_with = "resources")]
    #[arg(long_help = "Serve the resources of an etcd instead of a folder: the URLs of its members. \
                       The key PREFIX/GROUP/TYPE/NAME holds one resource, as JSON or in its binary form; \
                       GROUP is _ for all nodes, TYPE such as envoy.config.cluster.v3.Cluster")]
    pub urls: Vec<Uri>,

    /// What the keys begin with
    #[arg(long = "etcd-prefix", value_name = "PREFIX", default_value = "/xds")]
    pub prefix: String,

    /// The CA of etcd's certificate, in PEM; without it the system's roots. TLS needs URLs of https://
    #[arg(long = "etcd-tls-ca", value_name = "FILE", requires = "urls")]
    pub ca: Option<PathBuf>,

    /// The certificate chain that etcd is shown, in PEM
    #[arg(long = "etcd-tls-cert", value_name = "FILE", requires = "urls", requires = "key")]
    pub cert: Option<PathBuf>,

    /// The private key of that certificate, in PEM
    #[arg(long = "etcd-tls-key", value_name = "FILE", requires = "urls", requires = "cert")]
    pub key: Option<PathBuf>,

    /// The user that logs in at etcd
    #[arg(long = "etcd-user", value_name = "NAME", requires = "urls", requires = "password_file")]
    pub user: Option<String>,

    /// A file with the password of the user, which is read at each login
    #[arg(long = "etcd-password-file", value_name = "FILE", requires = "urls", requires = "user")]
    pub password_file: Option<PathBuf>,
}

impl Etcd {
    /// Checks that the flags agree with each other.
    ///
    /// # Errors
    ///
    /// One line for people.
    pub fn check(&self) -> Result<(), String> {
        let is_plain = |url: &Uri| url.scheme_str() != Some("https");
        if self.files().next().is_some() && self.urls.iter().any(is_plain) {
            return Err("certificates need --etcd URLs of https://".into());
        }
        Ok(())
    }

    /// Returns the name of the etcd for people.
    pub fn name(&self) -> String {
        self.urls.iter().map(short).collect::<Vec<_>>().join(",")
    }

    fn files(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.ca, &self.cert, &self.key].into_iter().flatten()
    }

    /// Returns the endpoint of a member. Reads the files of certificates for each, so that new ones take effect.
    ///
    /// # Errors
    ///
    /// One line that names the file at fault.
    pub fn endpoint(&self, url: &Uri) -> Result<Endpoint, String> {
        let endpoint = Endpoint::from(url.clone());
        if url.scheme_str() != Some("https") {
            return Ok(endpoint);
        }
        let mut tls = match &self.ca {
            Some(file) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem(file, "CERTIFICATE")?)),
            None => ClientTlsConfig::new().with_native_roots(),
        };
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            tls = tls.identity(Identity::from_pem(pem(cert, "CERTIFICATE")?, pem(key, "PRIVATE KEY")?));
        }
        endpoint.tls_config(tls).map_err(|error| {
            let files: Vec<_> = self.files().map(|file| file.display().to_string()).collect();
            let cause = error.source().map_or(error.to_string(), ToString::to_string);
            format!("{}: {cause}", files.join(", "))
        })
    }

    /// Returns the user and the password.
    ///
    /// # Errors
    ///
    /// One line that names the file at fault.
    pub fn login(&self) -> Result<Option<(String, String)>, String> {
        let (Some(user), Some(file)) = (&self.user, &self.password_file) else { return Ok(None) };
        let password = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Some((user.clone(), password.trim_end_matches(['\r', '\n']).to_owned())))
    }
}

/// Reads a PEM file that has such a block. A file without one would be taken for an empty list.
fn pem(file: &Path, block: &str) -> Result<Vec<u8>, String> {
    let pem = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let has = String::from_utf8_lossy(&pem).contains(&format!("{block}-----"));
    if has { Ok(pem) } else { Err(format!("{}: no {block} in PEM form", file.display())) }
}

/// Returns a URL without its path, which is always `/`.
pub fn short(url: &Uri) -> String {
    url.to_string().trim_end_matches('/').to_owned()
}

fn url(url: &str) -> Result<Uri, String> {
    let with_scheme = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let uri: Uri = with_scheme.parse().map_err(|error| format!("no URL: {error}"))?;
    match uri.scheme_str() {
        Some("http" | "https") if uri.path() == "/" && uri.query().is_none() && uri.host().is_some() => Ok(uri),
        _ => Err("no URL of the form http://HOST:PORT or https://HOST:PORT".into()),
    }
}
