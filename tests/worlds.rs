//! The machines together, in every order and at random. The long checks are in separate crates, `model` and
//! `by_letter`.

mod orders;
