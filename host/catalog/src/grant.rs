//! The grant: the operator's settings and permissions for a plugin, in `<plugin>.toml` next to
//! `<plugin>.wasm`.
//!
//! The operator writes it; it never comes from a plugin. Without the file, the plugin has no
//! permissions and the server's default limits.

mod secret;

use std::collections::BTreeMap;
use std::mem;
use std::path::Path;
use std::time::Duration;

use bytesize::ByteSize;
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use toml::Spanned;
use toolbay_model::setting::positive;
use toolbay_model::{
    ArgumentCheck, Digest, LimitsPatch, OversizePolicy, TaskSupport, ToolRateLimit, is_name,
};
use toolbay_policy::{OriginPattern, Permissions};
use toolbay_secrets::{FixedSecrets, SecretVault};
use toolbay_settings::toml_file;

use self::secret::SecretTable;
use crate::approval::{ApprovalSetting, ToolApprovals};
use crate::input_schema::InputSchema;
use crate::name_separator::NameSeparator;
use crate::tool_pattern::{ToolPattern, digest, patterns};

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
    /// The limits that the grant sets. The server clamps them to its ceilings.
    pub limits: LimitsPatch,
    /// Rate limit of each tool. `None` uses the server's.
    pub rate_limit: Option<ToolRateLimit>,
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

