//! The steps of the demo. Each printed observation is checked first.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use toolbay_testkit::build::{Built, kib};
use toolbay_testkit::{Answer, Arrived, Client, DEADLINE, Folder, LIST_CHANGED, message, revision};

use super::narrator::{Narrator, does, ms, quotes, saw, thousands};

/// The plugins that are in the folder when the server starts.
const CAST: [&str; 4] = ["calculator", "chart", "qr", "time"];

/// The plugin that misbehaves.
pub(super) const VILLAIN: &str = "hostile";

/// The key of a call's usage in a result's `_meta`.
const USAGE: &str = "dev.toolbay/usage";

/// The JSON-RPC error code for an unknown tool.
const UNKNOWN_TOOL: i64 = -32602;

/// The plugin folder and the plugin files of the demo.
pub(super) struct Stage {
    folder: PathBuf,
    newcomer: PathBuf,
    villain: PathBuf,
}

impl Stage {
    /// Copies the first plugins into the folder.
    pub(super) fn set(built: &Built, folder: &Folder) -> Result<Self> {
        let folder = folder.plugins();
        for id in CAST {
            copy(&built.plugins.join(id).with_extension("wasm"), &folder)?;
        }
        Ok(Self {
            folder,
            newcomer: built.plugins.join("text.wasm"),
            villain: built.guests.join(VILLAIN).with_extension("wasm"),
        })
    }

    /// Runs the demo against a server that has just been started.
    pub(super) fn play(&self, client: &mut Client) -> Result<()> {
        let mut tell = Narrator::new();
        self.start(client, &mut tell)?;
        call(client, &mut tell)?;
        self.drop_in(client, &mut tell)?;
        self.stop_a_loop(client, &mut tell)?;
        self.break_a_file(client, &mut tell)?;
        self.remove(client, &mut tell)
    }

    fn start(&self, client: &mut Client, tell: &mut Narrator) -> Result<()> {
        tell.part("The server starts");
        does(format!("with the plugin folder {} and the plugins {}", self.folder.display(), CAST.join(", ")));
        let hello = client.initialize(revision::SESSION)?;
        let revision = hello.what.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        let took = ms(hello.at - client.started());
        saw(format!("it responded to the handshake after {took} (MCP {revision}); plugins load in the background"));
        let mut tools = client.names()?;
        while !["evaluate", "line_chart", "qr_png", "time_now"].iter().all(|name| has(&tools, name)) {
            client.notification(LIST_CHANGED)?;
            tools = client.names()?;
        }
        let took = ms(client.started().elapsed());
        saw(format!("{} tools were ready after {took}: {}", tools.len(), tools.join(", ")));
        Ok(())
    }

    fn drop_in(&self, client: &mut Client, tell: &mut Narrator) -> Result<()> {
        tell.part("A plugin is added");
        let size = kib(fs::metadata(&self.newcomer)?.len());
        does(format!("text.wasm ({size}) is copied into the folder; nothing restarts"));
        let took = told(client, || copy(&self.newcomer, &self.folder), |tools| has(tools, "slugify"))?;
        saw(format!("the client was notified {took} after the copy finished, including compiling"));
        slugify(client)
    }

    fn stop_a_loop(&self, client: &mut Client, tell: &mut Narrator) -> Result<()> {
        tell.part("A plugin loops forever");
        does("hostile.wasm is added, and its tool loop_forever is called");
        told(client, || copy(&self.villain, &self.folder), |tools| has(tools, "loop_forever"))?;
        let begun = Instant::now();
        let looping = client.begin_with_progress("loop_forever", &json!({}))?;
        client.notification("notifications/progress").context("loop_forever did not begin")?;
        let asked = Instant::now();
        let answer = client.call("evaluate", &json!({"expression": "6 * 7"}))?;
        let value = success(&answer)?.pointer("/structuredContent/value").and_then(Value::as_f64);
        ensure!(value == Some(42.0), "6 * 7 was {value:?}");
        let end = client.finish(looping)?;
        ensure!(end.at > answer.at, "the loop ended before the other call did");
        let took = ms(answer.at - asked);
        saw(format!("meanwhile, another call returned in {took}: evaluate \"6 * 7\" is 42"));
        let Ok(result) = &end.what else { bail!("loop_forever ended with an error of the protocol") };
        ensure!(message::error_kind(result) == Some("fuel"), "loop_forever was not stopped by fuel: {result}");
        saw(format!("it was stopped {} after the call began, {}; the model reads:", ms(end.at - begun), used(result)?));
        quotes(&text(result)?);
        Ok(())
    }

