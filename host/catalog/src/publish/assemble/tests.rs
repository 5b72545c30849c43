//! Tests of `assemble`.

use toolbay_model::{ComponentDescription, PromptDefinition, ResourceDefinition};

use super::*;
use crate::definition::resource_entry::tests::definition as resource;
use crate::plain::text_prompt::TextPrompt;
use crate::resource_uri::match_budget::MatchBudget;
use crate::version::offer::tests::{definition, plugin};
use crate::version::plain_files::PlainFiles;

fn entry(id: &str, prefix: Option<&str>, tools: &[&str]) -> (String, PluginState) {
    let tools = tools.iter().map(|name| definition(name)).collect();
    listing(
        id,
        prefix,
        ComponentDescription {
            tools,
            ..ComponentDescription::default()
        },
    )
}

fn listing(
    id: &str,
    prefix: Option<&str>,
    description: ComponentDescription,
) -> (String, PluginState) {
    (
        id.into(),
        PluginState {
            plugin: Some(plugin(id, prefix, description)),
            ..PluginState::default()
        },
    )
}

fn prompts(names: &[&str]) -> ComponentDescription {
    let prompts = names.iter().map(|name| PromptDefinition {
        name: (*name).into(),
        ..PromptDefinition::default()
    });
    ComponentDescription {
        prompts: prompts.collect(),
        ..ComponentDescription::default()
    }
}

fn resources(uris: &[&str], templates: &[(&str, &str)]) -> ComponentDescription {
    let resources = uris.iter().map(|uri| resource(uri)).collect();
    let named = |(name, text): &(&str, &str)| ResourceDefinition {
        name: (*name).into(),
        ..resource(text)
    };
    ComponentDescription {
        resources,
        templates: templates.iter().map(named).collect(),
        ..ComponentDescription::default()
    }
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
    assert!(
        problem.ends_with("; add prefix = \"b_2\" to b 2..toml"),
        "{problem}"
    );
}

#[test]
fn a_prefix_resolves_the_conflict() {
    let entries = [entry("a", None, &["sum"]), entry("b", Some("b"), &["sum"])].into();
    assert_eq!(names(&assemble(&entries, true)), ["b_sum", "sum"]);
}

#[test]
fn the_status_says_which_version_is_in_service() {
    let mut entries: BTreeMap<_, _> =
        [entry("ready", None, &["a"]), entry("stale", None, &["b"])].into();
    entries.get_mut("stale").unwrap().problem = Some("not valid".into());
    entries.insert(
        "refused".into(),
        PluginState {
            problem: Some("not wasm".into()),
            ..PluginState::default()
        },
    );
    entries.insert("loading".into(), PluginState::default());
    let snapshot = assemble(&entries, false);
    let status = |id: &str| snapshot.plugins[id].status;
    assert_eq!(
        [
            status("ready"),
            status("stale"),
            status("refused"),
            status("loading")
        ],
        [
            PluginFileStatus::Ready,
            PluginFileStatus::Stale,
            PluginFileStatus::Refused,
            PluginFileStatus::Loading
        ]
    );
    assert_eq!(
        names(&snapshot),
        ["a", "b"],
        "the stale version goes on serving"
    );
}

#[test]
fn prompts_have_the_prefix_and_one_name_each() {
    let entries = [
        listing("a", None, prompts(&["review", "sum"])),
        listing("b", None, prompts(&["review"])),
        listing("c", Some("acme"), prompts(&["review"])),
    ];
    let snapshot = assemble(&entries.into(), true);
    assert_eq!(
        snapshot.prompts.keys().collect::<Vec<_>>(),
        ["acme_review", "review", "sum"]
    );
    assert_eq!(snapshot.prompts["review"].plugin.id, "a");
    let prefixed = &snapshot.prompts["acme_review"];
    assert_eq!(
        (
            prefixed.prompt.name.as_str(),
            prefixed.entry.prompt.name.as_str()
        ),
        ("acme_review", "review")
    );
    assert_eq!(
        snapshot.plugins["b"].problems,
        [
            "prompt \"review\" is not offered: plugin \"a\" already has a prompt with this name; add prefix = \"b\" to \
              b.toml"
        ]
    );
    assert_eq!(
        (
            &snapshot.plugins["a"].prompts[..],
            snapshot.plugins["b"].prompts.len()
        ),
        (&["review".into(), "sum".into()][..], 0)
    );
}

#[test]
fn a_file_does_not_take_the_name_of_its_plugins_own_prompt() {
    let (id, mut candidate) = listing("a", None, prompts(&["review"]));
    let texts =
        ["review", "other"].map(|name| Arc::new(TextPrompt::parse(name, "Text").unwrap().0));
    let files = PlainFiles {
        prompts: texts.into(),
        ..PlainFiles::default()
    };
    candidate.plugin = candidate
        .plugin
        .map(|plugin| Arc::new(plugin.with_files(Arc::new(files))));
    let snapshot = assemble(&[(id, candidate)].into(), true);
    assert!(snapshot.prompts["review"].text.is_none() && snapshot.prompts["other"].text.is_some());
    assert_eq!(
        snapshot.plugins["a"].problems,
        [
            "prompt \"review\" is not offered: the plugin already has a prompt with this name; rename a.prompts/review.md"
        ]
    );
}

#[test]
fn a_uri_is_read_from_the_list_first_and_then_from_the_templates_of_the_first_plugin() {
    let entries = [
        listing(
            "b",
            Some("b"),
            resources(&["x://1", "x://both"], &[("any", "x://{+any}")]),
        ),
        listing(
            "a",
            None,
            resources(&["x://both"], &[("two", "x://{two}"), ("one", "x://{one}")]),
        ),
        listing("c", None, resources(&[], &[("any", "x://{+any}")])),
    ];
    let snapshot = assemble(&entries.into(), true);
    let found = |uri: &str| {
        let offer = snapshot
            .find_resource(uri, &mut MatchBudget::new(MatchBudget::PER_URI))
            .unwrap()?;
        Some((offer.plugin.id.as_str(), offer.resource().uri.as_str()))
    };
    assert_eq!(found("x://1"), Some(("b", "x://1")));
    assert_eq!(found("x://both"), Some(("a", "x://both")));
    assert_eq!(found("x://2"), Some(("a", "x://{one}")));
    assert_eq!(found("x://2/3"), Some(("b", "x://{+any}")));
    assert_eq!(
        (found("x://../3"), found("y://1"), found("x://{one}")),
        (None, None, None)
    );
    assert_eq!(
        snapshot.plugins["b"].problems,
        ["resource \"x://both\" is not offered: plugin \"a\" already has a resource with this URI"]
    );
    assert_eq!(
        snapshot.plugins["c"].problems,
        ["resource template \"x://{+any}\" is not offered: plugin \"b\" already has the same one"]
    );
    let report = &snapshot.plugins["a"];
    assert_eq!((report.resources.len(), report.templates.len()), (1, 2));
}
