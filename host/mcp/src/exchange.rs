//! Messages between the server and one client: outgoing messages, running requests, requests to the
//! client, and subscriptions.

pub(crate) mod in_flight;
pub(crate) mod observer;
pub(crate) mod outbox;
pub(crate) mod resource_subscriptions;
pub(crate) mod server_requests;
