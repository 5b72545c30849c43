use toolbay_plugin::prelude::*;

/// Asks.
#[prompt(titel = "A")]
async fn ask(text: &str) {}

/// A note.
#[resource("notes://{id}")]
fn note() -> u8 {
    1
}

#[completion(note)]
fn ids(typed: &str) -> Vec<String> {
    Vec::new()
}

#[completion(rest, id)]
fn others(typed: String) -> Vec<String> {
    Vec::new()
}

#[resource]
struct Rest;

export!(ask, note, ids, others);

fn main() {}
