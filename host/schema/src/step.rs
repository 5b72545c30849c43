//! The keyword that takes steps from the budget of a check.

use jsonschema::{Keyword, ValidationError};

use super::budget;
use super::counted::{Counted, Looked};

/// The keyword itself.
pub(super) struct Step;

impl<'i> Keyword<'i, Counted> for Step {
    fn validate(&self, _value: Looked<'i>) -> Result<(), ValidationError<'i>> {
        budget::step();
        Ok(())
    }

    fn is_valid(&self, _value: Looked<'i>) -> bool {
        budget::step();
        true
    }
}
