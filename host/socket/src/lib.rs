//! Unix sockets as files: made with their mode, replaced when nobody listens on them any more, removed at the end.
//!
//! Knows neither what is spoken on them nor who may speak: whoever can write to the file can connect.

mod file;

pub use self::file::{LONGEST, SocketFile, is_dead};
