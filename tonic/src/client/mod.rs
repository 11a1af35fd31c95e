//! A client of control planes.
