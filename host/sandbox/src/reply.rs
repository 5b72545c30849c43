//! Replies of guests: their conversion to the host's types, and the checks that they pass.

pub(crate) mod block;
pub(crate) mod cbor;
pub(crate) mod cleaner;
pub(crate) mod content;
pub(crate) mod definition;
pub(crate) mod guest_reply;
pub(crate) mod raw_description;
pub(crate) mod reply_check;
pub(crate) mod result_parts;
pub(crate) mod syntax;
pub(crate) mod wide_integers;
