//! `toolbay list`: prints plugins with their contents and grants, and why files are refused.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::bail;
use serde_json::{Value, json};
use toolbay_catalog::{GrantReport, PluginFileStatus, PluginReport, Snapshot};
use toolbay_mcp::{prompt_json, resource_json, template_json, tool_json};
use toolbay_model::text::clean_line;
use toolbay_model::{similar_names, suggestion_question};

use super::common::{Common, Listen, block_on};
use super::load_progress::{inspection_server, wait_until_loaded};
use super::output::{count_noun, print, print_json};
use crate::config::Config;
use crate::serve::grant_text::{permission_lines, term_lines};

pub(super) fn run(common: &Common, plugin: Option<&str>, json: bool) -> anyhow::Result<ExitCode> {
    let config = common.load_config(true, &Listen::default())?;
    block_on(async {
        let server = inspection_server(config.clone()).start()?;
        let snapshot = wait_until_loaded(&server).await;
        match plugin {
            Some(id) => {
                let Some(report) = snapshot.plugins.get(id) else {
                    bail!(unknown_plugin_message(
                        id,
                        snapshot.plugins.keys().map(String::as_str)
                    ));
                };
                if json {
                    print_json(&json!({"plugins": {id: report}}))?;
                } else {
                    let mut out = String::new();
                    write_plugin(&mut out, id, report, &snapshot);
                    print(out.trim_end_matches('\n'));
                    print("\n");
                }
            }
            None if json => print_json(&snapshot_json(&snapshot, &config))?,
            None => print(&snapshot_text(&snapshot, &config)),
        }
        // Refused files are part of the output, not an error.
        Ok(ExitCode::SUCCESS)
    })
}

/// Returns the message about an unknown plugin, with the most similar name.
pub(super) fn unknown_plugin_message<'a>(id: &str, known: impl Iterator<Item = &'a str>) -> String {
    let similar = similar_names(id, known);
    match suggestion_question(&similar) {
        Some(question) => format!("unknown plugin {id:?}; {question}"),
        None => format!("unknown plugin {id:?}; `toolbay list` shows all plugins"),
    }
}

fn snapshot_json(snapshot: &Snapshot, config: &Config) -> Value {
    let tools: Vec<_> = snapshot
        .tools
        .values()
        .map(|offer| tool_json(&offer.tool))
        .collect();
    let prompts: Vec<_> = snapshot
        .prompts
        .values()
        .map(|offer| prompt_json(&offer.prompt))
        .collect();
    let resources: Vec<_> = snapshot
        .resources
        .values()
        .map(|offer| resource_json(offer.resource()))
        .collect();
    let templates: Vec<_> = snapshot
        .templates
        .values()
        .map(|offer| template_json(offer.resource()))
        .collect();
    let skills: Vec<_> = snapshot
        .skills
        .values()
        .map(|offer| &offer.skill.entry)
        .collect();
    let (limits, ceilings) = config.effective_limits();
    json!({
        "server": {"limits": limits, "ceilings": ceilings, "problems": config.clamp_messages()},
        "plugins": snapshot.plugins,
        "notes": snapshot.notes,
        "tools": tools,
        "prompts": prompts,
        "resources": resources,
        "resourceTemplates": templates,
        "skills": skills,
    })
}

fn snapshot_text(snapshot: &Snapshot, config: &Config) -> String {
    let mut out = String::new();
    for clamp in config.clamp_messages() {
        let _ = writeln!(out, "! {}", clean_line(&clamp, MAX_LINE_BYTES));
    }
    if !out.is_empty() {
        out.push('\n');
    }
    for (id, report) in &snapshot.plugins {
        write_plugin(&mut out, id, report, snapshot);
    }
    for (name, why) in &snapshot.notes {
        let _ = writeln!(
            out,
            "not a plugin: {}: {}",
            clean_line(name, MAX_LINE_BYTES),
            clean_line(why, MAX_LINE_BYTES)
        );
    }
    if !snapshot.notes.is_empty() {
        out.push('\n');
    }
    if snapshot.plugins.is_empty() {
        let _ = writeln!(
            out,
            "no plugins in {}; copy a .wasm file into it",
            config.plugins.display()
        );
        return out;
    }
    let serving_count = snapshot
        .plugins
        .values()
        .filter(|report| offers_something(report))
        .count();
    // Plugins that offer nothing: their names are taken by others, or their grants hide everything.
    let is_idle = |report: &&PluginReport| {
        matches!(
            report.status,
            PluginFileStatus::Ready | PluginFileStatus::Stale
        ) && !offers_something(report)
    };
    let idle_count = snapshot.plugins.values().filter(is_idle).count();
    let refused_count = snapshot
        .plugins
        .values()
        .filter(|report| report.status == PluginFileStatus::Refused)
        .count();
    out.push_str(&count_noun(snapshot.tools.len(), "tool"));
    for (n, noun) in [
        (snapshot.prompts.len(), "prompt"),
        (snapshot.skills.len(), "skill"),
        (
            snapshot
                .resources
                .len()
                .saturating_sub(snapshot.skills.len()),
            "resource",
        ),
        (snapshot.templates.len(), "resource template"),
    ] {
        if n > 0 {
            let _ = write!(out, ", {}", count_noun(n, noun));
        }
    }
    let _ = write!(out, " from {}", count_noun(serving_count, "plugin"));
    if idle_count > 0 {
        let _ = write!(
            out,
            "; {} {} nothing",
            count_noun(idle_count, "plugin"),
            if idle_count == 1 { "offers" } else { "offer" }
        );
    }
    if refused_count > 0 {
        let _ = write!(out, "; {} refused", count_noun(refused_count, "file"));
    }
    out.push('\n');
    out
}

