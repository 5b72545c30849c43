//! Images and audio.

use crate::block::{MediaFields, TypedContent};
use crate::content::Content;

/// An image as the result of a tool.
///
/// ```
/// use toolbay_plugin::prelude::*;
///
/// /// Draws an empty image in very few bytes.
/// #[tool(read_only)]
/// fn dot() -> Image {
///     Image::new("<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml")
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image(MediaFields);

/// Audio as the result of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audio(MediaFields);

impl Image {
    /// Creates an image of any type from raw bytes, not base64, and their MIME type.
    pub fn new(bytes: impl Into<Vec<u8>>, mime_type: impl Into<String>) -> Self {
        Self(MediaFields::new(bytes, mime_type))
    }

    /// Creates an image from a PNG file.
    pub fn png(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(bytes, "image/png")
    }

    /// Creates an image from a JPEG file.
    pub fn jpeg(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(bytes, "image/jpeg")
    }
}

impl Audio {
    /// Creates audio of any type from raw bytes, not base64, and their MIME type.
    pub fn new(bytes: impl Into<Vec<u8>>, mime_type: impl Into<String>) -> Self {
        Self(MediaFields::new(bytes, mime_type))
    }

    /// Creates audio from a WAV file.
    pub fn wav(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(bytes, "audio/wav")
    }

    /// Creates audio from an MP3 file.
    pub fn mp3(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(bytes, "audio/mpeg")
    }
}

impl From<Image> for Content {
    fn from(image: Image) -> Self {
        TypedContent::Image(image.0).into()
    }
}

impl From<Audio> for Content {
    fn from(audio: Audio) -> Self {
        TypedContent::Audio(audio.0).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_type_arrive() {
        let image = Content::from(Image::png([1, 2]));
        assert_eq!(image.0.kind, "image");
        assert_eq!(image.as_bytes(), Some(&[1, 2][..]));
        assert_eq!(image.mime_type(), Some("image/png"));

        let audio = Content::from(Audio::wav([3]));
        assert_eq!(audio.0.kind, "audio");
        assert_eq!(audio.mime_type(), Some("audio/wav"));
    }
}
