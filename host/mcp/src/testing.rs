//! Helpers and messages of the tests.

pub(crate) mod revision_messages;
pub(crate) mod stub_host;
pub(crate) mod test_peer;
pub(crate) mod test_questions;
