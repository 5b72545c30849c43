//! The steps of the demo. Each printed observation is checked first.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use toolbay_testkit::build::{BuildOutput, format_kib};
use toolbay_testkit::{
    DEADLINE, LIST_CHANGED, RequestResult, StdioClient, TestFolder, TimedMessage, message, revision,
};

use super::narrator::{
    DemoPrinter, format_ms, format_thousands, print_action, print_observation, print_server_output,
};

/// The plugins that are in the folder when the server starts.
const INITIAL_PLUGINS: [&str; 4] = ["calculator", "chart", "qr", "time"];

/// The plugin that misbehaves.
pub(super) const HOSTILE_PLUGIN: &str = "hostile";

/// The key of a call's usage in a result's `_meta`.
const USAGE_KEY: &str = "dev.toolbay/usage";

/// The JSON-RPC error code for an unknown tool.
const UNKNOWN_TOOL_CODE: i64 = -32602;

/// The plugin folder and the plugin files of the demo.
pub(super) struct DemoScenario {
    folder: PathBuf,
    newcomer: PathBuf,
    villain: PathBuf,
}

impl DemoScenario {
    /// Copies the first plugins into the folder.
    pub(super) fn prepare(built: &BuildOutput, folder: &TestFolder) -> Result<Self> {
        let folder = folder.plugin_folder();
        for id in INITIAL_PLUGINS {
            copy(&built.plugins.join(id).with_extension("wasm"), &folder)?;
        }
        Ok(Self {
            folder,
            newcomer: built.plugins.join("text.wasm"),
            villain: built.guests.join(HOSTILE_PLUGIN).with_extension("wasm"),
        })
    }

    /// Runs the demo against a server that has just been started.
    pub(super) fn run(&self, client: &mut StdioClient) -> Result<()> {
        let mut tell = DemoPrinter::new();
        self.show_startup(client, &mut tell)?;
        show_call(client, &mut tell)?;
        self.show_added_plugin(client, &mut tell)?;
        self.show_stopped_loop(client, &mut tell)?;
        self.show_broken_file(client, &mut tell)?;
        self.show_removed_plugin(client, &mut tell)
    }

    fn show_startup(&self, client: &mut StdioClient, tell: &mut DemoPrinter) -> Result<()> {
        tell.print_heading("The server starts");
        print_action(format!(
            "with the plugin folder {} and the plugins {}",
            self.folder.display(),
            INITIAL_PLUGINS.join(", ")
        ));
        let hello = client.initialize(revision::NEWEST_SESSION_REVISION)?;
        let revision = hello
            .message
            .get("protocolVersion")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let took = format_ms(hello.received_at - client.start_time());
        print_observation(format!(
            "it responded to the handshake after {took} (MCP {revision}); plugins load in the background"
        ));
        let mut tools = client.tool_names()?;
        while !["evaluate", "line_chart", "qr_png", "time_now"]
            .iter()
            .all(|name| has_tool(&tools, name))
        {
            client.notification(LIST_CHANGED)?;
            tools = client.tool_names()?;
        }
        let took = format_ms(client.start_time().elapsed());
        print_observation(format!(
            "{} tools were ready after {took}: {}",
            tools.len(),
            tools.join(", ")
        ));
        Ok(())
    }

    fn show_added_plugin(&self, client: &mut StdioClient, tell: &mut DemoPrinter) -> Result<()> {
        tell.print_heading("A plugin is added");
        let size = format_kib(fs::metadata(&self.newcomer)?.len());
        print_action(format!(
            "text.wasm ({size}) is copied into the folder; nothing restarts"
        ));
        let took = wait_for_list_change(
            client,
            || copy(&self.newcomer, &self.folder),
            |tools| has_tool(tools, "slugify"),
        )?;
        print_observation(format!(
            "the client was notified {took} after the copy finished, including compiling"
        ));
        call_slugify(client)
    }

    fn show_stopped_loop(&self, client: &mut StdioClient, tell: &mut DemoPrinter) -> Result<()> {
        tell.print_heading("A plugin loops forever");
        print_action("hostile.wasm is added, and its tool loop_forever is called");
        wait_for_list_change(
            client,
            || copy(&self.villain, &self.folder),
            |tools| has_tool(tools, "loop_forever"),
        )?;
        let begun = Instant::now();
        let looping = client.start_call_with_progress("loop_forever", &json!({}))?;
        client
            .notification("notifications/progress")
            .context("loop_forever did not begin")?;
        let asked = Instant::now();
        let answer = client.call("evaluate", &json!({"expression": "6 * 7"}))?;
        let value = successful_result(&answer)?
            .pointer("/structuredContent/value")
            .and_then(Value::as_f64);
        ensure!(value == Some(42.0), "6 * 7 was {value:?}");
        let end = client.finish_call(looping)?;
        ensure!(
            end.received_at > answer.received_at,
            "the loop ended before the other call did"
        );
        let took = format_ms(answer.received_at - asked);
        print_observation(format!(
            "meanwhile, another call returned in {took}: evaluate \"6 * 7\" is 42"
        ));
        let Ok(result) = &end.message else {
            bail!("loop_forever ended with an error of the protocol")
        };
        ensure!(
            message::error_kind(result) == Some("fuel"),
            "loop_forever was not stopped by fuel: {result}"
        );
        print_observation(format!(
            "it was stopped {} after the call began, {}; the model reads:",
            format_ms(end.received_at - begun),
            format_usage(result)?
        ));
        print_server_output(&first_text(result)?);
        Ok(())
    }

