//! Integration with a supervisor such as systemd: inherited sockets, and status notifications
//! (`sd_notify`).

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
use toolbay_mcp::http::{ListenAddress, SocketListener};

use crate::config::ConfigError;

/// The environment variable with the path of the supervisor's socket.
const NOTIFY_SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";

/// Returns the socket that the supervisor passed to this program (`LISTEN_FDS`), if any.
///
/// # Errors
///
/// There are several sockets, or the socket is neither TCP nor a Unix socket with a path.
pub(super) fn inherited_socket() -> Result<Option<InheritedSocket>, ConfigError> {
    let mut sockets = ListenFd::from_env();
    match sockets.len() {
        0 => Ok(None),
        // If the first function fails, the socket stays for the second one.
        1 => match (sockets.take_tcp_listener(0), sockets.take_unix_listener(0)) {
            (Ok(tcp), _) => Ok(tcp.map(InheritedSocket::Tcp)),
            (_, Ok(unix)) => Ok(unix.map(InheritedSocket::Unix)),
            (Err(error), Err(other)) => Err(ConfigError::new(format!(
                "LISTEN_FDS: the socket is neither a TCP socket nor a Unix stream socket: {error}; {other}"
            ))),
        },
        several => Err(ConfigError::new(format!(
            "LISTEN_FDS: expected one socket, not {several}"
        ))),
    }
}

/// A listening socket inherited from the supervisor.
#[derive(Debug)]
pub(super) enum InheritedSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl InheritedSocket {
    /// Returns the address of the socket. The required settings depend on who can reach it.
    ///
    /// # Errors
    ///
    /// The socket has no address, or one that is not protected by file permissions.
    pub(super) fn address(&self) -> Result<ListenAddress, ConfigError> {
        let address_error = |error| {
            ConfigError::new(format!(
                "LISTEN_FDS: failed to read the address of the socket: {error}"
            ))
        };
        match self {
            Self::Tcp(listener) => listener
                .local_addr()
                .map(ListenAddress::Internet)
                .map_err(address_error),
            Self::Unix(listener) => {
                let address = listener.local_addr().map_err(address_error)?;
                let path = address.as_pathname().ok_or_else(|| {
                    ConfigError::new(
                        "LISTEN_FDS: the Unix socket has no path, so everyone on this machine \
                         could connect; use one with a path"
                            .to_owned(),
                    )
                })?;
                Ok(ListenAddress::Unix(path.to_owned()))
            }
        }
    }

    /// Converts the socket into a listener for clients.
    pub(super) fn into_listener(self) -> std::io::Result<SocketListener> {
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

/// The supervisor that receives status notifications. The default receives none.
#[derive(Clone, Debug, Default)]
pub(super) struct Supervisor {
    notify_socket: Option<Arc<NotifySocket>>,
    /// The watchdog timeout: the maximum interval between notifications.
    watchdog: Option<Duration>,
}

/// A socket that is connected to the supervisor's socket.
#[derive(Debug)]
struct NotifySocket {
    socket: UnixDatagram,
    address: SocketAddr,
}

impl NotifySocket {
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

    fn send(&self, states: &[NotifyState<'_>]) -> io::Result<()> {
        let mut text = String::new();
        for state in states {
            let _ = writeln!(text, "{state}");
        }
        // A restarted supervisor listens on another socket at the same path.
        let sent = self.socket.send(text.as_bytes()).or_else(|_| {
            self.socket.connect_addr(&self.address)?;
            self.socket.send(text.as_bytes())
        });
        sent.map(drop)
    }
}

impl Supervisor {
    /// Returns the supervisor that started this program, if any. Must be called before the process
    /// confines itself, because a confined process cannot create Unix sockets.
    pub(super) fn from_environment() -> Self {
        let Some(name) = std::env::var_os(NOTIFY_SOCKET_VARIABLE).filter(|name| !name.is_empty())
        else {
            return Self::default();
        };
        match NotifySocket::connect(&name) {
            Ok(socket) => {
                let mut period = 0;
                let has_watchdog = sd_notify::watchdog_enabled(false, &mut period) && period > 0;
                Self {
                    notify_socket: Some(Arc::new(socket)),
                    watchdog: has_watchdog.then(|| Duration::from_micros(period)),
                }
            }
            // The log is not set up yet. The supervisor itself reports that the server never became
            // ready.
            Err(_) => Self::default(),
        }
    }

    /// Sends notifications to the supervisor: readiness, then status and watchdog, and a stop
    /// notification at the end. Runs on the protocol thread, so that the supervisor detects if that
    /// thread hangs.
    pub(super) async fn report_status(self, catalog: Catalog, stop: CancellationToken) {
        if self.notify_socket.is_none() {
            return;
        }
        self.notify_ready();
        // Twice per watchdog timeout, as systemd recommends. Without a watchdog, only the status is
        // sent.
        let mut ticker = interval(
            self.watchdog
                .map_or(Duration::from_hours(1), |period| period / 2),
        );
        ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut generation = None;
        loop {
            let changed = async {
                let last_generation = generation;
                catalog
                    .wait_for(|snapshot: &Snapshot| last_generation != Some(snapshot.generation))
                    .await
            };
            tokio::select! {
                () = stop.cancelled() => break,
                snapshot = changed => {
                    generation = Some(snapshot.generation);
                    self.notify(&[NotifyState::Status(&status_text(&snapshot))]);
                }
                _ = ticker.tick(), if self.watchdog.is_some() => self.notify(&[NotifyState::Watchdog]),
            }
        }
        self.notify(&[
            NotifyState::Stopping,
            NotifyState::Status("running calls can finish within the grace period"),
        ]);
    }

    /// Notifies the supervisor that clients are served.
    pub(super) fn notify_ready(&self) {
        self.notify(&[NotifyState::Ready]);
    }

    /// Notifies the supervisor that the configuration is being reloaded.
    pub(super) fn notify_reloading(&self) {
        let now = NotifyState::monotonic_usec_now().ok();
        self.notify(
            &std::iter::once(NotifyState::Reloading)
                .chain(now)
                .collect::<Vec<_>>(),
        );
    }

    fn notify(&self, states: &[NotifyState<'_>]) {
        let Some(socket) = &self.notify_socket else {
            return;
        };
        // Does not block noticeably: one datagram to a socket that the supervisor always reads.
        if let Err(error) = socket.send(states) {
            tracing::debug!("the supervisor could not be notified: {error}");
        }
    }
}

/// Returns the text for `systemctl status`.
fn status_text(snapshot: &Snapshot) -> String {
    let counted =
        |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let plugins = counted(snapshot.plugins.len(), "plugin");
    let tools = counted(snapshot.tools.len(), "tool");
    let loading = if snapshot.complete {
        ""
    } else {
        "; others are still being loaded"
    };
    format!("serving {plugins} with {tools}{loading}")
}
