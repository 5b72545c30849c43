//! Merges the layers of the configuration, and checks the result as a whole.

use std::path::Path;

use toolbay_catalog::{Approver, LockMode, check_plugin_folder};
use toolbay_model::{LimitsPatch, RateLimit};
use toolbay_settings::toml_file;

use super::error::ConfigError;
use super::flags::Flags;
use super::keys::ConfigKeys;
use super::location::{CONFIG_FILE_NAME, ConfigLocation};
use super::variables::{CONFIG_VARIABLE, PLUGINS_VARIABLE, PREFIX, apply_variable};
use super::{
    ApproveConfig, AuditConfig, CompileConfig, Config, ConsoleConfig, Http, HttpClient, LockConfig,
    OtelConfig, ResultsConfig, ServerConfig,
};
use crate::process::logging;

/// Default rate limit over HTTP, in calls per minute and caller.
const DEFAULT_CALLER_CALLS: u32 = 600;

/// Default rate limit over HTTP, in calls per minute, tool and caller.
const DEFAULT_TOOL_CALLS: u32 = 120;

impl Config {
    /// Merges all layers. `variables` is the environment of the process.
    ///
    /// # Errors
    ///
    /// The configuration is invalid. The message is one line with the position of the first mistake
    /// and the expected value.
    pub fn load(
        flags: &Flags,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        Self::load_with_keys(flags, variables).map(|(config, _)| config)
    }

    /// Like [`Config::load`], but also returns the value of each key that the file or a variable
    /// sets.
    pub(crate) fn load_with_keys(
        flags: &Flags,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(Self, ConfigKeys), ConfigError> {
        let variables: Vec<_> = variables
            .into_iter()
            .filter(|(name, _)| name.starts_with(PREFIX))
            .collect();
        let location = ConfigLocation::resolve(flags, &variables);
        let (text, folder) = location.read()?;
        let file_read = text.is_some();
        let table = text
            .map(|(name, text)| parse_file(&name, &text))
            .transpose()?
            .unwrap_or_default();
        let (config, keys) = Self::merge(table, &folder, &variables, flags)?;
        let file = location.absolute()?;
        Ok((
            Self {
                file,
                file_read,
                ..config
            },
            keys,
        ))
    }

    /// Merges variables and flags into the table of the file. Relative paths in the file are
    /// relative to `folder`.
    fn merge(
        mut table: toml::Table,
        folder: &Path,
        variables: &[(String, String)],
        flags: &Flags,
    ) -> Result<(Self, ConfigKeys), ConfigError> {
        for (name, value) in variables {
            if name != CONFIG_VARIABLE {
                let check = |text: &str| toml_file::parse_document::<Self>(text).map(drop);
                apply_variable(&mut table, name, value, check)?;
            }
        }
        let keys = ConfigKeys::from_table(&table);
        let mut config: Self = table.try_into().map_err(|error: toml::de::Error| {
            ConfigError(format!("invalid configuration: {}", error.message()))
        })?;
        let from_variable = variables.iter().any(|(name, _)| name == PLUGINS_VARIABLE);
        if from_variable && config.plugins.as_os_str().is_empty() {
            return Err(ConfigError(format!(
                "{PLUGINS_VARIABLE}: expected the path of a folder, not an empty string"
            )));
        }
        if !from_variable && !config.plugins.as_os_str().is_empty() {
            config.plugins = folder.join(&config.plugins);
        }
        config.apply_flags(flags)?;
        if config.http.listen.is_some() {
            // MCP requires servers to limit the rate of calls. Over stdio, the only client is the
            // operator's own.
            config.caller_rate_limit = config
                .caller_rate_limit
                .or(RateLimit::per_minute(DEFAULT_CALLER_CALLS));
            config.rate_limit = config
                .rate_limit
                .or(RateLimit::per_minute(DEFAULT_TOOL_CALLS).map(Into::into));
        }
        config.server.resolve(folder);
        config.http.resolve(folder);
        config.http_client.resolve(folder);
        config.state.resolve(folder);
        config.audit.resolve(folder);
        config.record.resolve(folder);
        if flags.record.is_some() {
            config.record.file.clone_from(&flags.record);
        }
        config.otel.resolve(folder);
        config.check()?;
        Ok((config, keys))
    }

    /// Applies the flags that override a value.
    fn apply_flags(&mut self, flags: &Flags) -> Result<(), ConfigError> {
        if let Some(plugins) = &flags.plugins {
            self.plugins.clone_from(plugins);
        }
        if let Some(log) = &flags.log {
            logging::check(log).map_err(|why| ConfigError(format!("--log: {why}")))?;
            self.log.clone_from(log);
        }
        if flags.http.is_some() {
            self.http.listen.clone_from(&flags.http);
        }
        if flags.sse && self.http.listen.is_none() {
            return Err(ConfigError(
                "--sse requires HTTP: set --http or http.listen".to_owned(),
            ));
        }
        self.http.sse |= flags.sse;
        self.learn = flags.learn;
        self.locked = flags.locked;
        if flags.locked {
            self.lock.mode = LockMode::Hold;
        }
        self.only_plugin.clone_from(&flags.only_plugin);
        // Requests from unknown clients must not become suggestions for the operator.
        if let Some(address) = self
            .http
            .listen
            .as_ref()
            .filter(|address| flags.learn && !address.is_local())
        {
            return Err(ConfigError(format!(
                "--learn: expected standard input and output or a loopback address such as 127.0.0.1:8931, not {address}, \
                 which others can reach"
            )));
        }
        Ok(())
    }

    /// Like [`Config::load`], but with the text of the file instead of its path.
    ///
    /// # Errors
    ///
    /// As [`Config::load`].
    pub fn from_text(
        text: &str,
        variables: &[(String, String)],
        flags: &Flags,
    ) -> Result<Self, ConfigError> {
        Self::merge(
            parse_file(CONFIG_FILE_NAME, text)?,
            Path::new(""),
            variables,
            flags,
        )
        .map(|(config, _)| config)
    }

    /// Returns this configuration with the live settings ([`ConfigKeys`]) of `next`. Live settings
    /// can change while the server runs.
    ///
    /// # Errors
    ///
    /// The live settings contradict the others.
    pub(crate) fn with_live_settings(&self, next: &Self) -> Result<Self, ConfigError> {
        let mut changed = self.clone();
        changed.log.clone_from(&next.log);
        changed.limits.clone_from(&next.limits);
        (
            changed.caller_rate_limit,
            changed.rate_limit,
            changed.require_approval,
            changed.approve_by,
        ) = (
            next.caller_rate_limit,
            next.rate_limit,
            next.require_approval,
            next.approve_by,
        );
        changed
            .server
            .instructions
            .clone_from(&next.server.instructions);
        changed
            .http
            .allowed_hosts
            .clone_from(&next.http.allowed_hosts);
        changed
            .http
            .allowed_origins
            .clone_from(&next.http.allowed_origins);
        let tokens = next.http.tokens.iter();
        changed.http.replace_tokens(
            tokens
                .map(|token| self.http.with_previous_tools(token))
                .collect(),
        );
        // After callers had to authenticate once, they always have to.
        changed.http.always_needs_token = self.http.needs_token();
        changed.file_read |= next.file_read;
        changed.check()?;
        Ok(changed)
    }

    /// Checks that an operator can answer, if a setting requires it.
    fn check_approver(&self) -> Result<(), ConfigError> {
        let key = if self.approve_by == Approver::Console {
            "approve_by = \"console\""
        } else if self.approve.notify.is_some() {
            "approve.notify"
        } else {
            return Ok(());
        };
        if self.console.is_possible(&self.http) {
            return Ok(());
        }
        Err(ConfigError(format!(
            "{key} needs a console, where an operator answers: see console.enabled, console.stdio, and admin = true of \
             http.tokens"
        )))
    }

    fn check(&self) -> Result<(), ConfigError> {
        self.http.check()?;
        self.console.check(&self.http)?;
        self.check_approver()?;
        if self.ceilings.oversize.is_some() {
            return Err(ConfigError(
                "ceilings.oversize: this setting has no ceiling; set limits.oversize".to_owned(),
            ));
        }
        self.server.check()?;
        self.http_client.check()?;
        self.otel.check()?;
        if self.plugins.as_os_str().is_empty() {
            return Err(ConfigError(
                "plugins: expected the path of a folder, not an empty string".to_owned(),
            ));
        }
        if self.plugins.is_file() {
            let plugins = self.plugins.display();
            return Err(ConfigError(format!(
                "the plugin folder {plugins} is a file; give the folder that contains it"
            )));
        }
        if let Err(error) = std::fs::metadata(&self.plugins)
            && error.kind() == std::io::ErrorKind::PermissionDenied
        {
            return check_plugin_folder(&self.plugins).map_err(ConfigError);
        }
        if !self.plugins.is_dir() {
            return Err(ConfigError(format!(
                "the plugin folder {} does not exist; {}",
                self.plugins.display(),
                unexpanded_path_advice(&self.plugins)
                    .unwrap_or("create it, or set another one with --plugins")
            )));
        }
        check_plugin_folder(&self.plugins).map_err(ConfigError)
    }
}

/// Returns advice about a path in which a shell would have replaced a part.
fn unexpanded_path_advice(path: &Path) -> Option<&'static str> {
    let is_unexpanded = |part: &std::ffi::OsStr| {
        let text = part.to_string_lossy();
        text.starts_with('~') || text.starts_with('$')
    };
    path.iter()
        .any(is_unexpanded)
        .then_some("~ and variables such as $HOME are not expanded here, so write the whole path")
}

