//! The budget for matching URIs against templates.

/// The remaining budget for matching URIs against templates, in inspected characters. A template
/// with the same beginning and end as the URI costs up to 32 times the length of the URI. Other
/// templates cost almost nothing.
#[derive(Debug)]
pub struct MatchBudget {
    remaining: usize,
}

/// The error of an exhausted budget. Anything that was not found until then counts as not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchBudgetExhausted;

impl MatchBudget {
    /// Budget for one URI. It takes some milliseconds.
    pub const PER_URI: usize = 2 << 20;
    /// Budget for all URIs of a request.
    pub const PER_REQUEST: usize = 16 << 20;
    /// Budget that is small enough to spend without moving the work to another thread.
    pub const MAX_INLINE: usize = 64 << 10;

    /// Creates a budget of this many steps.
    pub fn new(steps: usize) -> Self {
        Self { remaining: steps }
    }

    /// Runs `work` with a part of the remaining budget, at most `max_steps`.
    pub fn with_part<T>(&mut self, max_steps: usize, work: impl FnOnce(&mut Self) -> T) -> T {
        let granted = self.remaining.min(max_steps);
        let mut part = Self::new(granted);
        let result = work(&mut part);
        self.remaining -= granted - part.remaining;
        result
    }

    /// Spends `steps`. If fewer are left, spends all of them.
    ///
    /// # Errors
    ///
    /// Returns an error if fewer steps are left.
    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), MatchBudgetExhausted> {
        let remaining = self.remaining.checked_sub(steps);
        self.remaining = remaining.unwrap_or_default();
        remaining.map(drop).ok_or(MatchBudgetExhausted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl MatchBudget {
        /// Returns the remaining steps.
        pub(crate) fn left(&self) -> usize {
            self.remaining
        }
    }

    #[test]
    fn a_part_of_a_budget_takes_from_the_whole() {
        let mut steps = MatchBudget::new(10);
        assert_eq!(
            steps.with_part(4, |part| part.spend(5)),
            Err(MatchBudgetExhausted)
        );
        assert_eq!(steps.remaining, 6);
        assert_eq!(steps.with_part(9, |part| part.spend(5)), Ok(()));
        assert_eq!(
            steps.with_part(9, |part| part.spend(2)),
            Err(MatchBudgetExhausted)
        );
        assert_eq!(steps.remaining, 0);
    }
}
