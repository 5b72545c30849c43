use toolbay_plugin::prelude::*;

/// Answers.
#[tool]
fn ping() {}

/// Forgot something.
fn greet() -> &'static str {
    "Hello!"
}

mod animals {
    /// As well.
    pub fn moo() {}
}

export!(ping, greet, animals::moo);

fn main() {}
