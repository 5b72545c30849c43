//! The HTML pages, rendered with maud, which escapes every value.

mod approvals;
mod audit;
mod call;
mod call_filters;
mod calls;
mod chart;
mod chart_section;
mod denied;
mod elements;
mod grant_section;
mod held_version;
mod layout;
mod log;
mod login;
mod overview;
mod plugin;
mod plugins;
mod result;
mod tool;
mod tool_trial;
mod tools;
mod word_difference;

pub(crate) use self::approvals::{approvals, too_late};
pub(crate) use self::audit::{MAX_AUDIT_LINES, audit};
pub(crate) use self::call::call;
pub(crate) use self::calls::calls;
pub(crate) use self::denied::denied;
#[cfg(test)]
pub(crate) use self::held_version::tests::held_plugin;
pub(crate) use self::held_version::{held_version, no_longer_held};
pub(crate) use self::layout::{not_found, unknown_page};
pub(crate) use self::log::log;
pub(crate) use self::login::{login, no_right, rejected_form};
pub(crate) use self::overview::overview;
pub(crate) use self::plugin::plugin;
pub(crate) use self::plugins::plugins;
pub(crate) use self::tool::tool;
pub(crate) use self::tool_trial::ToolTrial;
pub(crate) use self::tools::tools;
