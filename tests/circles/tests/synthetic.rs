//! Small crates, with and without cycles.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by it"
)]

use std::fs;

use circles::{Circle, Unit, circles, dependencies};
use tempfile::TempDir;

/// Writes a crate with these files, whose paths are relative to `src`.
fn written(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn found(unit: Unit, files: &[(&str, &str)]) -> Vec<Circle> {
    circles(&written(files).path().join("lib.rs"), unit).unwrap()
}

/// Returns the modules of each cycle.
fn members(unit: Unit, files: &[(&str, &str)]) -> Vec<String> {
    found(unit, files)
        .iter()
        .map(|circle| circle.modules.join(" "))
        .collect()
}

/// Returns the dependencies, without their paths.
fn arrows(files: &[(&str, &str)]) -> Vec<String> {
    let lines = dependencies(&written(files).path().join("lib.rs")).unwrap();
    lines
        .iter()
        .map(|line| line.split(" (").next().unwrap().to_owned())
        .collect()
}

#[test]
fn one_way_is_no_circle() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B; struct A(B);"),
        ("b.rs", "pub struct B;"),
    ];
    assert!(members(Unit::File, &files).is_empty());
    assert_eq!(arrows(&files), ["a -> b"]);
}

#[test]
fn a_circle_is_reported_by_its_shortest_way() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "use crate::b::B; pub struct A(B);"),
        (
            "b.rs",
            "// See A.\nuse crate::c::C;\nuse crate::a::A;\npub struct B(C, Box<A>);",
        ),
        ("c.rs", "use crate::a::A; pub struct C(Box<A>);"),
        ("d.rs", "use crate::a::A; struct D(A);"),
    ];
    let circles = found(Unit::File, &files);
    assert_eq!(circles.len(), 1);
    assert_eq!(circles[0].modules, ["a", "b", "c"]);
    let steps: Vec<(&str, Option<usize>)> = circles[0]
        .shortest
        .iter()
        .map(|step| (step.name.as_str(), step.line))
        .collect();
    assert_eq!(steps, [("crate::b::B", Some(1)), ("crate::a::A", Some(3))]);
    let text = circles[0].to_string();
    assert!(
        text.starts_with(
            "3 modules depend on each other: a, b, c\nthe shortest way round:\n  a uses b by"
        ),
        "{text}"
    );
    assert!(text.ends_with("b.rs:3"), "{text}");
}

#[test]
fn a_parent_may_declare_and_re_export_a_child_that_uses_it() {
    let child = ("a/b.rs", "use super::Shared; pub struct B(Shared);");
    let declares = [
        ("lib.rs", "mod a;"),
        ("a.rs", "mod b; pub use self::b::B; pub struct Shared;"),
        child,
    ];
    assert!(members(Unit::File, &declares).is_empty());
    assert_eq!(arrows(&declares), ["a::b -> a"]);
    for parent in [
        "mod b; pub use self::b::B; pub struct Shared; struct User(B);",
        "mod b; use self::b::B; pub struct Shared; struct User(B);",
        "mod b; pub struct Shared; fn user() { b::B::new() }",
        "mod b; pub struct Shared; fn user() { vec![b::B::new()] }",
        "mod b; pub struct Shared; fn user() { use b::B; }",
        "mod b; pub use self::b::*; pub struct Shared; struct User(B);",
        "mod b; pub struct Shared; #[derive(Serialize)] struct User { #[serde(with = \"b::B\")] a: u8 }",
    ] {
        assert_eq!(
            members(Unit::File, &[declares[0], ("a.rs", parent), child]),
            ["a a::b"],
            "{parent}"
        );
    }
}

#[test]
fn a_re_export_of_something_elsewhere_counts() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub use crate::b::B; pub struct A;"),
        ("b.rs", "use crate::a::A; pub struct B(A);"),
    ];
    assert_eq!(members(Unit::File, &files), ["a b"]);
}

#[test]
fn names_lead_through_re_exports_to_where_they_are_defined() {
    let files = [
        ("lib.rs", "mod a; mod user; pub use a::Deep as Renamed;"),
        ("a.rs", "mod b; pub use b::*; pub struct Own;"),
        ("a/b.rs", "mod c; pub(crate) use c::Deep;"),
        ("a/b/c.rs", "pub struct Deep;"),
        (
            "user.rs",
            "use crate::Renamed; use super::a as other; struct User(Renamed, other::Own);",
        ),
    ];
    assert_eq!(arrows(&files), ["user -> a", "user -> a::b::c"]);
}

#[test]
fn tests_and_fuzzing_are_left_out() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        (
            "a.rs",
            "pub struct A; #[cfg(test)] mod tests { use crate::b::B; } #[cfg(any(test, fuzzing))] use crate::b::B; impl A { #[cfg(fuzzing)] fn f() -> crate::b::B {} }",
        ),
        ("b.rs", "use crate::a::A; pub struct B(A);"),
    ];
    assert_eq!(arrows(&files), ["b -> a"]);
}

#[test]
fn words_that_may_be_variables_are_no_dependencies() {
    let files = [
        ("lib.rs", "mod a;"),
        (
            "a.rs",
            "mod b; pub use self::b::{thousands, Kind}; pub struct Shared { thousands: u8 } fn f(x: Shared) { let thousands = x.thousands; g(thousands); info!(thousands = 3); }",
        ),
        (
            "a/b.rs",
            "use super::Shared; pub fn thousands(s: Shared) {} pub struct Kind;",
        ),
    ];
    assert_eq!(arrows(&files), ["a::b -> a"]);
}

