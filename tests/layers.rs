//! The machines beside streams of resources: load reports, client status.

mod layers {
    mod csds;
    mod csds_view;
    mod load;
}
