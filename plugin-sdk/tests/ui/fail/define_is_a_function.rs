use toolbay_plugin::prelude::*;

/// Answers.
#[tool(define = "with_icons")]
fn ping() {}

fn main() {}
