//! Unix socket files: created with their mode, replaced when no process listens on them, and
//! removed when dropped.
//!
//! The crate does not depend on the protocol or on access rules. Every process that can write to
//! the file can connect.

mod socket_file;

pub use self::socket_file::{MAX_PATH_BYTES, SocketFile, is_abandoned};
