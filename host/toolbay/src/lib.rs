//! An MCP server whose tools are WebAssembly components.
//!
//! Combines the parts: [`Config`] is the operator's configuration, [`Server`] starts the sandbox, the catalog and the
//! protocol and serves clients, and [`Cli`] is the command line of the `toolbay` program. Everything else is private. A
//! call passes from the protocol (`toolbay-mcp`) through the service, which looks up the tool (`toolbay-catalog`),
//! checks the arguments (`toolbay-schema`), waits for a slot and runs a guest (`toolbay-sandbox`).
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

mod plugin_activity;
mod admission;
mod approval;
mod audit_line;
mod audit_records;
mod breaker;
mod plugin_table;
mod call_span;
mod cli;
mod config;
mod console_operations;
mod console_socket;
mod fair_semaphore;
mod instructions;
mod learn;
mod log_export;
mod machine_limits;
mod mcp_host;
mod argument_conversion;
mod metrics_collector;
mod allocator;
mod metrics;
mod call_observers;
mod console_report;
mod offload;
mod call_outcome;
mod short_calls;
mod call_permit;
mod grant_text;
mod plugin_permits;
mod output_validation;
mod rate_counter;
mod recent_usage;
mod caller_state;
mod call_recording;
mod config_reload;
mod suspension;
mod stored_results;
mod server;
mod service;
mod client_share;
mod stage_timer;
mod stderr;
mod outcome_counters;
mod call_target;
mod logging;
mod tracer;
mod list_digests;
mod confinement;
mod publication_counter;

pub use self::breaker::BreakerRules;
pub use self::cli::Cli;
pub use self::config::{
    Arguments, AuditConfig, CompileConfig, Config, ConfigError, Confine, ConsoleConfig, Describe, EngineConfig, Flags,
    Http, HttpClient, Jwks, MetricsConfig, OAuth, OtelConfig, ProxyUrl, RecordConfig, ResultsConfig, ServerConfig,
    StateConfig, TasksConfig, TlsConfig, Token,
};
pub use self::server::{Server, ServerBuilder};
