//! The result of a successful call.

use crate::schema::{self, Schema};
use crate::{Audio, Content, Error, Image, JsonSchema, Resource, ResourceLink, Result};
use serde::Serialize;
use serde_json::{Map, Value};

/// The result of a successful call, for tools that need more than a single type of the table at
/// [`IntoOutput`] can express.
///
/// ```
/// use toolbay_plugin::prelude::*;
///
/// /// Says the same thing twice.
/// #[tool(read_only)]
/// fn twice() -> Result<Output> {
///     Output::new()
///         .with("for everybody")
///         .with(Content::text("for the model").for_model())
///         .meta("example.com/source", "made up")
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    pub(crate) content: Vec<Content>,
    pub(crate) structured: Option<String>,
    pub(crate) meta: Option<Map<String, Value>>,
}

impl Output {
    /// Creates an empty result.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a block.
    #[must_use]
    pub fn with(mut self, content: impl Into<Content>) -> Self {
        self.content.push(content.into());
        self
    }

    /// Sets the structured content. A tool with an output schema returns [`Json`] instead.
    pub fn structured(mut self, value: &impl Serialize) -> Result<Self> {
        self.structured = Some(serde_json::to_string(value)?);
        Ok(self)
    }

    /// Adds a member to the result's `_meta`. Begin its key with a domain that you own, such as
    /// `example.com/`.
    pub fn meta(mut self, key: impl Into<String>, value: impl Serialize) -> Result<Self> {
        let value = serde_json::to_value(value)?;
        self.meta.get_or_insert_default().insert(key.into(), value);
        Ok(self)
    }

    /// Returns the content blocks, in order.
    pub fn contents(&self) -> &[Content] {
        &self.content
    }

    /// Returns the text of all blocks that have text, joined by line feeds.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }

    /// Returns the structured content, if there is any.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_str(self.structured.as_deref()?).ok()
    }
}

impl<C: Into<Content>> From<C> for Output {
    fn from(content: C) -> Self {
        // `vec!` allocates for exactly one block. The first `push` would allocate for four, and
        // passing the blocks to the host would reallocate for one.
        Self {
            content: vec![content.into()],
            ..Self::new()
        }
    }
}

/// The types that a tool can return.
///
/// | the function returns | the client gets |
/// | --- | --- |
/// | `()` | an empty result |
/// | `String`, `&str` | a text block |
/// | [`Json<T>`](Json) | structured content, with `T`'s schema in the tool's definition |
/// | [`Image`], [`Audio`], [`Resource`], [`ResourceLink`], [`Content`] | that block |
/// | `Vec<Content>` | those blocks |
/// | `(A, B)`, such as `(Json<T>, Image)` | both |
/// | `Option<A>` | `A`, or an empty result |
/// | [`Output`] | the content that you add |
/// | `Result<A, E>` | `A`, or a failure that the model can read |
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "not something that a client can be sent",
    note = "return `Json<{Self}>` for structured content (with `#[derive(Serialize, JsonSchema)]`), \
            `String` for text, `Image`, `Audio` or `Content` for a block, or a `Result` of those"
)]
pub trait IntoOutput: Sized {
    /// Converts the value to the form that is passed to the host.
    fn into_output(self) -> Result<Output>;

    /// Returns the schema of the structured content, if there is any.
    fn output_schema() -> Option<Schema> {
        None
    }
}

/// Structured content: a value, with its schema in the tool's definition.
///
/// `T` derives `Serialize` and [`JsonSchema`](derive@JsonSchema). Make it a struct: clients of
/// revisions before 2026 accept only JSON objects. If the tool adds no text itself, the host adds a
/// text block with the same JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize + JsonSchema> IntoOutput for Json<T> {
    fn into_output(self) -> Result<Output> {
        Output::new().structured(&self.0)
    }

    fn output_schema() -> Option<Schema> {
        Some(schema::of_output::<T>())
    }
}

