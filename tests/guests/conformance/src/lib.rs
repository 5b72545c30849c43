//! What the official conformance suite calls, gets and reads, as a plugin like any other: so the
//! suite tests the sandbox too.

#![allow(
    clippy::disallowed_methods,
    reason = "the suite looks at what comes while a tool works"
)]

mod definitions;
mod media;
mod prompts;
mod questions;
mod resources;
mod tasks;

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use serde::Deserialize;
use toolbay_plugin::prelude::*;

use self::media::{PNG, WAV};

/// Long enough for a client to see messages one after another.
const MOMENT: Duration = Duration::from_millis(50);

/// Long enough for a server to end the stream of a call (`http.poll_after`).
const LONGER: Duration = Duration::from_secs(3);

/// Where the operator's grant shows the plugin folder, and plugins that are not in it.
const FOLDER: &str = "/plugins";
const SPARE: &str = "/spare";

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
    Resource::text(
        "test://embedded-resource",
        "This is an embedded resource content.",
    )
    .mime_type("text/plain")
}

/// Returns a text, a picture and a resource.
#[tool(read_only)]
fn test_multiple_content_types() -> Vec<Content> {
    let resource = Resource::text(
        "test://mixed-content-resource",
        r#"{"test":"data","value":123}"#,
    );
    vec![
        "Multiple content types test:".into(),
        Image::png(PNG).into(),
        resource.mime_type("application/json").into(),
    ]
}

/// Fails.
#[tool(read_only)]
fn test_error_handling() -> Result<()> {
    Err(Error::msg(
        "This tool intentionally returns an error for testing",
    ))
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

/// Takes long enough for its client to reconnect.
#[tool(read_only)]
fn test_reconnection() -> &'static str {
    sleep(LONGER);
    "The client has reconnected."
}

/// Logs three lines.
#[tool(read_only)]
fn test_tool_with_logging() -> &'static str {
    for line in [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ] {
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

/// Changes the list of tools: puts a plugin into the folder, or takes it away again.
#[tool]
fn test_trigger_tool_change() -> Result<&'static str> {
    come_or_go("tools.wasm")
}

/// Changes the list of prompts in the same way.
#[tool]
fn test_trigger_prompt_change() -> Result<&'static str> {
    come_or_go("prompts.wasm")
}

fn come_or_go(plugin: &str) -> Result<&'static str> {
    let place = format!("{FOLDER}/{plugin}");
    if fs::exists(&place)? {
        fs::remove_file(place)?;
        return Ok("A plugin is gone.");
    }
    fs::copy(format!("{SPARE}/{plugin}"), place)?;
    Ok("A plugin has come.")
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
    test_reconnection,
    test_trigger_tool_change,
    test_trigger_prompt_change,
    test_custom_headers,
    definitions::json_schema_2020_12_tool,
    definitions::test_missing_capability,
    prompts::test_simple_prompt,
    prompts::test_prompt_with_arguments,
    prompts::first_arguments,
    prompts::test_prompt_with_embedded_resource,
    prompts::test_prompt_with_image,
    questions::test_sampling,
    questions::test_elicitation,
    questions::test_elicitation_sep1034_defaults,
    questions::test_elicitation_sep1330_enums,
    questions::test_elicitation_url,
    questions::test_streaming_elicitation,
    questions::test_input_required_result_elicitation,
    questions::test_input_required_result_sampling,
    questions::test_input_required_result_list_roots,
    questions::test_input_required_result_request_state,
    questions::test_input_required_result_tampered_state,
    questions::test_input_required_result_multiple_inputs,
    questions::test_input_required_result_multi_round,
    questions::test_input_required_result_capabilities,
    questions::test_input_required_result_prompt,
    questions::greeting,
    resources::static_text,
    resources::static_binary,
    resources::watched_resource,
    resources::test_trigger_resource_update,
    resources::template_data,
    tasks::greet,
    tasks::slow_compute,
    tasks::failing_job,
    tasks::protocol_error_job,
    tasks::confirm_delete,
    tasks::multi_input,
    tasks::test_tool_with_task,
    resources::ids,
);
