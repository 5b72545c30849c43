//! The JSON Schemas of tools. A schema is compiled when a plugin is loaded, and then used to check
//! arguments and results.
//!
//! Schemas and values are untrusted, so the size of a schema and the work of a check are limited.
//! The input is text and values, and the output is
//! [`SchemaViolation`](toolbay_model::SchemaViolation)s. This crate does not depend on the source
//! of a schema.

mod automaton;
mod backtracking;
mod branch_errors;
mod budget;
mod client_keywords;
mod client_schema;
mod compatibility;
mod conversion;
mod counted_json;
mod definitions;
mod ecma;
mod equality;
mod example;
mod forbidden;
mod keywords;
mod parse;
mod pattern_budget;
mod pattern_keyword;
mod portable;
mod property_names;
mod schema;
mod schema_parts;
mod step_keyword;

pub use self::budget::CheckBudget;
pub use self::client_schema::client_schema;
pub use self::compatibility::compatibility_notes;
pub use self::conversion::{ConversionKind, ValueConversion};
pub use self::keywords::subschemas;
pub use self::pattern_budget::PatternBudget;
pub use self::portable::portable_schema;
pub use self::schema::{CheckInterrupted, JsonSchema};
