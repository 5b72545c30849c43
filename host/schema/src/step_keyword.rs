//! The keyword that charges steps to the budget of a check.

use jsonschema::{Keyword, ValidationError};

use super::budget;
use super::counted_json::{CountedJson, CountedValue};

/// The keyword that charges the cost of a reference.
pub(super) struct StepKeyword;

impl<'i> Keyword<'i, CountedJson> for StepKeyword {
    fn validate(&self, _value: CountedValue<'i>) -> Result<(), ValidationError<'i>> {
        budget::charge_reference();
        Ok(())
    }

    fn is_valid(&self, _value: CountedValue<'i>) -> bool {
        budget::charge_reference();
        true
    }
}
