//! What becomes of a request.

use crate::message::{Answer, Arrived};

/// What a caller hears.
#[derive(Debug)]
pub enum Event {
    /// A request was answered.
    Answer(u64, Arrived<Answer>),
    /// The guest that serves this request says that it is running.
    Progress(u64),
    /// The server has ended.
    Gone,
}
