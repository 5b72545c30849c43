//! Memory that HTTP resources hold on the host, whatever the version of their interfaces.

use super::{BODY, FIELDS};

/// Maximum memory of a set of fields, in bytes: a header map takes up to four times the size of its
/// content.
pub(crate) const FIELDS_HELD: usize = 4 * FIELDS;

/// Maximum size of a path with its query, in bytes.
pub(crate) const PATH: usize = 16 << 10;

/// Maximum size of an authority, in bytes: host name, port and user name.
pub(crate) const AUTHORITY: usize = 1 << 10;

/// Maximum size of a custom method or scheme, in bytes.
pub(crate) const NAME: usize = 64;

/// Memory of a body, in bytes: the waiting chunk and the one that is being sent.
pub(crate) const BODY_HELD: usize = 2 * BODY;

/// Memory of a request in addition to its fields, in bytes.
pub(crate) const REQUEST_HELD: usize = PATH + AUTHORITY + 2 * NAME;

/// Memory of a request in flight and its response, in bytes: two heads, and the I/O buffers of the
/// bodies.
pub(crate) const EXCHANGE_HELD: usize = 512 << 10;
