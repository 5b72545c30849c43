//! Text of a configuration, and edits of it.

use serde_json::{Map, Value};

use crate::dialect::{EntryFormat, FileFormat};
use crate::entry::merged;
use crate::mistake::ConfigurationMistake;
use crate::{json, toml};

/// Byte order mark that some editors put at the beginning of UTF-8 files.
const BOM: char = '\u{feff}';

/// Parsed text of a configuration.
#[derive(Clone, Debug)]
pub struct ConfigurationText {
    dialect: EntryFormat,
    /// Text without its byte order mark.
    text: String,
    bom: bool,
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
    pub fn read(dialect: EntryFormat, text: &str) -> Result<Self, ConfigurationMistake> {
        let (bom, text) = match text.strip_prefix(BOM) {
            Some(text) => (true, text),
            None => (false, text),
        };
        let value = parse(dialect, text)?;
        Ok(Self { dialect, text: text.to_owned(), bom, value })
    }

    /// Returns the entry of a server.
    pub fn entry(&self, name: &str) -> Option<&Map<String, Value>> {
        self.value.get(self.dialect.servers)?.get(name)?.as_object()
    }

    /// Adds or updates the entry of the server `name` so that it connects as in `wanted`. Keeps the
    /// other members of an existing entry.
    ///
    /// # Errors
    ///
    /// Returns an error if the text cannot be edited without risk to the rest of it.
    pub fn with(&self, name: &str, wanted: &Map<String, Value>) -> Result<EditOutcome, ConfigurationMistake> {
        let servers = self.dialect.servers;
        let before = self.entry(name);
        let entry = before.map_or_else(|| wanted.clone(), |entry| merged(entry, wanted));
        if before == Some(&entry) {
            return Ok(EditOutcome::Unchanged);
        }
        let text = match self.dialect.format {
            FileFormat::Json => json::put(&self.text, servers, name, before, &entry)?,
            FileFormat::Toml => toml::put(&self.text, servers, name, before, &entry)?,
        };
        self.checked(text, name, Some(&entry))
    }

    /// Removes the server `name`.
    ///
    /// # Errors
    ///
    /// Returns an error if the text cannot be edited without risk to the rest of it.
    pub fn without(&self, name: &str) -> Result<EditOutcome, ConfigurationMistake> {
        if self.entry(name).is_none() {
            return Ok(EditOutcome::Unchanged);
        }
        let text = match self.dialect.format {
            FileFormat::Json => json::remove(&self.text, self.dialect.servers, name)?,
            FileFormat::Toml => toml::remove(&self.text, self.dialect.servers, name)?,
        };
        self.checked(text, name, None)
    }

    /// Verifies the edited text: only the entry may have changed.
    fn checked(
        &self,
        text: String,
        name: &str,
        entry: Option<&Map<String, Value>>,
    ) -> Result<EditOutcome, ConfigurationMistake> {
        let servers = self.dialect.servers;
        let edited = parse(self.dialect, &text).ok();
        let found = edited.as_ref().and_then(|value| value.get(servers)?.get(name)?.as_object());
        let rest = edited.as_ref().map(|value| rest(value, servers, name));
        if found != entry || rest != Some(self::rest(&self.value, servers, name)) {
            let words = format!("{servers} is written in a way that this program cannot edit safely: edit it by hand");
            return Err(ConfigurationMistake { line: 1, column: 1, words });
        }
        Ok(EditOutcome::Changed(if self.bom { format!("{BOM}{text}") } else { text }))
    }
}

/// Returns the members of `value` without the server `name`. A missing table of servers is
/// equivalent to an empty one.
fn rest(value: &Map<String, Value>, servers: &str, name: &str) -> Map<String, Value> {
    let mut rest = value.clone();
    if let Some(Value::Object(others)) = rest.get_mut(servers) {
        others.remove(name);
        if others.is_empty() {
            rest.remove(servers);
        }
    }
    rest
}

fn parse(dialect: EntryFormat, text: &str) -> Result<Map<String, Value>, ConfigurationMistake> {
    match dialect.format {
        FileFormat::Json => json::parse(text, dialect.servers),
        FileFormat::Toml => toml::parse(text, dialect.servers),
    }
}
