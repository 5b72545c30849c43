use toolbay_plugin::prelude::*;

/// Greets.
#[tool]
fn greet(args: impl Sized) -> impl Sized {}

fn main() {}
