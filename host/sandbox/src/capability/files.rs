//! Files and directories of a call.

pub(crate) mod call_directories;
pub(crate) mod descriptors;
pub(crate) mod directory_reach;
pub(crate) mod scratch_directories;
