//! Dispatch of messages to the methods that handle them.

pub(crate) mod dispatcher;
pub(crate) mod methods;
pub(crate) mod paging;
