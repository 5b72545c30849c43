//! What `#[tool]` accepts, and its messages about everything else.
//!
//! `TRYBUILD=overwrite cargo test -p toolbay-plugin --test ui` rewrites the expected messages.

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
    cases.compile_fail("tests/ui/fail/*.rs");
}
