//! `[secrets.NAME]` of a grant.

use std::path::PathBuf;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toolbay_model::is_name;
use toolbay_policy::OriginPattern;
use toolbay_secrets::{CredentialRule, SecretSource};

/// Value to redact, and to add to requests (`[secrets.NAME]`). Exactly one of `environment`,
/// `file`, `keyring`, `command` and `caller_folder` specifies its source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SecretTable {
    /// Name of the server's environment variable that holds the value.
    #[serde(deserialize_with = "variable")]
    pub environment: Option<String>,
    /// The file that holds the value, relative to the plugin folder. Its mode must let only the
    /// server's user read it.
    #[serde(deserialize_with = "path")]
    pub file: Option<PathBuf>,
    /// The entry of the keyring of the server's user that holds the value.
    pub keyring: Option<KeyringEntry>,
    /// A program that prints the value, and its arguments. It runs once when the plugin is loaded,
    /// without a shell.
    #[serde(deserialize_with = "command")]
    pub command: Option<Vec<String>>,
    /// A folder that holds a value for each authenticated caller, relative to the plugin folder. A
    /// caller's value is in the file whose path is the caller's identity.
    #[serde(deserialize_with = "folder")]
    pub caller_folder: Option<PathBuf>,
    /// Origins to which requests carry the value. None by default.
    pub origins: Vec<OriginPattern>,
    /// The header that carries the value.
    pub header: Option<String>,
    /// The query parameter that carries the value.
    pub query: Option<String>,
    /// The header's value, with `{}` for the secret. Default: `{}`.
    pub format: Option<String>,
}

/// An entry of a keyring, as `secret-tool` and most libraries store it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyringEntry {
    /// Its attribute `service`.
    #[serde(deserialize_with = "attribute")]
    pub service: String,
    /// Its attribute `username`.
    #[serde(deserialize_with = "attribute")]
    pub user: String,
}

impl SecretTable {
    /// Checks that the keys are complete and consistent.
    ///
    /// # Errors
    ///
    /// Keys are missing or contradict each other.
    pub(super) fn check(&self) -> Result<(), String> {
        self.to_source()?;
        let Self {
            origins,
            header,
            query,
            format,
            ..
        } = self;
        let why = match (header, query) {
            (Some(_), Some(_)) => {
                "header and query exclude each other; remove one of them".to_owned()
            }
            (Some(_), _) | (_, Some(_)) if origins.is_empty() => {
                "header and query need origins, such as origins = [\"https://api.example.com\"]"
                    .to_owned()
            }
            (None, None) if !origins.is_empty() => {
                "origins need header or query, such as header = \"Authorization\"".to_owned()
            }
            (None, _) if format.is_some() => {
                "format needs header; add header, or remove format".to_owned()
            }
            _ => match format {
                Some(format) if format.matches("{}").count() != 1 => {
                    format!(
                        "format needs {{}} once, for the secret, as in \"Bearer {{}}\", not {format:?}"
                    )
                }
                _ => return Ok(()),
            },
        };
        Err(why)
    }

    /// Removes the value from all requests, so that it is only redacted.
    pub(crate) fn redact_only(&mut self) {
        self.origins.clear();
        (self.header, self.query, self.format) = (None, None, None);
    }

    /// Returns the source, of which there is exactly one.
    fn to_source(&self) -> Result<SecretSource, String> {
        let Self {
            environment,
            file,
            keyring,
            command,
            caller_folder,
            ..
        } = self;
        let keyring = keyring
            .clone()
            .map(|KeyringEntry { service, user }| SecretSource::Keyring { service, user });
        let sources = [
            (
                "environment",
                environment.clone().map(SecretSource::Environment),
            ),
            ("file", file.clone().map(SecretSource::File)),
            ("keyring", keyring),
            ("command", command.clone().map(SecretSource::Command)),
            (
                "caller_folder",
                caller_folder.clone().map(SecretSource::CallerFolder),
            ),
        ];
        let mut present = sources
            .into_iter()
            .filter_map(|(key, source)| Some((key, source?)));
        match (present.next(), present.next()) {
            (Some((_, source)), None) => Ok(source),
            (Some((one, _)), Some((two, _))) => Err(format!(
                "{one} and {two} exclude each other; remove one of them"
            )),
            (None, _) => Err(
                "the source of the value is missing; add one of environment, file, \
                              keyring, command and caller_folder"
                    .to_owned(),
            ),
        }
    }

    /// Returns the secret with this name.
    ///
    /// # Errors
    ///
    /// The header is one that no request can have.
    pub(super) fn to_spec(&self, name: &str) -> Result<toolbay_secrets::SecretSpec, String> {
        let origins = self.origins.clone();
        let credential_rule = match (&self.header, &self.query) {
            (Some(header), _) => Some(CredentialRule::in_header(
                origins,
                header,
                self.format.as_deref().unwrap_or("{}"),
            )?),
            (None, Some(parameter)) => Some(CredentialRule::in_query(origins, parameter)),
            (None, None) => None,
        };
        Ok(toolbay_secrets::SecretSpec {
            name: name.to_owned(),
            source: self.to_source()?,
            credential_rule,
        })
    }
}

/// Parses the name of an environment variable.
fn variable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let name = String::deserialize(deserializer)?;
    if is_name(&name) {
        return Ok(Some(name));
    }
    Err(D::Error::custom(format_args!(
        "{name:?} is not the name of an environment variable"
    )))
}

fn path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let path = PathBuf::from(&text);
    if path.file_name().is_none() || text.contains('\0') {
        return Err(D::Error::custom(format_args!(
            "{text:?} is not the path of a file, such as \"secrets/github\""
        )));
    }
    Ok(Some(path))
}

fn folder<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() || text.contains('\0') {
        return Err(D::Error::custom(format_args!(
            "{text:?} is not the path of a folder, such as \"secrets/github\""
        )));
    }
    Ok(Some(text.into()))
}

fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    let words = Vec::<String>::deserialize(deserializer)?;
    if words.first().is_none_or(String::is_empty) || words.iter().any(|word| word.contains('\0')) {
        let expected =
            "expected a program and its arguments, such as [\"pass\", \"show\", \"github\"]";
        return Err(D::Error::custom(expected));
    }
    Ok(Some(words))
}

fn attribute<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() || text.contains('\0') {
        return Err(D::Error::custom("expected a text that is not empty"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
