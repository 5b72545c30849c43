//! The address on which a server listens.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Prefix of the address of a Unix socket.
const UNIX_PREFIX: &str = "unix:";

/// The address on which a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// An IP address with a port.
    Internet(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl ListenAddress {
    /// Returns whether only programs on this machine can reach the address.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Internet(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }

    /// Returns the path, if the address is a Unix socket.
    pub fn socket_path(&self) -> Option<&Path> {
        match self {
            Self::Internet(_) => None,
            Self::Unix(path) => Some(path),
        }
    }

    /// Returns the host and the port as written in URLs. A Unix socket has neither: its clients use
    /// the name of the local machine.
    pub fn authority(&self) -> String {
        match self {
            Self::Internet(address) => address.to_string(),
            Self::Unix(_) => "localhost".to_owned(),
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Internet(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "{UNIX_PREFIX}{}", path.display()),
        }
    }
}

/// Error of parsing a text that is not an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidAddress;

impl FromStr for ListenAddress {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        match text.strip_prefix(UNIX_PREFIX) {
            Some(path) if path.is_empty() || path.ends_with('/') || path.contains('\0') => {
                Err(InvalidAddress)
            }
            Some(path) => Ok(Self::Unix(path.into())),
            None => {
                // Only this name, because the address of another one depends on the network.
                let numeric = match text.strip_prefix("localhost:") {
                    Some(port) => format!("127.0.0.1:{port}"),
                    None => text.to_owned(),
                };
                numeric
                    .parse()
                    .map(Self::Internet)
                    .map_err(|_| InvalidAddress)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_of_ip_or_the_path_of_a_socket() {
        for (text, local, authority) in [
            ("127.0.0.1:8931", true, "127.0.0.1:8931"),
            ("[::1]:0", true, "[::1]:0"),
            ("0.0.0.0:80", false, "0.0.0.0:80"),
            ("unix:/run/toolbay/mcp.sock", true, "localhost"),
            ("unix:mcp.sock", true, "localhost"),
        ] {
            let address: ListenAddress = text.parse().unwrap();
            assert_eq!(
                (address.to_string(), address.is_local()),
                (text.to_owned(), local)
            );
            assert_eq!(address.authority(), authority);
        }
        assert_eq!(
            "localhost:8931".parse(),
            "127.0.0.1:8931".parse::<ListenAddress>()
        );
        for text in [
            "",
            "localhost",
            "localhost:",
            "localhost:1:2",
            "localhost.:1",
            "example.com:1",
            "127.0.0.1",
            "unix:",
            "unix:/",
            "unix:/a/",
            "unix:a\0b",
            "/run/a",
            "UNIX:/a",
        ] {
            assert_eq!(
                text.parse::<ListenAddress>(),
                Err(InvalidAddress),
                "{text:?}"
            );
        }
    }
}
