//! The grant: the operator's settings and permissions for a plugin, in `<plugin>.toml` next to
//! `<plugin>.wasm`.
//!
//! The operator writes it; it never comes from a plugin. Without the file, the plugin has no
//! permissions and the server's default limits.

mod grant_end;
mod secret;

use std::collections::BTreeMap;
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytesize::ByteSize;
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use toml::Spanned;
use toolbay_model::setting::positive;
use toolbay_model::{
    ArgumentCheck, Digest, GrantEnd, LimitsPatch, OversizePolicy, TaskSupport, ToolRateLimit,
    is_name,
};
use toolbay_policy::{OriginPattern, Permissions, StateGrant};
use toolbay_secrets::{FixedSecrets, SecretVault};
use toolbay_settings::toml_file;

use self::grant_end::grant_end;
use self::secret::SecretTable;
use crate::rules::approval::{ApprovalSetting, Approver, ToolApprovals};
use crate::rules::budget::GrantBudget;
use crate::rules::input_schema::InputSchema;
use crate::rules::name_separator::NameSeparator;
use crate::rules::tool_pattern::{ToolPattern, digest, patterns};

/// Maximum length of a prefix, in bytes. A tool's full name is at most twice as long.
const MAX_PREFIX_BYTES: usize = 64;

/// Parsed grant, `<plugin>.toml`. Its default is the grant of a plugin without a file: no
/// permissions and default limits.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grant {
    /// Prefix of the tools' names: tools are offered as `PREFIX_NAME`. 1 to 64 characters of `A-Z
    /// a-z 0-9 _ - .`.
    #[serde(deserialize_with = "prefix")]
    pub prefix: Option<String>,
    /// Separator between the prefix and a name: `_` or `.`.
    pub separator: NameSeparator,
    /// Calls that a person must allow first, of the tools without their own setting. `None` uses
    /// the server's.
    pub require_approval: Option<ApprovalSetting>,
    /// Approver of these calls, for the tools without their own. `None` uses the server's.
    pub approve_by: Option<Approver>,
    /// Strictness of the argument checks of its tools. `None` uses the setting of the caller's
    /// token or of the server.
    pub arguments: Option<ArgumentCheck>,
    /// The tools that are offered, by patterns of their names without the prefix. `None` offers all
    /// of them.
    #[serde(deserialize_with = "patterns")]
    pub enabled_tools: Option<Vec<ToolPattern>>,
    /// The only component that the grant applies to. `None` accepts any file.
    #[serde(deserialize_with = "digest")]
    pub component: Option<Digest>,
    /// The time at which the grant ends. From then on, no call of the plugin begins. `None` means no
    /// end.
    #[serde(deserialize_with = "grant_end")]
    pub until: Option<GrantEnd>,
    /// The limits that the grant sets. The server clamps them to its ceilings.
    pub limits: LimitsPatch,
    /// Rate limit of each tool. `None` uses the server's.
    pub rate_limit: Option<ToolRateLimit>,
    /// What the calls of the plugin may use per day.
    pub budget: GrantBudget,
    /// The environment variables and folders that the plugin can use.
    pub permissions: Permissions,
    /// Values to redact in all plugin output, and to add to its requests, by name.
    pub secrets: BTreeMap<String, SecretTable>,
    /// Values that the plugin reads through `host.config`, by key.
    pub config: BTreeMap<String, toml::Value>,
    /// Settings of single tools, by the tool's name without the prefix.
    pub tools: BTreeMap<String, ToolGrant>,
    /// SHA-256 of the file's text; `None` for a plugin without a file.
    #[serde(skip)]
    pub digest: Option<Digest>,
    /// The file's text, which [`Grant::digest`] is computed from.
    #[serde(skip)]
    pub text: Option<Arc<str>>,
    /// True if the grant is only the intersection of two versions of the file.
    #[serde(skip)]
    pub is_partial: bool,
}

