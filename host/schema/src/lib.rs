//! JSON Schemas of tools: compiled once at load, then used to check arguments and results.
//!
//! A schema is a stranger's, and so is the value that is checked: both are bounded, the schema in its size and the check
//! in its work. Text and values come in, [`Violation`](toolbay_model::Violation)s go out. Nothing here knows where a
//! schema comes from.

mod automaton;
mod backtracking;
mod budget;
mod counted;
mod equality;
mod names;
mod pattern;
mod patterns;
mod schema;
mod step;

pub use self::budget::Budget;
pub use self::patterns::Patterns;
pub use self::schema::{Interrupted, Schema};
