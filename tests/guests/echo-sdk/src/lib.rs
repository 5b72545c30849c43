//! The tools of `tests/guests/echo` on the SDK.

use serde::Deserialize;
use toolbay_plugin::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Message {
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct Rounds {
    rounds: u32,
}

/// Returns the message.
#[tool]
fn echo(args: Message) -> String {
    args.message
}

/// Computes for so many rounds.
#[tool]
fn burn(args: Rounds) -> String {
    // The generator of Park and Miller.
    (0..args.rounds)
        .fold(1_u64, |number, _| number * 48_271 % 2_147_483_647)
        .to_string()
}

export!(echo, burn);
