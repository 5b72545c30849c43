//! Helpers of the tests, and tests of all messages that a client receives.

mod question_transports;
pub(crate) mod revision_changes;
mod revision_flags;
mod revision_messages;
mod revision_requests;
pub(crate) mod stub_client;
pub(crate) mod stub_host;
pub(crate) mod stub_items;
mod subscription_messages;
pub(crate) mod test_http_client;
pub(crate) mod test_peer;
pub(crate) mod test_questions;
