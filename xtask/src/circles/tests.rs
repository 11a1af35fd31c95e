//! Tests the check on small crates in memory.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::Tree;
use super::{allowed, arrows, compare, graph, inside, report};

/// Returns the arrows of a crate with these files.
fn all(files: &[(&str, &str)]) -> crate::run::Result<arrows::Arrows> {
    let sources: BTreeMap<String, String> = files.iter().map(|&(path, text)| (path.into(), text.into())).collect();
    arrows::all(&Tree::read(&sources, &["generated.rs"])?)
}

/// Returns the same as text, with the items.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let items = |items: &BTreeSet<String>| items.iter().cloned().collect::<Vec<_>>().join(", ");
    let arrows = all(files).expect("a crate");
    arrows.iter().map(|((from, to), named)| format!("{from} -> {to} ({})", items(named))).collect()
}

/// Returns the items that `user.rs` names, in a crate with a few items.
fn named_by(user: &str) -> Vec<String> {
    found(&[
        ("lib.rs", "mod shapes; mod user;"),
        ("shapes/mod.rs", "pub mod round; pub mod flat; pub fn area() {} pub enum Side { Left, Right }"),
        (
            "shapes/round.rs",
            "pub struct Circle { pub r: u8 } pub trait Roll { const TURNS: u8; fn roll(); } pub const PI: u8 = 3;",
        ),
        ("shapes/flat.rs", "pub struct Square(pub u8); pub fn flatten() {} pub type Tile = Square;"),
        ("user.rs", user),
    ])
}

#[test]
fn use_declarations_are_arrows_to_the_files_of_the_items() {
    assert_eq!(named_by("use crate::shapes::round::Circle;"), ["user.rs -> shapes/round.rs (Circle)"]);
    let nested = "use crate::shapes::{area, flat::{self, Square}, round::{Circle as Disc, Roll as _}};";
    let expected = [
        "user.rs -> shapes/flat.rs (Square)",
        "user.rs -> shapes/mod.rs (area)",
        "user.rs -> shapes/round.rs (Circle, Roll)",
    ];
    assert_eq!(named_by(nested), expected);
    assert_eq!(named_by("use super::shapes::Side::{Left, Right};"), ["user.rs -> shapes/mod.rs (Side)"]);
    assert_eq!(named_by("use crate::shapes::Side::*;"), ["user.rs -> shapes/mod.rs (Side)"]);
    // The import of a module names nothing inside the module.
    assert!(named_by("use crate::shapes::{self, round}; use crate::shapes::flat::*;").is_empty());
}

#[test]
fn glob_imports_count_where_a_name_is_used() {
    let user = "use crate::shapes::flat::*; fn f(_: Square) { flatten() }";
    assert_eq!(named_by(user), ["user.rs -> shapes/flat.rs (Square, flatten)"]);
}

#[test]
fn paths_in_code_are_arrows() {
    let round = "user.rs -> shapes/round.rs (Circle)";
    for user in [
        "fn f() { let c = crate::shapes::round::Circle { r: 1 }; }",
        "fn f(c: crate::shapes::round::Circle) {}",
        "fn f() -> Vec<Option<crate::shapes::round::Circle>> { loop {} }",
        "fn f() { crate::shapes::round::Circle::new() }",
        "fn f() { <crate::shapes::round::Circle>::new() }",
        "fn f(x: ()) { match x { crate::shapes::round::Circle { .. } => {} } }",
        "fn f() { if let Some(super::shapes::round::Circle { r }) = g() {} }",
        "struct Two { c: super::shapes::round::Circle }",
        "impl From<crate::shapes::round::Circle> for () {}",
        "mod inner { fn f(_: super::super::shapes::round::Circle) {} }",
        "mod inner { use super::*; fn f(_: Circle) {} } use crate::shapes::round::Circle;",
        "mod inner { mod round {} } use crate::shapes::round; fn f(_: round::Circle) {}",
        "use crate::shapes::round; fn f(_: round::Circle) {}",
        "use crate::shapes; fn f(_: self::shapes::round::Circle) {}",
        "use crate::shapes as figures; fn f(_: figures::round::Circle) {}",
    ] {
        assert_eq!(named_by(user), [round], "{user}");
    }
    let patterns = "fn f(x: u8) { match x { crate::shapes::round::PI => {}, crate::shapes::Side::Left => {}, \
         crate::shapes::flat::Square(_) => {}, _ => {} } }";
    let expected =
        ["user.rs -> shapes/flat.rs (Square)", "user.rs -> shapes/mod.rs (Side)", "user.rs -> shapes/round.rs (PI)"];
    assert_eq!(named_by(patterns), expected);
    let constant = "use crate::shapes::round::*; fn f(x: u8) { match x { PI => {} other => {} } }";
    assert_eq!(named_by(constant), ["user.rs -> shapes/round.rs (PI)"]);
    assert_eq!(named_by("fn f<T: crate::shapes::round::Roll>() {}"), ["user.rs -> shapes/round.rs (Roll)"]);
    assert_eq!(
        named_by("fn f<T>() { <T as crate::shapes::round::Roll>::roll() }"),
        ["user.rs -> shapes/round.rs (Roll)"]
    );
}

