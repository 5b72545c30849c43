//! The pin of a loaded version.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use toolbay_lock::{ItemKind, ItemPin, PluginPin};
use toolbay_model::text::escape_json;
use toolbay_model::{Digest, Icon, JsonText, ListedResource, Prompt, TaskSupport, Tool};
use toolbay_secrets::{SecretSource, SecretSpec};

use crate::folder::load_error::LoadError;
use crate::plain::file_resource::FileResource;
use crate::rules::grant::Grant;
use crate::version::plain_files::PlainFiles;
use crate::version::plugin::{Plugin, tool_name};

/// Name of the field with the digest of a file. Resources of components do not have it.
pub(crate) const CONTENT_FIELD: &str = "content";

/// The pin of a version, and the contents of its files as they were read for it.
pub(crate) struct VersionPin {
    pub(crate) pin: PluginPin,
    /// The digests of the files that are resources, in their order.
    pub(crate) resource_digests: Vec<Option<Digest>>,
}

impl VersionPin {
    /// Returns the pin of a loaded version. Reads the files that are resources. Blocks.
    ///
    /// # Errors
    ///
    /// A file cannot be read now.
    pub(crate) fn new(plugin: &Plugin) -> Result<Self, LoadError> {
        let mut items = BTreeMap::new();
        let contents = &plugin.component.contents;
        for definition in &contents.tools {
            // A command does not define its own name.
            let name = if plugin.component.is_command() {
                tool_name(&plugin.id)
            } else {
                definition.tool.name.clone()
            };
            items.insert((ItemKind::Tool, name), pin_tool(&definition.tool));
        }
        for entry in &contents.prompts {
            let key = (ItemKind::Prompt, entry.prompt.name.clone());
            items.insert(key, pin_prompt(&entry.prompt));
        }
        for (kind, entries) in [
            (ItemKind::Resource, &contents.resources),
            (ItemKind::Template, &contents.templates),
        ] {
            for entry in entries {
                let key = (kind, entry.resource.uri.clone());
                items.insert(key, pin_resource(&entry.resource));
            }
        }
        let resource_digests = pin_plain_files(plugin, &mut items)?;
        Ok(Self {
            pin: PluginPin {
                component: plugin.digest(),
                grant: plugin.terms.grant_digest,
                about: plugin.component.about.clone(),
                imports: plugin.component.imports.iter().cloned().collect(),
                permissions: permission_lines(&plugin.terms.source_grant),
                items,
            },
            resource_digests,
        })
    }
}

/// Returns the pin of a loaded version. Reads the files that are resources. Blocks.
///
/// # Errors
///
/// A file cannot be read now.
pub fn pin_plugin(plugin: &Plugin) -> Result<PluginPin, LoadError> {
    Ok(VersionPin::new(plugin)?.pin)
}

/// Returns the name of a prompt that is a file. Names in components contain no slash.
pub(crate) fn prompt_file_name(id: &str, name: &str) -> String {
    format!("{id}.prompts/{name}")
}

/// Adds the plain files of a plugin. Returns the digests of the files that are resources.
fn pin_plain_files(
    plugin: &Plugin,
    items: &mut BTreeMap<(ItemKind, String), ItemPin>,
) -> Result<Vec<Option<Digest>>, LoadError> {
    let PlainFiles {
        prompts,
        resources,
        skill,
        remarks: _,
    } = &*plugin.files;
    for prompt in prompts {
        let mut pin = pin_prompt(&prompt.entry.prompt);
        add_text(&mut pin, "text", Some(&prompt.template_text()));
        let name = prompt_file_name(&plugin.id, &prompt.entry.prompt.name);
        items.insert((ItemKind::Prompt, name), pin);
    }
    let mut digests = Vec::with_capacity(resources.len());
    for file in resources {
        let digest = content_digest(plugin, file)?;
        let mut pin = pin_resource(&file.entry.resource);
        add_digest(&mut pin, digest);
        digests.push(digest);
        items.insert((ItemKind::Resource, file.entry.resource.uri.clone()), pin);
    }
    let Some(folder) = skill else {
        return Ok(digests);
    };
    for skill in &folder.skills {
        let mut pin = ItemPin::new();
        add_text(&mut pin, "description", Some(&skill.description));
        add_json(&mut pin, "entry", Some(skill.entry.get()));
        items.insert((ItemKind::Skill, skill.uri.clone()), pin);
    }
    for file in &folder.files {
        let mut pin = pin_resource(&file.entry.resource);
        add_digest(&mut pin, content_digest(plugin, file)?);
        items.insert((ItemKind::SkillFile, file.entry.resource.uri.clone()), pin);
    }
    Ok(digests)
}

