//! Reads and writes lock files.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use toolbay_model::Digest;
use toolbay_model::text::is_visible;
use toolbay_settings::toml_file;

use crate::plugin_pin::{ItemKind, ItemPin, PluginPin};

/// Name of the lock file in a plugin folder.
pub const LOCK_FILE_NAME: &str = "toolbay.lock";

/// Maximum size of a lock file, in bytes.
pub const MAX_LOCK_FILE_BYTES: u64 = 64 << 20;

/// Version of the format.
const FORMAT_VERSION: u32 = 1;

/// First lines of a lock file.
const HEADER: &str = "\
# The approved versions of the plugins in this folder. `toolbay lock` writes this file, and
# `toolbay diff` shows how the plugins differ from it. Review changes to it like code: the texts
# below are what models and users read.
";

/// Last line of a lock file. A file without it is still being written, or was cut off.
const END_LINE: &str = "# End of toolbay.lock";

/// The pins of a plugin folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockFile {
    /// The pins, by plugin ID.
    pub plugins: BTreeMap<String, PluginPin>,
}

/// Reason why a lock file cannot be used, in one line without its path.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct LockFileError(String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LockDocument {
    version: u32,
    #[serde(default)]
    plugin: BTreeMap<String, PluginTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PluginTable {
    component: Option<String>,
    grant: Option<String>,
    about: Option<String>,
    #[serde(default)]
    imports: Vec<String>,
    #[serde(default)]
    permissions: Vec<String>,
    #[serde(default)]
    tool: BTreeMap<String, ItemPin>,
    #[serde(default)]
    prompt: BTreeMap<String, ItemPin>,
    #[serde(default)]
    resource: BTreeMap<String, ItemPin>,
    #[serde(default)]
    template: BTreeMap<String, ItemPin>,
    #[serde(default)]
    skill: BTreeMap<String, ItemPin>,
    #[serde(default)]
    skill_file: BTreeMap<String, ItemPin>,
}

impl LockFile {
    /// Parses the text of a lock file.
    ///
    /// # Errors
    ///
    /// The text is not a lock file, or one of another format version. The message begins with line
    /// and column if it concerns one place.
    pub fn parse(text: &str) -> Result<Self, LockFileError> {
        if text.trim_end().rsplit('\n').next() != Some(END_LINE) {
            return Err(LockFileError(format!(
                "its last line is not `{END_LINE}`, so it was cut off or is still being written"
            )));
        }
        let document: LockDocument = toml_file::parse_document(text)
            .map_err(|mistake| LockFileError(mistake.to_string()))?;
        if document.version != FORMAT_VERSION {
            return Err(LockFileError(format!(
                "its format has version {}, and this server reads version {FORMAT_VERSION}",
                document.version
            )));
        }
        let plugins = document.plugin.into_iter().map(|(id, table)| {
            let pin = table
                .into_pin()
                .map_err(|why| LockFileError(format!("plugin.{id}: {why}")))?;
            Ok((id, pin))
        });
        Ok(Self {
            plugins: plugins.collect::<Result<_, LockFileError>>()?,
        })
    }

    /// Returns the digest of a pin of the plugin `id`: SHA-256 of its part of a lock file. Pins have
    /// equal digests only if they are equal and of the same plugin.
    pub fn pin_digest(id: &str, pin: &PluginPin) -> Digest {
        let mut text = String::new();
        render_plugin(&mut text, id, pin);
        Digest::new(Sha256::digest(text).into())
    }

    /// Returns the text of the file. Equal lock files have equal texts.
    pub fn render(&self) -> String {
        let mut out = format!("{HEADER}version = {FORMAT_VERSION}\n");
        for (id, pin) in &self.plugins {
            render_plugin(&mut out, id, pin);
        }
        let _ = writeln!(out, "\n{END_LINE}");
        out
    }
}

impl PluginTable {
    fn into_pin(self) -> Result<PluginPin, String> {
        let Self {
            component,
            grant,
            about,
            imports,
            permissions,
            tool,
            prompt,
            resource,
            template,
            skill,
            skill_file,
        } = self;
        let tables = [
            (ItemKind::Tool, tool),
            (ItemKind::Prompt, prompt),
            (ItemKind::Resource, resource),
            (ItemKind::Template, template),
            (ItemKind::Skill, skill),
            (ItemKind::SkillFile, skill_file),
        ];
        let items = tables.into_iter().flat_map(|(kind, table)| {
            table
                .into_iter()
                .map(move |(name, item)| ((kind, name), item))
        });
        Ok(PluginPin {
            component: parse_digest("component", component)?,
            grant: parse_digest("grant", grant)?,
            about,
            imports: imports.into_iter().collect(),
            permissions: permissions.into_iter().collect(),
            items: items.collect(),
        })
    }
}

fn parse_digest(key: &str, text: Option<String>) -> Result<Option<Digest>, String> {
    let Some(text) = text else {
        return Ok(None);
    };
    Digest::from_prefixed_hex(&text).map(Some).ok_or_else(|| {
        let prefix = Digest::PREFIX;
        format!("{key}: expected \"{prefix}\" and 64 hexadecimal digits, not {text:?}")
    })
}

fn render_plugin(out: &mut String, id: &str, pin: &PluginPin) {
    let PluginPin {
        component,
        grant,
        about,
        imports,
        permissions,
        items,
    } = pin;
    let table = format!("plugin.{}", render_key(id));
    let _ = write!(out, "\n[{table}]\n");
    for (key, digest) in [("component", component), ("grant", grant)] {
        if let Some(digest) = digest {
            let _ = writeln!(out, "{key} = \"{}{digest}\"", Digest::PREFIX);
        }
    }
    if let Some(about) = about {
        let _ = writeln!(out, "about = {}", render_text(about));
    }
    for (key, lines) in [("imports", imports), ("permissions", permissions)] {
        if lines.is_empty() {
            continue;
        }
        let _ = writeln!(out, "{key} = [");
        for line in lines {
            let _ = writeln!(out, "  {},", render_line(line));
        }
        out.push_str("]\n");
    }
    for ((kind, name), item) in items {
        let _ = write!(out, "\n[{table}.{}.{}]\n", kind.table(), render_key(name));
        for (key, text) in item {
            let _ = writeln!(out, "{} = {}", render_key(key), render_text(text));
        }
    }
}

/// Returns a TOML key, with quotation marks only if it needs them.
fn render_key(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !key.is_empty() && key.chars().all(is_bare) {
        key.to_owned()
    } else {
        render_line(key)
    }
}

/// Returns a TOML string on one line.
fn render_line(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        push_escaped(&mut out, c, c == '"');
    }
    out.push('"');
    out
}

/// Returns a TOML string; one with several lines if the text has several.
fn render_text(text: &str) -> String {
    if !text.contains('\n') {
        return render_line(text);
    }
    let mut out = String::from("\"\"\"\n");
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\n' => out.push('\n'),
            // Three in a row would end the string, and so would one before the end.
            '"' => {
                let ends = out.ends_with('"') || rest.as_str().is_empty();
                push_escaped(&mut out, c, ends);
            }
            _ => push_escaped(&mut out, c, false),
        }
    }
    out.push_str("\"\"\"");
    out
}

/// Appends a character. Characters that a reviewer cannot see are escaped.
fn push_escaped(out: &mut String, c: char, is_quote: bool) {
    match c {
        '\\' => out.push_str("\\\\"),
        _ if is_quote => out.push_str("\\\""),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        _ if is_visible(c) => out.push(c),
        _ => {
            let _ = write!(out, "\\U{:08X}", u32::from(c));
        }
    }
}

#[cfg(test)]
mod tests;
