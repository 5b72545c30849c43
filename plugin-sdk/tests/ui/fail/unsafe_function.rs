use toolbay_plugin::prelude::*;

/// Answers.
#[tool]
unsafe fn ping() {}

fn main() {}
