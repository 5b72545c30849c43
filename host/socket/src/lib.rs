//! Sockets of this machine: Unix socket files, and the users of local TCP connections.
//!
//! Unix socket files are created with their mode, replaced when no process listens on them, and
//! removed when dropped. Every process that can write to the file can connect.
//!
//! The crate does not depend on the protocol or on access rules.

mod connection_user;
mod socket_file;

pub use self::connection_user::{can_find_users, connection_user, open_user_lookup};
pub use self::socket_file::{MAX_PATH_BYTES, SocketFile, is_abandoned};
