//! One content block of a tool's result.

use crate::bindings::toolbay::plugin::types;
use crate::block::{
    EmbeddedResourceFields, MediaFields, ResourceBody, ResourceLinkFields, TypedContent,
};

/// One content block of a tool's result: text, an image, audio, or a resource.
///
/// ```
/// use toolbay_plugin::Content;
///
/// let for_people = Content::text("Here is your chart.").for_user();
/// let aside = Content::text("Drawn from 12 points.").for_model().priority(0.2);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Content(pub(crate) types::Content);

impl Content {
    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> Self {
        TypedContent::Text(text.into()).into()
    }

    /// Creates an image block from raw bytes, not base64, and their MIME type.
    pub fn image(bytes: impl Into<Vec<u8>>, mime_type: impl Into<String>) -> Self {
        TypedContent::Image(MediaFields::new(bytes, mime_type)).into()
    }

    /// Creates an audio block from raw bytes, not base64, and their MIME type.
    pub fn audio(bytes: impl Into<Vec<u8>>, mime_type: impl Into<String>) -> Self {
        TypedContent::Audio(MediaFields::new(bytes, mime_type)).into()
    }

    /// Creates a link to a resource that the client can fetch.
    /// [`ResourceLink`](crate::ResourceLink) has more options.
    pub fn resource_link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        TypedContent::ResourceLink(ResourceLinkFields::new(uri, name)).into()
    }

    /// Creates an embedded resource with this text. [`Resource`](crate::Resource) has more options.
    pub fn resource_text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        TypedContent::EmbeddedResource(EmbeddedResourceFields::new(
            uri,
            ResourceBody::Text(text.into()),
        ))
        .into()
    }

    /// Creates an embedded resource with these bytes. [`Resource`](crate::Resource) has more
    /// options.
    pub fn resource_bytes(uri: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        TypedContent::EmbeddedResource(EmbeddedResourceFields::new(
            uri,
            ResourceBody::Bytes(bytes.into()),
        ))
        .into()
    }

    /// Marks the block as intended for the user. A block without a mark is for everyone, and so is
    /// a block with both marks.
    #[must_use]
    pub fn for_user(self) -> Self {
        self.audience(types::Role::User)
    }

    /// Marks the block as intended for the model.
    #[must_use]
    pub fn for_model(self) -> Self {
        self.audience(types::Role::Assistant)
    }

    fn audience(mut self, audience: types::Role) -> Self {
        if !self.0.audience.contains(&audience) {
            self.0.audience.push(audience);
        }
        self
    }

    /// Sets the importance of the block, from 0.0 (optional) to 1.0 (required).
    #[must_use]
    pub fn priority(mut self, priority: f64) -> Self {
        self.0.priority = Some(priority.clamp(0.0, 1.0));
        self
    }

    /// Sets the time of the last modification of the content: a date and time in ISO 8601, such as
    /// `2026-01-12T15:00:58Z`.
    #[must_use]
    pub fn last_modified(mut self, time: impl Into<String>) -> Self {
        self.0.last_modified = Some(time.into());
        self
    }

    /// Returns the text of a text block or of a textual resource.
    pub fn as_text(&self) -> Option<&str> {
        self.0.text.as_deref()
    }

    /// Returns the bytes of an image, of audio or of a binary resource.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        self.0.data.as_deref()
    }

    /// Returns the MIME type, if the block has one.
    pub fn mime_type(&self) -> Option<&str> {
        self.0.mime_type.as_deref()
    }

    /// Returns the URI of a resource.
    pub fn uri(&self) -> Option<&str> {
        self.0.uri.as_deref()
    }
}

impl From<TypedContent> for Content {
    fn from(block: TypedContent) -> Self {
        Self(block.into())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audience_is_listed_once() {
        let content = Content::text("a").for_user().for_model().for_user();
        assert_eq!(
            content.0.audience,
            [types::Role::User, types::Role::Assistant]
        );
    }

    #[test]
    fn a_priority_stays_in_range() {
        assert_eq!(Content::text("a").priority(7.0).0.priority, Some(1.0));
        assert_eq!(Content::text("a").priority(-7.0).0.priority, Some(0.0));
    }

    #[test]
    fn a_block_can_have_a_time_of_last_modification() {
        let content = Content::text("a").last_modified("2026-01-12T15:00:58Z");
        assert_eq!(
            content.0.last_modified.as_deref(),
            Some("2026-01-12T15:00:58Z")
        );
    }
}
