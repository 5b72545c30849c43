//! A small plugin that never rests: it comes in numbered editions, and keeps the host busy for as
//! long as it may.
//!
//! Written against the contract alone, so that an edition compiles at once.

mod bindings {
    #![allow(
        unsafe_code,
        unreachable_pub,
        missing_docs,
        clippy::pedantic,
        reason = "generated"
    )]
    #![allow(
        clippy::indexing_slicing,
        clippy::allow_attributes_without_reason,
        reason = "generated"
    )]

    wit_bindgen::generate!({
        path: "../../../wit/0.2.0",
        // The standard library asks for randomness only to hash with.
        inline: "
            package toolbay:restless;

            world restless {
                include toolbay:plugin/plugin@0.2.0;
                import wasi:random/random@0.2.0;
            }

            package wasi:random@0.2.0 {
                interface random {
                    get-random-bytes: func(len: u64) -> list<u8>;
                    get-random-u64: func() -> u64;
                }
            }
        ",
        world: "toolbay:restless/restless",
        generate_all,
    });

    export!(Restless with_types_in self);

    use super::Restless;
}

use std::hint::black_box;
use std::time::{Duration, Instant};

use bindings::exports::toolbay::plugin::tools::{Failure, Guest, Output, ToolDefinition};
use bindings::toolbay::plugin::host;
use bindings::toolbay::plugin::types::Content;
use bindings::wasi::random::random;

/// Which edition this is. Whoever makes another one changes the six digits in the file.
const EDITION: &str = "restless-edition-000000";

/// One request for randomness: the most that the host grants by default, so that each host call
/// takes long.
const RANDOM_BYTES: u64 = 64 << 10;

/// What every edition offers.
const TOOLS: [(&str, &str); 6] = [
    (
        "edition",
        "Says which edition this is, and what `config.note` says.",
    ),
    ("spin", "Computes for ever."),
    ("clock", "Asks for the time for ever."),
    ("random", "Asks for random bytes for ever."),
    ("sleep", "Sleeps for an hour."),
    (
        "rounds",
        "Computes as `spin` does, for as many rounds as its only argument says, and says what came of it.",
    ),
];

/// What odd editions offer besides, so that the list of tools changes from one to the next.
const ODD: (&str, &str) = ("odd", "Is there in odd editions.");

struct Restless;

impl Guest for Restless {
    fn list_tools() -> Vec<ToolDefinition> {
        let edition = black_box(EDITION);
        let odd = edition
            .bytes()
            .next_back()
            .is_some_and(|digit| digit % 2 == 1);
        TOOLS
            .into_iter()
            .chain(odd.then_some(ODD))
            .map(definition)
            .collect()
    }

    fn call_tool(name: String, arguments: String) -> Result<Output, Failure> {
        // Whoever waits for this knows that the call has begun.
        host::progress(1.0, None, None);
        match name.as_str() {
            "edition" => Ok(text(format!(
                "{} {}",
                black_box(EDITION),
                host::config("note").unwrap_or_default()
            ))),
            "spin" => loop {
                spin(u64::MAX);
            },
            "clock" => loop {
                black_box(Instant::now());
            },
            "random" => loop {
                black_box(random::get_random_bytes(RANDOM_BYTES));
            },
            "sleep" => Ok(text(sleep())),
            "rounds" => Ok(text(spin(number(&arguments)?).to_string())),
            "odd" => Ok(text("odd".to_owned())),
            other => Err(Failure::Failed(format!("there is no {other}"))),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "sleeping is what it is for")]
fn sleep() -> String {
    std::thread::sleep(Duration::from_hours(1));
    "awake".to_owned()
}

/// The loop that `spin` and `rounds` share, so that the same fuel takes both equally long.
#[inline(never)]
fn spin(rounds: u64) -> u64 {
    let mut n = 1_u64;
    for round in 0..rounds {
        n = black_box(n.wrapping_mul(3) ^ round);
    }
    n
}

/// The digits in the arguments: the host has checked that they are one number.
fn number(arguments: &str) -> Result<u64, Failure> {
    let digits: String = arguments.chars().filter(char::is_ascii_digit).collect();
    digits
        .parse()
        .map_err(|_| Failure::InvalidArguments("`n` is how many rounds to compute".to_owned()))
}

fn definition((name, description): (&str, &str)) -> ToolDefinition {
    let input = if name == "rounds" {
        r#"{"type":"object","properties":{"n":{"type":"integer","minimum":0}},"required":["n"]}"#
    } else {
        r#"{"type":"object"}"#
    };
    ToolDefinition {
        name: name.to_owned(),
        title: None,
        description: Some(description.to_owned()),
        input_schema: input.to_owned(),
        output_schema: None,
        annotations: None,
        icons: Vec::new(),
        meta: None,
    }
}

fn text(text: String) -> Output {
    let block = Content {
        kind: "text".to_owned(),
        text: Some(text),
        data: None,
        mime_type: None,
        uri: None,
        name: None,
        title: None,
        description: None,
        size: None,
        audience: Vec::new(),
        priority: None,
        last_modified: None,
        members: None,
    };
    Output {
        content: vec![block],
        structured: None,
        meta: None,
    }
}