#[test]
fn functions_given_to_a_type_elsewhere_count_where_they_are() {
    let parent = "mod b; pub struct A; impl A { fn run(&self) { self.help(); self.own(); } fn own(&self) {} }";
    let child = "use super::A; impl A { pub(super) fn help(&self) {} }";
    assert_eq!(
        members(
            Unit::File,
            &[("lib.rs", "mod a;"), ("a.rs", parent), ("a/b.rs", child)]
        ),
        ["a a::b"]
    );
    let parent = "mod b; pub struct A; fn run() { A::help(); }";
    assert_eq!(
        members(
            Unit::File,
            &[("lib.rs", "mod a;"), ("a.rs", parent), ("a/b.rs", child)]
        ),
        ["a a::b"]
    );
    let parent = "mod b; pub struct A; fn run() { A::other(); }";
    assert!(
        members(
            Unit::File,
            &[("lib.rs", "mod a;"), ("a.rs", parent), ("a/b.rs", child)]
        )
        .is_empty()
    );
}

#[test]
fn a_method_of_a_re_exported_trait_needs_the_trait() {
    let child = (
        "a/b.rs",
        "use super::A; pub trait Help { fn help(&self); } impl Help for A {}",
    );
    let calls = "mod b; pub use b::Help; pub struct A; fn f(a: A) { a.help() }";
    assert_eq!(
        members(Unit::File, &[("lib.rs", "mod a;"), ("a.rs", calls), child]),
        ["a a::b"]
    );
    let calls_not = "mod b; pub use b::Help; pub struct A; fn f(a: A) { a.other() }";
    assert!(
        members(
            Unit::File,
            &[("lib.rs", "mod a;"), ("a.rs", calls_not), child]
        )
        .is_empty()
    );
}

#[test]
fn macros_count_where_they_are_defined() {
    let files = [
        ("lib.rs", "#[macro_use] mod a; mod b;"),
        ("a.rs", "macro_rules! make { () => { $crate::b::B } }"),
        ("b.rs", "pub struct B; fn f() { make!() }"),
    ];
    assert_eq!(members(Unit::File, &files), ["a b"]);
    let exported = [
        ("lib.rs", "mod a; mod b;"),
        (
            "a.rs",
            "use crate::b::B; #[macro_export] macro_rules! make { () => {} } struct A(B);",
        ),
        ("b.rs", "pub struct B; fn f() { crate::make!() }"),
    ];
    assert_eq!(members(Unit::File, &exported), ["a b"]);
}

#[test]
fn inline_modules_belong_to_their_file() {
    let files = [
        (
            "lib.rs",
            "mod a { mod b { use super::A; struct B(A); } struct A(b::B); } mod c;",
        ),
        ("c.rs", "use crate::a::A;"),
    ];
    assert!(members(Unit::File, &files).is_empty());
    assert_eq!(arrows(&files), ["c -> crate"]);
}

#[test]
fn modules_are_found_where_the_compiler_finds_them() {
    let files = [
        (
            "lib.rs",
            "mod a; mod i { mod j; } #[path = \"odd/name.rs\"] mod odd;",
        ),
        ("a/mod.rs", "mod b; pub struct A;"),
        ("a/b.rs", "use super::A;"),
        ("i/j.rs", "use crate::odd::r#O;"),
        ("odd/name.rs", "pub struct O;"),
    ];
    assert_eq!(arrows(&files), ["a::b -> a", "i::j -> odd"]);
}

#[test]
fn names_of_other_crates_are_none_of_ours() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        (
            "a.rs",
            "use ::b::B; use std::fmt; fn f() { ::b::g(); std::b::C; }",
        ),
        ("b.rs", "use crate::a::A;"),
    ];
    assert!(arrows(&files).is_empty(), "a.rs defines no A");
}

#[test]
fn siblings_form_a_circle_with_what_is_below_them() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub mod one; pub mod two;"),
        ("a/one.rs", "pub struct One;"),
        ("a/two.rs", "use crate::b::four::Four;"),
        ("b.rs", "pub mod three; pub mod four;"),
        ("b/three.rs", "use crate::a::one::One;"),
        ("b/four.rs", "pub struct Four;"),
    ];
    assert!(members(Unit::File, &files).is_empty());
    let circles = found(Unit::Folder, &files);
    assert_eq!(circles.len(), 1);
    assert_eq!(circles[0].modules, ["a", "b"]);
    let steps: Vec<_> = circles[0]
        .shortest
        .iter()
        .map(|step| (step.module.as_str(), step.uses.as_str()))
        .collect();
    assert_eq!(steps, [("a::two", "b::four"), ("b::three", "a::one")]);
}

#[test]
fn what_cannot_be_read_is_an_error() {
    let error = |files: &[(&str, &str)]| {
        format!(
            "{:#}",
            circles(&written(files).path().join("lib.rs"), Unit::File).unwrap_err()
        )
    };
    assert!(error(&[("lib.rs", "mod nowhere;")]).contains("nowhere"));
    assert!(error(&[("lib.rs", "fn fn")]).contains("lib.rs"));
    assert!(error(&[("main.rs", "")]).contains("lib.rs"));
}
