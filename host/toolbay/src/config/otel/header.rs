//! `[otel.headers]`: header fields of requests, and the sources of their values.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toolbay_otel::{ExportHeaders, parse_pairs};
use toolbay_secrets::read_secret_file;

/// The source of a header value. The value is never displayed.
#[derive(Clone, PartialEq, Eq)]
pub struct HeaderSource {
    value: ValueSource,
    /// The format of the value, with `{}` for the text from the source.
    format: String,
}

#[derive(Clone, PartialEq, Eq)]
enum ValueSource {
    Text(String),
    Environment(String),
    File(PathBuf),
}

/// Omits the value.
impl fmt::Debug for HeaderSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            ValueSource::Text(_) => f.write_str("Text"),
            ValueSource::Environment(name) => write!(f, "Environment({name})"),
            ValueSource::File(path) => write!(f, "File({})", path.display()),
        }
    }
}

impl HeaderSource {
    pub(super) fn resolve(&mut self, folder: &Path) {
        if let ValueSource::File(path) = &mut self.value {
            *path = folder.join(&*path);
        }
    }

    pub(super) fn file(&self) -> Option<&PathBuf> {
        if let ValueSource::File(path) = &self.value {
            Some(path)
        } else {
            None
        }
    }

    /// Returns the value of the field.
    ///
    /// # Errors
    ///
    /// There is no value. The message is the reason.
    pub(super) fn value(&self) -> Result<String, String> {
        let value = match &self.value {
            ValueSource::Text(text) => text.clone(),
            ValueSource::Environment(name) => std::env::var(name)
                .map_err(|_| format!("the environment variable {name:?} is not set"))?,
            ValueSource::File(path) => {
                let failed = |why: String| format!("the file {} {why}", path.display());
                let bytes = read_secret_file(path).map_err(failed)?;
                let text = std::str::from_utf8(&bytes)
                    .map_err(|_| failed("is not valid UTF-8".to_owned()))?;
                text.trim_end().to_owned()
            }
        };
        if value.is_empty() {
            return Err("its value is empty".to_owned());
        }
        Ok(self.format.replace("{}", &value))
    }
}

/// Parses a table of names with their values or sources, or one string, as in a variable.
pub(super) fn headers<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, HeaderSource>, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected a table of headers, or one string such as \"name=value,name=value\""
    )]
    enum HeaderInput {
        Table(BTreeMap<String, toml::Value>),
        Text(String),
    }
    let sources: Vec<(String, HeaderSource)> = match HeaderInput::deserialize(deserializer)? {
        HeaderInput::Table(table) => {
            let parse_entry = |(name, value): (String, toml::Value)| {
                parse_source(&name, value).map(|source| (name, source))
            };
            table
                .into_iter()
                .map(parse_entry)
                .collect::<Result<_, String>>()
                .map_err(D::Error::custom)?
        }
        HeaderInput::Text(text) => {
            let pairs = parse_pairs(&text).map_err(D::Error::custom)?;
            pairs
                .into_iter()
                .map(|(name, value)| (name, HeaderSource::from_text(value)))
                .collect()
        }
    };
    for (name, _) in &sources {
        ExportHeaders::check_name(name).map_err(D::Error::custom)?;
    }
    Ok(sources.into_iter().collect())
}

impl HeaderSource {
    fn from_text(text: String) -> Self {
        Self {
            value: ValueSource::Text(text),
            format: "{}".to_owned(),
        }
    }
}

fn parse_source(name: &str, value: toml::Value) -> Result<HeaderSource, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct SourceTable {
        environment: Option<String>,
        file: Option<PathBuf>,
        format: Option<String>,
    }
    // Messages never repeat a value, which may be secret.
    let wrong = || {
        format!(
            "expected a string, or {{ environment = \"NAME\" }} or {{ file = \"PATH\" }}, with or without \
             format = \"Bearer {{}}\", for {name:?}"
        )
    };
    if let toml::Value::String(text) = value {
        return Ok(HeaderSource::from_text(text));
    }
    let SourceTable {
        environment,
        file,
        format,
    } = value.try_into().map_err(|_| wrong())?;
    let value = match (environment, file) {
        (Some(name), None) if !name.is_empty() => ValueSource::Environment(name),
        (None, Some(path)) if !path.as_os_str().is_empty() => ValueSource::File(path),
        _ => return Err(wrong()),
    };
    let format = format.unwrap_or_else(|| "{}".to_owned());
    if format.matches("{}").count() != 1 {
        return Err(format!(
            "format needs {{}} once, for the value, as in \"Bearer {{}}\", for {name:?}"
        ));
    }
    Ok(HeaderSource { value, format })
}
