//! Builds a snapshot from the loaded plugins. The function is pure, so that equal folders give
//! equal catalogs.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolbay_model::text::clean_line;
use toolbay_model::{Tool, is_tool_name};
use toolbay_sandbox::PluginContext;

use crate::definition::fingerprint::DefinitionFingerprint;
use crate::definition::view::ViewOwners;
use crate::folder::load_error::HeldVersion;
use crate::publish::name_compatibility::name_notes;
use crate::publish::report::{GrantReport, LimitOverrides, PluginFileStatus, PluginReport};
use crate::publish::snapshot::Snapshot;
use crate::publish::version_history::VersionHistory;
use crate::resource_uri::uri_matcher::UriMatcher;
use crate::resource_uri::uri_spelling::UriSpellings;
use crate::rules::budget::GrantBudget;
use crate::rules::grant::suggest_prefix;
use crate::rules::mount_policy::{MountOverlaps, find_overlaps};
use crate::rules::terms::PluginTerms;
use crate::version::offer::{PromptOffer, ResourceOffer, SkillOffer, ToolOffer};
use crate::version::plugin::{GrantedResource, NamedPrompt, NamedTool, Plugin};

/// Maximum length of a URI in a message, in bytes.
const MAX_SHOWN_URI_BYTES: usize = 200;

/// State of one plugin's files in the reloader.
#[derive(Clone, Debug, Default)]
pub struct PluginState {
    /// The last version that loaded.
    pub plugin: Option<Arc<Plugin>>,
    /// Reason why the current file did not load.
    pub problem: Option<String>,
    /// Warnings about the version in service, such as clamped limits.
    pub remarks: Vec<String>,
    /// The version that the lock file holds back, if any.
    pub held: Option<Arc<HeldVersion>>,
    /// The time at which it was loaded, and its previous grant.
    pub history: VersionHistory,
}

/// Combines the offers of all entries into one snapshot. `entries` are by plugin id.
///
/// If two plugins have a tool or a prompt of the same name, or a resource or a template with the
/// same URI, the plugin whose id sorts first keeps it. A plugin that could write to files that
/// others depend on offers nothing. The authority of a view's URI may be the id of its own plugin,
/// but not that of another plugin. A tool can link only to a view of its own plugin.
pub fn assemble(entries: &BTreeMap<String, PluginState>, complete: bool) -> Snapshot {
    let mut snapshot = Snapshot {
        complete,
        ..Snapshot::default()
    };
    let mut overlaps = find_overlaps(
        entries
            .values()
            .filter_map(|entry| entry.plugin.as_ref())
            .map(|plugin| (plugin.id.as_str(), &plugin.terms.mount_plan)),
    );
    let views = ViewOwners::new(entries.keys());
    for (id, entry) in entries {
        let mut report = PluginReport {
            status: match (&entry.plugin, &entry.problem) {
                (Some(_), None) => PluginFileStatus::Ready,
                (Some(_), Some(_)) => PluginFileStatus::Stale,
                (None, Some(_)) => PluginFileStatus::Refused,
                (None, None) => PluginFileStatus::Loading,
            },
            digest: entry
                .plugin
                .as_ref()
                .and_then(|plugin| Some(plugin.digest()?.to_string())),
            about: entry
                .plugin
                .as_ref()
                .and_then(|plugin| plugin.component.about.clone()),
            problems: entry.problem.iter().cloned().collect(),
            tools: Vec::new(),
            require_approval: BTreeMap::new(),
            prompts: Vec::new(),
            resources: Vec::new(),
            skills: Vec::new(),
            templates: Vec::new(),
            grant: entry
                .plugin
                .as_ref()
                .map(|plugin| grant_report(&plugin.terms)),
            source_digests: entry.plugin.as_ref().map(|plugin| plugin.source_digests()),
            held: entry.held.clone(),
            version: entry.plugin.clone(),
            history: entry.history.clone(),
        };
        let MountOverlaps {
            refusal: refused,
            remarks,
        } = overlaps.remove(id.as_str()).unwrap_or_default();
        if let Some(why) = refused {
            report.status = PluginFileStatus::Refused;
            report.digest = None;
            report.about = None;
            report.source_digests = None;
            report.version = None;
            report.problems.push(why);
        } else if let Some(plugin) = &entry.plugin {
            report.problems.extend(remarks);
            report.problems.extend(
                entry
                    .remarks
                    .iter()
                    .chain(&plugin.files.remarks)
                    .chain(&plugin.remarks)
                    .cloned(),
            );
            add_tools(&mut snapshot.tools, plugin, &mut report);
            add_prompts(&mut snapshot.prompts, plugin, &mut report);
            add_resources(&mut snapshot, plugin, &views, &mut report);
            add_skills(&mut snapshot, plugin, &mut report);
        }
        snapshot.plugins.insert(id.clone(), report);
    }
    unlink_unusable_views(&mut snapshot);
    let templates = snapshot
        .match_order
        .iter()
        .filter_map(|offer| offer.entry.template.as_deref());
    snapshot.matcher = UriMatcher::new(templates);
    let uris = snapshot
        .resources
        .keys()
        .chain(snapshot.skill_files.keys())
        .map(String::as_str);
    snapshot.spellings = UriSpellings::new(uris, snapshot.templates.keys().map(String::as_str));
    snapshot
}

