//! The memory budget for the files of all skills.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytesize::ByteSize;

/// A memory budget that the files of all skills share.
#[derive(Debug)]
pub(crate) struct SkillMemory {
    limit: ByteSize,
    used: AtomicU64,
}

/// The memory that one skill reserves. Dropping it releases the reservation.
#[derive(Debug)]
pub(crate) struct SkillReservation {
    memory: Arc<SkillMemory>,
    bytes: u64,
}

impl SkillMemory {
    /// Creates a budget of this many bytes.
    pub(crate) fn new(most: ByteSize) -> Arc<Self> {
        Arc::new(Self {
            limit: most,
            used: AtomicU64::new(0),
        })
    }

    /// Reserves `bytes`. The reservation `replaced` does not count, because both exist only until
    /// the old one is released.
    ///
    /// # Errors
    ///
    /// Returns the total budget if not enough of it is left.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        bytes: u64,
        instead_of: Option<&SkillReservation>,
    ) -> Result<SkillReservation, ByteSize> {
        let free = instead_of.map_or(0, |room| room.bytes);
        let fits = |used: u64| {
            let all = used.saturating_add(bytes);
            (all.saturating_sub(free) <= self.limit.as_u64()).then_some(all)
        };
        match self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
        {
            Ok(_) => Ok(SkillReservation {
                memory: Arc::clone(self),
                bytes,
            }),
            Err(_) => Err(self.limit),
        }
    }
}

impl Drop for SkillReservation {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_and_its_replacement_fit_in_the_budget() {
        let shelf = SkillMemory::new(ByteSize::b(10));
        let one = shelf.reserve(6, None).unwrap();
        assert_eq!(shelf.reserve(5, None).unwrap_err(), ByteSize::b(10));
        let two = shelf.reserve(4, None).unwrap();
        let larger = shelf.reserve(6, Some(&one)).unwrap();
        assert!(
            shelf.reserve(7, Some(&one)).is_err() && shelf.reserve(u64::MAX, Some(&one)).is_err()
        );
        drop(one);
        assert!(shelf.reserve(1, None).is_err());
        drop((two, larger));
        assert_eq!(shelf.used.load(Ordering::Relaxed), 0);
    }
}
