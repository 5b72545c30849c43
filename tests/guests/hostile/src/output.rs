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

/// Returns numbered lines of 64 bytes, `n` bytes in all.
#[tool]
pub(crate) fn lines(args: Size) -> String {
    let line = |number: usize| format!("{number:08} {}\n", "abcdefghijklmnopqrstuvwxyz ".repeat(2));
    (0..args.n / 64).map(line).collect()
}

/// Returns a caption, an image of `n` bytes, and numbered lines of as many.
#[tool]
pub(crate) fn illustrated(args: Size) -> Vec<Content> {
    vec![
        Content::text("The picture:"),
        Content::image(vec![7; args.n], "image/png"),
        Content::text(lines(args)),
    ]
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Rows {
    rows: Vec<String>,
}

/// Returns structured content of about `n` bytes, as it promised.
#[tool]
pub(crate) fn rows(args: Size) -> Json<Rows> {
    Json(Rows {
        rows: lines(args).lines().map(str::to_owned).collect(),
    })
}

/// Fails with a message of `n` bytes.
#[tool]
pub(crate) fn fail_at_length(args: Size) -> Result<String> {
    Err(Error::msg(lines(args)))
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
        schemars::json_schema!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["n"]})
    }
}

/// Promises a number and returns a text.
#[tool]
pub(crate) fn mismatch() -> Json<Anything> {
    Json(Anything(json!({"n": "seven"})))
}
