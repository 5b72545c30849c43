//! The signals that a server handles: stop, stop immediately, report, reload the configuration.

use std::sync::Arc;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The requests of the signals received so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    /// Cancelled by the first `SIGTERM` or `SIGINT`. The server then shuts down, and running calls
    /// have the grace period.
    pub(super) shutdown: CancellationToken,
    /// Cancelled by the second one. The grace period then ends immediately.
    pub(super) force_shutdown: CancellationToken,
    /// Notified by each `SIGHUP`, which requests a reload of the configuration.
    pub(super) reload: Arc<Notify>,
}

impl Signals {
    /// Starts to listen. `SIGHUP` does not stop the server, which outlives its terminal.
    pub(super) fn listen() -> std::io::Result<Self> {
        let signals = Self::default();
        for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
            let mut received = signal(kind)?;
            let signals = signals.clone();
            tokio::spawn(async move {
                while received.recv().await.is_some() {
                    if signals.shutdown.is_cancelled() {
                        tracing::warn!("a second signal ends the grace period");
                        signals.force_shutdown.cancel();
                    }
                    signals.shutdown.cancel();
                }
            });
        }
        let mut hangups = signal(SignalKind::hangup())?;
        let reload = Arc::clone(&signals.reload);
        tokio::spawn(async move {
            while hangups.recv().await.is_some() {
                reload.notify_one();
            }
        });
        Ok(signals)
    }
}

/// Makes a write beyond the file size limit (`ulimit -f`) fail like one to a full disk. Unhandled,
/// the signal ends the process, even if the file is only its log.
pub(super) fn ignore_file_size_signal() -> std::io::Result<()> {
    // The handler stays installed after the listener is dropped.
    signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop)
}

/// Runs `report` on each `SIGUSR1`.
pub(super) fn on_report(mut report: impl FnMut() + Send + 'static) -> std::io::Result<()> {
    let mut received = signal(SignalKind::user_defined1())?;
    tokio::spawn(async move {
        while received.recv().await.is_some() {
            report();
        }
    });
    Ok(())
}
