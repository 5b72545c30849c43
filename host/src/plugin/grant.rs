//! The grant: what an operator gives a plugin, in `<plugin>.toml` beside `<plugin>.wasm`.
//!
//! It is the operator's file and never comes from inside a plugin. No file
//! means no permissions and the server's default limits.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use crate::limits::LimitsPatch;
use crate::rate::RateLimit;
use crate::toml_file;

/// A parsed `<plugin>.toml`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
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
#[serde(deny_unknown_fields, default)]
pub struct ToolGrant {
    /// The keys of its budget that differ.
    pub limits: ToolLimits,
    /// See [`Shown::hidden`].
    pub hidden: bool,
    /// See [`Shown::title`].
    pub title: Option<String>,
    /// See [`Shown::description`].
    pub description: Option<String>,
    /// See [`Shown::annotations`].
    pub annotations: Hints,
}

impl ToolGrant {
    /// How it is shown.
    pub fn shown(&self) -> Shown {
        Shown {
            hidden: self.hidden,
            title: self.title.clone(),
            description: self.description.clone(),
            annotations: self.annotations,
        }
    }
}

/// How a tool is shown instead of how its plugin would have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// It is not offered at all.
    pub hidden: bool,
    /// Its name for people.
    pub title: Option<String>,
    /// What it does, for the model.
    pub description: Option<String>,
    /// What it does to the world: each of these instead of the plugin's word.
    pub annotations: Hints,
}

/// What a tool does to the world, in an operator's words (MCP `ToolAnnotations`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may delete or overwrite.
    pub destructive: Option<bool>,
    /// The same call twice has the effect of one.
    pub idempotent: Option<bool>,
    /// It deals with things outside a closed set.
    pub open_world: Option<bool>,
}

/// The keys of a tool's own budget: `[tools.NAME.limits]`. What the others
/// bound belongs to the plugin as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
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
#[serde(deny_unknown_fields, default)]
pub struct Permissions {
    /// Names of the server's environment variables that are passed through.
    pub environment: Vec<String>,
    /// Folders the plugin sees.
    pub mounts: Vec<Mount>,
}

/// A folder of the host that a plugin sees under a path of its own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
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
        if grant.rate_limit.is_some_and(|limit| !limit.is_valid()) {
            return Err(format!("{name}: rate_limit.per is too short for so many calls"));
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
                    other => serde_json::to_value(other).map(|json| json.to_string()).unwrap_or_default(),
                };
                (key.clone(), text)
            })
            .collect()
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
    fn an_empty_file_grants_nothing() {
        assert_eq!(parse("").unwrap(), Grant::default());
    }

    #[test]
    fn mistakes_say_what_would_be_right() {
        let cases = [
            ("prefix = \"a b\"", "acme.toml: prefix \"a b\" may hold only A-Z a-z 0-9 _ - . and 1 to 64 of them"),
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
