//! The target of a call, its approval by a person, and notifications about calls that wait for it.

pub(crate) mod call_target;
pub(crate) mod notifier;
pub(crate) mod ruling;