/// Settings of one tool: `[tools.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolGrant {
    /// The limits that differ for this tool.
    pub limits: ToolLimits,
    /// Calls of this tool that a person must allow first. `None` uses the grant's setting.
    pub require_approval: Option<ApprovalSetting>,
    /// Approver of these calls. `None` uses the grant's.
    pub approve_by: Option<Approver>,
    /// See [`ToolOverride::disabled`].
    pub disabled: bool,
    /// See [`ToolOverride::title`].
    pub title: Option<String>,
    /// See [`ToolOverride::description`].
    pub description: Option<String>,
    /// See [`ToolOverride::annotations`].
    pub annotations: AnnotationOverride,
    /// See [`ToolOverride::task_support`].
    pub task_support: Option<TaskSupport>,
    /// See [`ToolOverride::input_schema`].
    pub input_schema: Option<InputSchema>,
}

impl ToolGrant {
    /// Returns the changes to the tool's definition.
    pub fn to_override(&self) -> ToolOverride {
        ToolOverride {
            disabled: self.disabled,
            title: self.title.clone(),
            description: self.description.clone(),
            annotations: self.annotations,
            task_support: self.task_support,
            input_schema: self.input_schema.clone(),
        }
    }
}

/// The operator's changes to a tool's definition. `None` keeps the plugin's value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOverride {
    /// If set, the tool is not offered.
    pub disabled: bool,
    /// A display name.
    pub title: Option<String>,
    /// Description of the tool, for the model.
    pub description: Option<String>,
    /// Hints about the tool's effects. Each hint that is set replaces the plugin's.
    pub annotations: AnnotationOverride,
    /// Task support: specifies whether the tool can be called as a task.
    pub task_support: Option<TaskSupport>,
    /// Schema that the arguments of a command must match.
    pub input_schema: Option<InputSchema>,
}

/// Annotations of a tool, as the operator sets them (MCP `ToolAnnotations`). `None` keeps the
/// plugin's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AnnotationOverride {
    /// The tool does not modify its environment.
    pub read_only: Option<bool>,
    /// The tool may delete or overwrite data.
    pub destructive: Option<bool>,
    /// Repeating a call with the same arguments has no further effect.
    pub idempotent: Option<bool>,
    /// The tool interacts with external entities, such as the web.
    pub open_world: Option<bool>,
}

/// Limits that can be set for a single tool: `[tools.NAME.limits]`. The other limits apply to the
/// whole plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolLimits {
    /// See [`LimitsPatch::fuel`].
    #[serde(deserialize_with = "positive")]
    pub fuel: Option<u64>,
    /// See [`LimitsPatch::timeout`].
    #[serde(deserialize_with = "positive")]
    pub timeout: Option<Duration>,
    /// See [`LimitsPatch::output`].
    #[serde(deserialize_with = "positive")]
    pub output: Option<ByteSize>,
    /// See [`LimitsPatch::oversize`].
    pub oversize: Option<OversizePolicy>,
}

impl ToolLimits {
    /// Returns the keys that are set.
    pub(crate) fn set_keys(&self) -> Vec<&'static str> {
        let set = [
            ("fuel", self.fuel.is_some()),
            ("timeout", self.timeout.is_some()),
            ("output", self.output.is_some()),
            ("oversize", self.oversize.is_some()),
        ];
        set.into_iter()
            .filter(|(_, set)| *set)
            .map(|(key, _)| key)
            .collect()
    }

    /// Returns the same keys as a patch.
    pub fn to_patch(&self) -> LimitsPatch {
        let Self {
            fuel,
            timeout,
            output,
            oversize,
        } = self.clone();
        LimitsPatch {
            fuel,
            timeout,
            output,
            oversize,
            ..LimitsPatch::default()
        }
    }
}

/// Secrets of a grant with their values.
#[derive(Debug, Default)]
pub struct GrantSecrets {
    /// The secrets.
    pub secrets: SecretVault,
    /// Warnings about secrets that have no value, or whose requests are denied.
    pub remarks: Vec<String>,
}

