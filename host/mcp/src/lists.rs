//! The lists that clients page through: their kinds, their access rights, their encoded pages, and
//! the state that each client last received.

pub(crate) mod access_rights;
pub(crate) mod client_lists;
pub(crate) mod cursor;
pub(crate) mod list_kind;
pub(crate) mod list_state;
pub(crate) mod page_cache;
