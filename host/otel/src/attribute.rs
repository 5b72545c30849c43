//! Attribute values.

use std::borrow::Cow;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    /// A string.
    Text(String),
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
    /// A boolean.
    Bool(bool),
}

/// Attributes by name, with unique names.
pub type AttributeMap = Vec<(Cow<'static, str>, AttributeValue)>;

impl AttributeValue {
    /// Converts a count. A count beyond the range of OTLP is saturated.
    pub fn from_count(count: u64) -> Self {
        Self::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// Returns the size of its heap memory, in bytes.
    fn heap_size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Integer(_) | Self::Float(_) | Self::Bool(_) => 0,
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

/// Returns the memory size of attributes, in bytes.
pub(crate) fn size(attributes: &AttributeMap) -> usize {
    let table_bytes = attributes.capacity() * size_of::<(Cow<'_, str>, AttributeValue)>();
    table_bytes
        + attributes
            .iter()
            .map(|(name, value)| name.len() + value.heap_size())
            .sum::<usize>()
}
