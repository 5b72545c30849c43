//! What `#[tool]` accepts, and how it explains what it does not.
//!
//! `TRYBUILD=overwrite cargo test -p toolbay-plugin --test ui` writes the
//! expected messages anew.

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
    cases.compile_fail("tests/ui/fail/*.rs");
}
