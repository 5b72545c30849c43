//! What a connection to the console's own socket is for: its first byte says so.
//!
//! What a browser sends comes after [`SocketRequest::Pages`], whatever it is: nobody gets a token through a port.

use std::io;

use tokio::net::UnixStream;

/// What a connection to the console's own socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketRequest {
    /// The server says what it serves, on a line.
    About,
    /// The server gives a token on a line, and keeps the connection until it ends.
    Login,
    /// HTTP follows, from somebody of whom nothing is known.
    Pages,
}

impl SocketRequest {
    /// The byte.
    pub(crate) const fn byte(self) -> u8 {
        match self {
            Self::About => b'a',
            Self::Login => b'l',
            Self::Pages => b'p',
        }
    }

    /// The word with this byte; `None` if there is none.
    pub(crate) fn of(byte: u8) -> Option<Self> {
        [Self::About, Self::Login, Self::Pages].into_iter().find(|word| word.byte() == byte)
    }
}

/// Whether the other end is a process of this user.
///
/// # Errors
///
/// The system does not say.
pub(crate) fn is_own(stream: &UnixStream) -> io::Result<bool> {
    Ok(stream.peer_cred()?.uid() == rustix::process::geteuid().as_raw())
}
