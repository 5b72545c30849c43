//! An MCP server whose tools are WebAssembly components.
//!
//! The parts put together: [`Config`] is what the operator says, [`Server`] starts the sandbox, the catalog and the
//! protocol by it and serves clients, [`Cli`] is the command line of the `toolbay` program. Everything else is private:
//! a call passes from the protocol (`toolbay-mcp`) through the service, which looks the tool up (`toolbay-catalog`), checks
//! its arguments (`toolbay-schema`), waits for its turn and enters a guest (`toolbay-sandbox`).
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

mod activity;
mod admission;
mod breaker;
mod cli;
mod config;
mod host;
mod rate_counter;
mod recent_usage;
mod server;
mod service;
mod share;
mod stderr;
mod tally;
mod telemetry;

pub use self::breaker::BreakerRules;
pub use self::cli::Cli;
pub use self::config::{CompileConfig, Config, ConfigError, Describe, Flags, Http, OAuth, ServerConfig, Token};
pub use self::server::{Server, ServerBuilder};
