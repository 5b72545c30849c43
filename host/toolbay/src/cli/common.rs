//! Options and a runtime that the commands share.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use toolbay_mcp::http::ListenAddress;
use toolbay_otel::Telemetry;

use super::plugin_selection::{SelectedPlugin, select_plugin};
use super::signals::ignore_file_size_signal;
use crate::config::{Config, ConfigError, Flags, environment_variables};
use crate::process::log_export::LogExportLayer;
use crate::process::logging;
use crate::process::machine_limits;

/// Log filter of a command that prints what a plugin reports. Only the sandbox's notes about denied
/// uses of imports are logged.
const CALL_LOG_FILTER: &str = "toolbay_sandbox::denied=info,off";

/// The options of every command that reads the plugin folder.
#[derive(Args, Debug)]
pub(super) struct Common {
    /// The plugin folder [default: the key `plugins` of the configuration file, or ./plugins]
    #[arg(long, value_name = "DIR")]
    pub(super) plugins: Option<PathBuf>,
    #[command(flatten)]
    pub(super) settings: Settings,
    /// The id of the only plugin of the folder to load. Set by a plugin file on the command line.
    #[arg(skip)]
    pub(super) only_plugin: Option<String>,
}

/// The options of every command that reads the configuration.
#[derive(Args, Clone, Debug)]
pub(super) struct Settings {
    /// The configuration file [default: `TOOLBAY_CONFIG`, or toolbay.toml in the folder that
    /// contains the plugin folder, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Read no configuration file
    #[arg(long, conflicts_with = "config")]
    pub(super) no_config: bool,
    /// Messages to log to standard error: off, error, warn, info, debug, trace, or directives such as
    /// toolbay=debug,warn [default: the key `log` of the configuration file, or info]
    #[arg(long, value_name = "FILTER")]
    pub(super) log: Option<String>,
}

#[derive(Args, Debug, Default)]
pub(super) struct Listen {
    /// Serve over HTTP at this address, such as 127.0.0.1:8931; the URL for clients is then
    /// `http://127.0.0.1:8931/mcp`. Port 0 picks a free port. Or on a Unix socket, such as
    /// `unix:/run/toolbay/mcp.sock`
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(super) http: Option<ListenAddress>,
    /// With --http, also serve the HTTP+SSE transport of 2024-11-05, at /sse
    #[arg(long)]
    pub(super) sse: bool,
    /// Write a proposed grant, for everything that a plugin is denied, to PLUGIN.toml.proposed in
    /// the plugin folder; review it, then rename it to use it. Only over standard input and output,
    /// or with --http on a loopback address or a Unix socket
    #[arg(long)]
    pub(super) learn: bool,
    /// Start only if every plugin is exactly the one in toolbay.lock
    #[arg(long)]
    pub(super) locked: bool,
    #[command(flatten)]
    pub(super) record: Record,
}

/// The recording of calls.
#[derive(Args, Debug, Default)]
pub(super) struct Record {
    /// Record each call in this file, with the host's answers to the plugin: `toolbay replay` runs
    /// it again. Calls are added to a file that is a recording already [default: the key
    /// `record.file` of the configuration file]
    #[arg(long, value_name = "FILE")]
    pub(super) record: Option<PathBuf>,
}

/// Parses an address, with the error message of `http.listen`.
fn address(text: &str) -> Result<ListenAddress, String> {
    let wrong = |_| {
        "expected an address with a port, such as 127.0.0.1:8931, or a Unix socket, such as unix:/run/toolbay/mcp.sock"
            .to_owned()
    };
    Ok(match text.parse().map_err(wrong)? {
        // Make the path absolute here. In the configuration file, paths are relative to that file.
        ListenAddress::Unix(path) => {
            ListenAddress::Unix(std::path::absolute(path).map_err(|error| error.to_string())?)
        }
        address @ ListenAddress::Internet(_) => address,
    })
}

