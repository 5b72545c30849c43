//! The JSON Schemas of tools. A schema is compiled when a plugin is loaded, and then used to check
//! arguments and results.
//!
//! Schemas and values are untrusted, so the size of a schema and the work of a check are limited.
//! The input is text and values, and the output is
//! [`SchemaViolation`](toolbay_model::SchemaViolation)s. This crate does not depend on the source
//! of a schema.

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
