//! What identifies a state, and how long it is good.

use std::time::{Duration, SystemTime};

/// How long a state is good. A person thinks for minutes; what a plugin did before it asked should not be repeated hours
/// later.
pub(crate) const STATE_LIFETIME: Duration = Duration::from_mins(10);

/// Bytes of a state's id.
pub(super) type StateId = [u8; 16];

/// Milliseconds of Unix time.
pub(crate) fn unix_millis_now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, as_millis)
}

pub(super) fn as_millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
