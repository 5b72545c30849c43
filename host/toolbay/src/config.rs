//! The server's configuration, merged from defaults, `toolbay.toml`, `TOOLBAY_*` variables and
//! flags. Later layers override earlier ones.
//!
//! The layers are merged once, before the server listens. The result is immutable.

mod audit;
mod bounds;
mod compile;
mod confine;
mod console;
mod describe;
mod engine;
mod error;
#[cfg(test)]
mod fail_closed;
mod flags;
mod http;
mod http_client;
mod keys;
mod location;
mod metrics;
mod otel;
mod record;
mod results;
mod server;
mod state;
mod tasks;
mod token_removals;
mod variables;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toolbay_catalog::{
    ApprovalSetting, DescriptionLimits, GuardedPath, LoadPolicy, check_plugin_folder,
};
use toolbay_model::setting::positive;
use toolbay_model::{ClampedLimit, Limits, LimitsPatch, RateLimit, ToolRateLimit};
use toolbay_sandbox::{CompileLimits, SandboxSettings};
use toolbay_settings::toml_file;
use toolbay_state::{StateDatabase, StateStore};

pub use self::audit::{Arguments, AuditConfig};
pub use self::compile::CompileConfig;
pub use self::confine::Confine;
pub use self::console::ConsoleConfig;
pub(crate) use self::console::ConsoleOpener;
pub use self::describe::Describe;
pub use self::engine::EngineConfig;
pub use self::error::ConfigError;
pub use self::flags::Flags;
pub use self::http::{Http, Jwks, OAuth, TlsConfig, Token};
pub use self::http_client::{HttpClient, ProxyUrl};
pub(crate) use self::keys::ConfigKeys;
use self::location::{CONFIG_FILE_NAME, ConfigLocation};
pub use self::metrics::MetricsConfig;
pub use self::otel::OtelConfig;
pub use self::record::RecordConfig;
pub(crate) use self::results::MIN_SHOWN_RESULT;
pub use self::results::ResultsConfig;
pub use self::server::ServerConfig;
pub use self::state::StateConfig;
pub use self::tasks::TasksConfig;
pub(crate) use self::token_removals::RemainingTokens;
use self::variables::{CONFIG_VARIABLE, PLUGINS_VARIABLE, PREFIX, apply_variable};
use crate::limits::breaker::BreakerRules;
use crate::process::logging;

/// Name of the directory with the key of request states, inside the directory with the state of
/// plugins.
const REQUEST_KEY_FOLDER: &str = "requests";

/// Default rate limit over HTTP, in calls per minute and caller.
const DEFAULT_CALLER_CALLS: u32 = 600;

/// Default rate limit over HTTP, in calls per minute, tool and caller.
const DEFAULT_TOOL_CALLS: u32 = 120;

