//! The server half: drivers of [`xds_machine::server`].
