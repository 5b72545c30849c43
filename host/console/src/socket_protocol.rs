//! The protocol of the console's own socket. The first byte of a connection selects the kind of
//! request.
//!
//! Bytes from a browser always follow [`SocketRequest::Pages`], so a client of the TCP port cannot
//! obtain a token.

use std::io;

use tokio::net::UnixStream;

/// Response to [`SocketRequest::Stop`] if the call was running.
pub(crate) const STOPPED: &str = "stopped";

/// The kind of a connection to the console's own socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketRequest {
    /// The server sends a line that describes what it serves.
    About,
    /// The server sends a line with a login token, and keeps the connection open until the server
    /// ends.
    Login,
    /// A line with a request about the waiting calls follows.
    Approvals,
    /// The server sends a line with its running calls, as JSON.
    Calls,
    /// A line with the number of a call follows. The server stops the call, and sends a line:
    /// `stopped`, or `unknown` if there is no such call.
    Stop,
    /// HTTP from an untrusted client follows.
    Pages,
}

impl SocketRequest {
    /// Returns the first byte of the connection.
    pub(crate) const fn byte(self) -> u8 {
        match self {
            Self::About => b'a',
            Self::Login => b'l',
            Self::Approvals => b'q',
            Self::Calls => b'c',
            Self::Stop => b's',
            Self::Pages => b'p',
        }
    }

    /// Parses the first byte of a connection.
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        [
            Self::About,
            Self::Login,
            Self::Approvals,
            Self::Calls,
            Self::Stop,
            Self::Pages,
        ]
        .into_iter()
        .find(|request| request.byte() == byte)
    }
}

/// Returns whether the peer is a process of this user.
///
/// # Errors
///
/// Returns an error if the system does not report the credentials of the peer.
pub(crate) fn is_own_process(stream: &UnixStream) -> io::Result<bool> {
    Ok(stream.peer_cred()?.uid() == rustix::process::geteuid().as_raw())
}