/// Returns the digest of the content of a file.
fn content_digest(plugin: &Plugin, file: &FileResource) -> Result<Option<Digest>, LoadError> {
    let max_size = plugin.terms.context.limits.output;
    file.content_digest(max_size).map_err(|error| {
        let uri = &file.entry.resource.uri;
        LoadError::Transient(format!(
            "comparing {uri} with the lock file failed: {error}"
        ))
    })
}

/// Returns the texts of a tool. Its parameters that headers repeat are part of the schema.
fn pin_tool(tool: &Tool) -> ItemPin {
    // Destructured completely, so that no member is forgotten.
    let Tool {
        name: _,
        title,
        description,
        input_schema,
        output_schema,
        annotations,
        icons,
        meta,
        headers: _,
        task_support,
    } = tool;
    let mut pin = pin_texts(
        title.as_deref(),
        description.as_deref(),
        icons,
        meta.as_ref(),
    );
    add_json(&mut pin, "input_schema", Some(input_schema.get()));
    let output_schema = output_schema.as_ref().map(JsonText::get);
    add_json(&mut pin, "output_schema", output_schema);
    add_value(&mut pin, "annotations", annotations.as_ref());
    if *task_support != TaskSupport::Forbidden {
        add_value(&mut pin, "task_support", Some(task_support));
    }
    pin
}

fn pin_prompt(prompt: &Prompt) -> ItemPin {
    let Prompt {
        name: _,
        title,
        description,
        arguments,
        icons,
        meta,
    } = prompt;
    let mut pin = pin_texts(
        title.as_deref(),
        description.as_deref(),
        icons,
        meta.as_ref(),
    );
    if !arguments.is_empty() {
        add_value(&mut pin, "arguments", Some(&**arguments));
    }
    pin
}

fn pin_resource(resource: &ListedResource) -> ItemPin {
    let ListedResource {
        uri: _,
        name,
        title,
        description,
        mime_type,
        size,
        audience,
        priority,
        last_modified,
        icons,
        meta,
    } = resource;
    let mut pin = pin_texts(
        title.as_deref(),
        description.as_deref(),
        icons,
        meta.as_ref(),
    );
    add_text(&mut pin, "name", Some(name));
    add_text(&mut pin, "mime_type", mime_type.as_deref());
    add_value(&mut pin, "size", size.as_ref());
    if !audience.is_empty() {
        add_value(&mut pin, "audience", Some(audience));
    }
    add_value(&mut pin, "priority", priority.as_ref());
    add_text(&mut pin, "last_modified", last_modified.as_deref());
    pin
}

/// Returns the texts that definitions of all kinds have.
fn pin_texts(
    title: Option<&str>,
    description: Option<&str>,
    icons: &[Icon],
    meta: Option<&JsonText>,
) -> ItemPin {
    let mut pin = ItemPin::new();
    add_text(&mut pin, "title", title);
    add_text(&mut pin, "description", description);
    add_icons(&mut pin, icons);
    add_json(&mut pin, "meta", meta.map(JsonText::get));
    pin
}

fn add_text(pin: &mut ItemPin, field: &str, text: Option<&str>) {
    if let Some(text) = text {
        pin.insert(field.to_owned(), text.to_owned());
    }
}

