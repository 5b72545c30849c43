//! The memory budget for the files of all skills.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytesize::ByteSize;

/// A memory budget that the files of all skills share.
#[derive(Debug)]
pub(crate) struct SkillMemory {
    most: ByteSize,
    used: AtomicU64,
}

/// The memory that one skill reserves. Dropping it releases the reservation.
#[derive(Debug)]
pub(crate) struct SkillReservation {
    shelf: Arc<SkillMemory>,
    bytes: u64,
}

impl SkillMemory {
    /// Creates a budget of this many bytes.
    pub(crate) fn new(most: ByteSize) -> Arc<Self> {
        Arc::new(Self { most, used: AtomicU64::new(0) })
    }

    /// Reserves `bytes`. The reservation that this one replaces does not count: both exist only
    /// until the old one is no longer used.
    ///
    /// # Errors
    ///
    /// Returns the total budget if not enough of it is left.
    pub(crate) fn take(
        self: &Arc<Self>,
        bytes: u64,
        instead_of: Option<&SkillReservation>,
    ) -> Result<SkillReservation, ByteSize> {
        let free = instead_of.map_or(0, |room| room.bytes);
        let fits = |used: u64| {
            let all = used.saturating_add(bytes);
            (all.saturating_sub(free) <= self.most.as_u64()).then_some(all)
        };
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(SkillReservation { shelf: Arc::clone(self), bytes }),
            Err(_) => Err(self.most),
        }
    }
}

impl Drop for SkillReservation {
    fn drop(&mut self) {
        self.shelf.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_what_is_kept_and_for_what_takes_its_place() {
        let shelf = SkillMemory::new(ByteSize::b(10));
        let one = shelf.take(6, None).unwrap();
        assert_eq!(shelf.take(5, None).unwrap_err(), ByteSize::b(10));
        let two = shelf.take(4, None).unwrap();
        let larger = shelf.take(6, Some(&one)).unwrap();
        assert!(shelf.take(7, Some(&one)).is_err() && shelf.take(u64::MAX, Some(&one)).is_err());
        drop(one);
        assert!(shelf.take(1, None).is_err());
        drop((two, larger));
        assert_eq!(shelf.used.load(Ordering::Relaxed), 0);
    }
}
