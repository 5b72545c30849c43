//! JSON Schemas of tools: compiled once at load, then used to check arguments and results.
//!
//! A schema is a stranger's, and so is the value that is checked: both are bounded, the schema in its size and the check
//! in its work. Text and values come in, [`Violation`](toolbay_model::Violation)s go out. Nothing here knows where a
//! schema comes from.

mod budget;
mod counted;
mod schema;
mod step;

pub use self::budget::Budget;
pub use self::schema::{PatternSize, Schema};