/// The server's configuration, merged from `toolbay.toml`, `TOOLBAY_*` variables and flags. All
/// values are valid.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Path of the plugin directory. A relative path is relative to the configuration file.
    /// Default: `plugins`.
    pub plugins: PathBuf,
    /// Log filter: a level, or `tracing` directives such as `toolbay=debug`. Default: `info`.
    #[serde(deserialize_with = "log_filter")]
    pub log: String,
    /// Tools per page of `tools/list`, at least 1. Default: 500.
    #[serde(deserialize_with = "positive")]
    pub page_size: usize,
    /// If set, results include `_meta["dev.toolbay/usage"]`. Default: true.
    pub usage: bool,
    /// Limits of the process as a whole.
    pub server: ServerConfig,
    /// Limits per call that apply where a grant sets none.
    pub limits: LimitsPatch,
    /// Maximum limits that a grant can set.
    pub ceilings: LimitsPatch,
    /// Rate limit per caller. `None`: 600 calls per minute over HTTP, no limit over stdio.
    pub caller_rate_limit: Option<RateLimit>,
    /// Rate limit per tool, for each caller or for all callers together, unless the plugin's grant
    /// sets one. `None`: 120 calls per minute and caller over HTTP, no limit over stdio.
    pub rate_limit: Option<ToolRateLimit>,
    /// The tool calls that require approval by a person, unless the plugin's grant says otherwise.
    /// Default: none.
    pub require_approval: ApprovalSetting,
    /// The conditions under which a repeatedly crashing plugin is disabled, and for how long.
    pub circuit_breaker: BreakerRules,
    /// Limits for listing a plugin's tools at load.
    pub describe: Describe,
    /// Limits for compiling a plugin, and the compile cache.
    pub compile: CompileConfig,
    /// WebAssembly features that components can use.
    pub engine: EngineConfig,
    /// Settings of MCP over HTTP.
    pub http: Http,
    /// Settings for the HTTP requests of plugins.
    pub http_client: HttpClient,
    /// The tamper-evident log of loads, calls and denials.
    pub audit: AuditConfig,
    /// State that plugins store between calls.
    pub state: StateConfig,
    /// Calls that continue as tasks.
    pub tasks: TasksConfig,
    /// Tool results that are too large for their clients.
    pub results: ResultsConfig,
    /// Metrics for operators at `/metrics`.
    pub metrics: MetricsConfig,
    /// Pages for operators at `/console`.
    pub console: ConsoleConfig,
    /// The file in which calls are recorded, for replay.
    pub record: RecordConfig,
    /// Traces, metrics and logs for OpenTelemetry.
    pub otel: OtelConfig,
    /// If set, denied operations are written as proposed grants. Only `--learn` sets it, for one
    /// run.
    #[serde(skip)]
    pub learn: bool,
    /// Absolute path of the configuration file, or of the one that would be read if it existed.
    /// Empty if no file applies.
    #[serde(skip)]
    pub file: PathBuf,
    /// True if that file was read.
    #[serde(skip)]
    pub file_read: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            plugins: PathBuf::from("plugins"),
            log: "info".to_owned(),
            page_size: 500,
            usage: true,
            server: ServerConfig::default(),
            limits: LimitsPatch::default(),
            ceilings: LimitsPatch::default(),
            caller_rate_limit: None,
            rate_limit: None,
            require_approval: ApprovalSetting::default(),
            circuit_breaker: BreakerRules::default(),
            describe: Describe::default(),
            compile: CompileConfig::default(),
            engine: EngineConfig::default(),
            http: Http::default(),
            http_client: HttpClient::default(),
            state: StateConfig::default(),
            tasks: TasksConfig::default(),
            results: ResultsConfig::default(),
            metrics: MetricsConfig::default(),
            console: ConsoleConfig::default(),
            record: RecordConfig::default(),
            otel: OtelConfig::default(),
            learn: false,
            audit: AuditConfig::default(),
            file: PathBuf::new(),
            file_read: false,
        }
    }
}

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
        if let Some(plugins) = &flags.plugins {
            config.plugins.clone_from(plugins);
        }
        if let Some(log) = &flags.log {
            logging::check(log).map_err(|why| ConfigError(format!("--log: {why}")))?;
            config.log.clone_from(log);
        }
        if flags.http.is_some() {
            config.http.listen.clone_from(&flags.http);
        }
        if flags.sse && config.http.listen.is_none() {
            return Err(ConfigError(
                "--sse requires HTTP: set --http or http.listen".to_owned(),
            ));
        }
        config.http.sse |= flags.sse;
        config.learn = flags.learn;
        // Requests from unknown clients must not become suggestions for the operator.
        if let Some(address) = config
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

    /// Returns the rules for loading plugins, with limits clamped to the ceilings.
    pub fn rules(&self) -> LoadPolicy {
        let (limits, ceiling) = self.effective_limits();
        let describe = LimitsPatch {
            fuel: Some(self.describe.fuel),
            timeout: Some(self.describe.timeout),
            ..LimitsPatch::default()
        };
        let (describe, _) = Limits::DEFAULT.with(&describe, &ceiling);
        LoadPolicy {
            limits,
            ceiling,
            describe_limits: describe,
            rate_limit: self.rate_limit,
            require_approval: self.require_approval,
            max_component_size: self.server.component_size,
            description_limits: self.description_bounds(),
            guarded_paths: self.guarded_paths(),
            reachable_files: None,
            writable_paths: None,
        }
    }

    /// Returns the maximum size of a plugin's description.
    fn description_bounds(&self) -> DescriptionLimits {
        let Describe {
            tools,
            prompts,
            resources,
            schemas,
            size,
            skills,
            fuel: _,
            timeout: _,
        } = self.describe;
        DescriptionLimits {
            tools,
            prompts,
            resources,
            schemas,
            size,
            skills,
        }
    }

    /// Returns the paths that mounts must not contain, except the plugin directory, which the
    /// loader adds.
    fn guarded_paths(&self) -> Vec<GuardedPath> {
        let writable = |what, path| GuardedPath {
            label: what,
            path,
            is_secret: false,
        };
        let mut guarded = Vec::new();
        if !self.file.as_os_str().is_empty() {
            guarded.push(writable("the server's configuration", self.file.clone()));
        }
        guarded.extend(
            self.http
                .key_files()
                .map(|path| writable("the keys of http.oauth", path.clone())),
        );
        if let Some(TlsConfig { certificate, key }) = &self.http.tls {
            guarded.push(writable("the certificate of http.tls", certificate.clone()));
            guarded.push(GuardedPath {
                label: "the key of http.tls",
                path: key.clone(),
                is_secret: true,
            });
        }
        let trusted = self.http_client.extra_ca.iter();
        guarded.extend(
            trusted.map(|path| writable("a certificate of http_client.extra_ca", path.clone())),
        );
        guarded.extend(
            self.otel
                .extra_ca
                .iter()
                .map(|path| writable("a certificate of otel.extra_ca", path.clone())),
        );
        let secrets = self.otel.secret_files().cloned();
        guarded.extend(secrets.map(|path| GuardedPath {
            label: "the value of a header of otel",
            path,
            is_secret: true,
        }));
        // A plugin that reads its key can forge entries.
        let cache = |(path, _)| GuardedPath {
            label: "the compile cache",
            path,
            is_secret: true,
        };
        guarded.extend(self.compile.cache().map(cache));
        // It contains the state of other plugins.
        let state = |path| GuardedPath {
            label: "the state of plugins",
            path,
            is_secret: true,
        };
        guarded.extend(self.state.folder(&self.plugins).map(state));
        // A plugin that reads the key of the audit log can forge lines.
        let log = |audit: toolbay_audit::AuditSettings| GuardedPath {
            label: "the audit log",
            path: audit.folder,
            is_secret: true,
        };
        guarded.extend(self.audit.settings().map(log));
        // It contains the requests and responses of other callers.
        let recording = |record: toolbay_recording::RecordingSettings| GuardedPath {
            label: "the recording of calls",
            path: record.file,
            is_secret: true,
        };
        guarded.extend(self.record.settings().map(recording));
        // Their content belongs to the calls of one caller.
        let (what, path) = ("the temporary folders of calls", self.server.scratch());
        guarded.push(GuardedPath {
            label: what,
            path,
            is_secret: true,
        });
        guarded
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
        ) = (
            next.caller_rate_limit,
            next.rate_limit,
            next.require_approval,
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
        changed.http.tokens = next
            .http
            .tokens
            .iter()
            .map(|token| self.http.with_previous_tools(token))
            .collect();
        // After callers had to authenticate once, they always have to.
        changed.http.closed = self.http.needs_token();
        changed.file_read |= next.file_read;
        changed.check()?;
        Ok(changed)
    }

    /// Returns a line for the log that names the configuration file.
    pub(crate) fn source_message(&self) -> String {
        let file = self.file.display();
        if self.file_read {
            format!("the configuration was read from {file}")
        } else if self.file.as_os_str().is_empty() {
            "no configuration file was read".to_owned()
        } else {
            format!("no configuration file was read: {file} does not exist")
        }
    }

    /// Returns the directories that the server uses for itself, with their purposes.
    pub(crate) fn own_folders(&self) -> Vec<(&'static str, PathBuf)> {
        let kept = [
            (
                "compiled components",
                self.compile.cache().map(|(path, _)| path),
            ),
            ("the state of plugins", self.state.folder(&self.plugins)),
            (
                "the audit log",
                self.audit.settings().map(|audit| audit.folder),
            ),
            ("temporary files of calls", Some(self.server.scratch())),
        ];
        kept.into_iter()
            .filter_map(|(what, folder)| Some((what, folder?)))
            .collect()
    }

    /// Returns the files that the server reads again while it runs, except those of the plugin
    /// directory.
    pub(crate) fn watched_files(&self) -> Vec<PathBuf> {
        let own = Some(self.file.clone()).filter(|file| !file.as_os_str().is_empty());
        let tls = self
            .http
            .tls
            .iter()
            .flat_map(|tls| [tls.certificate.clone(), tls.key.clone()]);
        own.into_iter()
            .chain(tls)
            .chain(self.http.key_files().cloned())
            .chain(self.http_client.extra_ca.iter().cloned())
            .chain(self.otel.extra_ca.iter().cloned())
            .chain(self.otel.secret_files().cloned())
            .collect()
    }

    /// Returns the protocol options that do not depend on the transport.
    pub(crate) fn protocol_options(&self) -> toolbay_mcp::ProtocolOptions {
        toolbay_mcp::ProtocolOptions {
            page_size: self.page_size,
            usage: self.usage,
            traced: self.otel.traces && self.otel.is_enabled(),
            request: self.server.request_size,
            requests: self.server.request_memory(),
            grace: self.server.grace_period,
            tasks: self.tasks.options(),
            server: self.server.info(),
            schemas: self.server.schemas,
        }
    }

    /// Returns the settings for [`toolbay_sandbox::Sandbox::new`].
    ///
    /// # Errors
    ///
    /// The path of the running executable, which compiles plugins, cannot be determined.
    pub fn sandbox(&self) -> std::io::Result<SandboxSettings> {
        // On Linux, this path leads to the running executable even after it was replaced on disk.
        let running = PathBuf::from("/proc/self/exe");
        let compiler = if running.exists() {
            running
        } else {
            std::env::current_exe()?
        };
        let calls = u32::try_from(self.server.max_entered_calls()).unwrap_or(u32::MAX);
        let (ceiling, _) = self.ceiling();
        let CompileConfig {
            memory,
            cpu_time,
            timeout,
            ..
        } = self.compile;
        Ok(SandboxSettings {
            max_calls: calls,
            max_waiting_calls: u32::try_from(self.server.suspended_calls).unwrap_or(u32::MAX),
            stack_size: self.server.stack_size,
            max_limits: ceiling,
            allow_async: self.engine.concurrent,
            compiler: Some(compiler),
            compile_limits: CompileLimits {
                memory,
                cpu: cpu_time,
                timeout,
            },
            cache: self.compile.cache(),
            http_client: self.http_client.options(),
            state: self
                .database()
                .map(|database| Arc::new(database) as Arc<dyn StateStore>),
            scratch: self.server.scratch(),
        })
    }

    /// Returns the database for the state of plugins. `None` if state is off.
    pub(crate) fn database(&self) -> Option<StateDatabase> {
        self.state.database(&self.plugins)
    }

    /// Returns the directory with the key of request states. `None` if the key is not stored.
    pub(crate) fn request_key_folder(&self) -> Option<PathBuf> {
        Some(self.state.folder(&self.plugins)?.join(REQUEST_KEY_FOLDER))
    }

    /// Returns one line for each server-wide limit that the ceilings lowered, and for each ceiling
    /// above [`Limits::UTMOST`].
    pub fn clamp_messages(&self) -> Vec<String> {
        let (ceiling, above) = self.ceiling();
        let (_, clamps) = Limits::DEFAULT.with(&self.limits, &ceiling);
        let lowered = |ClampedLimit {
                           key,
                           requested: asked,
                           ceiling,
                       }: &ClampedLimit| {
            let (asked, ceiling) = (asked.to_config_string(), ceiling.to_config_string());
            format!(
                "ceilings.{key} = {asked} was lowered to {ceiling}, the most that this server can allow"
            )
        };
        above
            .iter()
            .map(lowered)
            .chain(clamps.iter().map(ToString::to_string))
            .collect()
    }

    /// Returns the default limits and the ceilings, both after clamping.
    pub fn effective_limits(&self) -> (Limits, Limits) {
        let (ceiling, _) = self.ceiling();
        let (limits, _) = Limits::DEFAULT.with(&self.limits, &ceiling);
        (limits, ceiling)
    }

    /// Returns the ceilings after clamping, and one [`ClampedLimit`] for each lowered ceiling.
    fn ceiling(&self) -> (Limits, Vec<ClampedLimit>) {
        // A call that may hold more memory than all calls together would never be admitted.
        let utmost = Limits {
            memory: Limits::UTMOST.memory.min(self.server.memory()),
            ..Limits::UTMOST
        };
        Limits::CEILING.with(&self.ceilings, &utmost)
    }

    fn check(&self) -> Result<(), ConfigError> {
        self.http.check().map_err(ConfigError)?;
        self.console.check(&self.http).map_err(ConfigError)?;
        if self.ceilings.oversize.is_some() {
            return Err(ConfigError(
                "ceilings.oversize: it has no ceiling; set limits.oversize".to_owned(),
            ));
        }
        self.server.check().map_err(ConfigError)?;
        self.http_client.check().map_err(ConfigError)?;
        self.otel.check().map_err(ConfigError)?;
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
                "the plugin folder {} does not exist; create it, or set another one with --plugins",
                self.plugins.display()
            )));
        }
        check_plugin_folder(&self.plugins).map_err(ConfigError)
    }
}

/// Parses the text twice: as a [`Config`], for errors with a line number, and as the table to
/// merge.
fn parse_file(name: &str, text: &str) -> Result<toml::Table, ConfigError> {
    let config: Config = toml_file::parse(name, text).map_err(ConfigError)?;
    config
        .http_client
        .check_file()
        .map_err(|why| ConfigError(format!("{name}: {why}")))?;
    toml_file::parse(name, text).map_err(ConfigError)
}

fn log_filter<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let filter = String::deserialize(deserializer)?;
    logging::check(&filter).map_err(D::Error::custom)?;
    Ok(filter)
}

#[cfg(test)]
mod tests;
