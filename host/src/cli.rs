//! The command line: what each word means, and which exit code says what.

mod call;
mod check;
mod compile;
mod dev;
mod list;
mod new;
mod serve;
mod token;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use bytesize::ByteSize;
use clap::{Args, Parser, Subcommand};
use tokio_util::sync::CancellationToken;

use crate::catalog::{self, Snapshot};
use crate::config::{Config, ConfigError, Flags};
use crate::plugin::loader::Loader;
use crate::plugin::reloader::Reloader;
use crate::plugin::watcher::Watcher;
use crate::sandbox::{Sandbox, worker};
use crate::service::Service;
use crate::telemetry;

/// Configuration that cannot be used (`EX_USAGE` of sysexits.h).
const BAD_CONFIGURATION: u8 = 64;

/// An MCP server whose tools are WebAssembly components: drop a .wasm into a folder and it is a tool.
#[derive(Debug, Parser)]
#[command(name = "toolbay", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the tools in a folder over MCP, on standard input and output or over HTTP
    Serve {
        #[command(flatten)]
        common: Common,
        #[command(flatten)]
        listen: Listen,
    },
    /// Show what would be served: plugins, tools, grants, and why a file is refused
    ///
    /// Ends with exit code 0 also when files are refused: that is part of the answer (`"status": "refused"` with
    /// --json). `toolbay compile` ends with 1 then.
    List {
        #[command(flatten)]
        common: Common,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Explain a plugin file before trusting it: what it is, its tools, and what it can use
    Check {
        /// The plugin file, or the folder of a plugin's project
        file: PathBuf,
        #[command(flatten)]
        common: Common,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Begin a plugin: a folder that builds at once
    New {
        /// The folder to make; its last part is the plugin's name, such as my-weather
        name: PathBuf,
        /// The language to write it in
        #[arg(long, value_name = "LANGUAGE")]
        language: new::Language,
        /// Plain WIT functions, without an SDK
        #[arg(long)]
        plain: bool,
    },
    /// Build a plugin after each change, put it into the plugin folder, and make its example call
    Dev {
        /// The plugin's project: the folder with its plugin.toml
        #[arg(default_value = ".")]
        project: PathBuf,
        #[command(flatten)]
        common: Common,
        /// Build once and end
        #[arg(long)]
        once: bool,
    },
    /// Compile every plugin in the folder into the store, so that a server starts at once
    ///
    /// Ends with exit code 1 when a plugin is refused, or when what was compiled is not kept.
    Compile(Common),
    /// Compile standard input to standard output; toolbay starts this itself
    #[command(hide = true)]
    CompileWorker {
        /// Bytes of a guest's native stack
        stack: u64,
        /// Bytes of address space
        memory: u64,
        /// Seconds of processor time
        cpu: u64,
    },
    /// Make a bearer token for MCP over HTTP, and the lines of toolbay.toml that admit it
    Token {
        /// Whose it is, for the log
        name: String,
    },
    /// Call one tool, under the limits that serving would apply
    Call {
        /// The tool's name, as `list` shows it
        tool: String,
        /// The arguments: a JSON object, or - to read it from standard input
        #[arg(default_value = "{}")]
        arguments: String,
        #[command(flatten)]
        common: Common,
        /// Print the whole result as JSON
        #[arg(long)]
        json: bool,
        /// Print what the call used, beside what it was allowed
        #[arg(long)]
        usage: bool,
    },
}

#[derive(Args, Debug)]
struct Common {
    /// The plugin folder [default: ./plugins]
    #[arg(long, value_name = "DIR")]
    plugins: Option<PathBuf>,
    /// The configuration file [default: ./toolbay.toml, if it is there]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What to log to standard error: error, warn, info, debug, or directives such as toolbay=debug,warn
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
}

#[derive(Args, Debug, Default)]
struct Listen {
    /// Listen here for MCP over HTTP, such as 127.0.0.1:8931; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    http: Option<SocketAddr>,
    /// Serve the transport of 2024-11-05 as well, at /sse
    #[arg(long)]
    sse: bool,
}

/// In the words of `http.listen`.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected an address with its port, such as 127.0.0.1:8931".to_owned())
}

impl Cli {
    /// Does what the command line says.
    pub fn run(self) -> ExitCode {
        let result = match self.command {
            Command::Serve { common, listen } => serve::run(&common, &listen),
            Command::Token { name } => token::run(&name),
            Command::Check { file, common, json } => check::run(&common, &file, json),
            Command::New { name, language, plain } => new::run(&name, language, plain),
            Command::Dev { project, common, once } => dev::run(&common, &project, once),
            Command::Compile(common) => compile::run(&common),
            Command::CompileWorker { stack, memory, cpu } => {
                return worker::run(ByteSize::b(stack), memory, cpu);
            }
            Command::List { common, json } => list::run(&common, json),
            Command::Call { tool, arguments, common, json, usage } => {
                call::run(&common, tool, &arguments, call::Show { json, usage })
            }
        };
        result.unwrap_or_else(|error| {
            complain(&format!("{error:#}"));
            if error.is::<ConfigError>() { ExitCode::from(BAD_CONFIGURATION) } else { ExitCode::FAILURE }
        })
    }
}

impl Common {
    /// The configuration, with logging begun. A command that prints for people
    /// logs only what it is asked to.
    fn configure(&self, quiet: bool, listen: &Listen) -> Result<Config, ConfigError> {
        let flags = Flags {
            config: self.config.clone(),
            plugins: self.plugins.clone(),
            log: self.log.clone(),
            http: listen.http,
            sse: listen.sse,
        };
        // Names and values that are not UTF-8 are none of ours.
        let variables = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
        let config = Config::load(&flags, variables)?;
        let filter = if quiet && self.log.is_none() { "off" } else { config.log.as_str() };
        telemetry::init(filter).map_err(ConfigError::new)?;
        for clamp in config.clamps() {
            tracing::warn!("{clamp}");
        }
        Ok(config)
    }
}

/// Starts everything that serves: sandbox, reloader, catalog. Must be called on a runtime.
fn start(config: Config, watch: bool, stop: &CancellationToken) -> anyhow::Result<Service> {
    let sandbox = Sandbox::new(config.sandbox()?)?;
    let watcher = if watch { watcher(&config) } else { None };
    let loader = Loader::new(sandbox.clone(), config.rules(), config.plugins.clone());
    let (publisher, catalog) = catalog::channel();
    tokio::spawn(Reloader::new(loader, publisher).run(watcher, stop.clone()));
    Ok(Service::new(catalog, sandbox, config))
}

/// A watcher, or none where the system refuses: the folder is looked at every two seconds then.
fn watcher(config: &Config) -> Option<Watcher> {
    Watcher::new(&config.plugins).inspect_err(|error| tracing::warn!("{error}; looking every two seconds instead")).ok()
}

/// Runs one command on a runtime, without waiting for threads that a read of standard input holds.
fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(work);
    runtime.shutdown_background();
    result
}

/// Loads the folder once, and returns what it came to.
async fn loaded(config: Config) -> anyhow::Result<(Service, std::sync::Arc<Snapshot>)> {
    let service = start(config, false, &CancellationToken::new())?;
    let snapshot = service.catalog().wait_for(|snapshot| snapshot.complete).await;
    Ok((service, snapshot))
}

/// Prints to standard output. A reader that went away, as `head` does, is no error.
fn print(text: &str) {
    drop(std::io::stdout().write_all(text.as_bytes()));
}

/// Prints one line to standard error.
fn complain(text: &str) {
    drop(writeln!(std::io::stderr(), "toolbay: {text}"));
}
