//! The machines among themselves, in every order and at random. The long checks have crates of their own, `model` and
//! `by_letter`.

mod orders;
