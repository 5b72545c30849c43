//! What a caller sees of the tool list.

/// The tool list as a caller sees it at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Number of the list; increases when the result of `tools/list` changes for anybody.
    pub listing: u64,
    /// A digest of the tools that the caller can see: if two are equal, so are the results of `tools/list`.
    pub digest: u64,
}
