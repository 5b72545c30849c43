use toolbay_plugin::prelude::*;

/// Answers.
#[tool(read_only, destructive)]
fn ping() {}

fn main() {}
