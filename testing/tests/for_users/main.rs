//! Tests of the crate's public tools, used as a user would use them. All are one program, because each test program
//! rebuilds the machines.

mod driver;
mod duo;
mod source;
