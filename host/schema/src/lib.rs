//! JSON Schemas of tools: compiled once when a plugin is loaded, then used to check arguments and results.
//!
//! Schemas and values come from strangers, so both are bounded: the schema in its size, the check in its work. Input is
//! text and values, output is [`Violation`](toolbay_model::Violation)s. Nothing here knows where a schema comes from.

mod automaton;
mod backtracking;
mod branch;
mod budget;
mod counted;
mod equality;
mod names;
mod parse;
mod pattern;
mod patterns;
mod schema;
mod step;

pub use self::budget::Budget;
pub use self::patterns::Patterns;
pub use self::schema::{Interrupted, Schema};
