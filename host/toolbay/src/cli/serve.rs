//! `toolbay serve`: MCP over standard input and output or over HTTP, until the client disconnects or a signal arrives.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use toolbay_mcp::{http, streams};
use toolbay_otel::Telemetry;

use super::common::{Common, Listen, block_on};
use super::signals::{self, Signals};
use super::waiting;
use crate::config::Config;
use crate::server::Server;

pub(super) fn run(common: &Common, listen: &Listen) -> anyhow::Result<ExitCode> {
    let (config, telemetry) = common.configure_serving(listen)?;
    block_on(async {
        let signals = Signals::listen().context("failed to listen for signals")?;
        tokio::select! {
            served = serve(config, telemetry, &signals) => served?,
            () = signals.hurry.cancelled() => {}
        }
        Ok(ExitCode::SUCCESS)
    })
}

async fn serve(config: Config, telemetry: Option<Telemetry>, signals: &Signals) -> anyhow::Result<()> {
    let Some(address) = config.http.listen else {
        tracing::info!(plugins = %config.plugins.display(), "serving over standard input and output");
        let server = start(config, telemetry)?;
        let (reader, writer) = streams::standard();
        let ended = server.serve_stdio(reader, writer, signals.end.clone()).await;
        return ended.context("failed to read standard input");
    };
    // Before anything else: if the address is in use, nothing should start.
    let listener = http::bind(address).await.with_context(|| format!("failed to listen on {address}"))?;
    tracing::info!(plugins = %config.plugins.display(), "serving over HTTP");
    let server = start(config, telemetry)?;
    let reporting = Arc::clone(&server);
    tokio::spawn(async move { reporting.report_useless_patterns().await });
    server.serve_http(listener, signals.end.clone()).await
}

/// Starts a server that logs suggested limits for each plugin when it receives `SIGUSR1`.
fn start(config: Config, telemetry: Option<Telemetry>) -> anyhow::Result<Arc<Server>> {
    let server = Arc::new(Server::builder(config).telemetry(telemetry).start()?);
    let reporting = Arc::downgrade(&server);
    let report = move || {
        if let Some(server) = reporting.upgrade() {
            server.service().log_suggestions();
        }
    };
    signals::on_report(report).context("failed to listen for signals")?;
    tokio::spawn(waiting::tell(server.service().catalog().clone()));
    Ok(server)
}
