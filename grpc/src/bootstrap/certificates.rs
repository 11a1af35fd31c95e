//! Certificates: those of providers (`certificate_providers`, gRFC A29), and the files of both providers and channels.

use alloc::string::String;
use core::fmt;
use core::time::Duration;

use serde_json::{Map, Value};

use super::json::{Object, object, string};
use crate::faults::Walk;

/// A provider of certificates. `Debug` does not show the configuration.
#[derive(Clone, Default, Eq, Hash, PartialEq)]
pub struct CertificateProvider {
    /// The name of the plugin, such as `file_watcher`; the caller decides whether the plugin is known (R-BOOT-25).
    pub plugin: String,
    /// The configuration, raw; empty if there is none.
    pub config: Map<String, Value>,
}

impl fmt::Debug for CertificateProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateProvider").field("plugin", &self.plugin).finish_non_exhaustive()
    }
}

/// The name of the one plugin that gRPC defines.
const FILE_WATCHER: &str = "file_watcher";

impl CertificateProvider {
    pub(super) fn read(walk: &mut Walk, value: &Value) -> Option<Self> {
        let provider = Object::read(walk, value)?;
        let plugin = provider.required(walk, "plugin_name", string);
        let config = provider.field(walk, "config", object).unwrap_or_default();
        if plugin.as_deref() == Some(FILE_WATCHER) {
            // R-BOOT-26: A file watcher watches something.
            walk.within("config", |walk| {
                let files = CertificateFiles::read(walk, &config);
                if files.certificate.is_none() && files.ca_certificate.is_none() {
                    walk.fault("at least one of \"certificate_file\" and \"ca_certificate_file\" must be specified");
                }
            });
        }
        Some(Self { plugin: plugin?, config })
    }

    /// Returns the files of a `file_watcher`; `None` for other plugins.
    pub fn file_watcher(&self) -> Option<CertificateFiles> {
        (self.plugin == FILE_WATCHER).then(|| CertificateFiles::read(&mut Walk::default(), &self.config))
    }
}

/// Files of certificates, by their paths.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct CertificateFiles {
    /// The certificates of this side (`certificate_file`), present if the key is.
    pub certificate: Option<String>,
    /// The private key of this side (`private_key_file`).
    pub private_key: Option<String>,
    /// The certificates that the other side is checked with (`ca_certificate_file`); the system's if absent.
    pub ca_certificate: Option<String>,
    /// How often the files are read again (`refresh_interval`). Default 10 min.
    pub refresh_interval: Duration,
}

/// The default of `refresh_interval` (gRFC A29).
const REFRESH: Duration = Duration::from_secs(600);

impl CertificateFiles {
    /// Reads the configuration of `tls` credentials or of a file watcher (R-BOOT-14, R-BOOT-26).
    pub(super) fn read(walk: &mut Walk, config: &Map<String, Value>) -> Self {
        let config = Object::of(config);
        let certificate = config.field(walk, "certificate_file", string);
        let private_key = config.field(walk, "private_key_file", string);
        if certificate.is_some() != private_key.is_some() {
            walk.fault("fields \"certificate_file\" and \"private_key_file\" must be both set or both unset");
        }
        Self {
            certificate,
            private_key,
            ca_certificate: config.field(walk, "ca_certificate_file", string),
            refresh_interval: config.field(walk, "refresh_interval", duration).unwrap_or(REFRESH),
        }
    }
}

/// The maximum of `google.protobuf.Duration`, in seconds.
const MAX_SECONDS: u64 = 315_576_000_000;

/// Reads a duration in its JSON form: seconds, with up to nine digits of a fraction, and an `s`.
fn duration(walk: &mut Walk, value: &Value) -> Option<Duration> {
    let text = string(walk, value)?;
    let parsed = parse_duration(&text);
    if parsed.is_none() {
        walk.fault("is not a duration, such as \"600s\"");
    }
    parsed
}

fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.strip_suffix('s')?;
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let seconds = seconds.parse().ok().filter(|&seconds| seconds <= MAX_SECONDS)?;
    let scale = 10u32.pow(9 - u32::try_from(fraction.len()).ok()?);
    Some(Duration::new(seconds, fraction.parse::<u32>().ok()? * scale))
}
