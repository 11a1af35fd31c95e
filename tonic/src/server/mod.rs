//! A control plane.
