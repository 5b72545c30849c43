//! Memory that HTTP resources hold on the host, whatever the version of their interfaces.

/// Maximum size of the names and values in one set of fields, in bytes. Servers commonly accept no
/// more.
pub(crate) const MAX_FIELDS_BYTES: usize = 16 << 10;

/// Maximum size of a body chunk that the host buffers before it is sent, in bytes.
pub(crate) const MAX_BODY_CHUNK_BYTES: usize = 16 << 10;

/// Maximum memory of a set of fields, in bytes: a header map takes up to four times the size of its
/// content.
pub(crate) const FIELDS_MEMORY_BYTES: usize = 4 * MAX_FIELDS_BYTES;

/// Maximum size of a path with its query, in bytes.
pub(crate) const MAX_PATH_BYTES: usize = 16 << 10;

/// Maximum size of an authority, in bytes: host name, port and user name.
pub(crate) const MAX_AUTHORITY_BYTES: usize = 1 << 10;

/// Maximum size of a custom method or scheme, in bytes.
pub(crate) const MAX_CUSTOM_NAME_BYTES: usize = 64;

/// Memory of a body, in bytes: the waiting chunk and the one that is being sent.
pub(crate) const BODY_MEMORY_BYTES: usize = 2 * MAX_BODY_CHUNK_BYTES;

/// Memory of a request in addition to its fields, in bytes.
pub(crate) const REQUEST_MEMORY_BYTES: usize =
    MAX_PATH_BYTES + MAX_AUTHORITY_BYTES + 2 * MAX_CUSTOM_NAME_BYTES;

/// Memory of a request in flight and its response, in bytes: two heads, and the I/O buffers of the
/// bodies.
pub(crate) const EXCHANGE_MEMORY_BYTES: usize = 512 << 10;