    fn show_broken_file(&self, client: &mut StdioClient, tell: &mut DemoPrinter) -> Result<()> {
        tell.print_heading("A broken file replaces a good one");
        print_action("text.wasm is overwritten with an HTML page, as after a failed download");
        fs::write(
            self.folder.join("text.wasm"),
            "<!doctype html><title>404 Not Found</title>",
        )?;
        let line = client.log().wait_for_matching(1, DEADLINE, |line| {
            line.contains("text") && line.contains("refused")
        })?;
        print_observation("it was refused; the server's log states the reason:");
        print_server_output(&line);
        print_observation("the previous version stays in service:");
        call_slugify(client)
    }

    fn show_removed_plugin(&self, client: &mut StdioClient, tell: &mut DemoPrinter) -> Result<()> {
        tell.print_heading("A plugin is removed and added again");
        print_action("text.wasm is deleted");
        let file = self.folder.join("text.wasm");
        let took = wait_for_list_change(
            client,
            || Ok(fs::remove_file(&file)?),
            |tools| !has_tool(tools, "slugify"),
        )?;
        print_observation(format!("the client was notified after {took}"));
        match client.call("slugify", &json!({"text": "Hello"}))?.message {
            Err(refusal) if refusal.code == UNKNOWN_TOOL_CODE => {
                print_observation(format!("its tools are gone: slugify returns {refusal}"));
            }
            other => bail!("slugify was still answered: {other:?}"),
        }
        print_action("text.wasm is copied into the folder again");
        let took = wait_for_list_change(
            client,
            || copy(&self.newcomer, &self.folder),
            |tools| has_tool(tools, "slugify"),
        )?;
        print_observation(format!(
            "the client was notified after {took}: the compiled component was cached"
        ));
        call_slugify(client)
    }
}

fn show_call(client: &mut StdioClient, tell: &mut DemoPrinter) -> Result<()> {
    tell.print_heading("The client calls a tool");
    let arguments = json!({"expression": "2 * (3 + sqrt(16)) ^ 2"});
    print_action(format!("evaluate {arguments}"));
    let asked = Instant::now();
    let answer = client.call("evaluate", &arguments)?;
    let result = successful_result(&answer)?;
    let value = result
        .pointer("/structuredContent/value")
        .and_then(Value::as_f64);
    ensure!(value == Some(98.0), "the value is {value:?}");
    print_observation(format!(
        "98, after {} in a new sandbox that held nothing before and is gone now",
        format_ms(answer.received_at - asked)
    ));
    print_observation(format!("it took {}", format_usage(result)?));
    Ok(())
}

fn call_slugify(client: &mut StdioClient) -> Result<()> {
    let arguments = json!({"text": "Hello, Toolbay!"});
    let asked = Instant::now();
    let answer = client.call("slugify", &arguments)?;
    let slug = first_text(successful_result(&answer)?)?;
    ensure!(slug == "hello-toolbay", "the slug is {slug}");
    print_observation(format!(
        "slugify {arguments} is {slug}, after {}",
        format_ms(answer.received_at - asked)
    ));
    Ok(())
}

/// Makes a change, and waits until the client is notified of a list of tools that `fits` accepts.
/// Returns the time between the end of the change and the notification, as text.
fn wait_for_list_change(
    client: &mut StdioClient,
    change: impl FnOnce() -> Result<()>,
    fits: impl Fn(&[String]) -> bool,
) -> Result<String> {
    let begun = Instant::now();
    change()?;
    let ended = Instant::now();
    loop {
        let TimedMessage {
            received_at: at, ..
        } = client.notification(LIST_CHANGED)?;
        if at >= begun && fits(&client.tool_names()?) {
            return Ok(format_ms(at.saturating_duration_since(ended)));
        }
    }
}

/// Returns the result of a successful call. Fails if the call failed.
fn successful_result(answer: &TimedMessage<RequestResult>) -> Result<&Value> {
    match &answer.message {
        Ok(result) if message::is_error(result) => {
            bail!("the call failed: {}", first_text(result)?)
        }
        Ok(result) => Ok(result),
        Err(refusal) => bail!("the call was rejected: {refusal}"),
    }
}

/// Returns the text of a result's first block.
fn first_text(result: &Value) -> Result<String> {
    let text = result.pointer("/content/0/text").and_then(Value::as_str);
    Ok(text.context("the result begins with no text")?.to_owned())
}

/// Formats the resource usage of a call.
fn format_usage(result: &Value) -> Result<String> {
    let usage = result
        .get("_meta")
        .and_then(|meta| meta.get(USAGE_KEY))
        .context("the result does not say what it used")?;
    let number = |key: &str| {
        usage
            .get(key)
            .and_then(Value::as_u64)
            .with_context(|| format!("no {key} in {usage}"))
    };
    Ok(format!(
        "{} units of fuel and {} of memory",
        format_thousands(number("fuel")?),
        format_kib(number("memory")?)
    ))
}

fn has_tool(tools: &[String], name: &str) -> bool {
    tools.iter().any(|tool| tool == name)
}

fn copy(file: &Path, folder: &Path) -> Result<()> {
    let to = folder.join(file.file_name().context("no file name")?);
    fs::copy(file, &to)
        .with_context(|| format!("failed to copy {} to {}", file.display(), to.display()))?;
    Ok(())
}
