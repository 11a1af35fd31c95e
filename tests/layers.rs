//! The layers beside streams: polls, files, load reports, client status.

mod layers {
    mod file;
    mod poll;
    mod polling;
}