/// Returns the report of a plugin's terms.
fn grant_report(terms: &PluginTerms) -> GrantReport {
    let PluginContext {
        limits,
        permissions,
        config,
        secrets,
        ..
    } = &terms.context;
    let carried = secrets.secrets().iter().filter_map(|secret| {
        Some(format!(
            "{} as {}",
            secret.name,
            secret.credential_rule.as_ref()?
        ))
    });
    let tools = terms.tools.iter().map(|(name, tool)| {
        (
            name,
            tool.context
                .limits
                .differences_from(limits)
                .collect::<Vec<_>>(),
        )
    });
    let disabled = terms
        .tool_overrides
        .iter()
        .filter(|(_, shown)| shown.disabled);
    GrantReport {
        prefix: terms.prefix.clone(),
        until: terms.until,
        budget: Some(terms.budget).filter(GrantBudget::is_set),
        limits: limits.clone(),
        tools: tools
            .filter(|(_, unlike)| !unlike.is_empty())
            .map(|(name, unlike)| (name.clone(), LimitOverrides(unlike)))
            .collect(),
        disabled_tools: disabled.map(|(name, _)| name.clone()).collect(),
        rate_limit: terms.rate_limit,
        permissions: permissions.clone(),
        secrets: secrets.available_names(),
        credentials: carried.collect(),
        config: config.keys().cloned().collect(),
    }
}

fn add_tools(
    tools: &mut BTreeMap<String, Arc<ToolOffer>>,
    plugin: &Arc<Plugin>,
    report: &mut PluginReport,
) {
    for NamedTool { tool, definition } in &plugin.tools {
        let name = tool.name.clone();
        if !is_tool_name(&name) {
            report.problems.push(format!(
                "tool {name:?} is not offered: its name is too long with the prefix"
            ));
        } else if let Some(first) = tools.get(&name) {
            report.problems.push(format!(
                "tool {name:?} is not offered: plugin {:?} already has a tool with this name; add prefix = \"{}\" to \
                 {}.toml",
                first.plugin.id,
                suggest_prefix(&plugin.id),
                plugin.id,
            ));
        } else {
            report.tools.push(name.clone());
            let tool = Arc::clone(tool);
            let offer = ToolOffer {
                tool,
                definition: Arc::clone(definition),
                plugin: Arc::clone(plugin),
            };
            report
                .require_approval
                .extend(offer.required_approval().map(|asks| (name.clone(), asks)));
            tools.insert(name, Arc::new(offer));
        }
    }
    let notes = name_notes(&report.tools);
    report.problems.extend(notes);
}

fn add_prompts(
    prompts: &mut BTreeMap<String, Arc<PromptOffer>>,
    plugin: &Arc<Plugin>,
    report: &mut PluginReport,
) {
    for NamedPrompt {
        prompt,
        entry,
        text,
    } in &plugin.prompts
    {
        let name = prompt.name.clone();
        if !is_tool_name(&name) {
            report.problems.push(format!(
                "prompt {name:?} is not offered: its name is too long with the prefix"
            ));
        } else if let Some(first) = prompts.get(&name) {
            // Only a prompt that is a file can have the name of another prompt of its plugin.
            let why = if Arc::ptr_eq(&first.plugin, plugin) {
                format!(
                    "the plugin already has a prompt with this name; rename {0}.prompts/{1}.md",
                    plugin.id, entry.prompt.name
                )
            } else {
                format!(
                    "plugin {:?} already has a prompt with this name; add prefix = \"{}\" to {}.toml",
                    first.plugin.id,
                    suggest_prefix(&plugin.id),
                    plugin.id,
                )
            };
            report
                .problems
                .push(format!("prompt {name:?} is not offered: {why}"));
        } else {
            report.prompts.push(name.clone());
            let prompt = Arc::clone(prompt);
            let entry = Arc::clone(entry);
            let offer = PromptOffer {
                prompt,
                entry,
                plugin: Arc::clone(plugin),
                text: text.clone(),
            };
            prompts.insert(name, Arc::new(offer));
        }
    }
}

