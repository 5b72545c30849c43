use toolbay_plugin::prelude::*;

/// Greets.
#[tool]
fn greet(name: String) {}

fn main() {}
