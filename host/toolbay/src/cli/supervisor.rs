//! What a supervisor such as systemd gives a server and wants to know of it: sockets, and its state (`sd_notify`).

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use listenfd::ListenFd;
use sd_notify::NotifyState;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use toolbay_catalog::{Catalog, Snapshot};
use toolbay_mcp::http::{Address, Listener};

/// The variable with the supervisor's socket.
const SOCKET: &str = "NOTIFY_SOCKET";

/// The socket on which the supervisor listens for this program, if it does (`LISTEN_FDS`).
///
/// # Errors
///
/// There are several, or it is neither one of TCP nor a Unix socket with a path.
pub(super) fn inherited() -> Result<Option<Inherited>, String> {
    let mut sockets = ListenFd::from_env();
    match sockets.len() {
        0 => Ok(None),
        // What is of another kind stays where it is.
        1 => match (sockets.take_tcp_listener(0), sockets.take_unix_listener(0)) {
            (Ok(tcp), _) => Ok(tcp.map(Inherited::Tcp)),
            (_, Ok(unix)) => Ok(unix.map(Inherited::Unix)),
            (Err(error), Err(other)) => {
                Err(format!("LISTEN_FDS: the socket is neither one of TCP nor a Unix stream socket: {error}; {other}"))
            }
        },
        several => Err(format!("LISTEN_FDS: expected one socket, not {several}")),
    }
}

/// A socket on which a supervisor listens.
#[derive(Debug)]
pub(super) enum Inherited {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Inherited {
    /// Where it listens, for the configuration: who can reach it decides what must be set there.
    ///
    /// # Errors
    ///
    /// It has no address, or one that files do not protect.
    pub(super) fn address(&self) -> Result<Address, String> {
        let cannot = |error| format!("LISTEN_FDS: failed to read the address of the socket: {error}");
        match self {
            Self::Tcp(listener) => listener.local_addr().map(Address::Internet).map_err(cannot),
            Self::Unix(listener) => {
                let address = listener.local_addr().map_err(cannot)?;
                let path = address.as_pathname().ok_or(
                    "LISTEN_FDS: the Unix socket has no path, so everybody on this machine could connect; use one with a path",
                )?;
                Ok(Address::Unix(path.to_owned()))
            }
        }
    }

    /// The socket for clients to be served on.
    pub(super) fn adopt(self) -> std::io::Result<Listener> {
        match self {
            Self::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                Ok(tokio::net::TcpListener::from_std(listener)?.into())
            }
            Self::Unix(listener) => {
                listener.set_nonblocking(true)?;
                Ok(tokio::net::UnixListener::from_std(listener)?.into())
            }
        }
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
