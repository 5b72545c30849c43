//! Sessions with clients, independent of the transport.

pub(crate) mod change_notifications;
pub(crate) mod client_session;
