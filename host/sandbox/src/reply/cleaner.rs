//! Removes control characters and secrets from a guest's text.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::{Map, Value};
use toolbay_model::text::{clean, clean_line};
use toolbay_model::{Interrupt, is_reserved_meta};
use toolbay_secrets::SecretFilter;

/// Maximum size of guest text that a message quotes, in bytes.
const MAX_QUOTED_BYTES: usize = 200;

/// Removes control characters and secrets from a guest's text, and logs how much was removed.
pub(crate) struct TextCleaner<'a> {
    secrets: &'a SecretFilter,
    /// Size of the removed control characters, in bytes.
    removed_bytes: usize,
    /// Number of removed `_meta` members that the guest cannot set.
    removed_meta_members: usize,
    /// Number of texts that contained secrets.
    redacted_texts: usize,
    interrupt: Option<&'a Interrupt>,
    /// True if the cleaner stopped before the end.
    interrupted: bool,
}

impl<'a> TextCleaner<'a> {
    pub(crate) fn new(secrets: &'a SecretFilter) -> Self {
        Self {
            secrets,
            removed_bytes: 0,
            removed_meta_members: 0,
            redacted_texts: 0,
            interrupt: None,
            interrupted: false,
        }
    }

    /// Returns a cleaner that stops when `interrupt` is due. The output of an interrupted cleaner
    /// must not be used.
    pub(crate) fn with_interrupt(self, interrupt: &'a Interrupt) -> Self {
        Self {
            interrupt: Some(interrupt),
            ..self
        }
    }

    /// Returns whether the cleaner stopped before the end.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    pub(crate) fn clean_text(&mut self, text: String) -> String {
        self.interrupted |= self.interrupt.is_some_and(Interrupt::is_due);
        if self.interrupted {
            return text;
        }
        let text = match clean(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(cleaned) => {
                self.removed_bytes += text.len() - cleaned.len();
                cleaned
            }
        };
        // Redact afterwards, because removing characters can join the parts of a secret.
        match self.secrets.redact(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(redacted) => {
                self.redacted_texts += 1;
                redacted
            }
        }
    }

    pub(crate) fn check_data(&self, data: Vec<u8>) -> Result<Bytes, String> {
        if self.secrets.contains_secret(&data) {
            Err("contains a secret in `data`".into())
        } else {
            Ok(data.into())
        }
    }

    /// Parses and cleans the JSON value of the guest's `member`.
    pub(crate) fn clean_json(&mut self, member: &str, text: &str) -> Result<Value, String> {
        let value = serde_json::from_str(text)
            .map_err(|error| format!("{member} is not valid JSON: {error}"))?;
        Ok(self.clean_value(value))
    }

    /// Parses and cleans the guest's `member` as the members of a `_meta`, without those that it
    /// cannot set.
    pub(crate) fn clean_meta(
        &mut self,
        member: &str,
        text: Option<&String>,
    ) -> Result<Map<String, Value>, String> {
        match text.map(|text| self.clean_json(member, text)).transpose()? {
            None => Ok(Map::new()),
            Some(Value::Object(mut members)) => {
                let count_before = members.len();
                // Filter afterwards, because cleaning can turn a name into a reserved one.
                members.retain(|name, _| !is_reserved_meta(name));
                self.removed_meta_members += count_before - members.len();
                Ok(members)
            }
            Some(_) => Err(format!("{member} is not a JSON object")),
        }
    }

    /// Cleans every string in a JSON value, including the names of members. The value stays valid
    /// JSON.
    pub(crate) fn clean_value(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.clean_text(text)),
            // Digits can also be a secret.
            Value::Number(number)
                if self.secrets.contains_secret(number.to_string().as_bytes()) =>
            {
                Value::String(self.clean_text(number.to_string()))
            }
            Value::Array(items) => items
                .into_iter()
                .map(|item| self.clean_value(item))
                .collect(),
            Value::Object(members) => {
                // If two names become equal, the last member wins, as with duplicate names.
                members
                    .into_iter()
                    .map(|(name, member)| (self.clean_text(name), self.clean_value(member)))
                    .collect()
            }
            value => value,
        }
    }
}

impl Drop for TextCleaner<'_> {
    fn drop(&mut self) {
        if self.removed_bytes > 0 {
            tracing::debug!(
                bytes = self.removed_bytes,
                "removed control characters from the plugin's output"
            );
        }
        if self.removed_meta_members > 0 {
            tracing::debug!(
                members = self.removed_meta_members,
                "removed reserved members from the plugin's _meta"
            );
        }
        if self.redacted_texts > 0 {
            tracing::warn!(
                strings = self.redacted_texts,
                "redacted secrets in the plugin's output"
            );
        }
    }
}

/// Quotes a cleaned text of the guest for a message.
pub(crate) fn quote(text: &str) -> String {
    format!("{:?}", clean_line(text, MAX_QUOTED_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removals_are_counted() {
        let mut cleaner = TextCleaner::new(SecretFilter::empty());
        cleaner.clean_value(serde_json::json!({"\u{1b}[2J": "\u{202e}"}));
        assert_eq!(cleaner.removed_bytes, 4 + 3);
    }
}
