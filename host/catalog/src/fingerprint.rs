//! Fingerprints of tools, by which two lists of tools are compared without a look at their schemas.

use std::hash::{BuildHasher as _, Hash, Hasher as _, RandomState};
use std::sync::LazyLock;

use toolbay_model::Tool;

/// The keys of the hashes: random, so that no plugin can make two tools that look alike.
static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The fingerprint of a tool's definition. It differs if a client sees a difference. It is valid in this process only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    /// The fingerprint of one tool.
    pub(crate) fn of(tool: &Tool) -> Self {
        Self(KEYS.hash_one(tool))
    }
}

/// A digest of a list of tools: their names, as clients call them, and their fingerprints.
pub(crate) fn digest<'a>(tools: impl Iterator<Item = (&'a str, Fingerprint)>) -> u64 {
    let mut hasher = KEYS.build_hasher();
    for tool in tools {
        tool.hash(&mut hasher);
    }
    hasher.finish()
}