/// Adds the resources and templates of a plugin. `views` has the owners of views.
fn add_resources(
    snapshot: &mut Snapshot,
    plugin: &Arc<Plugin>,
    views: &ViewOwners<'_>,
    report: &mut PluginReport,
) {
    let foreign = |uri: &str| views.other_owner(&plugin.id, uri);
    for GrantedResource { entry, file } in &plugin.resources {
        let uri = entry.resource.uri.clone();
        if let Some(other) = foreign(&uri) {
            report.problems.push(format!(
                "view {uri:?} is not offered: views of this name belong to plugin {other:?}"
            ));
        } else if let Some(first) = snapshot.resources.get(&uri) {
            report.problems.push(format!(
                "resource {uri:?} is not offered: plugin {:?} already has a resource with this URI",
                first.plugin.id
            ));
        } else {
            report.resources.push(uri.clone());
            let entry = Arc::clone(entry);
            let plugin = Arc::clone(plugin);
            snapshot.resources.insert(
                uri,
                Arc::new(ResourceOffer {
                    entry,
                    plugin,
                    file: file.clone(),
                }),
            );
        }
    }
    for entry in &plugin.templates {
        let text = entry.resource.uri.clone();
        if let Some(other) = foreign(&text) {
            report.problems.push(format!(
                "views {text:?} are not offered: views of this name belong to plugin {other:?}"
            ));
        } else if let Some(first) = snapshot.templates.get(&text) {
            report.problems.push(format!(
                "resource template {text:?} is not offered: plugin {:?} already has the same one",
                first.plugin.id
            ));
        } else {
            report.templates.push(text.clone());
            let entry = Arc::clone(entry);
            let plugin = Arc::clone(plugin);
            let offer = Arc::new(ResourceOffer {
                entry,
                plugin,
                file: None,
            });
            snapshot.match_order.push(Arc::clone(&offer));
            snapshot.templates.insert(text, offer);
        }
    }
}

/// Adds the skills of a plugin. No other plugin has a skill of the same name, and no resource of a
/// plugin can have the URI of a skill's file.
fn add_skills(snapshot: &mut Snapshot, plugin: &Arc<Plugin>, report: &mut PluginReport) {
    let Some(folder) = &plugin.files.skill else {
        return;
    };
    for file in &folder.files {
        let entry = Arc::clone(&file.entry);
        let plugin = Arc::clone(plugin);
        let file = Some(Arc::clone(file));
        let uri = entry.resource.uri.clone();
        snapshot.skill_files.insert(
            uri,
            Arc::new(ResourceOffer {
                entry,
                plugin,
                file,
            }),
        );
    }
    for skill in &folder.skills {
        if let Some(manifest) = snapshot.skill_files.get(&skill.uri) {
            snapshot
                .resources
                .insert(skill.uri.clone(), Arc::clone(manifest));
        }
        report.skills.push(skill.uri.clone());
        let offer = SkillOffer {
            fingerprint: DefinitionFingerprint::of_skill(skill),
            skill: Arc::clone(skill),
        };
        snapshot.skills.insert(skill.uri.clone(), Arc::new(offer));
    }
}

/// Removes from each tool a view that it cannot use, because the view is not listed or belongs to
/// another plugin: a view receives the tool's results. Only listed resources count, not templates:
/// a listed URI is found quickly, regardless of the number of resources.
fn unlink_unusable_views(snapshot: &mut Snapshot) {
    let mut without = Vec::new();
    for (name, offer) in &snapshot.tools {
        let Some(uri) = offer.definition.view() else {
            continue;
        };
        let why = match snapshot.resources.get(uri) {
            Some(view) if Arc::ptr_eq(&view.plugin, &offer.plugin) => continue,
            Some(view) => format!("it belongs to plugin {:?}", view.plugin.id),
            None => "no resource with this URI is listed".to_owned(),
        };
        without.push((
            name.clone(),
            format!(
                "tool {name:?} is shown without its view {:?}: {why}",
                clean_line(uri, MAX_SHOWN_URI_BYTES)
            ),
        ));
    }
    for (name, why) in without {
        let Some(offer) = snapshot.tools.get(&name) else {
            continue;
        };
        let definition = Arc::new(offer.definition.without_view());
        let tool = Arc::new(Tool {
            meta: definition.tool.meta.clone(),
            ..Tool::clone(&offer.tool)
        });
        let plugin = Arc::clone(&offer.plugin);
        if let Some(report) = snapshot.plugins.get_mut(&plugin.id) {
            report.problems.push(why);
        }
        snapshot.tools.insert(
            name,
            Arc::new(ToolOffer {
                tool,
                definition,
                plugin,
            }),
        );
    }
}

#[cfg(test)]
mod tests;
