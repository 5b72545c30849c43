//! The tools that the official conformance suite calls, as a plugin like any other: so the suite tests the sandbox too.

#![allow(clippy::disallowed_methods, reason = "the suite looks at what comes while a tool works")]

mod definitions;

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use serde::Deserialize;
use toolbay_plugin::prelude::*;

/// A red pixel.
const PNG: &[u8] = include_bytes!("pixel.png");

/// Eight samples of silence.
const WAV: &[u8] = b"RIFF\x2c\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\x08\0\0\0\x80\x80\x80\x80\x80\x80\x80\x80";

/// Long enough for a client to see messages one after another.
const MOMENT: Duration = Duration::from_millis(50);

/// Where the operator's grant shows the plugin folder, and a plugin that is not in it.
const FOLDER: &str = "/plugins/newcomer.wasm";
const NEWCOMER: &str = "/spare/newcomer.wasm";

/// Returns a text.
#[tool(read_only)]
fn test_simple_text() -> &'static str {
    "This is a simple text response for testing."
}

/// Returns a picture.
#[tool(read_only)]
fn test_image_content() -> Image {
    Image::png(PNG)
}

/// Returns a sound.
#[tool(read_only)]
fn test_audio_content() -> Audio {
    Audio::wav(WAV)
}

/// Returns a resource.
#[tool(read_only)]
fn test_embedded_resource() -> Resource {
    Resource::text("test://embedded-resource", "This is an embedded resource content.").mime_type("text/plain")
}

/// Returns a text, a picture and a resource.
#[tool(read_only)]
fn test_multiple_content_types() -> Vec<Content> {
    let resource = Resource::text("test://mixed-content-resource", r#"{"test":"data","value":123}"#);
    vec!["Multiple content types test:".into(), Image::png(PNG).into(), resource.mime_type("application/json").into()]
}

/// Fails.
#[tool(read_only)]
fn test_error_handling() -> Result<()> {
    Err(Error::msg("This tool intentionally returns an error for testing"))
}

/// Reports progress: 0, 50 and 100 of 100.
#[tool(read_only)]
fn test_tool_with_progress(ctx: &Context) -> &'static str {
    for step in [0.0, 50.0, 100.0] {
        ctx.progress(step, 100.0);
        sleep(MOMENT);
    }
    "Progress was reported."
}

/// Logs three lines.
#[tool(read_only)]
fn test_tool_with_logging() -> &'static str {
    for line in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        info!("{line}");
        sleep(MOMENT);
    }
    "Three lines were logged."
}

/// Logs a line.
#[tool(read_only)]
fn test_logging_tool() -> &'static str {
    info!("A line for whoever asked for it");
    "A line was logged."
}

/// Answers on a stream, with nothing asked of the client.
#[tool(read_only)]
fn test_streaming_elicitation(ctx: &Context) -> &'static str {
    ctx.progress(1.0, 1.0);
    "Nothing had to be asked."
}

/// Changes the list of tools: puts a plugin into the folder, or takes it away again.
#[tool]
fn test_trigger_tool_change() -> Result<&'static str> {
    if fs::exists(FOLDER)? {
        fs::remove_file(FOLDER)?;
        return Ok("A tool is gone.");
    }
    fs::copy(NEWCOMER, FOLDER)?;
    Ok("A tool has come.")
}

#[derive(Deserialize, JsonSchema)]
struct Region {
    /// Where to look.
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
    /// How much to look at.
    #[serde(default)]
    #[schemars(extend("x-mcp-header" = "Count"))]
    count: u32,
}

/// Has arguments that clients repeat in HTTP headers.
#[tool(read_only)]
fn test_custom_headers(args: Region) -> String {
    format!("{} {}", args.region, args.count)
}

export!(
    test_simple_text,
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_error_handling,
    test_tool_with_progress,
    test_tool_with_logging,
    test_logging_tool,
    test_streaming_elicitation,
    test_trigger_tool_change,
    test_custom_headers,
    definitions::json_schema_2020_12_tool,
    definitions::test_missing_capability,
);
