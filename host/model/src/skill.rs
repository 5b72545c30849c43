//! Skills: folders of instructions that a client can load by the URI of their `SKILL.md`.

use crate::JsonText;

/// A skill as clients list it, checked when it was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// The URI of its `SKILL.md`.
    pub uri: String,
    /// The purpose of the skill and when to use it, from its front matter.
    pub description: String,
    /// The list entry of the skill in every revision: its URI, its front matter, and each of its
    /// files with digest and size.
    pub entry: JsonText,
}

impl Skill {
    /// Returns the size of the list entry, in bytes.
    pub fn size(&self) -> usize {
        self.entry.get().len()
    }
}
