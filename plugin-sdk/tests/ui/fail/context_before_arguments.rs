use toolbay_plugin::prelude::*;

struct Args;

/// Adds.
#[tool]
fn add(ctx: &Context, args: Args) {}

fn main() {}
