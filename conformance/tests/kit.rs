//! The tests of the kit: the referee, the stories and the programs. One crate, because each links the machines.

#[path = "kit/cases.rs"]
mod cases;
#[path = "kit/client_cases.rs"]
mod client_cases;
#[path = "kit/client_defects.rs"]
mod client_defects;
#[path = "kit/client_walks.rs"]
mod client_walks;
#[path = "kit/defects.rs"]
mod defects;
#[path = "kit/go_control_plane.rs"]
mod go_control_plane;
#[path = "kit/plain.rs"]
mod plain;
#[path = "kit/program.rs"]
mod program;
#[path = "kit/referee.rs"]
mod referee;
#[path = "kit/walker.rs"]
mod walker;
#[path = "kit/walks.rs"]
mod walks;
