//! What a guest returned, in whichever version of the contract: not yet checked.

/// A guest's result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Returned {
    /// The content blocks, in reading order.
    pub(crate) content: Vec<Block>,
    /// Structured content, as JSON text.
    pub(crate) structured: Option<String>,
    /// Members for the result's `_meta`: a JSON object as text.
    pub(crate) meta: Option<String>,
}

/// A failure that a guest reports.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// The arguments make no sense.
    InvalidArguments(String),
    /// The work could not be done.
    Failed(String),
}

/// One content block. Every version of the contract can be written as this.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    /// The name of its kind: one of [`Kind`], or one that this host does not know.
    pub(crate) kind: String,
    pub(crate) text: Option<String>,
    /// Bytes, not base64.
    pub(crate) data: Option<Vec<u8>>,
    pub(crate) mime_type: Option<String>,
    pub(crate) uri: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    /// Bytes of a linked resource.
    pub(crate) size: Option<u64>,
    /// `user`, `assistant`, each at most once; empty means everyone.
    pub(crate) audience: Vec<&'static str>,
    pub(crate) priority: Option<f64>,
    /// ISO 8601.
    pub(crate) last_modified: Option<String>,
    /// Members that a newer kind needs beyond these: a JSON object as text.
    pub(crate) members: Option<String>,
}

/// The kinds of content blocks that this host knows. A further kind is a further variant; the compiler then names every
/// place that must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `text`.
    Text,
    /// `image`.
    Image,
    /// `audio`.
    Audio,
    /// `resource-link`.
    ResourceLink,
    /// `embedded-resource`.
    EmbeddedResource,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Text, Self::Image, Self::Audio, Self::ResourceLink, Self::EmbeddedResource];

    /// The kind with this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Its name in the contract.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Image => "image",
            Self::Audio => "audio",
            Self::ResourceLink => "resource-link",
            Self::EmbeddedResource => "embedded-resource",
        }
    }

    /// The kind with its article, for a sentence.
    pub(crate) const fn article(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Image => "an image",
            Self::Audio => "audio",
            Self::ResourceLink => "a resource link",
            Self::EmbeddedResource => "a resource",
        }
    }
}

/// Each of them once, in the order in which they come first: a guest can name the same one millions of times.
pub(crate) fn audience(named: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let mut once = Vec::new();
    for name in named {
        if !once.contains(&name) {
            once.push(name);
        }
    }
    once
}

impl Block {
    /// A text block.
    pub(crate) fn text(text: String) -> Self {
        Self { kind: Kind::Text.name().into(), text: Some(text), ..Self::default() }
    }

    /// Bytes that the block brings along. The name of a known kind costs nothing: contract 0.1.0 does not even send it.
    pub(crate) fn size(&self) -> usize {
        let kind = Some(&self.kind).filter(|kind| Kind::parse(kind).is_none());
        let texts = [&self.text, &self.mime_type, &self.uri, &self.name, &self.title, &self.description];
        let newer = [&self.last_modified, &self.members];
        let texts = texts.into_iter().chain(newer).flatten().chain(kind);
        texts.map(String::len).sum::<usize>() + self.data.as_ref().map_or(0, Vec::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audience_is_named_once() {
        let named = ["user", "assistant"].into_iter().cycle().take(1_000_000);
        assert_eq!(audience(named), ["user", "assistant"]);
    }
}
