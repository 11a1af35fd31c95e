//! The source of the resources: a folder, or an etcd.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::SystemTime;

use xds_machine::TypeUrl;

use super::arguments::{Arguments, DEMO};
use super::etcd::arguments::Etcd;
use super::etcd::follow::{CHANGED, Follower, LOADED};
use super::etcd::key::Prefix;
use super::etcd::keys::Keys;
use super::feed::{Feed, summary};
use super::folder::watch::{Anew, Watch};
use super::folder::{Folder, Options};
use super::listen::Address;
use super::news::{Contents, News};

/// An open source, and its first news.
pub enum Source {
    Folder(Box<(Folder, News)>),
    Etcd(Box<(Etcd, Keys)>),
}

/// Returns the name of the source, for people and for metrics.
pub fn name(arguments: &Arguments) -> String {
    match arguments.etcd.urls.is_empty() {
        true => arguments.resources.display().to_string(),
        false => arguments.etcd.name(),
    }
}

impl Source {
    /// Opens the source that the command line names.
    ///
    /// # Errors
    ///
    /// One line that names what can't be read. An etcd need not be there yet.
    pub async fn open(arguments: &Arguments) -> Result<Self, String> {
        let (etcd, grouped) = (&arguments.etcd, arguments.group_by.is_some());
        let options = Options { grouped, max_file_bytes: arguments.max_file_bytes };
        if etcd.urls.is_empty() {
            let path = arguments.resources.clone();
            let opening = tokio::task::spawn_blocking(move || Folder::open(path, options, SystemTime::now())).await;
            let error = |error| format!("the folder of resources {}: {error}", arguments.resources.display());
            return Ok(Self::Folder(Box::new(opening.map_err(|error| error.to_string())?.map_err(error)?)));
        }
        etcd.urls.iter().try_for_each(|url| etcd.endpoint(url).map(drop))?;
        etcd.login()?;
        Ok(Self::Etcd(Box::new((etcd.clone(), Keys::new(Prefix::new(&etcd.prefix), grouped)))))
    }

    /// Passes the current resources, and then all changes, to `feed`, in a thread of its own. `changed` is called after
    /// each change. Returns what lets every file of a folder be read again.
    ///
    /// # Errors
    ///
    /// One line that says what the system refuses.
    pub fn follow(
        self,
        mut feed: Feed,
        hint: Hint,
        changed: impl Fn() + Send + Sync + 'static,
    ) -> Result<Option<Anew>, String> {
        match self {
            Self::Folder(opened) => {
                let (folder, news) = *opened;
                feed.take(LOADED, &folder, &news);
                // Files that may be written at the start are part of it.
                let mut is_loaded = !folder.is_restless();
                if is_loaded {
                    hint.give(&folder.counts());
                }
                let watch = Watch::begin();
                let anew = watch.anew();
                thread::spawn(move || {
                    watch.run(folder, |folder, news| {
                        feed.take(if is_loaded { CHANGED } else { LOADED }, folder, &news);
                        changed();
                        if !is_loaded && !folder.is_restless() {
                            is_loaded = true;
                            hint.give(&folder.counts());
                        }
                    })
                });
                return Ok(Some(anew));
            }
            Self::Etcd(opened) => {
                let (etcd, keys) = *opened;
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.map_err(|error| error.to_string())?;
                let take = move |event: &'static str, keys: &Keys, news: &News| {
                    feed.take(event, keys, news);
                    changed();
                    if event == LOADED {
                        hint.give(&keys.counts());
                    }
                };
                // Large values are read and encoded in this thread, and delay no stream.
                thread::spawn(move || runtime.block_on(Follower::new(etcd, keys, take).run()));
            }
        }
        Ok(None)
    }
}

/// The hint that is logged at the start.
pub struct Hint {
    source: String,
    address: Address,
    is_tls: bool,
    is_demo: bool,
}

impl Hint {
    pub fn new(arguments: &Arguments, address: &Address) -> Self {
        let is_demo = arguments.etcd.urls.is_empty() && arguments.resources == Path::new(DEMO);
        Self { source: name(arguments), address: address.clone(), is_tls: arguments.tls_cert.is_some(), is_demo }
    }

    /// Logs what is served, and how to look at it.
    fn give(&self, counts: &BTreeMap<&TypeUrl, usize>) {
        let (scheme, ca) = if self.is_tls { ("https", " --tls-ca CA.pem") } else { ("http", "") };
        tracing::info!("serving {}: {}", self.source, summary(counts));
        let Address::Tcp(address) = self.address else { return };
        let port = address.port();
        let is_any = address.ip().is_unspecified();
        let host = if is_any { format!("127.0.0.1:{port}") } else { address.to_string() };
        tracing::info!("look at it:");
        tracing::info!(
            "  cargo run -p examples --bin xds_client -- --server {scheme}://{host}{ca} --variant delta --subscribe cds --follow"
        );
        tracing::info!("or point an Envoy at it:");
        let note = format!("    # with the address of the cluster `xds` changed to {host}");
        tracing::info!("  envoy -c examples/envoy.yaml{}", if port == 18000 { "" } else { &note });
        if self.is_demo {
            tracing::info!("  curl http://127.0.0.1:10000/ready    # goes through Envoy: what it has learned here");
        }
    }
}
