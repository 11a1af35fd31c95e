//! The parts of the program `control_plane`.

pub mod arguments;
pub mod folder;
pub mod log;
