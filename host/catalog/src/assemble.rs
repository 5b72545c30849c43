//! Builds a snapshot from the loaded plugins. A pure function, so that equal folders give equal catalogs.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolbay_model::is_tool_name;
use toolbay_sandbox::Environment;

use crate::grant::prefix_for;
use crate::guard::{Overlaps, overlaps};
use crate::offer::Offer;
use crate::plugin::{Named, Plugin};
use crate::report::{Different, Granted, MadeFrom, PluginReport, Status};
use crate::snapshot::Snapshot;
use crate::terms::Terms;

/// The reloader's view of one plugin file.
#[derive(Clone, Debug, Default)]
pub struct Candidate {
    /// The last version that loaded.
    pub plugin: Option<Arc<Plugin>>,
    /// Why the current file did not load.
    pub problem: Option<String>,
    /// Warnings about the version in service, such as clamped limits.
    pub remarks: Vec<String>,
}

/// Puts the tools of all entries into one snapshot. `entries` are by plugin id.
///
/// If two plugins have a tool of the same name, the plugin whose id sorts first keeps the name. A plugin that could
/// write to what others depend on has no tools.
pub fn assemble(entries: &BTreeMap<String, Candidate>, complete: bool) -> Snapshot {
    let mut snapshot = Snapshot { complete, ..Snapshot::default() };
    let mut overlaps = overlaps(
        entries
            .values()
            .filter_map(|entry| entry.plugin.as_ref())
            .map(|plugin| (plugin.id.as_str(), &plugin.terms.places)),
    );
    for (id, entry) in entries {
        let mut report = PluginReport {
            status: match (&entry.plugin, &entry.problem) {
                (Some(_), None) => Status::Ready,
                (Some(_), Some(_)) => Status::Stale,
                (None, Some(_)) => Status::Refused,
                (None, None) => Status::Loading,
            },
            digest: entry.plugin.as_ref().map(|plugin| plugin.component.digest.to_string()),
            problems: entry.problem.iter().cloned().collect(),
            tools: Vec::new(),
            grant: entry.plugin.as_ref().map(|plugin| granted(&plugin.terms)),
            made_from: entry.plugin.as_ref().map(|plugin| made_from(plugin)),
        };
        let Overlaps { refused, remarks } = overlaps.remove(id.as_str()).unwrap_or_default();
        if let Some(why) = refused {
            report.status = Status::Refused;
            report.digest = None;
            report.made_from = None;
            report.problems.push(why);
        } else if let Some(plugin) = &entry.plugin {
            report.problems.extend(remarks);
            report.problems.extend(entry.remarks.iter().cloned());
            add_tools(&mut snapshot.tools, plugin, &mut report);
        }
        snapshot.plugins.insert(id.clone(), report);
    }
    snapshot
}

fn made_from(plugin: &Plugin) -> MadeFrom {
    MadeFrom { component: plugin.component.digest, grant: plugin.terms.grant }
}

/// A plugin's terms in the form in which they are reported.
fn granted(terms: &Terms) -> Granted {
    let Environment { limits, permissions, config, secrets, .. } = &terms.environment;
    let carried =
        secrets.secrets().iter().filter_map(|secret| Some(format!("{} as {}", secret.name, secret.carried.as_ref()?)));
    let tools =
        terms.tools.iter().map(|(name, tool)| (name, tool.environment.limits.unlike(limits).collect::<Vec<_>>()));
    let hidden = terms.shown.iter().filter(|(_, shown)| shown.hidden);
    Granted {
        prefix: terms.prefix.clone(),
        limits: limits.clone(),
        tools: tools
            .filter(|(_, unlike)| !unlike.is_empty())
            .map(|(name, unlike)| (name.clone(), Different(unlike)))
            .collect(),
        hidden: hidden.map(|(name, _)| name.clone()).collect(),
        rate_limit: terms.rate_limit,
        permissions: permissions.clone(),
        secrets: secrets.names(),
        credentials: carried.collect(),
        config: config.keys().cloned().collect(),
    }
}

fn add_tools(tools: &mut BTreeMap<String, Arc<Offer>>, plugin: &Arc<Plugin>, report: &mut PluginReport) {
    for Named { tool, definition } in &plugin.tools {
        let name = tool.name.clone();
        if !is_tool_name(&name) {
            report.problems.push(format!("tool {name:?} is not offered: its name is too long with the prefix"));
        } else if let Some(first) = tools.get(&name) {
            report.problems.push(format!(
                "tool {name:?} is not offered: plugin {:?} already has a tool with this name; add prefix = \"{}\" to \
                 {}.toml",
                first.plugin.id,
                prefix_for(&plugin.id),
                plugin.id,
            ));
        } else {
            report.tools.push(name.clone());
            let tool = Arc::clone(tool);
            let offer = Offer { tool, definition: Arc::clone(definition), plugin: Arc::clone(plugin) };
            tools.insert(name, Arc::new(offer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offer::tests::{definition, plugin};

    fn entry(id: &str, prefix: Option<&str>, tools: &[&str]) -> (String, Candidate) {
        let plugin = plugin(id, prefix, tools.iter().map(|name| definition(name)).collect());
        (id.into(), Candidate { plugin: Some(plugin), ..Candidate::default() })
    }

    fn names(snapshot: &Snapshot) -> Vec<&str> {
        snapshot.tools.keys().map(String::as_str).collect()
    }

    #[test]
    fn the_first_plugin_keeps_a_name_and_the_other_one_is_told_how_to_resolve_the_conflict() {
        let entries = [entry("b", None, &["sum", "b"]), entry("a", None, &["sum"])].into();
        let snapshot = assemble(&entries, true);
        assert_eq!(names(&snapshot), ["b", "sum"]);
        assert_eq!(snapshot.tools["sum"].plugin.id, "a");
        assert_eq!(
            snapshot.plugins["b"].problems,
            [
                "tool \"sum\" is not offered: plugin \"a\" already has a tool with this name; add prefix = \"b\" to b.toml"
            ]
        );
        assert_eq!(snapshot.plugins["b"].tools, ["b"]);
    }

    #[test]
    fn the_suggested_prefix_is_valid() {
        let entries = [entry("a", None, &["sum"]), entry("b 2.", None, &["sum"])].into();
        let problem = &assemble(&entries, true).plugins["b 2."].problems[0];
        assert!(problem.ends_with("; add prefix = \"b_2\" to b 2..toml"), "{problem}");
    }

    #[test]
    fn a_prefix_resolves_the_conflict() {
        let entries = [entry("a", None, &["sum"]), entry("b", Some("b"), &["sum"])].into();
        assert_eq!(names(&assemble(&entries, true)), ["b.sum", "sum"]);
    }

    #[test]
    fn the_status_says_which_version_is_in_service() {
        let mut entries: BTreeMap<_, _> = [entry("ready", None, &["a"]), entry("stale", None, &["b"])].into();
        entries.get_mut("stale").unwrap().problem = Some("not valid".into());
        entries.insert("refused".into(), Candidate { problem: Some("not wasm".into()), ..Candidate::default() });
        entries.insert("loading".into(), Candidate::default());
        let snapshot = assemble(&entries, false);
        let status = |id: &str| snapshot.plugins[id].status;
        assert_eq!(
            [status("ready"), status("stale"), status("refused"), status("loading")],
            [Status::Ready, Status::Stale, Status::Refused, Status::Loading]
        );
        assert_eq!(names(&snapshot), ["a", "b"], "the stale version goes on serving");
    }
}
