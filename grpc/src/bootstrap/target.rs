//! Targets of channels: `xds:///service` and `xds://authority/service`.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;

use super::json::Key;
use super::percent;

/// The target of a channel.
///
/// ```
/// use xds_machine_grpc::bootstrap::{Target, TargetError};
///
/// let target = Target::parse("xds://cp.example/a%20b:80")?;
/// assert_eq!((target.authority(), target.service()), (Some("cp.example"), "a b:80"));
/// assert_eq!(target.data_plane_authority(), "a%20b:80");
/// assert_eq!(Target::parse("dns:///a"), Err(TargetError::Scheme));
/// # Ok::<(), TargetError>(())
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Target {
    authority: Option<String>,
    service: String,
}

impl Target {
    /// Parses a target: a URI with the scheme `xds`. Query and fragment are ignored.
    ///
    /// # Errors
    ///
    /// The fault of the text; never [`TargetError::UnknownAuthority`].
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let rest = text.strip_prefix("xds:").ok_or(TargetError::Scheme)?;
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => ("", rest),
        };
        let decode = |text| percent::decode(text).ok_or(TargetError::Encoding);
        // R-BOOT-34: The template gets the decoded text.
        let (authority, path) = (decode(authority)?, decode(path)?);
        let service = path.strip_prefix('/').unwrap_or(&path);
        if service.is_empty() || service.ends_with('/') {
            return Err(TargetError::NoService);
        }
        Ok(Self { service: service.to_owned(), authority: Some(authority).filter(|text| !text.is_empty()) })
    }

    /// Returns the authority of the target, whose template makes the name of the Listener (gRFC A47).
    pub fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// Returns the service, decoded.
    pub fn service(&self) -> &str {
        &self.service
    }

    /// Returns the authority of the channel's calls, which selects a virtual host, unless the channel overrides it.
    pub fn data_plane_authority(&self) -> String {
        percent::encode(&self.service, percent::in_authority)
    }
}

/// The fault of a target.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum TargetError {
    /// The text does not begin with `xds:`.
    Scheme,
    /// The text names no service, or ends with a slash.
    NoService,
    /// The percent-encoded bytes are not UTF-8.
    Encoding,
    /// The bootstrap file does not have the authority (R-BOOT-35).
    UnknownAuthority {
        /// The authority of the target.
        authority: String,
    },
}

impl fmt::Display for TargetError {
    /// Writes the fault; for an unknown authority, after the path that it would have in the bootstrap file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme => f.write_str("a target begins with xds:"),
            Self::NoService => f.write_str("the target names no service"),
            Self::Encoding => f.write_str("the target is not UTF-8 when decoded"),
            Self::UnknownAuthority { authority } => {
                write!(f, "authorities{}: field not present", Key(authority))
            }
        }
    }
}

impl core::error::Error for TargetError {}
