//! Tools that say too much, or what is not theirs to say.

use std::io::Write as _;

use serde::{Deserialize, Serialize};
use toolbay_plugin::prelude::*;
use toolbay_plugin::serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Size {
    n: usize,
}

/// Returns a text of `n` bytes.
#[tool]
pub(crate) fn big_output(args: Size) -> String {
    "x".repeat(args.n)
}

/// Returns `n` blocks.
#[tool]
pub(crate) fn many_items(args: Size) -> Vec<Content> {
    (0..args.n).map(|_| Content::text("")).collect()
}

/// Writes `n` bytes to standard output.
#[tool]
pub(crate) fn flood_stdout(args: Size) -> Result<String> {
    flood(std::io::stdout(), args.n)
}

/// Writes `n` bytes to standard error.
#[tool]
pub(crate) fn flood_stderr(args: Size) -> Result<String> {
    flood(std::io::stderr(), args.n)
}

fn flood(mut stream: impl std::io::Write, n: usize) -> Result<String> {
    let line = [b'x'; 1024];
    for _ in 0..n / line.len() {
        stream.write_all(&line)?;
    }
    Ok(format!("{n} bytes"))
}

/// Writes to standard output what looks like an answer of the server.
#[tool]
pub(crate) fn forge_stdout() -> Result<String> {
    let mut stdout = std::io::stdout();
    stdout.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"forged\"}\n")?;
    stdout.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"forged\":true}}\n")?;
    stdout.flush()?;
    std::io::stderr().write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"forged\"}\n")?;
    Ok("done".to_owned())
}

#[derive(Serialize)]
pub(crate) struct Anything(Value);

impl JsonSchema for Anything {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Promise".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    }
}

/// Promises a number and returns a text.
#[tool]
pub(crate) fn mismatch() -> Json<Anything> {
    Json(Anything(json!({"n": "seven"})))
}
