//! `toolbay list`: what would be served, and why a file is refused.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::json;

use super::{Common, Listen, block_on, loaded, print};
use crate::catalog::{Granted, PluginReport, Snapshot, Status};
use crate::limits::Limits;
use crate::mcp::definition_json;
use crate::plugin::grant::Access;

pub(super) fn run(common: &Common, json: bool) -> anyhow::Result<ExitCode> {
    let config = common.configure(true, &Listen::default())?;
    let folder = config.plugins.display().to_string();
    block_on(async {
        let (_service, snapshot) = loaded(config).await?;
        print(&if json { as_json(&snapshot)? } else { as_text(&snapshot, &folder) });
        Ok(ExitCode::SUCCESS)
    })
}

fn as_json(snapshot: &Snapshot) -> serde_json::Result<String> {
    let tools: Vec<_> = snapshot.tools.values().map(|tool| definition_json(tool)).collect();
    let mut text = serde_json::to_string_pretty(&json!({"plugins": snapshot.plugins, "tools": tools}))?;
    text.push('\n');
    Ok(text)
}

fn as_text(snapshot: &Snapshot, folder: &str) -> String {
    if snapshot.plugins.is_empty() {
        return format!("No plugins in {folder}: copy a .wasm file there.\n");
    }
    let mut out = String::new();
    for (id, report) in &snapshot.plugins {
        plugin(&mut out, id, report, snapshot);
    }
    let serving = snapshot.plugins.values().filter(|report| !report.tools.is_empty()).count();
    let refused = snapshot.plugins.values().filter(|report| report.status == Status::Refused).count();
    let _ = write!(out, "{} from {}", count(snapshot.tools.len(), "tool"), count(serving, "plugin"));
    if refused > 0 {
        let _ = write!(out, "; {} refused", count(refused, "file"));
    }
    out.push('\n');
    out
}

fn plugin(out: &mut String, id: &str, report: &PluginReport, snapshot: &Snapshot) {
    let status = match report.status {
        Status::Loading => "loading",
        Status::Ready => "ready",
        Status::Stale => "stale",
        Status::Refused => "refused",
    };
    let digest = report.digest.as_deref().and_then(|digest| digest.get(..12)).unwrap_or_default();
    let _ = writeln!(out, "{}", format!("{id}  {status}  {digest}").trim_end());
    for problem in &report.problems {
        let _ = writeln!(out, "    ! {problem}");
    }
    for name in &report.tools {
        let description = snapshot.tools.get(name).and_then(|tool| tool.definition.description.as_deref());
        let _ = writeln!(out, "{}", format!("    {name}  {}", summary(description.unwrap_or_default())).trim_end());
    }
    if let Some(granted) = &report.grant {
        for line in grants(granted) {
            let _ = writeln!(out, "    + {line}");
        }
    }
    out.push('\n');
}

/// The first sentence of a description, on one line.
fn summary(description: &str) -> String {
    let paragraph = description.split("\n\n").next().unwrap_or_default();
    let line = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.find(". ") {
        Some(end) => line.get(..=end).unwrap_or(&line).to_owned(),
        None => line,
    }
}

/// What was granted beyond nothing.
fn grants(granted: &Granted) -> Vec<String> {
    let mut lines = Vec::new();
    let permissions = &granted.permissions;
    if !permissions.environment.is_empty() {
        lines.push(format!("may read the environment variables {}", permissions.environment.join(", ")));
    }
    for mount in &permissions.mounts {
        let verb = match mount.access {
            Access::Read => "read",
            Access::ReadWrite => "read and write",
        };
        lines.push(format!("may {verb} {} as {}", mount.host.display(), mount.guest));
    }
    let (limits, default) = (&granted.limits, &Limits::DEFAULT);
    if limits.fuel != default.fuel {
        lines.push(format!("fuel {}", crate::sandbox::thousands(limits.fuel)));
    }
    if limits.timeout != default.timeout {
        lines.push(format!("timeout {}", humantime::format_duration(limits.timeout)));
    }
    if limits.memory != default.memory {
        lines.push(format!("memory {}", limits.memory.display().iec()));
    }
    lines
}

fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}
