//! The target of a call, and its approval by a person.

pub(crate) mod call_target;
pub(crate) mod ruling;
