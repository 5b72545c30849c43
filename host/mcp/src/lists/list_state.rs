//! The state of the lists as a caller sees them.

/// A snapshot of the lists as a caller sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallerView {
    /// The version of the lists. It increases when the result of a list method changes for any
    /// caller.
    pub version: u64,
    /// A digest of the tools that the caller can see: if two are equal, so are the results of
    /// `tools/list`.
    pub tools: u64,
    /// A digest of the prompts.
    pub prompts: u64,
    /// A digest of the resources, the resource templates and the skills.
    pub resources: u64,
}