/// Returns the tables of the file with the names of their keys, to say where a misplaced key
/// belongs.
fn key_tables() -> [(&'static str, Vec<String>); 12] {
    [
        ("", toml_file::key_names::<Config>()),
        ("approve", toml_file::key_names::<ApproveConfig>()),
        ("server", toml_file::key_names::<ServerConfig>()),
        ("limits", toml_file::key_names::<LimitsPatch>()),
        ("compile", toml_file::key_names::<CompileConfig>()),
        ("lock", toml_file::key_names::<LockConfig>()),
        ("http", toml_file::key_names::<Http>()),
        ("http_client", toml_file::key_names::<HttpClient>()),
        ("audit", toml_file::key_names::<AuditConfig>()),
        ("results", toml_file::key_names::<ResultsConfig>()),
        ("console", toml_file::key_names::<ConsoleConfig>()),
        ("otel", toml_file::key_names::<OtelConfig>()),
    ]
}

/// Parses the text twice: as a [`Config`], for errors with a line number, and as the table to
/// merge.
fn parse_file(name: &str, text: &str) -> Result<toml::Table, ConfigError> {
    let config: Config = toml_file::parse_document(text).map_err(|mistake| {
        ConfigError(format!("{name}:{}", mistake.with_table_hint(&key_tables())))
    })?;
    config
        .http_client
        .check_file()
        .map_err(|why| ConfigError(format!("{name}: {why}")))?;
    toml_file::parse(name, text).map_err(ConfigError)
}
