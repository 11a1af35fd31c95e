//! `control_plane --etcd` against an etcd of which a test says each word, without time.

mod follow;
mod keys;
mod news;
mod script;
mod secure;
