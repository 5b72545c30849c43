//! The load generator: callers that ask a server the same thing again and again, over standard input and output or over
//! HTTP, on one thread. It knows the protocol by itself and checks every answer: a wrong or a missing one is an error, and
//! what was measured until then is worth nothing.

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

/// Lets time pass in which something is or is not done.
#[expect(clippy::disallowed_methods, reason = "what is measured is what happens in a stretch of time")]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}
