//! Records the host's answers during a call, or replays them from a recording.
//!
//! In record mode, the log stores each answer while the host performs the guest's operations. In
//! replay mode, the log returns the recorded answers, and the host performs nothing: it sends no
//! request, and neither reads nor changes state. Both modes note operations that the log does not
//! cover. In record mode, such a call cannot be replayed. In replay mode, the call deviates from
//! the recording.

mod finished_recording;
mod recorded_clock;
mod recorded_operations;
mod replay_tape;
mod tape_reel;

pub(crate) use self::finished_recording::OperationKind;
pub use self::finished_recording::TapedCall;
pub(crate) use self::recorded_operations::NotRecorded;
pub use self::replay_tape::{ReplayDeviation, ReplayTape};
pub use self::tape_reel::ReplayInput;

#[cfg(test)]
mod tests;
