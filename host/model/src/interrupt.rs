//! Interruption of work that the host does for a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Stops work that the host does for a call: at the call's deadline, or earlier if no caller waits
/// for the result any more.
///
/// The code that does the work calls [`Interrupt::is_due`] every few microseconds. Clones share the
/// flag.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    /// `None` for work that has no call.
    deadline: Option<Instant>,
    raised: Arc<AtomicBool>,
}

impl Interrupt {
    /// Creates an interrupt that is due at `deadline`.
    pub fn with_deadline(deadline: Instant) -> Self {
        Self {
            deadline: Some(deadline),
            raised: Arc::default(),
        }
    }

    /// Makes the interrupt due now.
    pub fn raise(&self) {
        self.raised.store(true, Ordering::Relaxed);
    }

    /// Returns whether the work must stop.
    pub fn is_due(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
            || self
                .deadline
                .is_some_and(|deadline| deadline <= Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn interrupt_is_due_at_its_deadline_or_when_raised() {
        assert!(!Interrupt::default().is_due());
        assert!(Interrupt::with_deadline(Instant::now()).is_due());
        let later = Interrupt::with_deadline(Instant::now() + Duration::from_hours(1));
        assert!(!later.is_due());
        later.clone().raise();
        assert!(later.is_due());
    }
}
