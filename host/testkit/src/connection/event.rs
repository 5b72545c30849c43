//! The events that a caller receives.

use crate::message::{Answer, Arrived};

/// An event for a caller.
#[derive(Debug)]
pub enum Event {
    /// The response to the request with this id.
    Answer(u64, Arrived<Answer>),
    /// A progress notification for the request with this id. The guest that runs the call has
    /// started.
    Progress(u64),
    /// The server has exited.
    Gone,
}