impl IntoOutput for Output {
    fn into_output(self) -> Result<Output> {
        Ok(self)
    }
}

impl IntoOutput for () {
    fn into_output(self) -> Result<Output> {
        Ok(Output::new())
    }
}

impl IntoOutput for Vec<Content> {
    fn into_output(self) -> Result<Output> {
        Ok(Output {
            content: self,
            ..Output::new()
        })
    }
}

macro_rules! one_block {
    ($($block:ty),+) => {$(
        impl IntoOutput for $block {
            fn into_output(self) -> Result<Output> {
                Ok(Output::from(self))
            }
        }
    )+};
}

one_block!(&str, String, Content, Image, Audio, Resource, ResourceLink);

/// Combines the content of both, in order. If both have structured content, the first one is used.
impl<A: IntoOutput, B: IntoOutput> IntoOutput for (A, B) {
    fn into_output(self) -> Result<Output> {
        let (mut first, second) = (self.0.into_output()?, self.1.into_output()?);
        first.content.extend(second.content);
        first.structured = first.structured.or(second.structured);
        if let Some(meta) = second.meta {
            first.meta.get_or_insert_default().extend(meta);
        }
        Ok(first)
    }

    fn output_schema() -> Option<Schema> {
        A::output_schema().or_else(B::output_schema)
    }
}

/// Has no schema, because a tool with an output schema must always return structured content.
impl<A: IntoOutput> IntoOutput for Option<A> {
    fn into_output(self) -> Result<Output> {
        self.map_or_else(|| Ok(Output::new()), A::into_output)
    }
}

impl<A: IntoOutput, E: Into<Error>> IntoOutput for std::result::Result<A, E> {
    fn into_output(self) -> Result<Output> {
        self.map_err(Into::into)?.into_output()
    }

    fn output_schema() -> Option<Schema> {
        A::output_schema()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Serialize, JsonSchema)]
    struct Sum {
        sum: i32,
    }

    #[test]
    fn text_is_one_block() {
        let output = "hello".into_output().unwrap();
        assert_eq!(output.contents(), [Content::text("hello")]);
        assert_eq!(output.json(), None);
    }

    #[test]
    fn nothing_is_no_block() {
        assert_eq!(().into_output().unwrap(), Output::new());
        assert_eq!(None::<String>.into_output().unwrap(), Output::new());
    }

    #[test]
    fn json_is_structured_and_has_a_schema() {
        let output = Json(Sum { sum: 3 }).into_output().unwrap();
        assert_eq!(output.json(), Some(json!({"sum": 3})));
        assert!(output.contents().is_empty());
        assert!(<Json<Sum>>::output_schema().is_some());
        assert!(<Result<Json<Sum>>>::output_schema().is_some());
        assert!(String::output_schema().is_none());
    }

    #[test]
    fn a_pair_is_both() {
        type Pair = (Json<Sum>, Image);
        let output = (Json(Sum { sum: 3 }), Image::png([1]))
            .into_output()
            .unwrap();
        assert_eq!(output.json(), Some(json!({"sum": 3})));
        assert_eq!(output.contents(), [Content::image([1], "image/png")]);
        assert!(Pair::output_schema().is_some());
        assert!(<(Image, Json<Sum>)>::output_schema().is_some());
    }

    #[test]
    fn a_failure_is_a_failure() {
        let output = Err::<String, _>(std::fmt::Error).into_output();
        assert!(output.unwrap_err().message().contains("formatting"));
    }

    #[test]
    fn a_builder_keeps_everything() {
        let output = Output::new()
            .with("a")
            .with(Image::png([]))
            .with("b")
            .structured(&[1])
            .unwrap()
            .meta("example.com/k", 7)
            .unwrap();
        assert_eq!(output.text(), "a\nb");
        assert_eq!(output.json(), Some(json!([1])));
        assert_eq!(output.meta.unwrap().get("example.com/k"), Some(&json!(7)));
    }
}