    fn break_a_file(&self, client: &mut Client, tell: &mut Narrator) -> Result<()> {
        tell.part("A broken file replaces a good one");
        does("text.wasm is overwritten with an HTML page, as after a failed download");
        fs::write(self.folder.join("text.wasm"), "<!doctype html><title>404 Not Found</title>")?;
        let line = client.log().find(1, DEADLINE, |line| line.contains("text") && line.contains("refused"))?;
        saw("it was refused; the server's log says why:");
        quotes(&line);
        saw("the previous version stays in service:");
        slugify(client)
    }

    fn remove(&self, client: &mut Client, tell: &mut Narrator) -> Result<()> {
        tell.part("A plugin is removed and added again");
        does("text.wasm is deleted");
        let file = self.folder.join("text.wasm");
        let took = told(client, || Ok(fs::remove_file(&file)?), |tools| !has(tools, "slugify"))?;
        saw(format!("the client was notified after {took}"));
        match client.call("slugify", &json!({"text": "Hello"}))?.what {
            Err(refusal) if refusal.code == UNKNOWN_TOOL => {
                saw(format!("its tools are gone: slugify returns {refusal}"));
            }
            other => bail!("slugify was still answered: {other:?}"),
        }
        does("text.wasm is copied into the folder again");
        let took = told(client, || copy(&self.newcomer, &self.folder), |tools| has(tools, "slugify"))?;
        saw(format!("the client was notified after {took}: the compiled component was cached"));
        slugify(client)
    }
}

fn call(client: &mut Client, tell: &mut Narrator) -> Result<()> {
    tell.part("The client calls a tool");
    let arguments = json!({"expression": "2 * (3 + sqrt(16)) ^ 2"});
    does(format!("evaluate {arguments}"));
    let asked = Instant::now();
    let answer = client.call("evaluate", &arguments)?;
    let result = success(&answer)?;
    let value = result.pointer("/structuredContent/value").and_then(Value::as_f64);
    ensure!(value == Some(98.0), "the value is {value:?}");
    saw(format!("98, after {} in a new sandbox that held nothing before and is gone now", ms(answer.at - asked)));
    saw(format!("it took {}", used(result)?));
    Ok(())
}

fn slugify(client: &mut Client) -> Result<()> {
    let arguments = json!({"text": "Hello, Toolbay!"});
    let asked = Instant::now();
    let answer = client.call("slugify", &arguments)?;
    let slug = text(success(&answer)?)?;
    ensure!(slug == "hello-toolbay", "the slug is {slug}");
    saw(format!("slugify {arguments} is {slug}, after {}", ms(answer.at - asked)));
    Ok(())
}

/// Makes a change, and waits until the client is notified of a list of tools that `fits` accepts.
/// Returns the time between the end of the change and the notification, as text.
fn told(client: &mut Client, change: impl FnOnce() -> Result<()>, fits: impl Fn(&[String]) -> bool) -> Result<String> {
    let begun = Instant::now();
    change()?;
    let ended = Instant::now();
    loop {
        let Arrived { at, .. } = client.notification(LIST_CHANGED)?;
        if at >= begun && fits(&client.names()?) {
            return Ok(ms(at.saturating_duration_since(ended)));
        }
    }
}

/// Returns the result of a successful call. Fails if the call failed.
fn success(answer: &Arrived<Answer>) -> Result<&Value> {
    match &answer.what {
        Ok(result) if message::is_error(result) => bail!("the call failed: {}", text(result)?),
        Ok(result) => Ok(result),
        Err(refusal) => bail!("the call was rejected: {refusal}"),
    }
}

/// Returns the text of a result's first block.
fn text(result: &Value) -> Result<String> {
    let text = result.pointer("/content/0/text").and_then(Value::as_str);
    Ok(text.context("the result begins with no text")?.to_owned())
}

/// Formats the resource usage of a call.
fn used(result: &Value) -> Result<String> {
    let usage = result.get("_meta").and_then(|meta| meta.get(USAGE)).context("the result does not say what it used")?;
    let number = |key: &str| usage.get(key).and_then(Value::as_u64).with_context(|| format!("no {key} in {usage}"));
    Ok(format!("{} units of fuel and {} of memory", thousands(number("fuel")?), kib(number("memory")?)))
}

fn has(tools: &[String], name: &str) -> bool {
    tools.iter().any(|tool| tool == name)
}

fn copy(file: &Path, folder: &Path) -> Result<()> {
    let to = folder.join(file.file_name().context("no file name")?);
    fs::copy(file, &to).with_context(|| format!("failed to copy {} to {}", file.display(), to.display()))?;
    Ok(())
}
