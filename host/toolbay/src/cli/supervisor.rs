//! What a supervisor such as systemd gives a server and wants to know of it: sockets, and its state (`sd_notify`).

use std::net::TcpListener;
use std::time::Duration;

use listenfd::ListenFd;
use sd_notify::NotifyState;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use toolbay_catalog::{Catalog, Snapshot};

/// The variable with the supervisor's socket.
const SOCKET: &str = "NOTIFY_SOCKET";

/// The socket on which the supervisor listens for this program, if it does (`LISTEN_FDS`).
///
/// # Errors
///
/// There are several, or it is not one of TCP.
pub(super) fn inherited() -> Result<Option<TcpListener>, String> {
    let mut sockets = ListenFd::from_env();
    match sockets.len() {
        0 => Ok(None),
        1 => sockets.take_tcp_listener(0).map_err(|error| format!("LISTEN_FDS: the socket is not one of TCP: {error}")),
        several => Err(format!("LISTEN_FDS: expected one socket, not {several}")),
    }
}

/// A supervisor that wants to know how the server is. The default wants to know nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Supervisor {
    is_there: bool,
    /// Within which time it must hear from the server again and again.
    watchdog: Option<Duration>,
}

impl Supervisor {
    /// The one that started this program, if it did.
    pub(super) fn found() -> Self {
        let is_there = std::env::var_os(SOCKET).is_some_and(|path| !path.is_empty());
        let mut period = 0;
        let watched = is_there && sd_notify::watchdog_enabled(false, &mut period) && period > 0;
        Self { is_there, watchdog: watched.then(|| Duration::from_micros(period)) }
    }

    /// Says that the server is ready, what it serves, that it still lives, and in the end that it stops. Runs on the thread
    /// of the protocol, so that a supervisor learns if that one hangs.
    pub(super) async fn accompany(self, catalog: Catalog, stop: CancellationToken) {
        if !self.is_there {
            return;
        }
        self.ready();
        // Twice as often as it wants, as systemd asks for; with no watchdog, for the state alone.
        let mut times = interval(self.watchdog.map_or(Duration::from_hours(1), |period| period / 2));
        times.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut generation = None;
        loop {
            let changed = async {
                let known = generation;
                catalog.wait_for(|snapshot: &Snapshot| known != Some(snapshot.generation)).await
            };
            tokio::select! {
                () = stop.cancelled() => break,
                snapshot = changed => {
                    generation = Some(snapshot.generation);
                    say(&[NotifyState::Status(&state(&snapshot))]);
                }
                _ = times.tick(), if self.watchdog.is_some() => say(&[NotifyState::Watchdog]),
            }
        }
        say(&[NotifyState::Stopping, NotifyState::Status("running calls have the grace time")]);
    }

    /// Says that clients are served.
    pub(super) fn ready(self) {
        if self.is_there {
            say(&[NotifyState::Ready]);
        }
    }

    /// Says that the configuration is being read again.
    pub(super) fn reloading(self) {
        if self.is_there {
            let now = NotifyState::monotonic_usec_now().ok();
            say(&std::iter::once(NotifyState::Reloading).chain(now).collect::<Vec<_>>());
        }
    }
}

/// What `systemctl status` shows.
fn state(snapshot: &Snapshot) -> String {
    let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let (plugins, tools) = (counted(snapshot.plugins.len(), "plugin"), counted(snapshot.tools.len(), "tool"));
    let loading = if snapshot.complete { "" } else { "; others are still being loaded" };
    format!("serving {plugins} with {tools}{loading}")
}

fn say(what: &[NotifyState<'_>]) {
    // One datagram to a socket that a supervisor reads all the time.
    if let Err(error) = sd_notify::notify(false, what) {
        tracing::debug!("the supervisor could not be told: {error}");
    }
}