impl Common {
    /// Creates the options of a command for the plugins of one folder.
    pub(super) fn for_folder(plugins: Option<PathBuf>, settings: Settings) -> Self {
        Self {
            plugins,
            settings,
            only_plugin: None,
        }
    }

    /// Uses only the plugin of this file, if there is one.
    ///
    /// # Errors
    ///
    /// The file is not a plugin file.
    pub(super) fn select_file(&mut self, file: Option<&Path>) -> Result<(), ConfigError> {
        match file {
            Some(file) => self.select(select_plugin(file)?),
            None => Ok(()),
        }
    }

    /// Uses only this plugin.
    ///
    /// # Errors
    ///
    /// The command line names a plugin folder, too.
    pub(super) fn select(&mut self, plugin: SelectedPlugin) -> Result<(), ConfigError> {
        if self.plugins.is_some() {
            return Err(ConfigError::new("a plugin file and --plugins cannot be combined: the file is used with the files next to it".to_owned()));
        }
        self.plugins = Some(plugin.folder);
        self.only_plugin = Some(plugin.id);
        Ok(())
    }

    /// Reads the configuration and starts logging. A `quiet` command logs nothing unless `--log` is
    /// set.
    pub(super) fn load_config(&self, quiet: bool, listen: &Listen) -> Result<Config, ConfigError> {
        let config = self.read_config(listen)?;
        let filter = if quiet && self.settings.log.is_none() {
            "off"
        } else {
            &config.log
        };
        start_logging(&config, filter, None)?;
        Ok(config)
    }

    /// Like `load_config`, for a command that prints what a plugin reports during a call: log
    /// messages, output and denials are not logged again, unless `--log` names their target.
    pub(super) fn load_config_for_call(&self, listen: &Listen) -> Result<Config, ConfigError> {
        let config = self.read_config(listen)?;
        let filter = match &self.settings.log {
            Some(_) => logging::without_printed_targets(&config.log).map_err(ConfigError::new)?,
            None => CALL_LOG_FILTER.to_owned(),
        };
        start_logging(&config, &filter, None)?;
        Ok(config)
    }

    /// Reads only the configuration, without logging or starting threads.
    pub(super) fn read_config(&self, listen: &Listen) -> Result<Config, ConfigError> {
        Config::load(&self.flags(listen), environment_variables()?)
    }

    pub(super) fn flags(&self, listen: &Listen) -> Flags {
        Flags {
            config: self.settings.config.clone(),
            requires_config: false,
            no_config: self.settings.no_config,
            plugins: self.plugins.clone(),
            only_plugin: self.only_plugin.clone(),
            log: self.settings.log.clone(),
            http: listen.http.clone(),
            sse: listen.sse,
            learn: listen.learn,
            locked: listen.locked,
            record: listen.record.record.clone(),
        }
    }
}

/// Starts logging with `filter`, and logs warnings about the configuration. If the settings of
/// `telemetry` enable it, the log is also exported.
pub(super) fn start_logging(
    config: &Config,
    filter: &str,
    telemetry: Option<&Telemetry>,
) -> Result<(), ConfigError> {
    let log_telemetry = telemetry.filter(|sent| sent.settings().logs);
    let records =
        log_telemetry.map(|sent| LogExportLayer::new(sent.clone(), config.otel.include_caller));
    logging::init(filter, config.log_format, records).map_err(ConfigError::new)?;
    tracing::info!("{}", config.source_message());
    machine_limits::raise_descriptor_limit();
    for limit in machine_limits::low_limits() {
        tracing::warn!("{limit}");
    }
    for clamp in config.clamp_messages() {
        tracing::warn!("{clamp}");
    }
    Ok(())
}

/// Runs a command on a runtime. Does not wait for a thread that is blocked while it reads standard
/// input.
pub(super) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let result = runtime.block_on(async {
        ignore_file_size_signal().context("failed to listen for signals")?;
        work.await
    });
    runtime.shutdown_background();
    result
}
