//! The text of a configuration, edited from text to text.

use serde_json::{Map, Value};

use crate::dialect::{EntryFormat, FileFormat};
use crate::entry::merged;
use crate::mistake::ConfigurationMistake;
use crate::{json, toml};

/// The mark that some editors put before UTF-8.
const BOM: char = '\u{feff}';

/// The text of a configuration that was understood.
#[derive(Clone, Debug)]
pub struct ConfigurationText {
    dialect: EntryFormat,
    /// The text without its mark.
    text: String,
    bom: bool,
    /// Everything in it.
    value: Map<String, Value>,
}

/// What became of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditOutcome {
    /// It has what was wanted already.
    Unchanged,
    /// The new text.
    Changed(String),
}

impl ConfigurationText {
    /// Reads a text. A text without content is a configuration without servers.
    ///
    /// # Errors
    ///
    /// It has a mistake, or not the shape that is expected.
    pub fn read(dialect: EntryFormat, text: &str) -> Result<Self, ConfigurationMistake> {
        let (bom, text) = match text.strip_prefix(BOM) {
            Some(text) => (true, text),
            None => (false, text),
        };
        let value = parse(dialect, text)?;
        Ok(Self { dialect, text: text.to_owned(), bom, value })
    }

    /// The entry of a server.
    pub fn entry(&self, name: &str) -> Option<&Map<String, Value>> {
        self.value.get(self.dialect.servers)?.get(name)?.as_object()
    }

    /// The text in which the server `name` is reached as `wanted` says. What else an entry of that name has stays.
    ///
    /// # Errors
    ///
    /// The text is such that no edit is certain to keep the rest.
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

    /// The text without the server `name`.
    ///
    /// # Errors
    ///
    /// The text is such that no edit is certain to keep the rest.
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

    /// The edited text, if it says what it should: nothing but the entry may have changed.
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

/// What is in `value` besides the server `name`. No servers are as good as an empty table of them.
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