/// Maximum length of a printed line, in bytes. Parts of it come from plugins.
const MAX_LINE_BYTES: usize = 2_000;

/// Maximum number of printed resources per plugin. A folder can contain thousands.
const MAX_RESOURCES: usize = 20;

fn write_plugin(out: &mut String, id: &str, report: &PluginReport, snapshot: &Snapshot) {
    let status = match report.status {
        PluginFileStatus::Loading => "loading",
        PluginFileStatus::Ready => "ready",
        PluginFileStatus::Stale => "stale",
        PluginFileStatus::Refused => "refused",
    };
    let _ = write!(out, "{}  {status}", clean_line(id, MAX_LINE_BYTES));
    if let Some(digest) = report.digest.as_deref().and_then(|digest| digest.get(..12)) {
        let _ = write!(out, "  sha256 {digest}");
    }
    out.push('\n');
    for problem in &report.problems {
        let _ = writeln!(out, "    ! {}", clean_line(problem, MAX_LINE_BYTES));
    }
    for name in &report.tools {
        let description = snapshot
            .tools
            .get(name)
            .and_then(|tool| tool.tool.description.as_deref());
        write_offer(out, name, description);
    }
    for name in &report.prompts {
        let description = snapshot
            .prompts
            .get(name)
            .and_then(|offer| offer.prompt.description.as_deref());
        write_offer(out, &format!("prompt {name}"), description);
    }
    for uri in report.skills.iter().take(MAX_RESOURCES) {
        let description = snapshot
            .skills
            .get(uri)
            .map(|offer| offer.skill.description.as_str());
        write_offer(out, &format!("skill {uri}"), description);
    }
    if report.skills.len() > MAX_RESOURCES {
        let _ = writeln!(
            out,
            "    and {} more",
            count_noun(report.skills.len() - MAX_RESOURCES, "skill")
        );
    }
    for (noun, uris, offers) in [
        ("resource", &report.resources, &snapshot.resources),
        ("template", &report.templates, &snapshot.templates),
    ] {
        for uri in uris.iter().take(MAX_RESOURCES) {
            let description = offers
                .get(uri)
                .and_then(|offer| offer.resource().description.as_deref());
            write_offer(
                out,
                &format!("{noun} {}", clean_line(uri, MAX_LINE_BYTES)),
                description,
            );
        }
        if uris.len() > MAX_RESOURCES {
            let _ = writeln!(
                out,
                "    and {} more",
                count_noun(uris.len() - MAX_RESOURCES, noun)
            );
        }
    }
    if let Some(grant_report) = &report.grant {
        for grant in grant_lines(grant_report) {
            let _ = writeln!(out, "    + {}", clean_line(&grant, MAX_LINE_BYTES));
        }
    }
    if !report.require_approval.is_empty() {
        let approvals: Vec<String> = report
            .require_approval
            .iter()
            .map(|(tool, asks)| format!("{tool} ({asks})"))
            .collect();
        let _ = writeln!(
            out,
            "    + a person must allow: {}",
            clean_line(&approvals.join(", "), MAX_LINE_BYTES)
        );
    }
    out.push('\n');
}

/// Appends an item that a plugin offers, on one line.
fn write_offer(out: &mut String, name: &str, description: Option<&str>) {
    let summary = clean_line(
        &first_sentence(description.unwrap_or_default()),
        MAX_LINE_BYTES,
    );
    let _ = writeln!(out, "{}", format!("    {name}  {summary}").trim_end());
}

/// Returns whether any item of the plugin is in service.
fn offers_something(report: &PluginReport) -> bool {
    let PluginReport {
        tools,
        prompts,
        resources,
        skills,
        templates,
        ..
    } = report;
    [tools, prompts, resources, skills, templates]
        .iter()
        .any(|names| !names.is_empty())
}

/// Returns the first sentence of a description, on one line.
fn first_sentence(description: &str) -> String {
    let paragraph = description.split("\n\n").next().unwrap_or_default();
    let text = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.find(". ") {
        Some(end) => text.get(..=end).unwrap_or(&text).to_owned(),
        None => text,
    }
}

/// Returns everything that the grant allows, and every limit that differs from Toolbay's default.
fn grant_lines(grant: &GrantReport) -> impl Iterator<Item = String> {
    let prefix = grant
        .prefix
        .iter()
        .map(|prefix| format!("prefix: {prefix}"));
    prefix
        .chain(permission_lines(grant))
        .chain(term_lines(grant))
        .collect::<Vec<_>>()
        .into_iter()
}
