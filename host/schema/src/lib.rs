//! JSON Schemas of tools: compiled once when a plugin is loaded, then used to check arguments and results.
//!
//! Schemas and values come from strangers, so both are bounded: the schema in its size, the check in its work. Input is
//! text and values, output is [`SchemaViolation`](toolbay_model::SchemaViolation)s. Nothing here knows where a schema comes from.

mod automaton;
mod backtracking;
mod branch;
mod budget;
mod conversion;
mod counted;
mod definitions;
mod ecma;
mod equality;
mod example;
mod keywords;
mod listed;
mod names;
mod notes;
mod parse;
mod pattern;
mod patterns;
mod portable;
mod schema;
mod step;
mod values;

pub use self::budget::CheckBudget;
pub use self::conversion::{ConversionKind, ValueConversion};
pub use self::keywords::schemas_of;
pub use self::listed::listed;
pub use self::notes::notes;
pub use self::patterns::PatternBudget;
pub use self::portable::portable;
pub use self::schema::{CheckInterrupted, JsonSchema};
