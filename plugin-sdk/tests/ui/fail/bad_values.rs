use toolbay_plugin::prelude::*;

/// Answers.
#[tool(name = "two words", title, icon = "ftp://x/y.png", open_world = "yes", idempotent(false))]
fn ping() {}

/// Answers.
#[tool(read_only, read_only)]
fn pong() {}

fn main() {}
