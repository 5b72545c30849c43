//! The load generator: callers that repeat a request, over standard input and output or over HTTP,
//! on one thread. It implements the protocol itself and checks every response. A wrong or missing
//! response is an error and invalidates the measurement.

mod answer;
mod drive;
mod poll;
mod response;
mod server;
mod usage;
mod wire;
mod work;

use std::time::Duration;

pub use self::drive::{Driven, Group, Until};
pub use self::server::{Launch, Server, Via};
pub use self::usage::Memory;
pub use self::work::{Burn, Echo, Work};

/// Sleeps, to measure activity or its absence during an interval.
#[expect(
    clippy::disallowed_methods,
    reason = "what is measured is what happens in a stretch of time"
)]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}
