//! What a supervisor such as systemd gives a server and wants to know of it: sockets, and its state (`sd_notify`).

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::sync::Arc;
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
#[derive(Clone, Debug, Default)]
pub(super) struct Supervisor {
    link: Option<Arc<Link>>,
    /// Within which time it must hear from the server again and again.
    watchdog: Option<Duration>,
}

/// A socket that is connected to the supervisor's.
#[derive(Debug)]
struct Link {
    socket: UnixDatagram,
    address: SocketAddr,
}

impl Link {
    /// Connects to the supervisor's socket, whose name may be abstract (`@name`).
    fn connect(name: &OsStr) -> io::Result<Self> {
        let address = match name.as_bytes().split_first() {
            Some((b'@', name)) => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(name)?,
        };
        let socket = UnixDatagram::unbound()?;
        socket.connect_addr(&address)?;
        Ok(Self { socket, address })
    }

    fn say(&self, what: &[NotifyState<'_>]) -> io::Result<()> {
        let mut text = String::new();
        for state in what {
            let _ = writeln!(text, "{state}");
        }
        // A supervisor that was started again listens on another socket at the same place.
        let sent = self.socket.send(text.as_bytes()).or_else(|_| {
            self.socket.connect_addr(&self.address)?;
            self.socket.send(text.as_bytes())
        });
        sent.map(drop)
    }
}

impl Supervisor {
    /// The one that started this program, if it did. Must be called before the process confines itself: a confined process
    /// makes no Unix sockets.
    pub(super) fn found() -> Self {
        let Some(name) = std::env::var_os(SOCKET).filter(|name| !name.is_empty()) else { return Self::default() };
        match Link::connect(&name) {
            Ok(link) => {
                let mut period = 0;
                let watched = sd_notify::watchdog_enabled(false, &mut period) && period > 0;
                Self { link: Some(Arc::new(link)), watchdog: watched.then(|| Duration::from_micros(period)) }
            }
            // Its log is not there yet: whoever waits for the server says that it never became ready.
            Err(_) => Self::default(),
        }
    }

    /// Says that the server is ready, what it serves, that it still lives, and in the end that it stops. Runs on the thread
    /// of the protocol, so that a supervisor learns if that one hangs.
    pub(super) async fn accompany(self, catalog: Catalog, stop: CancellationToken) {
        if self.link.is_none() {
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
                    self.say(&[NotifyState::Status(&state(&snapshot))]);
                }
                _ = times.tick(), if self.watchdog.is_some() => self.say(&[NotifyState::Watchdog]),
            }
        }
        self.say(&[NotifyState::Stopping, NotifyState::Status("running calls have the grace time")]);
    }

    /// Says that clients are served.
    pub(super) fn ready(&self) {
        self.say(&[NotifyState::Ready]);
    }

    /// Says that the configuration is being read again.
    pub(super) fn reloading(&self) {
        let now = NotifyState::monotonic_usec_now().ok();
        self.say(&std::iter::once(NotifyState::Reloading).chain(now).collect::<Vec<_>>());
    }

    fn say(&self, what: &[NotifyState<'_>]) {
        let Some(link) = &self.link else { return };
        // One datagram to a socket that a supervisor reads all the time.
        if let Err(error) = link.say(what) {
            tracing::debug!("the supervisor could not be told: {error}");
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
