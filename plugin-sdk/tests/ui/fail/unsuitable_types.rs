use toolbay_plugin::prelude::*;

struct Unknown;

/// Asks.
#[prompt]
fn ask(what: Unknown) -> String {
    String::new()
}

/// Answers.
#[prompt]
fn answer() -> Unknown {
    Unknown
}

/// A note.
#[resource("notes://all")]
fn notes() -> Unknown {
    Unknown
}

#[completion(ask, what)]
fn whats(typed: &str) -> Unknown {
    Unknown
}

export!(ask, answer, notes, whats);

fn main() {}