impl Grant {
    /// Parses the text of a grant. `name` is the file's name for messages; relative mounts are
    /// resolved against `folder`.
    ///
    /// # Errors
    ///
    /// Returns one line with the position of the first mistake and the expected value.
    pub fn parse(name: &str, text: &str, folder: &Path) -> Result<Self, String> {
        let mut grant: Self = toml_file::parse_document(text)
            .map_err(|mistake| format!("{name}:{}", mistake.with_table_hint(&key_tables())))?;
        grant.digest = Some(Digest::new(Sha256::digest(text).into()));
        grant.text = Some(text.into());
        for (secret, keys) in &grant.secrets {
            keys.check()
                .map_err(|why| format!("{name}: secrets.{secret}: {why}"))?;
        }
        grant
            .permissions
            .check()
            .map_err(|why| format!("{name}: {why}"))?;
        for (mount, line) in grant.permissions.mounts.iter_mut().zip(mount_lines(text)) {
            mount.source_location = format!("{name}:{line}");
            mount.host_as_written = mem::take(&mut mount.host);
            mount.host = folder.join(&mount.host_as_written);
            folder.clone_into(&mut mount.base);
        }
        Ok(grant)
    }

    /// Returns whether both grants have the same effect, regardless of the text of their files.
    pub(crate) fn is_equivalent_to(&self, other: &Self) -> bool {
        let comparable = |grant: &Self| {
            let mut grant = Self {
                digest: None,
                text: None,
                ..grant.clone()
            };
            for mount in &mut grant.permissions.mounts {
                mount.source_location.clear();
            }
            grant
        };
        comparable(self) == comparable(other)
    }

    /// Returns the name by which clients call the tool `name` or get the prompt `name`.
    pub fn full_name(&self, name: &str) -> String {
        self.prefix.as_ref().map_or_else(
            || name.to_owned(),
            |prefix| self.separator.join(prefix, name),
        )
    }

    /// Returns which calls a person must allow first, and which person. `server` and
    /// `server_approver` are the server's configuration.
    pub fn approvals(&self, server: ApprovalSetting, server_approver: Approver) -> ToolApprovals {
        let own_setting =
            |(name, tool): (&String, &ToolGrant)| Some((name.clone(), tool.require_approval?));
        let own_approver =
            |(name, tool): (&String, &ToolGrant)| Some((name.clone(), tool.approve_by?));
        ToolApprovals {
            default: self.require_approval.unwrap_or(server),
            tools: self.tools.iter().filter_map(own_setting).collect(),
            default_approver: self.approve_by.unwrap_or(server_approver),
            tool_approvers: self.tools.iter().filter_map(own_approver).collect(),
        }
    }

    /// Returns the secrets, without their values.
    ///
    /// # Errors
    ///
    /// A secret is for a header that no request can have.
    pub fn secret_specs(&self) -> Result<Vec<toolbay_secrets::SecretSpec>, String> {
        let to_spec = |(name, secret): (&String, &SecretTable)| {
            secret
                .to_spec(name)
                .map_err(|why| format!("secrets.{name}: {why}"))
        };
        self.secrets.iter().map(to_spec).collect()
    }

    /// Combines the secrets with their values. Also returns warnings about the grant itself.
    /// `fixed` has the values that are fetched once; `name` and `folder` are as in
    /// [`Grant::parse`].
    ///
    /// # Errors
    ///
    /// A secret is too short to redact or cannot be in a header, or the secrets together are too
    /// long.
    pub fn build_secrets(
        &self,
        name: &str,
        folder: &Path,
        secrets: Vec<toolbay_secrets::SecretSpec>,
        fixed: FixedSecrets,
    ) -> Result<GrantSecrets, String> {
        let mut remarks = Vec::new();
        let rules = &self.permissions.http;
        let unused =
            |origin: &&OriginPattern| !rules.iter().any(|rule| rule.origin().covers_all_of(origin));
        for (name, secret) in &self.secrets {
            for origin in secret.origins.iter().filter(unused) {
                remarks.push(format!(
                    "secrets.{name}.origins: permissions.http does not allow requests to all of {origin}"
                ));
            }
        }
        Ok(GrantSecrets {
            secrets: SecretVault::new(name, folder, secrets, fixed)?,
            remarks,
        })
    }

