//! `instructions`: what a client's model reads first about the server: the operator's text, and a line for each plugin.

use std::fmt::Write as _;

use toolbay_catalog::{PluginReport, Snapshot};
use toolbay_mcp::Rights;
use toolbay_model::text::line;

/// Most bytes of all lines about plugins.
const BYTES: usize = 4 << 10;

/// Longest line about a plugin, in bytes.
const LINE: usize = 240;

/// Most names in the line about a plugin that says nothing of itself.
const NAMES: usize = 5;

/// The instructions for a client with these rights: `own` is the operator's text. A plugin of which the client sees nothing has
/// no line.
pub(crate) fn of(snapshot: &Snapshot, rights: &Rights, own: &str) -> String {
    let mut lines = String::new();
    let mut left_out = 0_usize;
    for (id, report) in &snapshot.plugins {
        let Some(what) = about(report, rights) else { continue };
        let about = line(&format!("{id}: {what}"), LINE);
        if lines.len() + about.len() > BYTES {
            left_out += 1;
        } else {
            let _ = writeln!(lines, "- {about}");
        }
    }
    if left_out > 0 {
        let _ = writeln!(lines, "- and {left_out} more");
    }
    match (own.trim_end(), lines.trim_end()) {
        (own, "") => own.to_owned(),
        ("", lines) => format!("Plugins:\n{lines}"),
        (own, lines) => format!("{own}\n\nPlugins:\n{lines}"),
    }
}

/// What a plugin says that it is for, or what it offers; `None` if the client sees nothing of it.
fn about(report: &PluginReport, rights: &Rights) -> Option<String> {
    let PluginReport { tools, prompts, resources, templates, .. } = report;
    let visible =
        |names: &[String]| -> Vec<String> { names.iter().filter(|name| rights.allow(name)).cloned().collect() };
    let all = [visible(tools), visible(prompts), visible(resources), visible(templates)];
    let names = all.iter().find(|names| !names.is_empty())?;
    if let Some(about) = &report.about {
        return Some(about.clone());
    }
    let shown = names.iter().take(NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(NAMES);
    Some(if more > 0 { format!("{shown} and {more} more") } else { shown })
}

#[cfg(test)]
mod tests {
    use toolbay_catalog::Status;

    use super::*;

    fn report(about: Option<&str>, tools: &[&str]) -> PluginReport {
        PluginReport {
            status: Status::Ready,
            digest: None,
            about: about.map(str::to_owned),
            problems: Vec::new(),
            tools: tools.iter().map(|name| (*name).to_owned()).collect(),
            asks: std::collections::BTreeMap::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            grant: None,
            made_from: None,
        }
    }

    fn snapshot(plugins: impl IntoIterator<Item = (String, PluginReport)>) -> Snapshot {
        Snapshot { plugins: plugins.into_iter().collect(), ..Snapshot::default() }
    }

    #[test]
    fn each_plugin_has_a_line_after_the_text_of_the_operator() {
        let snapshot = snapshot([
            ("weather".to_owned(), report(Some("Forecasts for cities."), &["forecast"])),
            ("notes".to_owned(), report(None, &["n.a", "n.b", "n.c", "n.d", "n.e", "n.f", "n.g"])),
            ("broken".to_owned(), report(None, &[])),
        ]);
        insta::assert_snapshot!(of(&snapshot, &Rights::All, "Amounts are in EUR.\n"), @r"
        Amounts are in EUR.

        Plugins:
        - notes: n.a, n.b, n.c, n.d, n.e and 2 more
        - weather: Forecasts for cities.
        ");
        let only = Rights::Only(vec!["forecast".to_owned().try_into().unwrap()]);
        assert_eq!(of(&snapshot, &only, ""), "Plugins:\n- weather: Forecasts for cities.");
        assert_eq!(of(&Snapshot::default(), &Rights::All, ""), "");
    }

    #[test]
    fn the_lines_are_bounded() {
        let many = (0..1_000).map(|n| (format!("p{n:04}"), report(Some(&"x".repeat(500)), &["t"])));
        let text = of(&snapshot(many), &Rights::All, "");
        assert!(text.len() < BYTES + 100, "{}", text.len());
        assert!(text.ends_with(" more"), "{text}");
    }
}
