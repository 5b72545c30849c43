//! How much of the call's memory the parts of HTTP hold, whatever the version of their interfaces.

use super::{BODY, FIELDS};

/// Bytes that a set of fields holds at most: a header map has up to four times the size of what is in it.
pub(crate) const FIELDS_HELD: usize = 4 * FIELDS;

/// Bytes of a path with its query.
pub(crate) const PATH: usize = 16 << 10;

/// Bytes of a host's name with its port, user name included.
pub(crate) const AUTHORITY: usize = 1 << 10;

/// Bytes of a method or a scheme with a name of its own.
pub(crate) const NAME: usize = 64;

/// Bytes that a body holds: the piece that waits, and the one that is being sent.
pub(crate) const BODY_HELD: usize = 2 * BODY;

/// Bytes that a request holds besides its fields.
pub(crate) const REQUEST_HELD: usize = PATH + AUTHORITY + 2 * NAME;

/// Bytes that a request on its way and its response hold: two heads, and what is read and written of the bodies.
pub(crate) const EXCHANGE_HELD: usize = 512 << 10;
