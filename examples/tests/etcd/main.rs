//! `control_plane --etcd` against an etcd whose every message a test determines, independent of time.

mod follow;
mod keys;
mod news;
mod script;
mod secure;