/// Limits that can be set for a single tool: `[tools.NAME.limits]`. The others apply to a plugin as
/// a whole.
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
        let mut grant: Self = toml_file::parse(name, text)?;
        grant.digest = Some(Digest::new(Sha256::digest(text).into()));
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

    /// Returns which calls a person must allow first. `server` is the server's configuration.
    pub fn approvals(&self, server: ApprovalSetting) -> ToolApprovals {
        let own =
            |(name, tool): (&String, &ToolGrant)| Some((name.clone(), tool.require_approval?));
        ToolApprovals {
            default: self.require_approval.unwrap_or(server),
            tools: self.tools.iter().filter_map(own).collect(),
        }
    }

    /// Returns the secrets, without their values.
    ///
    /// # Errors
    ///
    /// A secret is for a header that no request can have.
    pub fn secret_specs(&self) -> Result<Vec<toolbay_secrets::SecretSpec>, String> {
        let of = |(name, secret): (&String, &SecretTable)| {
            secret
                .to_spec(name)
                .map_err(|why| format!("secrets.{name}: {why}"))
        };
        self.secrets.iter().map(of).collect()
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
        let (mut remarks, rules) = (Vec::new(), &self.permissions.http);
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

/// Returns the line in which each mount names its folder. A missing folder is reported after the
/// file was parsed, and the message still names the line.
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
    let places: MountsOnlyGrant = toml_file::parse_document(text).unwrap_or_default();
    places
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
        let wrong = format_args!(
            "{prefix:?} must have 1 to {MAX_PREFIX_BYTES} characters of A-Z a-z 0-9 _ - ."
        );
        return Err(D::Error::custom(wrong));
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

#[cfg(test)]
mod tests {
    use toolbay_policy::{MountPermission, MountScope, ScratchPermission};

    use super::*;

    fn parse(text: &str) -> Result<Grant, String> {
        Grant::parse("acme.toml", text, Path::new("/plugins"))
    }

    #[test]
    fn every_key_of_a_grant_is_read() {
        let grant = parse(
            r#"
            prefix = "acme"
            require_approval = "destructive"
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
            [tools.erase]
            require_approval = "always"
            [tools.look]
            title = "Look"
            "#,
        )
        .unwrap();
        assert_eq!(grant.prefix.as_deref(), Some("acme"));
        assert_eq!(grant.limits.fuel, Some(1000));
        let mount = &grant.permissions.mounts[0];
        assert_eq!(
            (mount.host.as_path(), mount.host_as_written.as_path()),
            (Path::new("/plugins/data"), Path::new("data"))
        );
        assert_eq!(mount.source_location, "acme.toml:9");
        let config = grant.config_values();
        assert_eq!(config["units"], "metric");
        assert_eq!(config["depth"], "3");
        let approvals = grant.approvals(ApprovalSetting::First);
        assert_eq!(
            (
                approvals.setting_for("erase"),
                approvals.setting_for("look")
            ),
            (ApprovalSetting::Always, ApprovalSetting::Destructive)
        );
        assert_eq!(
            Grant {
                require_approval: None,
                ..grant
            }
            .approvals(ApprovalSetting::First)
            .setting_for("look"),
            ApprovalSetting::First
        );
    }

    #[test]
    fn values_that_json_does_not_have_become_strings() {
        let grant =
            parse("[config]\nday = 1979-05-27\nlist = [1979-05-27T07:32:00Z, inf, 1.5]").unwrap();
        let config = grant.config_values();
        assert_eq!(config["day"], "1979-05-27");
        assert_eq!(config["list"], r#"["1979-05-27T07:32:00Z","inf",1.5]"#);
    }

    #[test]
    fn an_empty_file_grants_nothing() {
        let digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let grant = parse("").unwrap();
        assert_eq!(grant.digest.unwrap().to_string(), digest);
        assert_eq!(
            Grant {
                digest: None,
                ..grant
            },
            Grant::default()
        );
    }

    #[test]
    fn mistakes_say_what_was_expected() {
        let long = format!("prefix = {:?}", "x".repeat(65));
        let texts = [
            "prefix = \"a b\"",
            "prefix = \"\"",
            "\nprefix = \".a\"",
            "prefix = \"a.\"",
            &long,
            "[permission]",
            "limits = 3",
            "[rate_limit]\ncalls = 1\nper = \"600years\"",
            "[[permissions.mounts]]\nhost = \"x\"\nguest = \"../x\"\naccess = \"read\"",
            "[[permissions.mounts]]\nhost = \"x\"\nguest = \"/x\"\naccess = \"read\"\n\
             [[permissions.mounts]]\nhost = \"y\"\nguest = \"/x/\"\naccess = \"read\"",
            "[permissions]\nenvironment = [\"A=B\"]",
            "[permissions]\nenvironment = [\"LANG\", \"*\"]",
            "[permissions]\nenvironment = [\"LC_*\"]",
            "[permissions]\nenvironment = [\"\"]",
            "[permissions]\nenvironment = [\"A\\u0000\"]",
            "[limits]\nconcurrency = 0",
            "[limits]\ntimeout = \"0s\"",
            "[tools.a.limits]\noutput = \"0B\"",
            "require_approval = \"allways\"",
            "require_approval = true",
            "require_aproval = \"always\"",
            "[tools.a]\nrequire_approval = \"yes\"",
            "[tools.a]\nrequire_aproval = \"first\"",
        ];
        let said: Vec<String> = texts.iter().map(|text| parse(text).unwrap_err()).collect();
        insta::assert_snapshot!(said.join("\n"), @r#"
        acme.toml:1:10: prefix: "a b" must have 1 to 64 characters of A-Z a-z 0-9 _ - .
        acme.toml:1:10: prefix: "" must have 1 to 64 characters of A-Z a-z 0-9 _ - .
        acme.toml:2:10: prefix: ".a" must not begin or end with a dot; Toolbay adds the separator before the tool's name
        acme.toml:1:10: prefix: "a." must not begin or end with a dot; Toolbay adds the separator before the tool's name
        acme.toml:1:10: prefix: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" must have 1 to 64 characters of A-Z a-z 0-9 _ - .
        acme.toml:1:2: unknown key `permission`; did you mean `permissions`?
        acme.toml:1:10: limits: expected a table, not 3
        acme.toml:3:7: rate_limit.per: expected a duration of at most 1 year, not "600years"
        acme.toml:3:9: permissions.mounts[0].guest: "../x" must be an absolute path without `..`, such as "/data"
        acme.toml:1:1: permissions.mounts: mounts[0] and mounts[1] have the same guest path "/x/"; each mount needs its own
        acme.toml:2:15: permissions.environment: "A=B" is not the name of an environment variable
        acme.toml:2:15: permissions.environment: "*" is not the name of an environment variable; patterns are not supported, so list each variable
        acme.toml:2:15: permissions.environment: "LC_*" is not the name of an environment variable; patterns are not supported, so list each variable
        acme.toml:2:15: permissions.environment: "" is not the name of an environment variable
        acme.toml:2:15: permissions.environment: "A\0" is not the name of an environment variable
        acme.toml:2:15: limits.concurrency: expected an integer of at least 1, not 0
        acme.toml:2:11: limits.timeout: expected a duration above 0, such as "30s", not "0s"
        acme.toml:2:10: tools.a.limits.output: expected a size above 0, such as "64MiB", not "0B"
        acme.toml:1:20: require_approval: expected "always", "first", "destructive" or "never", not "allways"; did you mean "always"?
        acme.toml:1:20: require_approval: expected a string in quotes, not true
        acme.toml:1:1: unknown key `require_aproval`; did you mean `require_approval`?
        acme.toml:2:20: tools.a.require_approval: expected "always", "first", "destructive" or "never", not "yes"
        acme.toml:2:1: unknown key `require_aproval`; did you mean `require_approval`?
        "#);
    }

    #[test]
    fn every_mistake_names_its_line_and_its_key() {
        let texts = [
            "\n\n[limits]\nfuel = \"much\"",
            "limits = 3",
            "[permissions]\nenvironment = \"LANG\"",
            "[permissions]\nenvironment = [\"A\", 7]",
            "prefix = true",
            "\n[rate_limit]\ncalls = 3",
            "rate_limit = { calls = 3 }",
            "\n[rate_limit]\ncalls = 3\nper = \"soon\"",
            "\n[rate_limit]\ncalls = 0\nper = \"1m\"",
            "\n[[permissions.mounts]]\nhost = \"a\"\nguest = \"/a\"",
            "[[permissions.mounts]]\nhost = \"a\"\nguest = \"/a\"\naccess = \"read-write\"\nqouta = \"1MiB\"",
            "[[permissions.mounts]]\nhost = \"a\"\nguest = \"/a\"\naccess = \"read-write\"\nquota = \"much\"",
            "[[permissions.mounts]]\nhost = \"a\"\nguest = \"/a\"\naccess = \"read-write\"\nquota = 0",
            "[[permissions.mounts]]\nhost = \"a\"\nguest = \"/a\"\naccess = \"read\"\nquota = \"1MiB\"",
            "[[permissions.mounts]]\nhost = \"a\"\nguest = \"/a\"\naccess = \"read-write\"\nentires = 9",
            "[[permissions.mounts]]\nhost = \"a\"\nguest = \"/a\"\naccess = \"read-write\"\nentries = 1_000_001",
            "[[permissions.mounts]]\nhost = \"a\"\nguest = \"/a\"\naccess = \"read\"\nscope = \"user\"",
            "[permissions.scrtach]",
            "[permissions.scratch]\nsise = \"1MiB\"",
            "[permissions.scratch]\nsize = 0",
            "[permissions.scratch]\nguest = \"tmp\"",
            "[permissions.scratch]\nentry = 1",
            "[permissions.scratch]\nentries = 0",
            "[[permissions.mounts]]\nhost = 1\nguest = \"/a\"\naccess = \"write\"",
            "[[permissions.mounts]]\nhost = \"a\"\nguest = \"/a\"\naccess = \"write\"",
            "[tools.a.limits]\nmemory = 1",
            "[limits",
            "prefix \"a\"",
        ];
        let said: Vec<String> = texts
            .iter()
            .map(|text| toml_file::parse::<Grant>("a.toml", text).unwrap_err())
            .collect();
        insta::assert_snapshot!(said.join("\n"), @r#"
        a.toml:4:8: limits.fuel: expected an integer of at least 1, not "much"
        a.toml:1:10: limits: expected a table, not 3
        a.toml:2:15: permissions.environment: expected a list, not "LANG"
        a.toml:2:21: permissions.environment[1]: expected a string in quotes, not 7
        a.toml:1:10: prefix: expected a string in quotes, not true
        a.toml:2:1: rate_limit: the key `per` is missing
        a.toml:1:14: rate_limit: the key `per` is missing
        a.toml:4:7: rate_limit.per: expected a duration above 0, such as "30s", not "soon"
        a.toml:3:9: rate_limit.calls: expected an integer of at least 1, not 0
        a.toml:2:1: permissions.mounts[0]: the key `access` is missing
        a.toml:5:1: unknown key `qouta`; did you mean `quota`?
        a.toml:5:9: permissions.mounts[0].quota: expected a size above 0, such as "64MiB", not "much"
        a.toml:5:9: permissions.mounts[0].quota: expected a size above 0, such as "64MiB", not 0
        a.toml:1:1: permissions.mounts: mounts[0] has quota, which needs access = "read-write"; remove quota
        a.toml:5:1: unknown key `entires`; did you mean `entries`?
        a.toml:5:11: permissions.mounts[0].entries: expected at most 1000000, not 1000001
        a.toml:5:9: permissions.mounts[0].scope: expected "caller", not "user"
        a.toml:1:14: unknown key `scrtach`; did you mean `scratch`?
        a.toml:2:1: unknown key `sise`; did you mean `size`?
        a.toml:2:8: permissions.scratch.size: expected a size above 0, such as "64MiB", not 0
        a.toml:2:9: permissions.scratch.guest: "tmp" must be an absolute path without `..`, such as "/data"
        a.toml:2:1: unknown key `entry`; did you mean `entries`?
        a.toml:2:11: permissions.scratch.entries: expected an integer of at least 1, not 0
        a.toml:4:10: permissions.mounts[0].access: expected "read" or "read-write", not "write"
        a.toml:4:10: permissions.mounts[0].access: expected "read" or "read-write", not "write"
        a.toml:2:1: unknown key `memory`; valid keys are fuel, timeout, output, oversize
        a.toml:1:8: unclosed table, expected `]`
        a.toml:1:8: key with no value, expected `=`
        "#);
    }

    #[test]
    fn folders_have_bounds_only_if_the_grant_says_so() {
        let mount =
            "[[permissions.mounts]]\nhost = \"a\"\nguest = \"/a\"\naccess = \"read-write\"\n";
        let parsed = |more: &str| parse(&format!("{mount}{more}")).unwrap().permissions;
        let without = parsed("");
        let MountPermission { scope, quota, .. } = &without.mounts[0];
        assert_eq!(
            (
                scope,
                quota,
                without.mounts[0].max_entries(),
                without.scratch
            ),
            (&None, &None, None, None)
        );
        let with =
            parsed("scope = \"caller\"\nquota = \"1MiB\"\nentries = 7\n[permissions.scratch]");
        let MountPermission { scope, quota, .. } = &with.mounts[0];
        assert_eq!(
            (scope, quota),
            (&Some(MountScope::Caller), &Some(ByteSize::mib(1)))
        );
        assert_eq!(with.mounts[0].max_entries(), Some(7));
        assert_eq!(
            with.scratch,
            Some(ScratchPermission {
                guest: "/tmp".to_owned(),
                size: ByteSize::mib(64),
                entries: 1000
            })
        );
        assert_eq!(
            parsed("quota = \"1MiB\"").mounts[0].max_entries(),
            Some(10_000)
        );
        let scratch =
            parsed("[permissions.scratch]\nguest = \"/s\"\nsize = \"1KiB\"\nentries = 2").scratch;
        assert_eq!(
            scratch,
            Some(ScratchPermission {
                guest: "/s".to_owned(),
                size: ByteSize::kib(1),
                entries: 2
            })
        );
        let why = parse(&format!("{mount}[permissions.scratch]\nguest = \"/a/\"")).unwrap_err();
        let expected = "acme.toml: permissions.scratch.guest: permissions.mounts[0] has the guest path \"/a/\" as well; \
            each folder needs its own";
        assert_eq!(why, expected);
    }

    #[test]
    fn a_suggested_prefix_is_valid() {
        let long = "ü".repeat(100);
        let cases = [
            ("acme", "acme"),
            ("two words", "two_words"),
            (".x.", "x"),
            ("..", "other"),
            ("a+b", "a_b"),
            (&long, &"_".repeat(64)),
        ];
        for (id, expected) in cases {
            let prefix = suggest_prefix(id);
            assert_eq!(prefix, expected);
            assert_eq!(
                parse(&format!("prefix = {prefix:?}")).unwrap().prefix,
                Some(prefix)
            );
        }
    }
}
