//! Icons of tools, prompts and resources.

use crate::bindings::toolbay::plugin::types;

/// An icon that a client can show with a tool: see [`Definition::icon`](crate::Definition::icon).
///
/// ```
/// use toolbay_plugin::{Icon, Theme};
///
/// let icon = Icon::new("https://example.com/moon.png")
///     .mime_type("image/png")
///     .size("48x48")
///     .theme(Theme::Dark);
/// # let _ = icon;
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Icon(pub(crate) types::Icon);

/// The background that an icon is designed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// A light background.
    Light,
    /// A dark background.
    Dark,
}

impl Icon {
    /// Creates an icon from the image at a `data:` or `https:` URI, for any size and every
    /// background.
    pub fn new(src: impl Into<String>) -> Self {
        Self(types::Icon {
            src: src.into(),
            mime_type: None,
            sizes: Vec::new(),
            theme: None,
        })
    }

    /// Sets the MIME type, such as `image/png`.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.0.mime_type = Some(mime_type.into());
        self
    }

    /// Adds a size that the icon is designed for, such as `48x48`, or `any`.
    #[must_use]
    pub fn size(mut self, size: impl Into<String>) -> Self {
        self.0.sizes.push(size.into());
        self
    }

    /// Sets the background that the icon is designed for.
    #[must_use]
    pub fn theme(mut self, theme: Theme) -> Self {
        self.0.theme = Some(match theme {
            Theme::Light => types::Theme::Light,
            Theme::Dark => types::Theme::Dark,
        });
        self
    }
}

impl From<&str> for Icon {
    fn from(src: &str) -> Self {
        Self::new(src)
    }
}

impl From<String> for Icon {
    fn from(src: String) -> Self {
        Self::new(src)
    }
}
