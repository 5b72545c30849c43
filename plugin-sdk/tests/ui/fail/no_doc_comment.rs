use toolbay_plugin::prelude::*;

#[tool]
fn ping() {}

fn main() {}
