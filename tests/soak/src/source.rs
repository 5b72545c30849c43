//! What comes into the folder for a slot: its plugin, and its grant.

use crate::editions::Editions;

/// What the file of a slot is made of.
pub(crate) enum Source<'a> {
    /// The guest `restless`.
    Editions(&'a Editions),
    /// One plugin, always the same, and what its tool answers.
    Always { file: &'a [u8], says: &'static str },
}

impl Source<'_> {
    /// The file of an edition.
    pub(crate) fn file(&self, edition: u64) -> Vec<u8> {
        match self {
            Source::Editions(editions) => editions.file(edition),
            Source::Always { file, .. } => file.to_vec(),
        }
    }

    /// What the slot's tool answers by this edition, with the grant of this number.
    pub(crate) fn says(&self, edition: u64, grant: u64) -> String {
        match self {
            Source::Editions(_) => Editions::says(edition, &note(grant)),
            Source::Always { says, .. } => (*says).to_owned(),
        }
    }
}

/// A slot's grant, with the number that tells it from another.
pub(crate) fn grant(prefix: &str, number: u64) -> String {
    format!("prefix = \"{prefix}\"\n\n[config]\nnote = \"{}\"\n", note(number))
}

fn note(number: u64) -> String {
    format!("note-{number}")
}
