//! The files of a slot: its plugin and its grant.

use crate::editions::Editions;

/// The content of a slot's file.
pub(crate) enum Source<'a> {
    /// The editions of the guest `restless`.
    Editions(&'a Editions),
    /// One plugin that never changes, and the result of its tool.
    Always { file: &'a [u8], says: &'static str },
}

impl Source<'_> {
    /// Returns the file of an edition.
    pub(crate) fn file(&self, edition: u64) -> Vec<u8> {
        match self {
            Source::Editions(editions) => editions.file(edition),
            Source::Always { file, .. } => file.to_vec(),
        }
    }

    /// Returns the result of the slot's tool for this edition and the grant with this number.
    pub(crate) fn says(&self, edition: u64, grant: u64) -> String {
        match self {
            Source::Editions(_) => Editions::says(edition, &note(grant)),
            Source::Always { says, .. } => (*says).to_owned(),
        }
    }
}

/// Returns a slot's grant with a number that distinguishes it from others.
pub(crate) fn grant(prefix: &str, number: u64) -> String {
    format!(
        "prefix = \"{prefix}\"\n\n[config]\nnote = \"{}\"\n",
        note(number)
    )
}

fn note(number: u64) -> String {
    format!("note-{number}")
}
