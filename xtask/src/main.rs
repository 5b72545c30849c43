//! Toolbay.
fn main() {}