fn add_digest(pin: &mut ItemPin, digest: Option<Digest>) {
    let text = digest.map(|digest| format!("sha256:{digest}"));
    add_text(pin, CONTENT_FIELD, text.as_deref());
}

/// Adds a JSON text, with one member per line.
fn add_json(pin: &mut ItemPin, field: &str, json: Option<&str>) {
    let Some(json) = json else {
        return;
    };
    match serde_json::from_str::<Value>(json) {
        Ok(value) => add_value(pin, field, Some(&value)),
        // For example, a number that is out of range.
        Err(_) => add_text(pin, field, Some(json)),
    }
}

fn add_value(pin: &mut ItemPin, field: &str, value: Option<&(impl Serialize + ?Sized)>) {
    let text = value.and_then(|value| serde_json::to_string_pretty(value).ok());
    add_text(pin, field, text.as_deref());
}

/// Adds icons. Images in `data:` URIs are replaced by their digests.
fn add_icons(pin: &mut ItemPin, icons: &[Icon]) {
    if icons.is_empty() {
        return;
    }
    let icons = icons.iter().map(|icon| {
        let mut icon = icon.clone();
        if icon.src.starts_with("data:") {
            let digest = Digest::new(Sha256::digest(&icon.src).into());
            let kind = icon.src.split([',', ';']).next().unwrap_or_default();
            icon.src = format!("{kind} sha256:{digest}");
        }
        icon
    });
    add_value(pin, "icons", Some(&icons.collect::<Vec<_>>()));
}

/// Returns one line per permission of a grant, and per setting that requires a person's approval.
pub(crate) fn permission_lines(grant: &Grant) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    if let Ok(Value::Object(permissions)) = serde_json::to_value(&grant.permissions) {
        for (key, value) in permissions {
            match value {
                Value::Array(entries) => {
                    lines.extend(entries.iter().map(|entry| setting_line(&key, entry)));
                }
                Value::Null | Value::Bool(false) => {}
                value => {
                    lines.insert(setting_line(&key, &value));
                }
            }
        }
    }
    match grant.secret_specs() {
        Ok(secrets) => lines.extend(secrets.iter().map(secret_line)),
        // Such a grant is refused.
        Err(_) => lines.extend(grant.secrets.keys().map(|name| format!("secret: {name}"))),
    }
    if let Some(end) = grant.until {
        lines.insert(format!("until: {end}"));
    }
    if grant.budget.is_set() {
        lines.insert(format!("budget: {}", grant.budget));
    }
    if let Some(setting) = grant.require_approval {
        lines.insert(format!("require_approval: {}", setting.as_str()));
    }
    if let Some(approver) = grant.approve_by {
        lines.insert(format!("approve_by: {}", approver.as_str()));
    }
    for (tool, settings) in &grant.tools {
        if let Some(setting) = settings.require_approval {
            lines.insert(format!("require_approval of {tool}: {}", setting.as_str()));
        }
        if let Some(approver) = settings.approve_by {
            lines.insert(format!("approve_by of {tool}: {}", approver.as_str()));
        }
    }
    // A person compares these lines, so invisible characters in a path or a command are shown.
    let visible = lines.iter().map(|line| escape_json(line).into_owned());
    visible.collect()
}

/// Returns where the value of a secret comes from, with the whole command of a program, and where it
/// is sent. Never contains the value.
fn secret_line(secret: &SecretSpec) -> String {
    let SecretSpec {
        name,
        source,
        credential_rule,
    } = secret;
    let source = match source {
        SecretSource::Command(words) => format!("the command {}", Value::from(words.clone())),
        source => source.to_string(),
    };
    match credential_rule {
        Some(rule) => format!("secret: {name}, {source}, as {rule}"),
        None => format!("secret: {name}, {source}"),
    }
}

fn setting_line(key: &str, value: &Value) -> String {
    match value {
        Value::String(text) => format!("{key}: {text}"),
        value => format!("{key}: {value}"),
    }
}

#[cfg(test)]
mod tests;
