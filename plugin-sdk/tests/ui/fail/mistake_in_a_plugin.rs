use serde::Deserialize;
use toolbay_plugin::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Args {
    name: String,
}

/// Greets.
#[tool(titel = "Greeting")]
fn greet(args: Args) -> String {
    format!("Hello, {}!", args.name)
}

/// Answers.
#[tool]
fn ping() {}

export!(greet, ping);

fn main() {}
