//! An MCP server whose tools are WebAssembly components.
//!
//! Combines the parts: [`Config`] is the operator's configuration, [`Server`] starts the sandbox,
//! the catalog and the protocol and serves clients, and [`Cli`] is the command line of the
//! `toolbay` program. Everything else is private. A call passes from the protocol (`toolbay-mcp`)
//! through the service, which looks up the tool (`toolbay-catalog`), checks the arguments
//! (`toolbay-schema`), waits for a slot and runs a guest (`toolbay-sandbox`).
//!
//! ```no_run
//! use toolbay::{Config, Server};
//!
//! # fn main() -> anyhow::Result<()> {
//! let config = Config { plugins: "plugins".into(), ..Config::default() };
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! runtime.block_on(async {
//!     let server = Server::builder(config).compiler("/usr/local/bin/toolbay").start()?;
//!     let snapshot = server.complete().await;
//!     println!("{} tools", snapshot.tools.len());
//!     Ok(())
//! })
//! # }
//! ```

mod approval;
mod call;
mod cli;
mod config;
mod limits;
mod observe;
mod process;
mod serve;

pub use self::cli::Cli;
pub use self::config::{
    ApproveConfig, Arguments, AuditConfig, CompileConfig, Config, ConfigError, Confine,
    ConsoleConfig, Describe, EngineConfig, Flags, Http, HttpClient, Jwks, LockConfig, LogFormat,
    MetricsConfig, NotifyTarget, OAuth, OtelConfig, ProxyUrl, RecordConfig, ResultsConfig,
    ServerConfig, StateConfig, TasksConfig, TlsConfig, Token,
};
pub use self::limits::breaker::BreakerRules;
pub use self::serve::server::Server;
pub use self::serve::server_builder::ServerBuilder;
