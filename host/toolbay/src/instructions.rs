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
        let Some(offered) = offered(report, rights) else { continue };
        if left_out > 0 {
            left_out += 1;
            continue;
        }
        let about = line(&format!("{id}: {}", about(report, offered, rights)), LINE);
        if lines.len() + about.len() > BYTES {
            left_out = 1;
        } else {
            let _ = writeln!(lines, "- {about}");
        }
    }
    if left_out > 0 {
        let _ = writeln!(lines, "- and {left_out} more");
    }
    if snapshot.introduced && !snapshot.complete {
        // How many there are is nothing for a client that may not use them.
        let _ = writeln!(lines, "- and others, which are still being loaded");
    }
    match (own.trim_end(), lines.trim_end()) {
        (own, "") => own.to_owned(),
        ("", lines) => format!("Plugins:\n{lines}"),
        (own, lines) => format!("{own}\n\nPlugins:\n{lines}"),
    }
}

/// The first kind of what a plugin offers of which the client sees something, if there is one.
fn offered<'a>(report: &'a PluginReport, rights: &Rights) -> Option<&'a [String]> {
    let PluginReport { tools, prompts, resources, skills, templates, .. } = report;
    let kinds = [tools, skills, prompts, resources, templates];
    kinds.into_iter().find(|names| names.iter().any(|name| rights.allow(name))).map(Vec::as_slice)
}

/// What a plugin says that it is for, or the first of the names that it offers.
fn about(report: &PluginReport, offered: &[String], rights: &Rights) -> String {
    if let Some(about) = &report.about {
        return about.clone();
    }
    let mut visible = offered.iter().filter(|name| rights.allow(name));
    let shown = visible.by_ref().take(NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    match visible.count() {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
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
            skills: Vec::new(),
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
        let two = Rights::Only(["n.c", "n.f"].map(|name| name.to_owned().try_into().unwrap()).to_vec());
        assert_eq!(of(&snapshot, &two, ""), "Plugins:\n- notes: n.c, n.f");
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
