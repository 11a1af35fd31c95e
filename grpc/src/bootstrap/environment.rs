//! The environment variables of the bootstrap file (R-BOOT-01).

use alloc::string::String;

/// Where the text of the bootstrap file is.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Source {
    /// In a file of this path. A file that can't be read is an error: the other variable is not used then.
    File(String),
    /// In the environment itself.
    Text(String),
}

/// Returns where the text of the bootstrap file is, by the environment: the file that `GRPC_XDS_BOOTSTRAP` names, or
/// else the text of `GRPC_XDS_BOOTSTRAP_CONFIG`. Returns `None` if neither variable is set (R-BOOT-01).
///
/// The result holds for a client that is made now: call this again for a later client (R-BOOT-02).
///
/// ```
/// use xds_machine_grpc::bootstrap::from_env;
///
/// let source = from_env(|name| std::env::var(name).ok());
/// ```
pub fn from_env(mut get: impl FnMut(&str) -> Option<String>) -> Option<Source> {
    // A variable that is empty counts as not set, as in every implementation.
    let mut get = |name| get(name).filter(|value| !value.is_empty());
    let file = get("GRPC_XDS_BOOTSTRAP").map(Source::File);
    file.or_else(|| get("GRPC_XDS_BOOTSTRAP_CONFIG").map(Source::Text))
}
