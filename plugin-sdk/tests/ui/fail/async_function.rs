use toolbay_plugin::prelude::*;

/// Answers.
#[tool]
async fn ping() {}

fn main() {}
