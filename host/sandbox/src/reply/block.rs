//! Content blocks as a guest returned them, in a form that is independent of the contract's
//! version. They are not checked yet.

/// One content block. It can represent the blocks of every version of the contract.
#[derive(Clone, Debug, Default)]
pub(crate) struct RawBlock {
    /// The name of its kind: that of a [`BlockKind`], or one that this host does not know.
    pub(crate) kind: String,
    pub(crate) text: Option<String>,
    /// Raw bytes, not base64.
    pub(crate) data: Option<Vec<u8>>,
    pub(crate) mime_type: Option<String>,
    pub(crate) uri: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    /// Size of a linked resource, in bytes.
    pub(crate) size: Option<u64>,
    /// `user` and `assistant`, each at most once. If empty, the audience is everyone.
    pub(crate) audience: Vec<&'static str>,
    pub(crate) priority: Option<f64>,
    /// ISO 8601.
    pub(crate) last_modified: Option<String>,
    /// Members of newer kinds that have no field here: a JSON object as text.
    pub(crate) members: Option<String>,
}

/// The kinds of content blocks that this host supports. For each further kind, add a variant; the
/// compiler then reports every place that must handle it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
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

impl BlockKind {
    const ALL: [Self; 5] = [
        Self::Text,
        Self::Image,
        Self::Audio,
        Self::ResourceLink,
        Self::EmbeddedResource,
    ];

    /// Returns the kind with this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the name in the contract.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Image => "image",
            Self::Audio => "audio",
            Self::ResourceLink => "resource-link",
            Self::EmbeddedResource => "embedded-resource",
        }
    }

    /// Returns the kind with its article, for use in a sentence.
    pub(crate) const fn name_with_article(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Image => "an image",
            Self::Audio => "audio",
            Self::ResourceLink => "a resource link",
            Self::EmbeddedResource => "a resource",
        }
    }
}

/// Removes duplicates and keeps the order. A guest can repeat a value millions of times.
pub(crate) fn deduplicate_audience(
    audience: impl Iterator<Item = &'static str>,
) -> Vec<&'static str> {
    let mut unique = Vec::new();
    for name in audience {
        if !unique.contains(&name) {
            unique.push(name);
        }
    }
    unique
}

impl RawBlock {
    /// Creates a text block.
    pub(crate) fn text(text: String) -> Self {
        Self {
            kind: BlockKind::Text.name().into(),
            text: Some(text),
            ..Self::default()
        }
    }

    /// Returns the size of the block, in bytes. The name of a known kind is not counted, because
    /// contract 0.1.0 does not transfer it.
    pub(crate) fn size(&self) -> usize {
        let kind = Some(&self.kind).filter(|kind| BlockKind::parse(kind).is_none());
        let texts = [
            &self.text,
            &self.mime_type,
            &self.uri,
            &self.name,
            &self.title,
            &self.description,
        ];
        let newer = [&self.last_modified, &self.members];
        let texts = texts.into_iter().chain(newer).flatten().chain(kind);
        texts.map(String::len).sum::<usize>() + self.data.as_ref().map_or(0, Vec::len)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// The file in which each SDK lists the kinds. C++ uses the list of C, and TypeScript that of
    /// JavaScript.
    const SDKS: [&str; 6] = [
        "src/block.rs",
        "javascript/sdk/content.js",
        "python/sdk/block.py",
        "go/sdk/content.go",
        "c/sdk/blocks.c",
        "zig/sdk/abi.zig",
    ];

    #[test]
    fn the_contract_and_every_sdk_have_the_kinds_that_the_host_has() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
        let contract = read("wit/0.2.0/plugin.wit");
        let table = contract
            .lines()
            .map(str::trim)
            .skip_while(|line| *line != "/// | `kind` | needs | may have |")
            .skip(2);
        let rows = table.map_while(|line| line.strip_prefix("/// | `")?.split('`').next());
        assert_eq!(
            rows.collect::<Vec<_>>(),
            BlockKind::ALL.map(BlockKind::name)
        );
        for path in SDKS {
            let sdk = read(&format!("plugin-sdk/{path}"));
            for kind in BlockKind::ALL.map(BlockKind::name) {
                // JavaScript uses single quotes, and none for a key that is an identifier.
                let ways = [
                    format!("\"{kind}\""),
                    format!("'{kind}':"),
                    format!("\n  {kind}:"),
                ];
                assert!(
                    ways.iter().any(|way| sdk.contains(way)),
                    "plugin-sdk/{path} has no kind `{kind}`"
                );
            }
        }
    }

    #[test]
    fn an_audience_is_named_once() {
        let named = ["user", "assistant"].into_iter().cycle().take(1_000_000);
        assert_eq!(deduplicate_audience(named), ["user", "assistant"]);
    }
}
