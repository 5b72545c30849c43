//! `TOOLBAY_*` variables, which override the configuration file.

use std::ffi::OsStr;

use toolbay_model::text::clean;
use toolbay_settings::toml_file::{TomlMistake, nearest};

use super::error::ConfigError;

/// Prefix of Toolbay's environment variables.
pub(super) const PREFIX: &str = "TOOLBAY_";

/// The variable with the path of the configuration file. It is not a key of the file.
pub(super) const CONFIG_VARIABLE: &str = "TOOLBAY_CONFIG";

/// The variable with the path of the plugin directory.
pub(super) const PLUGINS_VARIABLE: &str = "TOOLBAY_PLUGINS";

/// Tables of the file whose keys can be set by a variable, such as `TOOLBAY_LIMITS_FUEL`.
/// `http_client` comes before `http`, which is a prefix of it.
const TABLE_NAMES: [&str; 19] = [
    "approve",
    "server",
    "limits",
    "ceilings",
    "describe",
    "compile",
    "lock",
    "engine",
    "circuit_breaker",
    "http_client",
    "http",
    "state",
    "audit",
    "tasks",
    "results",
    "metrics",
    "console",
    "record",
    "otel",
];

/// Returns the environment variables of this process. Skips variables of other programs that are
/// not UTF-8.
///
/// # Errors
///
/// The name or the value of a variable of Toolbay is not UTF-8.
pub(crate) fn environment_variables() -> Result<Vec<(String, String)>, ConfigError> {
    let is_own = |name: &OsStr| name.as_encoded_bytes().starts_with(PREFIX.as_bytes());
    std::env::vars_os()
        .filter_map(|(name, value)| match (name.to_str(), value.to_str()) {
            (Some(name), Some(value)) => Some(Ok((name.to_owned(), value.to_owned()))),
            _ if is_own(&name) => Some(Err(ConfigError(format!(
                "{}: the environment variable is not valid UTF-8",
                clean(&name.to_string_lossy())
            )))),
            _ => None,
        })
        .collect()
}

/// Sets the key of `TOOLBAY_<KEY>` or `TOOLBAY_<TABLE>_<KEY>` in `table`. `check` parses a document
/// with only this key.
pub(super) fn apply_variable(
    table: &mut toml::Table,
    name: &str,
    value: &str,
    check: fn(&str) -> Result<(), TomlMistake>,
) -> Result<(), ConfigError> {
    let value_text = value;
    let (section, key) = split_name(name);
    let (key, text, value) = parse_value(section, &key, value)
        .map_err(|error| ConfigError(format!("{name}: {error}")))?;
    // The message names the variable. A line and a column would be meaningless.
    check(&text).map_err(|mistake| {
        ConfigError(match suggest_variable(name, value_text, check) {
            Some(near) => format!("{name} is not a variable of Toolbay; did you mean {near}?"),
            None => format!("{name}: {}", mistake.message),
        })
    })?;
    let target = match section {
        None => table,
        Some(section) => {
            let entry = table
                .entry(section)
                .or_insert_with(|| toml::Value::Table(toml::Table::new()));
            match entry {
                toml::Value::Table(table) => table,
                _ => {
                    return Err(ConfigError(format!(
                        "{name}: {section} in the configuration file is not a table"
                    )));
                }
            }
        }
    };
    target.insert(key, value);
    Ok(())
}

/// Returns the table and the key that the variable `name` sets.
fn split_name(name: &str) -> (Option<&'static str>, String) {
    let key = name.strip_prefix(PREFIX).unwrap_or(name).to_lowercase();
    let in_table = |section: &'static str| {
        Some((
            Some(section),
            key.strip_prefix(section)?.strip_prefix('_')?.to_owned(),
        ))
    };
    TABLE_NAMES
        .into_iter()
        .find_map(in_table)
        .unwrap_or((None, key))
}

/// Returns the key, a TOML document with only that key, and the value.
fn parse_value(
    section: Option<&str>,
    key: &str,
    value: &str,
) -> Result<(String, String, toml::Value), toml::ser::Error> {
    // Integers and booleans are parsed. Anything else is a string.
    let literal = value
        .parse::<toml::Value>()
        .ok()
        .filter(|value| value.is_integer() || value.is_bool());
    let value = literal.unwrap_or_else(|| toml::Value::String(value.to_owned()));
    let mut document = toml::Table::new();
    document.insert(key.to_owned(), value.clone());
    if let Some(section) = section {
        document = toml::Table::from_iter([(section.to_owned(), toml::Value::Table(document))]);
    }
    Ok((key.to_owned(), toml::to_string(&document)?, value))
}

/// Returns the most likely intended variable if the table in `name` is misspelled.
fn suggest_variable(
    name: &str,
    value: &str,
    check: fn(&str) -> Result<(), TomlMistake>,
) -> Option<String> {
    let (None, key) = split_name(name) else {
        return None;
    };
    let (table, rest) = key.split_once('_')?;
    let table = nearest(table, &TABLE_NAMES)?;
    let (_, text, _) = parse_value(Some(table), rest, value).ok()?;
    let is_key = check(&text)
        .err()
        .is_none_or(|mistake| !mistake.message.starts_with("unknown key"));
    is_key.then(|| format!("{PREFIX}{table}_{rest}").to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_every_table_have_variables_unless_the_book_says_otherwise() {
        let page = include_str!("../../../../docs/src/configuration.md");
        let tables = page
            .lines()
            .filter_map(|line| line.strip_prefix('[')?.split_once(']'));
        let tables: Vec<&str> = tables
            .filter(|(_, rest)| !rest.starts_with(['(', '[']))
            .map(|(name, _)| name)
            .collect();
        assert!(tables.contains(&"results"), "{tables:?}");
        for table in tables
            .into_iter()
            .filter(|table| !table.ends_with("rate_limit") && !table.contains('.'))
        {
            assert_eq!(
                split_name(&format!("{PREFIX}{}_KEY", table.to_uppercase())),
                (Some(table_of(table)), "key".to_owned())
            );
        }
    }

    fn table_of(name: &str) -> &'static str {
        TABLE_NAMES
            .into_iter()
            .find(|table| *table == name)
            .unwrap_or_else(|| panic!("{name} is not in TABLE_NAMES"))
    }
}
