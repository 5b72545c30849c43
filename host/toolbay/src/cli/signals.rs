//! The signals that a server handles: stop, stop now, report, read the configuration again.

use std::sync::Arc;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// What the signals received so far request.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    /// Cancelled by the first `SIGTERM` or `SIGINT`: the server shuts down, and running calls have the grace time.
    pub(super) end: CancellationToken,
    /// Cancelled by the second one: the grace time ends now.
    pub(super) hurry: CancellationToken,
    /// Notified by each `SIGHUP`: the configuration is to be read again.
    pub(super) again: Arc<Notify>,
}

impl Signals {
    /// Starts to listen. `SIGHUP` ends nothing: the server outlives its terminal.
    pub(super) fn listen() -> std::io::Result<Self> {
        let signals = Self::default();
        for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
            let (mut received, signals) = (signal(kind)?, signals.clone());
            tokio::spawn(async move {
                while received.recv().await.is_some() {
                    if signals.end.is_cancelled() {
                        tracing::warn!("a second signal ends the grace time");
                        signals.hurry.cancel();
                    }
                    signals.end.cancel();
                }
            });
        }
        let mut hangups = signal(SignalKind::hangup())?;
        let again = Arc::clone(&signals.again);
        tokio::spawn(async move {
            while hangups.recv().await.is_some() {
                again.notify_one();
            }
        });
        Ok(signals)
    }
}

/// Makes a write beyond the size that files may have (`ulimit -f`) fail as one to a full disk does. Unless it is handled,
/// the signal ends the process, even if the file is only its log.
pub(super) fn survive_large_files() -> std::io::Result<()> {
    // The handler stays when nobody listens any more.
    signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop)
}

/// Runs `report` each time that `SIGUSR1` arrives.
pub(super) fn on_report(mut report: impl FnMut() + Send + 'static) -> std::io::Result<()> {
    let mut received = signal(SignalKind::user_defined1())?;
    tokio::spawn(async move {
        while received.recv().await.is_some() {
            report();
        }
    });
    Ok(())
}
