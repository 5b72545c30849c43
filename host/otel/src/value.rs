//! What attributes say.

use std::borrow::Cow;

/// What an attribute says.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// An integer.
    Whole(i64),
    /// A number.
    Real(f64),
    /// Yes or no.
    Flag(bool),
}

/// Attributes by their names, each at most once.
pub type AttributeMap = Vec<(Cow<'static, str>, AttributeValue)>;

impl AttributeValue {
    /// A count. One beyond the range of OTLP becomes its largest.
    pub fn count(count: u64) -> Self {
        Self::Whole(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// Bytes that it has beside itself.
    fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Whole(_) | Self::Real(_) | Self::Flag(_) => 0,
        }
    }
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Bytes that attributes take in memory.
pub(crate) fn size(attributes: &AttributeMap) -> usize {
    let own = attributes.capacity() * size_of::<(Cow<'_, str>, AttributeValue)>();
    own + attributes.iter().map(|(name, value)| name.len() + value.size()).sum::<usize>()
}
