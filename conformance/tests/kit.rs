//! The tests of the kit: the referee, the stories and the programs. One crate, because each links the machines.

#[path = "kit/bug.rs"]
mod bug;
#[path = "kit/cases.rs"]
mod cases;
#[path = "kit/client_bug.rs"]
mod client_bug;
#[path = "kit/client_cases.rs"]
mod client_cases;
#[path = "kit/client_defects.rs"]
mod client_defects;
#[path = "kit/client_field_bugs.rs"]
mod client_field_bugs;
#[path = "kit/client_style.rs"]
mod client_style;
#[path = "kit/client_walks.rs"]
mod client_walks;
#[path = "kit/correct_servers.rs"]
mod correct_servers;
#[path = "kit/defects.rs"]
mod defects;
#[path = "kit/field_bugs.rs"]
mod field_bugs;
#[path = "kit/invented.rs"]
mod invented;
#[path = "kit/model/mod.rs"]
mod model;
#[path = "kit/plain.rs"]
mod plain;
#[path = "kit/plain_client.rs"]
mod plain_client;
#[path = "kit/program.rs"]
mod program;
#[path = "kit/referee/mod.rs"]
mod referee;
#[path = "kit/robust.rs"]
mod robust;
#[path = "kit/short_walks.rs"]
mod short_walks;
#[path = "kit/style.rs"]
mod style;
#[path = "kit/walker.rs"]
mod walker;
#[path = "kit/walks.rs"]
mod walks;
