//! What a caller receives.

use crate::message::{Answer, Arrived};

/// An event for a caller.
#[derive(Debug)]
pub enum Event {
    /// A response arrived.
    Answer(u64, Arrived<Answer>),
    /// The guest that runs this call has reported that it is running.
    Progress(u64),
    /// The server has ended.
    Gone,
}
