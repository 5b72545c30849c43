//! What is seen of the server in one look.

use toolbay_testkit::vitals::Vitals;

/// The server at one moment.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) vitals: Vitals,
    /// How much of the goal was reached, at most 1.
    pub(crate) done: f64,
}
