//! Tests which functions `#[tool]` accepts, and the compiler messages for all others.
//!
//! `TRYBUILD=overwrite cargo test -p toolbay-plugin --test ui` rewrites the expected messages.

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
    cases.compile_fail("tests/ui/fail/*.rs");
}
