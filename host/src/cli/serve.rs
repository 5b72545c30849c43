//! `toolbay serve`: MCP on standard input and output until the client or the operator ends it.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{Common, block_on, start};
use crate::mcp::{stdio, streams};

pub(super) fn run(common: &Common) -> anyhow::Result<ExitCode> {
    let config = common.configure(false)?;
    block_on(async {
        let stop = CancellationToken::new();
        stop_on_signals(&stop).context("failed to listen for signals")?;
        tracing::info!(plugins = %config.plugins.display(), "serving on standard input and output");
        let service = Arc::new(start(config, true, &stop)?);
        let (reader, writer) = streams::standard();
        let ended = stdio::serve(Arc::clone(&service), reader, writer, stop).await;
        service.tally().log();
        ended.context("failed to read standard input")?;
        Ok(ExitCode::SUCCESS)
    })
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
