//! A plugin file after compilation, and what was learned about it.

use tempfile::NamedTempFile;
use toolbay_model::Description;

use crate::about::About;
use crate::docs::Docs;
use crate::listed::Listed;
use crate::prepared::Prepared;

/// Compiled code that can be added to the compile cache after it was asked for what it offers.
pub struct Scratch(pub(crate) Option<NamedTempFile>);

/// A compiled plugin file.
pub struct Compiled {
    pub(crate) prepared: Prepared,
    /// The documentation of its functions.
    pub(crate) docs: Docs,
    /// Warnings for the operator.
    pub(crate) remarks: Vec<String>,
    pub(crate) about: About,
    /// Whether it is a command that may be an MCP server.
    pub(crate) speaks: bool,
    pub(crate) scratch: Scratch,
}

impl Compiled {
    /// What the file is.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// What it offers, of which it said this, with the texts cleaned of control characters.
    ///
    /// Takes about 10 ms for each megabyte of text and for each thousand of plain functions, so it must run on a thread
    /// that may block.
    pub fn description(&mut self, listed: Listed) -> Description {
        self.prepared.spoken_to(listed.description.manner.clone());
        let mut description = self.prepared.description(listed, &self.docs);
        description.remarks.extend(self.remarks.iter().cloned());
        description
    }

    /// The component to call, the code to cache, and what is known about the file.
    pub fn into_parts(self) -> (Prepared, Scratch, About) {
        (self.prepared, self.scratch, self.about)
    }
}
