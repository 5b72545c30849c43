//! The id of a state and how long the state is valid.

use std::time::{Duration, SystemTime};

/// Time for which a state is valid. A person needs minutes to decide. Effects that a plugin had
/// before it asked should not be repeated hours later.
pub(crate) const STATE_LIFETIME: Duration = Duration::from_mins(10);

/// The id of a state.
pub(super) type StateId = [u8; 16];

/// Returns the Unix time in milliseconds.
pub(crate) fn unix_millis_now() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, as_millis)
}

pub(super) fn as_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