    /// Returns `[config]` as the guest reads it: strings unchanged, other values as JSON text.
    pub fn config_values(&self) -> BTreeMap<String, String> {
        self.config
            .iter()
            .map(|(key, value)| {
                let text = match value {
                    toml::Value::String(text) => text.clone(),
                    toml::Value::Datetime(when) => when.to_string(),
                    other => to_json(other).to_string(),
                };
                (key.clone(), text)
            })
            .collect()
    }
}

/// Converts a value to JSON. Dates, infinities and NaN, which JSON does not have, become strings.
fn to_json(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.clone().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) if number.is_finite() => (*number).into(),
        toml::Value::Float(number) => number.to_string().into(),
        toml::Value::Boolean(boolean) => (*boolean).into(),
        toml::Value::Datetime(when) => when.to_string().into(),
        toml::Value::Array(values) => values.iter().map(to_json).collect(),
        toml::Value::Table(values) => values
            .iter()
            .map(|(key, value)| (key.clone(), to_json(value)))
            .collect(),
    }
}

/// Returns the line in which each mount names its folder. A missing folder is reported only after
/// parsing, and the message contains this line.
fn mount_lines(text: &str) -> Vec<usize> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct MountsOnlyGrant {
        permissions: MountsOnlyPermissions,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct MountsOnlyPermissions {
        mounts: Vec<MountHost>,
    }
    #[derive(Deserialize)]
    struct MountHost {
        host: Spanned<IgnoredAny>,
    }
    let parsed: MountsOnlyGrant = toml_file::parse_document(text).unwrap_or_default();
    parsed
        .permissions
        .mounts
        .iter()
        .map(|mount| toml_file::position(text, mount.host.span().start).0)
        .collect()
}

/// Parses a prefix that results in valid tool names.
fn prefix<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let prefix = String::deserialize(deserializer)?;
    if !is_name(&prefix) || prefix.len() > MAX_PREFIX_BYTES {
        let message = format_args!(
            "{prefix:?} must have 1 to {MAX_PREFIX_BYTES} characters of A-Z a-z 0-9 _ - ."
        );
        return Err(D::Error::custom(message));
    }
    if prefix.starts_with('.') || prefix.ends_with('.') {
        return Err(D::Error::custom(format_args!(
            "{prefix:?} must not begin or end with a dot; Toolbay adds the separator before the tool's name"
        )));
    }
    Ok(Some(prefix))
}

/// Returns a valid prefix derived from the plugin's id, for messages that suggest one.
pub(crate) fn suggest_prefix(id: &str) -> String {
    let mut prefix: String = id
        .chars()
        .map(|c| {
            if is_name(c.encode_utf8(&mut [0; 4])) {
                c
            } else {
                '_'
            }
        })
        .collect();
    prefix.truncate(MAX_PREFIX_BYTES);
    let prefix = prefix.trim_matches('.');
    if prefix.is_empty() {
        "other".to_owned()
    } else {
        prefix.to_owned()
    }
}

/// Returns the tables of a grant with the names of their keys, to say where a misplaced key belongs.
fn key_tables() -> [(&'static str, Vec<String>); 4] {
    [
        ("", toml_file::key_names::<Grant>()),
        ("limits", toml_file::key_names::<LimitsPatch>()),
        ("permissions", toml_file::key_names::<Permissions>()),
        ("permissions.state", toml_file::key_names::<StateGrant>()),
    ]
}

#[cfg(test)]
mod tests;
