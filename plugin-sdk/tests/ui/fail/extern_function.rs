use toolbay_plugin::prelude::*;

/// Answers.
#[tool]
extern "C" fn ping() {}

fn main() {}