#[test]
fn a_path_continues_in_the_module_and_not_in_the_function_of_the_same_name() {
    let root = ("lib.rs", "mod area; mod user; pub fn area() {}");
    let area = ("area.rs", "pub struct Square;");
    assert_eq!(found(&[root, area, ("user.rs", "use crate::area::Square;")]), ["user.rs -> area.rs (Square)"]);
}

#[test]
fn an_impl_leads_to_the_trait_and_to_the_type() {
    let expected = ["user.rs -> shapes/flat.rs (Tile)", "user.rs -> shapes/round.rs (Roll)"];
    assert_eq!(named_by("impl crate::shapes::round::Roll for crate::shapes::flat::Tile {}"), expected);
}

#[test]
fn a_use_declaration_in_a_block_is_scoped_to_the_block() {
    let user = "fn f() { { use crate::shapes::flat; flat::flatten() } }";
    assert_eq!(named_by(user), ["user.rs -> shapes/flat.rs (flatten)"]);
    assert!(named_by("fn f() { { use crate::shapes::flat; } flat::flatten() }").is_empty());
}

#[test]
fn re_exports_are_resolved_and_are_no_arrows() {
    let door = "mod round; mod flat; pub use self::round::Circle; pub(crate) use flat::*; pub use round as curved;";
    let files = |user| {
        let [round, flat] = [("shapes/round.rs", "pub struct Circle;"), ("shapes/flat.rs", "pub struct Square;")];
        let root = ("lib.rs", "mod shapes; mod user; pub use shapes::Circle as Disc;");
        [root, ("shapes/mod.rs", door), round, flat, ("user.rs", user)]
    };
    assert!(found(&files("")).is_empty());
    assert_eq!(found(&files("use crate::shapes::Circle;")), ["user.rs -> shapes/round.rs (Circle)"]);
    assert_eq!(found(&files("use crate::Disc;")), ["user.rs -> shapes/round.rs (Circle)"]);
    assert_eq!(found(&files("fn f(_: super::shapes::Square) {}")), ["user.rs -> shapes/flat.rs (Square)"]);
    assert_eq!(found(&files("fn f(_: crate::shapes::curved::Circle) {}")), ["user.rs -> shapes/round.rs (Circle)"]);
    assert_eq!(
        found(&files("pub use crate::shapes::Circle; fn f(_: Circle) {}")),
        ["user.rs -> shapes/round.rs (Circle)"]
    );
}

#[test]
fn resolution_of_cyclic_imports_terminates() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub use crate::b::X; pub use crate::b::*;"),
        ("b.rs", "pub use crate::a::X;"),
    ];
    assert!(found(&files).is_empty());
}

#[test]
fn tests_comments_methods_and_foreign_paths_are_no_arrows() {
    for user in [
        "fn f(x: u8) { x.flatten(); x.area() }",
        "//! crate::shapes::round::Circle\n/// [`Circle`](crate::shapes::round::Circle)\nfn f() {}",
        "#[doc = crate::shapes::round::PI] fn f() {}",
        "#[cfg(test)] use crate::shapes::round::Circle;",
        "#[cfg(test)] mod tests { use crate::shapes::round::Circle; }",
        "#[cfg(all(test, unix))] fn f() { crate::shapes::area() }",
        "struct S; impl S { #[cfg(test)] fn f() { crate::shapes::area() } }",
        "use core::fmt; fn f(_: &mut fmt::Formatter<'_>, _: Option<Circle>) { std::mem::take(area) }",
        "use ::shapes::round::Circle;",
        "use crate::shapes; fn f() { ::shapes::area() }",
        "struct Circle; fn f(_: Circle, _: self::Circle) -> Self { Self::area() }",
    ] {
        assert!(named_by(user).is_empty(), "{user}");
    }
    assert_eq!(named_by("#[cfg(not(test))] fn f() { crate::shapes::area() }"), ["user.rs -> shapes/mod.rs (area)"]);
    let generated = [("lib.rs", "mod a; mod generated;"), ("a.rs", "use crate::generated::Message;")];
    assert!(found(&generated).is_empty());
    let tests =
        [("lib.rs", "#[cfg(test)] mod tests; mod a;"), ("a.rs", "pub struct A;"), ("tests.rs", "use crate::a::A;")];
    assert!(found(&tests).is_empty());
}

