//! What comparing URIs with templates may cost.

/// What comparing URIs with templates may still cost, in characters that are looked at. A template that begins and ends as
/// the URI does costs up to 32 times the URI's length; others cost next to nothing.
#[derive(Debug)]
pub struct MatchBudget {
    left: usize,
}

/// The budget is used up: what was not found so far is not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchBudgetExhausted;

impl MatchBudget {
    /// What one URI may cost: some milliseconds.
    pub const URI: usize = 2 << 20;
    /// What all URIs of a request may cost.
    pub const REQUEST: usize = 16 << 20;
    /// What takes so little time that no other thread needs to do it.
    pub const QUICK: usize = 64 << 10;

    /// A budget of this many steps.
    pub fn new(steps: usize) -> Self {
        Self { left: steps }
    }

    /// Runs `work` with a part of what is left, of at most `most` steps.
    pub fn part<T>(&mut self, most: usize, work: impl FnOnce(&mut Self) -> T) -> T {
        let given = self.left.min(most);
        let mut part = Self::new(given);
        let result = work(&mut part);
        self.left -= given - part.left;
        result
    }

    /// Takes some of what is left; all of it if that is less.
    ///
    /// # Errors
    ///
    /// Less was left.
    pub(crate) fn take(&mut self, steps: usize) -> Result<(), MatchBudgetExhausted> {
        let left = self.left.checked_sub(steps);
        self.left = left.unwrap_or_default();
        left.map(drop).ok_or(MatchBudgetExhausted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl MatchBudget {
        /// What is left.
        pub(crate) fn left(&self) -> usize {
            self.left
        }
    }

    #[test]
    fn a_part_of_a_budget_takes_from_the_whole() {
        let mut steps = MatchBudget::new(10);
        assert_eq!(steps.part(4, |part| part.take(5)), Err(MatchBudgetExhausted));
        assert_eq!(steps.left, 6);
        assert_eq!(steps.part(9, |part| part.take(5)), Ok(()));
        assert_eq!(steps.part(9, |part| part.take(2)), Err(MatchBudgetExhausted));
        assert_eq!(steps.left, 0);
    }
}
