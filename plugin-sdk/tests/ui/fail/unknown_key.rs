use toolbay_plugin::prelude::*;

/// Answers.
#[tool(readonly)]
fn ping() {}

/// Answers.
#[tool(colour = "red")]
fn pong() {}

fn main() {}
