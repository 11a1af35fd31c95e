//! The client half: drivers of [`xds_machine::client`] and [`xds_machine::servers`].