#[test]
fn paths_in_macro_arguments_are_arrows() {
    let round = "user.rs -> shapes/round.rs (Circle)";
    for user in [
        "fn f() { format!(\"{} {x}\", crate::shapes::round::Circle::new(), x = 1) }",
        "fn f(x: u8) { matches!(x, crate::shapes::round::Circle { .. } | None if true) }",
        "use crate::shapes::round; fn f() { ensure!(round::Circle::new().is_round(), \"{} {}\", 1, 2) }",
        "use crate::shapes::round; fn f() { run! { let x = round::Circle::new(); } }",
        "use crate::shapes::round; each! { x => round::Circle, y => [crate::shapes::round::Circle] }",
        "macro_rules! new { ($r:expr) => { $crate::shapes::round::Circle { r: $r } } }",
    ] {
        assert_eq!(named_by(user), [round], "{user}");
    }
    assert!(named_by("use crate::shapes::*; each! { x.Side => $Side, 'Side, ::Side area }").is_empty());
    assert_eq!(named_by("use crate::shapes::*; each! { x => ..Side }"), ["user.rs -> shapes/mod.rs (Side)"]);
}

#[test]
fn an_item_defined_by_a_macro_belongs_to_the_file_that_calls_the_macro() {
    let files = |user| {
        let root = ("lib.rs", "mod macros; mod names; mod user;");
        let macros = ("macros.rs", "macro_rules! name { ($n:ident) => { pub struct $n; } } pub(crate) use name;");
        [root, macros, ("names.rs", "use crate::macros::name; name! { Nonce } name!(Version);"), ("user.rs", user)]
    };
    let own = "names.rs -> macros.rs (name)";
    assert_eq!(found(&files("")), [own]);
    assert_eq!(found(&files("use crate::names::{Nonce, Version};")), [own, "user.rs -> names.rs (Nonce, Version)"]);
}

#[test]
fn missing_files_syntax_errors_and_unresolved_paths_are_errors() {
    let error = |files: &[(&str, &str)]| all(files).expect_err("an error").to_string();
    assert_eq!(error(&[("lib.rs", "mod a;")]), "a.rs is missing");
    assert_eq!(error(&[("lib.rs", "#[path = \"b.rs\"] mod a;")]), "lib.rs: mod a has a #[path]");
    assert_eq!(error(&[("lib.rs", "fn")]), "lib.rs: unexpected end of input, expected identifier");
    assert_eq!(error(&[("lib.rs", "use crate::b::C;")]), "lib.rs: crate::b::C leads to nothing");
    assert_eq!(error(&[("lib.rs", "mod a;"), ("a.rs", "fn f() { super::g() }")]), "a.rs: super::g leads to nothing");
}

/// Returns a crate with two circles, and a file that leads into one of them.
fn circular() -> [(&'static str, &'static str); 7] {
    [
        ("lib.rs", "mod a; mod b; mod c; mod d; mod e; mod f;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use crate::a::A; pub struct B;"),
        ("c.rs", "use crate::d::{D, D2}; pub struct C;"),
        ("d.rs", "use crate::e::E; pub struct D; pub struct D2;"),
        ("e.rs", "pub struct E(crate::c::C);"),
        ("f.rs", "use crate::a::A;"),
    ]
}

#[test]
fn circles_are_named_with_their_files_and_arrows() {
    let arrows = all(&circular()).expect("a crate");
    let expected = "\
a circle of 3 files: c.rs, d.rs, e.rs
  c.rs -> d.rs (D)
  d.rs -> e.rs (E)
  e.rs -> c.rs (C)
a circle of 2 files: a.rs, b.rs
  a.rs -> b.rs (B)
  b.rs -> a.rs (A)
2 circles, 5 files and 5 of 6 arrows in them
";
    assert_eq!(report(&arrows, &graph::circles(&arrows)), expected);
    let straight = all(&[("lib.rs", "mod a; mod b;"), ("a.rs", "pub struct A;"), ("b.rs", "use crate::a::A;")]);
    let straight = straight.expect("a crate");
    assert_eq!(report(&straight, &graph::circles(&straight)), "0 circles, 0 files and 0 of 1 arrows in them\n");
}

#[test]
fn the_list_of_allowed_arrows_is_exact() {
    let arrows = all(&circular()).expect("a crate");
    let found = inside(&arrows, &graph::circles(&arrows));
    let list = "# a comment\n\na.rs -> b.rs\nb.rs -> a.rs\nc.rs -> d.rs\nd.rs -> e.rs\ne.rs -> c.rs\n";
    compare(&found, &allowed(list)).expect("all of it is allowed, and there");
    let error = |list: &str| compare(&found, &allowed(list)).expect_err("an error").to_string();
    let shorter = list.replace("d.rs -> e.rs\n", "");
    assert_eq!(error(&shorter), "not in xtask/circles.txt, and on a circle: d.rs -> e.rs");
    let longer = format!("{list}f.rs -> a.rs\n");
    assert_eq!(error(&longer), "on no circle any more, delete it from xtask/circles.txt: f.rs -> a.rs");
}
