//! The machines together, in every order and at random. The long check is in a crate of its own, `model`.

mod orders;
