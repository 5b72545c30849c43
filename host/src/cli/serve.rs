//! `toolbay serve`: MCP over standard input and output or over HTTP, until the client or the operator ends it.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{Common, Listen, block_on, start};
use crate::mcp::{http, stdio, streams};
use crate::service::Service;

pub(super) fn run(common: &Common, listen: &Listen) -> anyhow::Result<ExitCode> {
    let config = common.configure(false, listen)?;
    block_on(async {
        let stop = CancellationToken::new();
        stop_on_signals(&stop).context("failed to listen for signals")?;
        let Some(address) = config.http.listen else {
            tracing::info!(plugins = %config.plugins.display(), "serving on standard input and output");
            let service = Arc::new(start(config, true, &stop)?);
            report_on_signal(&service).context("failed to listen for signals")?;
            let (reader, writer) = streams::standard();
            let ended = stdio::serve(Arc::clone(&service), reader, writer, stop).await;
            service.tally().log();
            ended.context("failed to read standard input")?;
            return Ok(ExitCode::SUCCESS);
        };
        // First of all: an address that is in use should not start anything.
        let listener = http::bind(address).await.with_context(|| format!("failed to listen on {address}"))?;
        tracing::info!(plugins = %config.plugins.display(), "serving over HTTP");
        let service = Arc::new(start(config, true, &stop)?);
        report_on_signal(&service).context("failed to listen for signals")?;
        let ended = http::serve(Arc::clone(&service), listener, stop).await;
        service.tally().log();
        ended?;
        Ok(ExitCode::SUCCESS)
    })
}

/// `SIGUSR1` asks which limits would suit the plugins.
fn report_on_signal(service: &Arc<Service>) -> std::io::Result<()> {
    let mut signals = signal(SignalKind::user_defined1())?;
    let service = Arc::downgrade(service);
    tokio::spawn(async move {
        while signals.recv().await.is_some() {
            let Some(service) = service.upgrade() else { return };
            service.log_suggestions();
        }
    });
    Ok(())
}

fn stop_on_signals(stop: &CancellationToken) -> std::io::Result<()> {
    for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
        let mut signals = signal(kind)?;
        let stop = stop.clone();
        tokio::spawn(async move {
            signals.recv().await;
            stop.cancel();
        });
    }
    Ok(())
}
