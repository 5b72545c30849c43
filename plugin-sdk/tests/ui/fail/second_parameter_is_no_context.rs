use toolbay_plugin::prelude::*;

struct Args;

/// Adds.
#[tool]
fn add(a: Args, b: Args) {}

fn main() {}
