//! The signals that a server handles: stop, stop now, report.

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What the signals received so far request.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    /// Cancelled by the first `SIGTERM` or `SIGINT`: the server shuts down, and running calls have the grace time.
    pub(super) end: CancellationToken,
    /// Cancelled by the second one: the grace time ends now.
    pub(super) hurry: CancellationToken,
}

impl Signals {
    /// Starts to listen. `SIGHUP` is logged and ignored: the server outlives its terminal and watches files anyway.
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
        tokio::spawn(async move {
            while hangups.recv().await.is_some() {
                tracing::info!("ignored SIGHUP: plugins and grants are reloaded when their files change");
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
