//! The keyword that charges steps to the budget of a check.

use jsonschema::{Keyword, ValidationError};

use super::budget;
use super::counted::{CountedJson, CountedValue};

/// The keyword that charges the cost of a reference.
pub(super) struct StepKeyword;

impl<'i> Keyword<'i, CountedJson> for StepKeyword {
    fn validate(&self, _value: CountedValue<'i>) -> Result<(), ValidationError<'i>> {
        budget::step();
        Ok(())
    }

    fn is_valid(&self, _value: CountedValue<'i>) -> bool {
        budget::step();
        true
    }
}
