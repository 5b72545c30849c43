//! The HTML pages, rendered with maud, which escapes every value.

mod approvals;
mod audit;
mod calls;
mod chart;
mod denied;
mod layout;
mod log;
mod login;
mod overview;
mod parts;
mod plugin;
mod plugins;
mod result;
mod tool;
mod tools;
mod tried;

pub(crate) use self::approvals::{approvals, over};
pub(crate) use self::audit::{AUDIT_LINES, audit};
pub(crate) use self::calls::calls;
pub(crate) use self::denied::denied;
pub(crate) use self::layout::missing;
pub(crate) use self::log::log;
pub(crate) use self::login::{login, refused};
pub(crate) use self::overview::overview;
pub(crate) use self::plugin::plugin;
pub(crate) use self::plugins::plugins;
pub(crate) use self::tool::tool;
pub(crate) use self::tools::tools;
pub(crate) use self::tried::ToolTrial;
