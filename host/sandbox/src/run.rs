//! The sandbox and the calls that run in it.

pub(crate) mod call;
pub(crate) mod cores;
pub(crate) mod describe;
pub(crate) mod dispatcher;
pub(crate) mod optimize;
pub(crate) mod sandbox;
pub(crate) mod stored_code;
