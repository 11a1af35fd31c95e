//! Addresses of servers, written as gRPC names.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::percent;

/// The port of a server whose address has none.
const PORT: u16 = 443;

/// The address of a server, as the gRPC name of its `server_uri` says it.
///
/// ```
/// use xds_machine_grpc::bootstrap::Address;
///
/// let host = Address::Host { host: "cp.example".into(), port: 443 };
/// assert_eq!(Address::parse("cp.example"), Ok(host.clone()));
/// assert_eq!(Address::parse("dns:///cp.example:443"), Ok(host));
/// assert_eq!(Address::parse("unix:///run/cp.sock"), Ok(Address::Unix("/run/cp.sock".into())));
/// let fault = Address::parse("consul://cp").unwrap_err();
/// assert_eq!(fault.to_string(), "the scheme consul is not known");
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Address {
    /// A host to resolve, or an IP address: `HOST[:PORT]`, `dns:HOST[:PORT]`, `dns:///HOST[:PORT]` with the port 443 as
    /// the default; `http://HOST[:PORT]` with 80, `https://HOST[:PORT]` with 443.
    Host {
        /// The name or the IP address; an IPv6 address without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// IP addresses to try in order: `ipv4:IP[:PORT],..`, `ipv6:[IP]:PORT,..`, with the port 443 as the default. There
    /// is at least one.
    Ip(Vec<SocketAddr>),
    /// The path of a Unix socket: `unix:PATH`, `unix:///PATH`.
    Unix(String),
    /// The name of a socket in the abstract namespace of Linux: `unix-abstract:NAME`.
    UnixAbstract(String),
}

/// The fault of an address.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum AddressError {
    /// The text is empty.
    Empty,
    /// The scheme is none of those of [`Address`].
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// The scheme has an authority, which no scheme here may have.
    Authority,
    /// There is no host, no path or no name.
    Missing,
    /// The host is neither a name nor an IP address of that scheme.
    Host,
    /// The port is no number from 0 to 65535.
    Port,
    /// There is a path, a query or a fragment behind the host and port.
    Path,
    /// The percent-encoded bytes are not UTF-8.
    Encoding,
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "must be non-empty",
            Self::Scheme { scheme } => return write!(f, "the scheme {scheme} is not known"),
            Self::Authority => "an authority is not supported",
            Self::Missing => "names no host and no socket",
            Self::Host => "the host is neither a name nor an IP address of the scheme",
            Self::Port => "the port is not a number from 0 to 65535",
            Self::Path => "nothing may follow the host and port",
            Self::Encoding => "the percent-encoded bytes are not UTF-8",
        })
    }
}

impl core::error::Error for AddressError {}

impl Address {
    /// Reads a gRPC name. A text without a known scheme and without `://` is a host, as in gRPC.
    ///
    /// # Errors
    ///
    /// The fault of the text.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        if text.is_empty() {
            return Err(AddressError::Empty);
        }
        match text.split_once(':') {
            Some(("dns", rest)) => {
                let rest = path(rest)?;
                Self::host(rest.strip_prefix('/').unwrap_or(&rest), PORT)
            }
            Some(("ipv4", rest)) => Self::ips(rest, IpAddr::is_ipv4),
            Some(("ipv6", rest)) => Self::ips(rest, IpAddr::is_ipv6),
            Some(("unix", rest)) => Ok(Self::Unix(socket(rest)?)),
            Some(("unix-abstract", rest)) => Ok(Self::UnixAbstract(socket(rest)?)),
            Some((scheme, rest)) if rest.starts_with("//") => {
                let port = match scheme {
                    "http" => 80,
                    "https" => PORT,
                    _ => return Err(AddressError::Scheme { scheme: scheme.to_owned() }),
                };
                let rest = &rest[2..];
                Self::host(rest.strip_suffix('/').unwrap_or(rest), port)
            }
            _ => Self::host(text, PORT),
        }
    }

    fn host(text: &str, default: u16) -> Result<Self, AddressError> {
        let (host, port) = split(text, default)?;
        let is_ip = host.contains(':');
        let is_name = |char: char| char.is_alphanumeric() || matches!(char, '-' | '.' | '_');
        let is_valid = if is_ip { host.parse::<Ipv6Addr>().is_ok() } else { host.chars().all(is_name) };
        if is_valid { Ok(Self::Host { host: host.to_owned(), port }) } else { Err(AddressError::Host) }
    }

    fn ips(rest: &str, of_scheme: impl Fn(&IpAddr) -> bool) -> Result<Self, AddressError> {
        let rest = path(rest)?;
        let read = |text: &str| {
            let (host, port) = split(text, PORT)?;
            let ip = host.parse::<Ipv4Addr>().map(IpAddr::from).or_else(|_| host.parse::<Ipv6Addr>().map(IpAddr::from));
            let ip = ip.ok().filter(&of_scheme).ok_or(AddressError::Host)?;
            Ok(SocketAddr::new(ip, port))
        };
        rest.strip_prefix('/').unwrap_or(&rest).split(',').map(read).collect::<Result<_, _>>().map(Self::Ip)
    }
}

/// Returns the decoded path of a URI whose authority, if there is one, is empty.
fn path(rest: &str) -> Result<String, AddressError> {
    let path = match rest.strip_prefix("//") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
        Some(_) => return Err(AddressError::Authority),
        None => rest,
    };
    if path.contains(['?', '#']) {
        return Err(AddressError::Path);
    }
    percent::decode(path).ok_or(AddressError::Encoding)
}

/// Returns the path or the name of a socket.
fn socket(rest: &str) -> Result<String, AddressError> {
    let socket = path(rest)?;
    if socket.is_empty() || socket == "/" { Err(AddressError::Missing) } else { Ok(socket) }
}

/// Splits `HOST[:PORT]`. The host has no brackets any more, and is an IPv6 address if it has a colon.
fn split(text: &str, default: u16) -> Result<(&str, u16), AddressError> {
    if text.contains(['/', '?', '#']) {
        return Err(AddressError::Path);
    }
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').filter(|(host, _)| host.contains(':')).ok_or(AddressError::Host)?;
            (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or(AddressError::Host)?) })
        }
        // An IPv6 address without brackets has no port.
        None if text.matches(':').count() > 1 => (text, None),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err(AddressError::Missing);
    }
    let number = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse().ok()).flatten();
    Ok((host, port.map_or(Some(default), number).ok_or(AddressError::Port)?))
}
