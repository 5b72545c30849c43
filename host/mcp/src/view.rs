//! What a caller sees of the lists.

/// The lists as a caller sees them at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallerView {
    /// Number of the lists; increases when the result of a list method changes for anybody.
    pub listing: u64,
    /// A digest of the tools that the caller can see: if two are equal, so are the results of `tools/list`.
    pub tools: u64,
    /// The same of the prompts.
    pub prompts: u64,
    /// The same of the resources, the resource templates and the skills.
    pub resources: u64,
}
