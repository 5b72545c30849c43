//! `toolbay serve`: MCP on standard input and output until the client or the operator ends it.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{Common, block_on, start};
use crate::mcp::{stdio, streams};
use crate::service::Service;

pub(super) fn run(common: &Common) -> anyhow::Result<ExitCode> {
    let config = common.configure(false)?;
    block_on(async {
        let stop = CancellationToken::new();
        stop_on_signals(&stop).context("failed to listen for signals")?;
        tracing::info!(plugins = %config.plugins.display(), "serving on standard input and output");
        let service = Arc::new(start(config, true, &stop)?);
        report_on_signal(&service).context("failed to listen for signals")?;
        let (reader, writer) = streams::standard();
        stdio::serve(service, reader, writer, stop).await.context("failed to read standard input")?;
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
