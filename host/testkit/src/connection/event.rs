//! The events that a caller receives.

use crate::message::{RequestResult, TimedMessage};

/// An event for a caller.
#[derive(Debug)]
pub enum CallerEvent {
    /// The response to the request with this id.
    Response(u64, TimedMessage<RequestResult>),
    /// A progress notification for the request with this id. The guest that runs the call has
    /// started.
    Progress(u64),
    /// The server has exited.
    ServerExited,
}
