use toolbay_plugin::prelude::*;

struct Args;

/// Adds.
#[tool]
fn add(args: Args, ctx: Context) {}

/// Answers.
#[tool]
fn ping(ctx: Context) {}

fn main() {}
