//! Tests of `call`.

use super::*;

#[test]
fn an_error_quotes_the_end_of_standard_error_without_the_hint_about_backtraces() {
    let panic = "\nthread 'main' panicked at src/lib.rs:3:5:\nboom\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
    assert_eq!(
        stderr_tail(panic).unwrap(),
        "thread 'main' panicked at src/lib.rs:3:5:\nboom"
    );
    assert_eq!(stderr_tail(" \n"), None);
    let long = format!("{}é{}", "x".repeat(10), "y".repeat(MAX_STDERR_BYTES - 1));
    assert_eq!(
        stderr_tail(&long).unwrap(),
        "y".repeat(MAX_STDERR_BYTES - 1)
    );
}
