//! A schema as the library compiles it, with budgets for its checks.

use std::sync::Arc;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;
use toolbay_model::{Interrupt, SchemaViolation};

use super::violation_text::{describe, violation_pointer, whole_value_violation};
use crate::branch_errors;
use crate::budget::{self, CheckBudget, NameCost};
use crate::counted_json::{CountedJson, CountedValue};
use crate::forbidden::describe_forbidden;
use crate::pattern_budget::PatternBudget;
use crate::pattern_keyword::PatternKeyword;
use crate::property_names::{PropertyNames, rewrite_name_patterns};
use crate::step_keyword::StepKeyword;

/// Maximum number of backtracking steps of one pattern for names. If a match needs many, the same
/// pattern has already charged them to the budget.
const MAX_NAME_BACKTRACKS: usize = 100_000;

/// Maximum number of reported violations. A model can fix this many at once.
pub(super) const MAX_VIOLATIONS: usize = 10;

/// A compiled schema.
pub(super) struct CompiledSchema {
    validator: Validator<CountedJson>,
    name_cost: Arc<dyn NameCost>,
}

impl CompiledSchema {
    /// Compiles a schema that is a JSON object.
    pub(super) fn compile(value: &Value, patterns: &PatternBudget) -> Result<Self, String> {
        let property_names = PropertyNames::from_schema(value, patterns)?;
        let name_cost: Arc<dyn NameCost> = {
            let shared_names = Arc::new(property_names);
            let charged_names = Arc::clone(&shared_names);
            let cost: Arc<dyn NameCost> = shared_names;
            budget::run_within(CheckBudget::CHECK, &Interrupt::default(), &cost, || {
                charged_names.charge_own_names(value);
            })
            .ok_or("its patternProperties take too long for its own properties")?;
            cost
        };
        let name_pattern_options = PatternOptions::fancy_regex()
            .backtrack_limit(MAX_NAME_BACKTRACKS)
            .size_limit(patterns.max_pattern_size())
            .dfa_size_limit(patterns.max_pattern_size());
        let keyword_patterns = patterns.clone();
        let options = jsonschema::options_for::<CountedJson>()
            .offline()
            .with_pattern_options(name_pattern_options)
            .with_keyword("pattern", move |_, value, _| {
                Ok(Box::new(PatternKeyword::compile(value, &keyword_patterns)?))
            })
            .with_keyword(budget::STEP_KEYWORD, |_, _, _| Ok(Box::new(StepKeyword)));
        let siblings_apply = !matches!(
            Draft::default().detect(value),
            Draft::Draft4 | Draft::Draft6 | Draft::Draft7
        );
        let mut rewritten = value.clone();
        rewrite_name_patterns(&mut rewritten);
        let metered = budget::with_steps(&rewritten, siblings_apply);
        let validator = options.build(&metered).map_err(|error| {
            // Report the error for the schema without steps, as the plugin wrote it.
            let error = if metered == rewritten {
                error
            } else {
                options.build(&rewritten).err().unwrap_or(error)
            };
            let pointer = violation_pointer(&error);
            if pointer.is_empty() {
                describe(&error)
            } else {
                format!("{pointer}: {}", describe(&error))
            }
        })?;
        Ok(Self {
            validator,
            name_cost,
        })
    }

    /// Returns whether `instance` matches; `None` if `budget` was not enough.
    pub(super) fn matches(
        &self,
        instance: &Value,
        budget: CheckBudget,
        interrupt: &Interrupt,
    ) -> Option<bool> {
        self.run_within(budget, interrupt, || {
            self.validator.is_valid(CountedValue(instance))
        })
    }

    /// Lists the violations of `instance`, which does not match `schema`.
    pub(super) fn list_violations(
        &self,
        schema: &Value,
        instance: &Value,
        budget: CheckBudget,
        interrupt: &Interrupt,
    ) -> Vec<SchemaViolation> {
        let list = || {
            let mut violations: Vec<SchemaViolation> = Vec::new();
            for error in self
                .validator
                .iter_errors(CountedValue(instance))
                .take(MAX_VIOLATIONS)
            {
                branch_errors::report_intended(&error, &mut |error| {
                    let violation =
                        describe_forbidden(schema, instance, error).unwrap_or_else(|| {
                            SchemaViolation {
                                pointer: violation_pointer(error),
                                message: describe(error),
                            }
                        });
                    // Each item beyond the end of a tuple is an error of the whole array.
                    if !violations.contains(&violation) {
                        violations.push(violation);
                    }
                });
            }
            violations.truncate(MAX_VIOLATIONS);
            violations
        };
        self.run_within(budget, interrupt, list).unwrap_or_else(|| {
            whole_value_violation(
                "does not match the schema (finding the exact location takes too long)",
            )
        })
    }

    fn run_within<T>(
        &self,
        budget: CheckBudget,
        interrupt: &Interrupt,
        check: impl FnOnce() -> T,
    ) -> Option<T> {
        budget::run_within(budget, interrupt, &self.name_cost, check)
    }
}
