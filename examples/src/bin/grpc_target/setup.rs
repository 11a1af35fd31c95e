//! Reads the bootstrap file, and shows its content for `--check`.

use std::{env, fs};

use serde_json::{Map, Value, json};
use xds_machine::ResourceName;
use xds_machine_grpc::bootstrap::{Bootstrap, CredentialsKind, Server, Source, from_env};

use crate::arguments::Arguments;

/// A bootstrap file, and the Listener of the target.
pub(crate) struct Setup {
    pub(crate) bootstrap: Bootstrap,
    pub(crate) listener: ResourceName,
}

impl Setup {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// Every fault of the file, each after its path; or why there is no file, or no listener.
    pub(crate) fn read(arguments: &Arguments) -> Result<Self, Vec<String>> {
        let text = text(arguments).map_err(|fault| vec![fault])?;
        let supports = |kind: CredentialsKind<'_>| matches!(kind, CredentialsKind::Channel("insecure" | "tls"));
        let bootstrap = Bootstrap::parse(&text, supports).map_err(|faults| {
            let shown =
                |(path, fault): (&str, &str)| if path.is_empty() { fault.into() } else { format!("{path}: {fault}") };
            let more = (faults.more() > 0).then(|| format!("and {} more", faults.more()));
            faults.iter().map(shown).chain(more).collect::<Vec<_>>()
        })?;
        let listener = bootstrap.listener_of(&arguments.target).map_err(|error| vec![error.to_string()])?;
        Ok(Self { bootstrap, listener })
    }

    /// Returns what `--check` prints.
    pub(crate) fn show(&self) -> Value {
        let bootstrap = &self.bootstrap;
        let authorities = bootstrap.authorities().iter().map(|(name, authority)| {
            let servers: Vec<_> = bootstrap.servers_of(authority).map(show_server).collect();
            (name.clone(), json!({ "listener": authority.listener_template(), "servers": servers }))
        });
        json!({
            "node": bootstrap.identity().to_json(),
            "servers": bootstrap.default_servers().map(show_server).collect::<Vec<_>>(),
            "authorities": authorities.collect::<Map<_, _>>(),
            "listener": self.listener.as_str(),
        })
    }
}

fn show_server(server: &Server) -> Value {
    json!({ "uri": server.uri, "features": server.features.names(), "credentials": server.credentials.kind })
}

/// Returns the text of the file: that of the command line, or that of the environment (R-BOOT-01).
fn text(arguments: &Arguments) -> Result<String, String> {
    let named = arguments.bootstrap.as_ref().map(|path| Source::File(path.display().to_string()));
    match named.or_else(|| from_env(|name| env::var(name).ok())) {
        Some(Source::File(path)) => fs::read_to_string(&path).map_err(|error| format!("{path}: {error}")),
        Some(Source::Text(text)) => Ok(text),
        None => Err("neither --bootstrap nor GRPC_XDS_BOOTSTRAP nor GRPC_XDS_BOOTSTRAP_CONFIG is set".into()),
    }
}
