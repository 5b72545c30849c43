//! A plugin file that became code, and what was found out about it on the way.

use tempfile::NamedTempFile;

use crate::about::About;
use crate::docs::Docs;
use crate::prepared::Prepared;

/// Compiled code that can be added to the compile cache after its tools have been listed.
pub struct Scratch(pub(crate) Option<NamedTempFile>);

/// A plugin file that became code.
pub struct Compiled {
    pub(crate) prepared: Prepared,
    /// What is written about its functions.
    pub(crate) docs: Docs,
    pub(crate) remarks: Vec<String>,
    pub(crate) about: About,
    pub(crate) scratch: Scratch,
}

impl Compiled {
    /// What the file is.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Warnings for the operator.
    pub(crate) fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// What is written about its functions.
    pub(crate) fn docs(&self) -> &Docs {
        &self.docs
    }

    /// The component to call, the code to cache, and what the file is.
    pub fn into_parts(self) -> (Prepared, Scratch, About) {
        (self.prepared, self.scratch, self.about)
    }
}
