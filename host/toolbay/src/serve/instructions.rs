//! The `instructions` of the server for a client's model: the operator's text, and one line for
//! each plugin.

use std::fmt::Write as _;

use toolbay_catalog::{PluginReport, Snapshot};
use toolbay_mcp::CallerRights;
use toolbay_model::text::clean_line;

/// Maximum length of the instructions, in characters, unless the operator's text is longer. Clients
/// silently truncate longer ones.
const MAX_CHARS: usize = 2_048;

/// Characters reserved for the last lines: the number of omitted plugins, and the note that others
/// are still loading.
const RESERVED_CHARS: usize = 80;

/// The separator between the operator's text and the lines, and the heading of the lines.
const SEPARATOR: &str = "\n\n";
const HEADING: &str = "Plugins:\n";

/// Maximum size of the line about a plugin, in bytes.
const MAX_LINE_BYTES: usize = 240;

/// Maximum number of names in the line about a plugin without a description of itself.
const MAX_NAMES: usize = 5;

/// Returns the instructions for a client with these rights. `operator_text` precedes the lines
/// about plugins. A plugin that offers nothing to the client has no line.
pub(crate) fn render(snapshot: &Snapshot, rights: &CallerRights, operator_text: &str) -> String {
    let introduction = operator_text.trim_end();
    let mut remaining_chars = MAX_CHARS.saturating_sub(
        introduction.chars().count() + SEPARATOR.len() + HEADING.len() + RESERVED_CHARS,
    );
    let mut lines = String::new();
    let mut omitted = 0_usize;
    for (id, report) in &snapshot.plugins {
        let Some(offered) = first_visible_kind(report, rights) else {
            continue;
        };
        if omitted > 0 {
            omitted += 1;
            continue;
        }
        let line = clean_line(
            &format!("{id}: {}", describe_plugin(report, offered, rights)),
            MAX_LINE_BYTES,
        );
        match remaining_chars.checked_sub("- \n".len() + line.chars().count()) {
            Some(left) => {
                remaining_chars = left;
                let _ = writeln!(lines, "- {line}");
            }
            None => omitted = 1,
        }
    }
    if omitted > 0 {
        let _ = writeln!(lines, "- and {omitted} more");
    }
    if snapshot.first_loaded && !snapshot.complete {
        // The number is not disclosed to a client that may not use them.
        let _ = writeln!(lines, "- and others, which are still being loaded");
    }
    match (introduction, lines.trim_end()) {
        (own, "") => own.to_owned(),
        ("", lines) => format!("{HEADING}{lines}"),
        (own, lines) => format!("{own}{SEPARATOR}{HEADING}{lines}"),
    }
}

/// Returns the names of the first kind of item of which the client can access at least one, if any.
fn first_visible_kind<'a>(report: &'a PluginReport, rights: &CallerRights) -> Option<&'a [String]> {
    let PluginReport {
        tools,
        prompts,
        resources,
        skills,
        templates,
        ..
    } = report;
    let kinds = [tools, skills, prompts, resources, templates];
    kinds
        .into_iter()
        .find(|names| names.iter().any(|name| rights.allow(name)))
        .map(Vec::as_slice)
}

/// Returns the plugin's description of itself, or else the first names that it offers.
fn describe_plugin(report: &PluginReport, offered: &[String], rights: &CallerRights) -> String {
    if let Some(about) = &report.about {
        return about.clone();
    }
    let mut visible = offered.iter().filter(|name| rights.allow(name));
    let shown = visible
        .by_ref()
        .take(MAX_NAMES)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    match visible.count() {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use toolbay_catalog::PluginFileStatus;

    use super::*;

    fn report(about: Option<&str>, tools: &[&str]) -> PluginReport {
        PluginReport {
            status: PluginFileStatus::Ready,
            digest: None,
            about: about.map(str::to_owned),
            problems: Vec::new(),
            tools: tools.iter().map(|name| (*name).to_owned()).collect(),
            require_approval: std::collections::BTreeMap::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            skills: Vec::new(),
            templates: Vec::new(),
            grant: None,
            source_digests: None,
            held: None,
            version: None,
            history: toolbay_catalog::VersionHistory::default(),
        }
    }

    fn snapshot(plugins: impl IntoIterator<Item = (String, PluginReport)>) -> Snapshot {
        Snapshot {
            plugins: plugins.into_iter().collect(),
            ..Snapshot::default()
        }
    }

    #[test]
    fn each_plugin_has_a_line_after_the_text_of_the_operator() {
        let snapshot = snapshot([
            (
                "weather".to_owned(),
                report(Some("Forecasts for cities."), &["forecast"]),
            ),
            (
                "notes".to_owned(),
                report(None, &["n.a", "n.b", "n.c", "n.d", "n.e", "n.f", "n.g"]),
            ),
            ("broken".to_owned(), report(None, &[])),
        ]);
        insta::assert_snapshot!(render(&snapshot, &CallerRights::All, "Amounts are in EUR.\n"), @r"
        Amounts are in EUR.

        Plugins:
        - notes: n.a, n.b, n.c, n.d, n.e and 2 more
        - weather: Forecasts for cities.
        ");
        let only = CallerRights::Only(vec!["forecast".to_owned().try_into().unwrap()]);
        assert_eq!(
            render(&snapshot, &only, ""),
            "Plugins:\n- weather: Forecasts for cities."
        );
        let two = CallerRights::Only(
            ["n.c", "n.f"]
                .map(|name| name.to_owned().try_into().unwrap())
                .to_vec(),
        );
        assert_eq!(render(&snapshot, &two, ""), "Plugins:\n- notes: n.c, n.f");
        assert_eq!(render(&Snapshot::default(), &CallerRights::All, ""), "");
    }

    #[test]
    fn the_lines_are_bounded() {
        let many = (0..1_000).map(|n| (format!("p{n:04}"), report(Some(&"x".repeat(500)), &["t"])));
        let text = render(&snapshot(many), &CallerRights::All, "");
        assert!(
            (MAX_CHARS - RESERVED_CHARS - MAX_LINE_BYTES..=MAX_CHARS)
                .contains(&text.chars().count()),
            "{}",
            text.len()
        );
        assert!(text.ends_with(" more"), "{text}");
    }

    #[test]
    fn the_operators_text_comes_first_and_reduces_the_space_for_lines() {
        let plugins = || (0..100).map(|n| (format!("p{n:04}"), report(Some("Wörter."), &["t"])));
        let own = "ü".repeat(1_000);
        let text = render(&snapshot(plugins()), &CallerRights::All, &own);
        assert!(
            text.starts_with(&format!("{own}\n\nPlugins:\n- p0000: Wörter.")),
            "{text}"
        );
        assert!(
            text.ends_with(" more") && text.chars().count() <= MAX_CHARS,
            "{}",
            text.chars().count()
        );
        // Text that exceeds the maximum by itself is the operator's decision. None of it is
        // omitted.
        let own = "ü".repeat(3_000);
        let text = render(&snapshot(plugins()), &CallerRights::All, &own);
        assert_eq!(text, format!("{own}\n\nPlugins:\n- and 100 more"));
    }
}
