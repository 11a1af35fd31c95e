//! A naive server.
