//! The folder of resources, which changes all the time.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use prost::Message;
use xds_machine::message::Any;
use xds_machine::message::sotw::{self, Item};
use xds_machine::{Nonce, Version, proto, type_url};

/// A cluster, as far as the soak uses it.
#[derive(Clone, Eq, Message, PartialEq)]
pub struct Cluster {
    #[prost(string, tag = "1")]
    pub name: String,
    /// The number of the change that brought this content, and some weight.
    #[prost(string, tag = "28")]
    pub alt_stat_name: String,
}

impl Cluster {
    fn new(name: String, round: u64) -> Self {
        Self { name, alt_stat_name: format!("{round} {}", "x".repeat(100)) }
    }

    /// Returns the number of the change that brought this content.
    pub fn round(&self) -> u64 {
        self.alt_stat_name.split(' ').next().and_then(|round| round.parse().ok()).unwrap_or_default()
    }
}

/// The cluster that every change changes.
pub const MARKER: &str = "marker";

const FILES: u64 = 100;
const CLUSTERS_A_FILE: u64 = 10;

/// The folder, and what it holds.
pub struct Folder {
    root: PathBuf,
    files: BTreeMap<u64, Vec<Cluster>>,
    round: u64,
}

impl Folder {
    /// Writes the first files.
    pub fn create(root: &Path) -> Result<Self, String> {
        fs::create_dir_all(root).map_err(|error| format!("{}: {error}", root.display()))?;
        let mut folder = Self { root: root.to_owned(), files: BTreeMap::new(), round: 0 };
        for file in 0..=FILES {
            folder.write(file)?;
        }
        Ok(folder)
    }

    /// Changes the marker and ten other clusters, adds one and removes one. Returns the number of the change.
    pub fn change(&mut self) -> Result<u64, String> {
        self.round += 1;
        self.write(self.round % FILES)?;
        self.write(FILES)?;
        Ok(self.round)
    }

    pub fn round(&self) -> u64 {
        self.round
    }

    /// Returns the round of each cluster.
    pub fn expected(&self) -> BTreeMap<String, u64> {
        self.files.values().flatten().map(|cluster| (cluster.name.clone(), cluster.round())).collect()
    }

    fn write(&mut self, file: u64) -> Result<(), String> {
        let round = self.round;
        let names: Vec<String> = match file {
            FILES => vec![MARKER.into(), format!("one-time-{round}")],
            _ => (0..CLUSTERS_A_FILE).map(|at| format!("cluster-{file}-{at}")).collect(),
        };
        let clusters: Vec<Cluster> = names.into_iter().map(|name| Cluster::new(name, round)).collect();
        let item = |cluster: &Cluster| {
            Item::Bare(Any { type_url: type_url::CLUSTER.into(), value: cluster.encode_to_vec().into() })
        };
        let response = sotw::Response {
            version: Version::default(),
            resources: clusters.iter().map(item).collect(),
            type_url: type_url::CLUSTER.into(),
            nonce: Nonce::default(),
            control_plane: String::new(),
            errors: Vec::new(),
        };
        let path = self.root.join(format!("{file}.pb"));
        let temporary = self.root.join(".next");
        let written = fs::write(&temporary, proto::sotw::encode_response(&response));
        written.and_then(|()| fs::rename(&temporary, &path)).map_err(|error| format!("{}: {error}", path.display()))?;
        self.files.insert(file, clusters);
        Ok(())
    }
}
