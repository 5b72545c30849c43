//! What attributes say.

use std::borrow::Cow;

/// What an attribute says.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
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
pub type Attributes = Vec<(Cow<'static, str>, Value)>;

impl Value {
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

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Bytes that attributes take in memory.
pub(crate) fn size(attributes: &Attributes) -> usize {
    let own = attributes.capacity() * size_of::<(Cow<'_, str>, Value)>();
    own + attributes.iter().map(|(name, value)| name.len() + value.size()).sum::<usize>()
}
