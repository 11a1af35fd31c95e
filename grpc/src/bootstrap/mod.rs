//! The bootstrap file of gRPC: the servers, the node, and the templates of Listener names (gRFC A27, A47, A53, A65,
//! A71, A81, A88).
//!
//! ```
//! use xds_machine::servers::Servers;
//! use xds_machine::Sotw;
//! use xds_machine_grpc::bootstrap::{Agent, Bootstrap, CredentialsKind, Era, Target};
//!
//! let text = r#"{
//!     "xds_servers": [{"server_uri": "xds.example.com:443", "channel_creds": [{"type": "tls"}]}],
//!     "node": {"id": "n1", "metadata": {"team": "a"}}
//! }"#;
//! let bootstrap = Bootstrap::parse(text, |kind| matches!(kind, CredentialsKind::Channel("insecure" | "tls")))?;
//! let target = Target::parse("xds:///service:80")?;
//! assert_eq!(bootstrap.listener_of(&target)?, "service:80");
//!
//! let node = bootstrap.node(&Agent { name: "example", version: "1.0" });
//! let servers = Servers::<Sotw>::new(bootstrap.servers_config(node, Era::A53))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A file with faults is refused, and every fault is named with its path:
//!
//! ```
//! # use xds_machine_grpc::bootstrap::Bootstrap;
//! let faults = Bootstrap::parse(r#"{"xds_servers": [{"server_uri": 7}], "node": []}"#, |_| true).unwrap_err();
//! let faults: Vec<String> = faults.iter().map(|(path, message)| format!("{path}: {message}")).collect();
//! assert_eq!(faults, [
//!     "node: is not an object",
//!     "xds_servers[0].channel_creds: field not present",
//!     "xds_servers[0].server_uri: is not a string",
//! ]);
//! ```

mod address;
mod authority;
mod certificates;
mod credentials;
mod duplicates;
mod environment;
mod features;
mod file;
mod json;
mod metadata;
mod node;
mod percent;
mod print;
mod server;
mod target;
mod template;

pub use self::address::{Address, AddressError};
pub use self::authority::Authority;
pub use self::certificates::{CertificateFiles, CertificateProvider};
pub use self::credentials::{Credentials, CredentialsKind};
pub use self::environment::{Source, from_env};
pub use self::features::{Era, Features};
pub use self::file::Bootstrap;
pub use self::node::{Agent, Identity};
pub use self::server::Server;
pub use self::target::{Target, TargetError};
