//! The grant: what an operator gives a plugin, in `<plugin>.toml` beside `<plugin>.wasm`.
//!
//! It is the operator's file and never comes from inside a plugin. No file
//! means no permissions and the server's default limits.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits::LimitsPatch;
use crate::rate::RateLimit;
use crate::toml_file;

/// A parsed `<plugin>.toml`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct Grant {
    /// Tools are offered as `PREFIX.NAME`.
    pub prefix: Option<String>,
    /// The budget of a call, within the server's ceilings.
    pub limits: LimitsPatch,
    /// How often each of its tools may be called.
    pub rate_limit: Option<RateLimit>,
    /// What the plugin may reach.
    pub permissions: Permissions,
    /// Plain values that the plugin can read.
    pub config: BTreeMap<String, toml::Value>,
    /// What is different for single tools, by the name within the plugin.
    pub tools: BTreeMap<String, ToolGrant>,
}

/// What is different for one tool: `[tools.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct ToolGrant {
    /// The keys of its budget that differ.
    pub limits: ToolLimits,
}

/// The keys of a tool's own budget: `[tools.NAME.limits]`. What the others
/// bound belongs to the plugin as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct ToolLimits {
    /// See [`LimitsPatch::fuel`].
    pub fuel: Option<u64>,
    /// See [`LimitsPatch::timeout`].
    #[serde(with = "humantime_serde")]
    pub timeout: Option<Duration>,
    /// See [`LimitsPatch::output`].
    pub output: Option<ByteSize>,
}

impl ToolLimits {
    /// The same keys as a patch.
    pub fn patch(&self) -> LimitsPatch {
        LimitsPatch { fuel: self.fuel, timeout: self.timeout, output: self.output, ..LimitsPatch::default() }
    }
}

/// What a plugin may reach beyond its own memory. Empty denies everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct Permissions {
    /// Names of the server's environment variables that are passed through.
    pub environment: Vec<String>,
    /// Folders the plugin sees.
    pub mounts: Vec<Mount>,
}

/// A folder of the host that a plugin sees under a path of its own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Mount {
    /// The folder on the host; a relative path starts at the plugin folder.
    pub host: PathBuf,
    /// Where the plugin sees it: an absolute path.
    pub guest: String,
    /// What the plugin may do there.
    pub access: Access,
}

/// What a plugin may do in a mounted folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// List and read.
    Read,
    /// List, read, create, change and delete.
    ReadWrite,
}

impl Grant {
    /// Parses a grant file that people know as `name`; mounts become relative to `folder`.
    ///
    /// # Errors
    ///
    /// One line that says where the mistake is and what would be right.
    pub fn parse(name: &str, text: &str, folder: &Path) -> Result<Self, String> {
        let mut grant: Self = toml_file::parse(name, text)?;
        if let Some(prefix) = &grant.prefix
            && !is_tool_name(prefix)
        {
            return Err(format!("{name}: prefix {prefix:?} may hold only A-Z a-z 0-9 _ - . and 1 to 64 of them"));
        }
        if let Some(mistake) = grant.rate_limit.and_then(|limit| limit.mistake()) {
            return Err(format!("{name}: {mistake}"));
        }
        for variable in &grant.permissions.environment {
            if variable.is_empty() || variable.contains(['=', '\0']) {
                return Err(format!("{name}: {variable:?} in permissions.environment is not a variable's name"));
            }
        }
        for mount in &mut grant.permissions.mounts {
            mount.check(name)?;
            mount.host = folder.join(&mount.host);
        }
        Ok(grant)
    }

    /// `[config]` as the plugin reads it: strings as they are, other values as JSON.
    pub fn config_values(&self) -> BTreeMap<String, String> {
        self.config
            .iter()
            .map(|(key, value)| {
                let text = match value {
                    toml::Value::String(text) => text.clone(),
                    toml::Value::Datetime(when) => when.to_string(),
                    other => json(other).to_string(),
                };
                (key.clone(), text)
            })
            .collect()
    }
}

/// A value as JSON. It has no dates, infinities or not-a-numbers: these are text.
fn json(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.clone().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) if number.is_finite() => (*number).into(),
        toml::Value::Float(number) => number.to_string().into(),
        toml::Value::Boolean(boolean) => (*boolean).into(),
        toml::Value::Datetime(when) => when.to_string().into(),
        toml::Value::Array(values) => values.iter().map(json).collect(),
        toml::Value::Table(values) => values.iter().map(|(key, value)| (key.clone(), json(value))).collect(),
    }
}

impl Mount {
    fn check(&self, name: &str) -> Result<(), String> {
        let guest = Path::new(&self.guest);
        let plain = guest.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        if guest.is_absolute() && plain {
            Ok(())
        } else {
            Err(format!(
                "{name}: guest = {:?} in permissions.mounts must be an absolute path without `..`, such as \"/data\"",
                self.guest
            ))
        }
    }
}

/// Whether every character is one that a tool name may have, and there are few enough for a prefix.
fn is_tool_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Grant, String> {
        Grant::parse("acme.toml", text, Path::new("/plugins"))
    }

    #[test]
    fn a_whole_grant() {
        let grant = parse(
            r#"
            prefix = "acme"
            [limits]
            fuel = 1_000
            [permissions]
            environment = ["LANG"]
            [[permissions.mounts]]
            host = "data"
            guest = "/data"
            access = "read"
            [config]
            units = "metric"
            depth = 3
            "#,
        )
        .unwrap();
        assert_eq!(grant.prefix.as_deref(), Some("acme"));
        assert_eq!(grant.limits.fuel, Some(1000));
        assert_eq!(grant.permissions.mounts[0].host, Path::new("/plugins/data"));
        let config = grant.config_values();
        assert_eq!(config["units"], "metric");
        assert_eq!(config["depth"], "3");
    }

    #[test]
    fn what_json_does_not_have_is_text() {
        let grant = parse("[config]\nday = 1979-05-27\nlist = [1979-05-27T07:32:00Z, inf, 1.5]").unwrap();
        let config = grant.config_values();
        assert_eq!(config["day"], "1979-05-27");
        assert_eq!(config["list"], r#"["1979-05-27T07:32:00Z","inf",1.5]"#);
    }

    #[test]
    fn an_empty_file_grants_nothing() {
        assert_eq!(parse("").unwrap(), Grant::default());
    }

    #[test]
    fn mistakes_say_what_would_be_right() {
        let cases = [
            ("prefix = \"a b\"", "acme.toml: prefix \"a b\" may hold only A-Z a-z 0-9 _ - . and 1 to 64 of them"),
            ("limits = 3", "acme.toml:1:10: invalid type: integer `3`, expected a table"),
            ("[rate_limit]\ncalls = 1\nper = \"600years\"", "acme.toml: rate_limit.per is longer than a year"),
            ("[permission]", "acme.toml:1:2: unknown key `permission`; did you mean `permissions`?"),
            (
                "[[permissions.mounts]]\nhost = \"x\"\nguest = \"../x\"\naccess = \"read\"",
                "acme.toml: guest = \"../x\" in permissions.mounts must be an absolute path without `..`, such as \"/data\"",
            ),
            (
                "[permissions]\nenvironment = [\"A=B\"]",
                "acme.toml: \"A=B\" in permissions.environment is not a variable's name",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text).unwrap_err(), expected);
        }
    }
}
