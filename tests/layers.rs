//! The layers beside streams: polls, files, load reports, client status.

mod layers {
    mod csds;
    mod csds_view;
    mod file;
    mod poll;
    mod polling;
}
