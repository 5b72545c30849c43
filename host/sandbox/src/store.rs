//! The store of a call: its data, its limits, and the classification of the errors that end it.

pub(crate) mod error;
pub(crate) mod limiter;
pub(crate) mod state;
