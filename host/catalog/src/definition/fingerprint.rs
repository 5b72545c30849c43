//! Fingerprints of list entries. With them, two lists are compared without inspecting their
//! schemas.

use std::hash::{BuildHasher as _, Hash, Hasher as _, RandomState};
use std::sync::LazyLock;

use toolbay_model::{ListedResource, Prompt, Skill, Tool};

/// Keys of the hashes. They are random, so that no plugin can construct two tools with the same
/// fingerprint.
static HASH_KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// Fingerprint of a definition. It differs if clients receive a different definition. It is valid
/// in this process only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DefinitionFingerprint(u64);

impl DefinitionFingerprint {
    /// Returns the fingerprint of a tool.
    pub(crate) fn of_tool(tool: &Tool) -> Self {
        Self(HASH_KEYS.hash_one(tool))
    }

    /// Returns the fingerprint of a prompt.
    pub(crate) fn of_prompt(prompt: &Prompt) -> Self {
        Self(HASH_KEYS.hash_one(prompt))
    }

    /// Returns the fingerprint of a resource or resource template.
    pub(crate) fn of_resource(resource: &ListedResource) -> Self {
        // Destructured completely, so that no member is forgotten.
        let ListedResource {
            uri,
            name,
            title,
            description,
            mime_type,
            size,
            audience,
            priority,
            last_modified,
            icons,
            meta,
        } = resource;
        let texts = (uri, name, title, description, mime_type, last_modified);
        Self(HASH_KEYS.hash_one((
            texts,
            size,
            audience,
            priority.map(f64::to_bits),
            icons,
            meta,
        )))
    }

    /// Returns the fingerprint of a skill, with all of its files.
    pub(crate) fn of_skill(skill: &Skill) -> Self {
        Self(HASH_KEYS.hash_one(&skill.entry))
    }
}

/// Computes the digest of a list from the names, as clients use them, and the fingerprints.
pub(crate) fn list_digest<'a>(
    items: impl Iterator<Item = (&'a str, DefinitionFingerprint)>,
) -> u64 {
    let mut hasher = HASH_KEYS.build_hasher();
    for item in items {
        item.hash(&mut hasher);
    }
    hasher.finish()
}
