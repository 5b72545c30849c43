//! What the operating system tells a server: to end, to hurry, to report.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What an operator asks for by signals.
#[derive(Clone, Debug, Default)]
pub(super) struct Signals {
    /// `SIGTERM` or `SIGINT`: the server ends, and calls have the grace time.
    pub(super) end: CancellationToken,
    /// A second one: the grace time ends now.
    pub(super) hurry: CancellationToken,
}

impl Signals {
    /// Listens for them. `SIGHUP` is ignored: a terminal that closes is no order, and the plugin folder is watched anyway.
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

/// Runs `report` at each `SIGUSR1`.
pub(super) fn on_report(mut report: impl FnMut() + Send + 'static) -> std::io::Result<()> {
    let mut received = signal(SignalKind::user_defined1())?;
    tokio::spawn(async move {
        while received.recv().await.is_some() {
            report();
        }
    });
    Ok(())
}
