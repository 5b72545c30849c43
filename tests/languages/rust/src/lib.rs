//! The tools that every language's acceptance plugin has.

use serde::{Deserialize, Serialize};
use toolbay_plugin::prelude::*;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Text {
    /// Text to answer.
    text: String,
}

/// Answers the text unchanged.
#[tool(read_only)]
fn rust_echo(args: Text) -> String {
    args.text
}

/// Fails by a panic that nobody catches.
#[tool]
fn rust_boom() {
    panic!("kaboom: {}", 6 * 7);
}

/// Says that its arguments make no sense.
#[tool]
fn rust_refuse() -> Result<()> {
    invalid!("not today");
}

/// Answers a picture and a text.
#[tool(read_only)]
fn rust_image() -> (Image, &'static str) {
    (Image::png(*b"\x89PNG\r\n\x1a\n"), "a picture")
}

#[derive(Serialize, JsonSchema)]
struct Report {
    /// `config.units`.
    units: Option<String>,
    /// Whether nobody waits any more.
    cancelled: bool,
}

/// Logs, reports progress, reads the configuration and asks whether it is cancelled.
#[tool(read_only)]
fn rust_report(ctx: &Context) -> Json<Report> {
    info!("working");
    ctx.progress(1.0, 2.0);
    ctx.progress(2.0, 2.0);
    Json(Report { units: ctx.config("units"), cancelled: ctx.cancelled() })
}

export!(rust_echo, rust_boom, rust_refuse, rust_image, rust_report);
