//! Text of a configuration, and edits of it.

use serde_json::{Map, Value};

use crate::entry::merge_connection;
use crate::entry_format::{EntryFormat, FileFormat};
use crate::mistake::ConfigurationMistake;
use crate::{json, toml};

/// Byte order mark that some editors put at the beginning of UTF-8 files.
const BOM: char = '\u{feff}';

/// Parsed text of a configuration.
#[derive(Clone, Debug)]
pub struct ConfigurationText {
    entry_format: EntryFormat,
    /// Text without its byte order mark.
    text: String,
    has_bom: bool,
    /// Complete content of the text.
    value: Map<String, Value>,
}

/// Outcome of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditOutcome {
    /// The text already has the requested content.
    Unchanged,
    /// New text.
    Changed(String),
}

impl ConfigurationText {
    /// Parses a text. An empty text is a configuration without servers.
    ///
    /// # Errors
    ///
    /// Returns an error if the text has a syntax error or an unexpected structure.
    pub fn parse(entry_format: EntryFormat, text: &str) -> Result<Self, ConfigurationMistake> {
        let (has_bom, text) = match text.strip_prefix(BOM) {
            Some(text) => (true, text),
            None => (false, text),
        };
        let value = parse(entry_format, text)?;
        Ok(Self {
            entry_format,
            text: text.to_owned(),
            has_bom,
            value,
        })
    }

    /// Returns the entry of a server.
    pub fn entry(&self, name: &str) -> Option<&Map<String, Value>> {
        self.value
            .get(self.entry_format.servers_key)?
            .get(name)?
            .as_object()
    }

    /// Returns the names and entries of all servers.
    pub fn servers(&self) -> impl Iterator<Item = (&str, &Map<String, Value>)> {
        self.value
            .get(self.entry_format.servers_key)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(name, entry)| Some((name.as_str(), entry.as_object()?)))
    }

    /// Adds or updates the entry of the server `name` so that it has this `connection`. Keeps the
    /// other members of an existing entry.
    ///
    /// # Errors
    ///
    /// Returns an error if the text cannot be edited without risk to the rest of it.
    pub fn with_server(
        &self,
        name: &str,
        connection: &Map<String, Value>,
    ) -> Result<EditOutcome, ConfigurationMistake> {
        let servers = self.entry_format.servers_key;
        let current = self.entry(name);
        let entry = current.map_or_else(
            || connection.clone(),
            |entry| merge_connection(entry, connection),
        );
        if current == Some(&entry) {
            return Ok(EditOutcome::Unchanged);
        }
        let text = match self.entry_format.format {
            FileFormat::Json => json::set_server(&self.text, servers, name, current, &entry)?,
            FileFormat::Toml => toml::set_server(&self.text, servers, name, current, &entry)?,
        };
        self.verify_edit(text, name, Some(&entry))
    }

    /// Removes the server `name`.
    ///
    /// # Errors
    ///
    /// Returns an error if the text cannot be edited without risk to the rest of it.
    pub fn without_server(&self, name: &str) -> Result<EditOutcome, ConfigurationMistake> {
        if self.entry(name).is_none() {
            return Ok(EditOutcome::Unchanged);
        }
        let text = match self.entry_format.format {
            FileFormat::Json => {
                json::remove_server(&self.text, self.entry_format.servers_key, name)?
            }
            FileFormat::Toml => {
                toml::remove_server(&self.text, self.entry_format.servers_key, name)?
            }
        };
        self.verify_edit(text, name, None)
    }

    /// Verifies the edited text: only the entry may have changed.
    fn verify_edit(
        &self,
        text: String,
        name: &str,
        entry: Option<&Map<String, Value>>,
    ) -> Result<EditOutcome, ConfigurationMistake> {
        let servers = self.entry_format.servers_key;
        let edited = parse(self.entry_format, &text).ok();
        let edited_entry = edited
            .as_ref()
            .and_then(|value| value.get(servers)?.get(name)?.as_object());
        let other_members = edited
            .as_ref()
            .map(|value| without_entry(value, servers, name));
        if edited_entry != entry
            || other_members != Some(self::without_entry(&self.value, servers, name))
        {
            let message = format!(
                "{servers} is written in a way that this program cannot edit safely: edit it by hand"
            );
            return Err(ConfigurationMistake {
                line: 1,
                column: 1,
                words: message,
            });
        }
        Ok(EditOutcome::Changed(if self.has_bom {
            format!("{BOM}{text}")
        } else {
            text
        }))
    }
}

/// Returns the members of `value` without the server `name`. A missing table of servers is
/// equivalent to an empty one.
fn without_entry(value: &Map<String, Value>, servers: &str, name: &str) -> Map<String, Value> {
    let mut rest = value.clone();
    if let Some(Value::Object(others)) = rest.get_mut(servers) {
        others.remove(name);
        if others.is_empty() {
            rest.remove(servers);
        }
    }
    rest
}

fn parse(
    entry_format: EntryFormat,
    text: &str,
) -> Result<Map<String, Value>, ConfigurationMistake> {
    match entry_format.format {
        FileFormat::Json => json::parse(text, entry_format.servers_key),
        FileFormat::Toml => toml::parse(text, entry_format.servers_key),
    }
}
