//! Dispatch of messages to the methods that handle them.

mod batch;
pub(crate) mod dispatcher;
mod method_resolution;
mod method_responses;
pub(crate) mod methods;
pub(crate) mod paging;
mod unanswered_messages;
