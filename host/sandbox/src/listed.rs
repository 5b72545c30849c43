//! What a plugin said when it was asked for its tools.

use toolbay_model::{Description, ToolDefinition};

use crate::compiled::Compiled;

/// What a plugin said when it was asked for its tools, neither checked nor cleaned. A component that has no list of its
/// own said nothing: its tools follow from its exports.
#[derive(Debug, Default)]
pub struct Listed(pub(crate) Vec<ToolDefinition>);

impl Listed {
    /// The tools of `compiled`, which said this, with the texts cleaned of what only acts.
    ///
    /// Takes about 10 ms for each megabyte of text and for each thousand of plain functions, so it must run on a thread
    /// that may block.
    pub fn description(self, compiled: &Compiled) -> Description {
        let mut description = compiled.prepared.description(self, &compiled.docs);
        description.remarks.extend(compiled.remarks.iter().cloned());
        description
    }
}
