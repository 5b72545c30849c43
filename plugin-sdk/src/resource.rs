//! Links to resources, and embedded resources, as the result of a tool.

use crate::block::{EmbeddedResourceFields, ResourceBody, ResourceLinkFields, TypedContent};
use crate::content::Content;

/// A link to a resource that the client can fetch.
///
/// ```
/// use toolbay_plugin::ResourceLink;
///
/// let report = ResourceLink::new("https://example.com/2026.pdf", "2026.pdf")
///     .title("The report of 2026")
///     .mime_type("application/pdf")
///     .size(120_000);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceLink(ResourceLinkFields);

impl ResourceLink {
    /// Creates a link to `uri` with a short name, such as the name of the file.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self(ResourceLinkFields::new(uri, name))
    }

    /// Sets a display name.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.0.title = Some(title.into());
        self
    }

    /// Sets a description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.0.description = Some(description.into());
        self
    }

    /// Sets the MIME type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.0.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the size, in bytes.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.0.size = Some(bytes);
        self
    }
}

/// A resource whose content is part of the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource(EmbeddedResourceFields);

impl Resource {
    /// Creates a resource with text.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self(EmbeddedResourceFields::new(
            uri,
            ResourceBody::Text(text.into()),
        ))
    }

    /// Creates a resource with bytes.
    pub fn bytes(uri: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self(EmbeddedResourceFields::new(
            uri,
            ResourceBody::Bytes(bytes.into()),
        ))
    }

    /// Sets the MIME type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.0.mime_type = Some(mime_type.into());
        self
    }
}

impl From<ResourceLink> for Content {
    fn from(link: ResourceLink) -> Self {
        TypedContent::ResourceLink(link.0).into()
    }
}

impl From<Resource> for Content {
    fn from(resource: Resource) -> Self {
        TypedContent::EmbeddedResource(resource.0).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_carries_what_is_known() {
        let link = ResourceLink::new("https://a/b.txt", "b.txt")
            .title("B")
            .description("The letter")
            .mime_type("text/plain")
            .size(1);
        let content = Content::from(link);
        assert_eq!(content.uri(), Some("https://a/b.txt"));
        assert_eq!(content.mime_type(), Some("text/plain"));
        assert_eq!(content.0.name.as_deref(), Some("b.txt"));
        assert_eq!(content.0.title.as_deref(), Some("B"));
        assert_eq!(content.0.description.as_deref(), Some("The letter"));
        assert_eq!(content.0.size, Some(1));
        assert_eq!(content.as_text(), None);
    }

    #[test]
    fn a_resource_is_text_or_bytes() {
        let text = Content::from(Resource::text("note:1", "hello").mime_type("text/plain"));
        assert_eq!((text.as_text(), text.as_bytes()), (Some("hello"), None));

        let bytes = Content::from(Resource::bytes("note:2", [1]));
        assert_eq!((bytes.as_text(), bytes.as_bytes()), (None, Some(&[1][..])));
    }
}
