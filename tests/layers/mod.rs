//! The layers beside streams: polls, files, load reports, client status.

mod csds;
mod csds_view;
mod file;
mod load;
mod poll;
mod polling;
