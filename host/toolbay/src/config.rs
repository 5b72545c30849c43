//! The server's configuration, merged from defaults, `toolbay.toml`, `TOOLBAY_*` variables and
//! flags. Later layers override earlier ones.
//!
//! The layers are merged once, before the server listens. The result is immutable.

mod approve;
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
mod layers;
mod location;
mod lock;
mod metrics;
mod otel;
mod part_settings;
mod paths;
mod record;
mod results;
mod server;
mod state;
mod tasks;
mod text_list;
mod token_removals;
mod variables;

use std::path::PathBuf;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toolbay_catalog::{ApprovalFile, ApprovalSetting, Approver};
use toolbay_model::setting::positive;
use toolbay_model::{LimitsPatch, RateLimit, ToolRateLimit};
use toolbay_state::StateDatabase;

pub use self::approve::{ApproveConfig, NotifyTarget};
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
pub use self::lock::LockConfig;
pub use self::metrics::MetricsConfig;
pub use self::otel::OtelConfig;
pub use self::record::RecordConfig;
pub(crate) use self::results::MIN_SHOWN_RESULT;
pub use self::results::ResultsConfig;
pub use self::server::ServerConfig;
pub use self::state::StateConfig;
pub use self::tasks::TasksConfig;
pub(crate) use self::token_removals::RemainingTokens;
pub(crate) use self::variables::environment_variables;
use crate::limits::breaker::BreakerRules;
use crate::process::logging;
pub use crate::process::logging::LogFormat;

/// Name of the directory with the charts of the console, in that of the state.
const CONSOLE_FOLDER: &str = "console";

/// Name of the directory with the key of request states, inside the directory with the state of
/// plugins.
const REQUEST_KEY_FOLDER: &str = "requests";

/// The server's configuration, merged from `toolbay.toml`, `TOOLBAY_*` variables and flags. All
/// values are valid.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate setting")]
pub struct Config {
    /// Path of the plugin directory. A relative path is relative to the configuration file.
    /// Default: `plugins`.
    pub plugins: PathBuf,
    /// Log filter: a level, or `tracing` directives such as `toolbay=debug`. Default: `info`.
    #[serde(deserialize_with = "log_filter")]
    pub log: String,
    /// Format of the log lines. Default: text.
    pub log_format: LogFormat,
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
    /// Approver of these calls, unless the plugin's grant says otherwise. Default: the client.
    pub approve_by: Approver,
    /// Notifications about calls that wait for an operator.
    pub approve: ApproveConfig,
    /// The conditions under which a repeatedly crashing plugin is disabled, and for how long.
    pub circuit_breaker: BreakerRules,
    /// Limits for listing a plugin's tools at load.
    pub describe: Describe,
    /// Limits for compiling a plugin, and the compile cache.
    pub compile: CompileConfig,
    /// Treatment of plugins that differ from the lock file.
    pub lock: LockConfig,
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
    /// If set, the server starts only if every plugin is the one in the lock file. Only `--locked`
    /// sets it, for one run.
    #[serde(skip)]
    pub locked: bool,
    /// The id of the only plugin of the folder to load. Only a plugin file on the command line sets
    /// it, for one run.
    #[serde(skip)]
    pub only_plugin: Option<String>,
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
            log_format: LogFormat::default(),
            page_size: 500,
            usage: true,
            server: ServerConfig::default(),
            limits: LimitsPatch::default(),
            ceilings: LimitsPatch::default(),
            caller_rate_limit: None,
            rate_limit: None,
            require_approval: ApprovalSetting::default(),
            approve_by: Approver::default(),
            approve: ApproveConfig::default(),
            circuit_breaker: BreakerRules::default(),
            describe: Describe::default(),
            compile: CompileConfig::default(),
            lock: LockConfig::default(),
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
            locked: false,
            only_plugin: None,
            audit: AuditConfig::default(),
            file: PathBuf::new(),
            file_read: false,
        }
    }
}

impl Config {
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

    /// Returns the database for the state of plugins. `None` if state is off.
    pub(crate) fn database(&self) -> Option<StateDatabase> {
        self.state.database(&self.plugins)
    }

    /// Returns the directory for the charts of the console. `None` if state is off.
    pub(crate) fn console_history_folder(&self) -> Option<PathBuf> {
        Some(self.state.folder(&self.plugins)?.join(CONSOLE_FOLDER))
    }

    /// Returns the file with the versions that operators approved in the console. `None` if state is
    /// off, or if only the lock file counts.
    pub(crate) fn approval_file(&self) -> Option<ApprovalFile> {
        self.state
            .approval_file(&self.plugins)
            .filter(|_| !self.locked)
    }

    /// Returns the directory with the key of request states. `None` if the key is not stored.
    pub(crate) fn request_key_folder(&self) -> Option<PathBuf> {
        Some(self.state.folder(&self.plugins)?.join(REQUEST_KEY_FOLDER))
    }
}

fn log_filter<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let filter = String::deserialize(deserializer)?;
    logging::check(&filter).map_err(D::Error::custom)?;
    Ok(filter)
}

#[cfg(test)]
mod tests;
