use toolbay_plugin::prelude::*;

struct Args;

/// Adds.
#[tool]
fn add(args: &Args) {}

fn main() {}
