//! Bounds the work of checking a value: references can make a schema of a few lines take years.
//!
//! Without references a check is bounded by the sizes of schema and value. With
//! them each level may ask for the next one twice, and forty levels are enough.
//! So every reference is put behind a keyword of our own that takes a step out
//! of a budget; when there is none left, the check is unwound.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use jsonschema::{Keyword, ValidationError};
use serde_json::{Map, Value, json};

/// The keyword that takes a step. No schema of anybody's has it.
pub(super) const STEP: &str = "dev.toolbay/step";

/// What one check may cost: about a second. It is enough for half a million
/// references, more than a result of a megabyte can make anybody follow.
pub(super) const CHECK: u64 = 10_000_000;

/// What listing the mistakes may cost. Every alternative that failed keeps its
/// mistakes in memory until the end, so this is much less.
pub(super) const LIST: u64 = 20_000;

/// What a step costs at the least. With a schema of more than 256 values it is
/// a sixteenth of those, because that much may lie behind a reference.
const STEP_COST: u64 = 16;

/// Keywords whose values are maps from names to schemas.
const MAPS: [&str; 6] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Keywords whose values are data: a reference in them is none.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];

/// The keywords that refer.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(CHECK) };
}

/// The value with which a check is unwound.
struct Spent;

/// The schema with every reference behind a step. It allows the same values.
pub(super) fn with_steps(schema: &Value, siblings_count: bool) -> Value {
    let mut schema = schema.clone();
    visit(&mut schema, siblings_count);
    schema
}

/// Runs a check with this budget; `None` when that was not enough.
pub(super) fn within<T>(budget: u64, check: impl FnOnce() -> T) -> Option<T> {
    LEFT.set(budget);
    match catch_unwind(AssertUnwindSafe(check)) {
        Ok(result) => Some(result),
        Err(panic) if panic.is::<Spent>() => None,
        Err(panic) => resume_unwind(panic),
    }
}

/// The keyword itself, for a schema of so many values.
pub(super) struct Step {
    cost: u64,
}

impl Step {
    pub(super) fn new(values: usize) -> Self {
        Self { cost: (values as u64 / 16).max(STEP_COST) }
    }

    fn take(&self) {
        match LEFT.get().checked_sub(self.cost) {
            Some(left) => LEFT.set(left),
            // Not a panic: no hook is called and nothing is printed.
            None => resume_unwind(Box::new(Spent)),
        }
    }
}

impl<'i> Keyword<'i> for Step {
    fn validate(&self, _instance: &'i Value) -> Result<(), ValidationError<'i>> {
        self.take();
        Ok(())
    }

    fn is_valid(&self, _instance: &'i Value) -> bool {
        self.take();
        true
    }
}

fn visit(schema: &mut Value, siblings_count: bool) {
    match schema {
        Value::Array(schemas) => schemas.iter_mut().for_each(|schema| visit(schema, siblings_count)),
        Value::Object(members) => {
            for (key, value) in members.iter_mut() {
                if let (true, Value::Object(schemas)) = (MAPS.contains(&key.as_str()), &mut *value) {
                    schemas.values_mut().for_each(|schema| visit(schema, siblings_count));
                } else if !DATA.contains(&key.as_str()) {
                    visit(value, siblings_count);
                }
            }
            if REFERENCES.iter().any(|key| members.get(*key).is_some_and(Value::is_string)) {
                put_behind_step(members, siblings_count);
            }
        }
        _ => {}
    }
}

/// Moves the references of one schema behind a step: at the end of its `allOf`,
/// so that pointers into that still point to the same.
fn put_behind_step(members: &mut Map<String, Value>, siblings_count: bool) {
    let mut references = Map::new();
    for key in REFERENCES {
        if let Some(target) = members.remove(key) {
            references.insert(key.to_owned(), target);
        }
    }
    if !siblings_count {
        // Drafts up to 7 ignore what stands beside a reference, but not what is only defined there.
        members.retain(|key, _| ["$schema", "$id", "id", "definitions", "$defs"].contains(&key.as_str()));
    }
    let behind = json!({"allOf": [{STEP: true}, references]});
    match members.get_mut("allOf").and_then(Value::as_array_mut) {
        Some(all) => all.push(behind),
        None => {
            members.insert("allOf".to_owned(), json!([behind]));
        }
    }
}
