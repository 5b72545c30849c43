//! Fingerprints of what is listed, by which two lists are compared without a look at their schemas.

use std::hash::{BuildHasher as _, Hash, Hasher as _, RandomState};
use std::sync::LazyLock;

use toolbay_model::{ListedResource, Prompt, Skill, Tool};

/// The keys of the hashes: random, so that no plugin can make two tools that look alike.
static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The fingerprint of a definition. It differs if a client sees a difference. It is valid in this process only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DefinitionFingerprint(u64);

impl DefinitionFingerprint {
    /// The fingerprint of one tool.
    pub(crate) fn of(tool: &Tool) -> Self {
        Self(KEYS.hash_one(tool))
    }

    /// The fingerprint of one prompt.
    pub(crate) fn of_prompt(prompt: &Prompt) -> Self {
        Self(KEYS.hash_one(prompt))
    }

    /// The fingerprint of one resource or resource template.
    pub(crate) fn of_resource(resource: &ListedResource) -> Self {
        // All of it, so that no member is forgotten.
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
        Self(KEYS.hash_one((texts, size, audience, priority.map(f64::to_bits), icons, meta)))
    }

    /// The fingerprint of one skill, with all of its files.
    pub(crate) fn of_skill(skill: &Skill) -> Self {
        Self(KEYS.hash_one(&skill.entry))
    }
}

/// A digest of a list: the names, as clients use them, and the fingerprints.
pub(crate) fn digest<'a>(items: impl Iterator<Item = (&'a str, DefinitionFingerprint)>) -> u64 {
    let mut hasher = KEYS.build_hasher();
    for item in items {
        item.hash(&mut hasher);
    }
    hasher.finish()
}
