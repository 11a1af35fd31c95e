//! The names of dialects on a command line.

use xds_machine::{client, server};

/// The dialects of a client.
pub const CLIENT: [(&str, client::Dialect); 4] = [
    ("spec", client::Dialect::Spec),
    ("envoy", client::Dialect::Envoy),
    ("grpc", client::Dialect::Grpc),
    ("istio", client::Dialect::Istio),
];

/// The dialects of a server.
pub const SERVER: [(&str, server::Dialect); 3] = [
    ("spec", server::Dialect::Spec),
    ("istio", server::Dialect::Istio),
    ("go-control-plane", server::Dialect::GoControlPlane),
];

/// Finds a dialect by its name.
///
/// # Errors
///
/// Fails for an unknown name; the error lists the known ones.
pub fn find<D: Copy>(dialects: &[(&str, D)], name: &str) -> Result<D, String> {
    let names = || dialects.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let found = dialects.iter().find(|(known, _)| *known == name);
    found.map(|(_, dialect)| *dialect).ok_or_else(|| format!("no dialect {name:?}: there are {}", names()))
}

/// Finds the dialects of a client and a server by one name. A side without a preset of that name uses `Spec`.
///
/// # Errors
///
/// Fails if neither side has a dialect of that name; the error lists the known ones.
pub fn of_both(name: &str) -> Result<(client::Dialect, server::Dialect), String> {
    let of_client = CLIENT.map(|(name, _)| (name, ()));
    let of_server = SERVER.map(|(name, _)| (name, ())).into_iter().filter(|name| !of_client.contains(name));
    find(&of_client.into_iter().chain(of_server).collect::<Vec<_>>(), name)?;
    Ok((find(&CLIENT, name).unwrap_or_default(), find(&SERVER, name).unwrap_or_default()))
}
