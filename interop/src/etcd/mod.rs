//! Two replicas of `control_plane` on a real etcd of three members, with `xds_client` as their clients.

mod members;
mod own;
mod play;
pub mod resources;
mod stage;
mod switch;

use std::path::Path;

use crate::install::{self, Installed};
use crate::{Line, report};

pub use self::members::{Members, Op};
use self::stage::Stage;

pub fn play(installed: &Installed, dir: &Path, lines: &mut Vec<Line>) {
    let mut stage = install::etcd().and_then(|etcd| Stage::start(installed, etcd, dir));
    for (scenario, play) in play::ALL {
        let result = stage.as_mut().map_err(|error| error.clone()).and_then(play);
        if let Err(error) = &result {
            stage = Err(if stage.is_ok() { "not tried".into() } else { error.clone() });
        }
        report(Line { peer: "etcd", mode: "two replicas", dialect: "spec", scenario, result }, lines);
    }
}
