//! Digests that identify the sources of a version.

use toolbay_model::Digest;

/// The digests of the sources of a version of a plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceDigests {
    /// SHA-256 of the component; `None` if there are only plain files.
    pub component: Option<Digest>,
    /// SHA-256 of the text of its grant; `None` if it has none.
    pub grant: Option<Digest>,
}
