//! Credentials of channels and of calls (`channel_creds`, `call_creds`).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde_json::{Map, Value};

use super::certificates::CertificateFiles;
use super::json::{self, Object, array, string};
use crate::faults::Walk;

/// A type of credentials: [`Bootstrap::parse`](super::Bootstrap::parse) asks whether the caller supports it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum CredentialsKind<'a> {
    /// Of channels (`channel_creds`), such as `insecure` or `tls`.
    Channel(&'a str),
    /// Of calls (`call_creds`, gRFC A97), such as `jwt_token_file`.
    Call(&'a str),
}

/// Whether the caller supports credentials.
pub(super) type Supports<'a> = &'a dyn Fn(CredentialsKind<'_>) -> bool;

/// Credentials. `Debug` does not show the configuration, which may be secret (R-BOOT-40).
#[derive(Clone, Default, Eq, Hash, PartialEq)]
pub struct Credentials {
    /// The type.
    pub kind: String,
    /// The configuration, raw; empty if there is none.
    pub config: Map<String, Value>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Reads `channel_creds`: the first of the types that are supported (R-BOOT-11).
pub(super) fn channel(walk: &mut Walk, value: &Value, supports: Supports<'_>) -> Option<Credentials> {
    let entries = entries(walk, value)?;
    let faulty = entries.iter().any(Option::is_none);
    let mut known = supported(walk, entries, |kind| supports(CredentialsKind::Channel(kind))).into_iter();
    let first = known.next();
    if first.is_none() && !faulty {
        walk.fault("no known creds type found");
    }
    first
}

/// Reads `call_creds`: all of the types that are supported (R-BOOT-15).
pub(super) fn call(walk: &mut Walk, value: &Value, supports: Supports<'_>) -> Option<Vec<Credentials>> {
    let entries = entries(walk, value)?;
    Some(supported(walk, entries, |kind| supports(CredentialsKind::Call(kind))))
}

/// Reads a list of credentials, `None` for an entry with a fault. R-BOOT-12: Every entry has a type, used or not, and
/// no configuration but an object.
fn entries(walk: &mut Walk, value: &Value) -> Option<Vec<Option<Credentials>>> {
    let each = array(walk, value)?.iter().enumerate().map(|(at, entry)| {
        walk.within(format_args!("[{at}]"), |walk| {
            let entry = Object::read(walk, entry)?;
            let kind = entry.required(walk, "type", string);
            let config = entry.field(walk, "config", json::object).unwrap_or_default();
            Some(Credentials { kind: kind?, config })
        })
    });
    Some(each.collect())
}

/// Returns the credentials that are supported, each with its configuration checked, whether used or not (R-BOOT-13).
fn supported(walk: &mut Walk, entries: Vec<Option<Credentials>>, supports: impl Fn(&str) -> bool) -> Vec<Credentials> {
    let all = entries.into_iter().enumerate().filter_map(|(at, entry)| Some((at, entry?)));
    let known = all.filter(|(_, credentials)| supports(&credentials.kind));
    let checked = known.inspect(|(at, credentials)| {
        walk.within(format_args!("[{at}].config"), |walk| credentials.check(walk));
    });
    checked.map(|(_, credentials)| credentials).collect()
}

impl Credentials {
    /// Returns the files of `tls` credentials (gRFC A65); `None` for other types.
    pub fn tls(&self) -> Option<CertificateFiles> {
        (self.kind == "tls").then(|| CertificateFiles::read(&mut Walk::default(), &self.config))
    }

    fn check(&self, walk: &mut Walk) {
        match self.kind.as_str() {
            // R-BOOT-14: A certificate comes with its key.
            "tls" => _ = CertificateFiles::read(walk, &self.config),
            "jwt_token_file" => _ = Object::of(&self.config).required(walk, "jwt_token_file", string),
            _ => {}
        }
    }
}
