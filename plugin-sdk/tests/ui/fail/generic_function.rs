use toolbay_plugin::prelude::*;

/// Answers.
#[tool]
fn ping<T>() {}

fn main() {}
