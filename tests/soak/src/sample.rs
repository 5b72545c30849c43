//! A sample of the server's state.

use toolbay_testkit::process_usage::ProcessUsage;

/// The server at one moment.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) vitals: ProcessUsage,
    /// The fraction of the goal that was reached, at most 1.
    pub(crate) done: f64,
}
