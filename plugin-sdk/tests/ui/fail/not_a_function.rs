use toolbay_plugin::prelude::*;

/// Answers.
#[tool]
struct Ping;

fn main() {}
