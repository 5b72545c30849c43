use toolbay_plugin::prelude::*;

#[tool(redonly)]
async fn ping(args: &str) {}

fn main() {}
