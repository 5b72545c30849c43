//! Resources, which clients read by URI.

use crate::bindings::toolbay::plugin::types;
use crate::{Context, Error, Icon, Json, Result, View, uri_template};
use serde::Serialize;
use serde_json::Value;

/// A resource that clients can read. `#[resource]` implements it for an empty type with the name of
/// the function, so that [`test::read`](crate::test::read) can name the function.
pub trait Readable {
    /// The URI, or the URI template.
    const URI: &'static str;

    /// Returns the definition of the resource.
    fn definition() -> ResourceDefinition;

    /// Reads the resource `uri`, whose variables have these values. Returns `None` if there is no
    /// such resource.
    fn read(
        uri: &str,
        values: &[(String, String)],
        context: &Context,
    ) -> Result<Option<Vec<Contents>>>;
}

/// The definition of a resource, or of the resources of a template, which clients list.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceDefinition(pub(crate) types::ResourceDefinition);

impl ResourceDefinition {
    /// Creates the definition of a resource, or of the resources of a template. If the URI begins
    /// with `ui://`, the resource is a [`View`] and has its MIME type.
    pub fn new(uri: &str, name: &str, description: &str) -> Self {
        Self(types::ResourceDefinition {
            uri: uri.to_owned(),
            name: name.to_owned(),
            title: None,
            description: Some(description.to_owned()),
            mime_type: uri.starts_with("ui://").then(|| View::MIME_TYPE.to_owned()),
            size: None,
            audience: Vec::new(),
            priority: None,
            last_modified: None,
            icons: Vec::new(),
            meta: None,
        })
    }

    /// Sets a display name.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        self.0.title = Some(title.to_owned());
        self
    }

    /// Sets the MIME type. It also applies to contents without their own MIME type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: &str) -> Self {
        self.0.mime_type = Some(mime_type.to_owned());
        self
    }

    /// Sets the size, in bytes. A template has no size.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.0.size = Some(bytes);
        self
    }

    /// Marks the resource as intended for the user. A resource without a mark is for everyone, and
    /// so is a resource with both marks.
    #[must_use]
    pub fn for_user(mut self) -> Self {
        self.0.audience.push(types::Role::User);
        self
    }

    /// Marks the resource as intended for the model.
    #[must_use]
    pub fn for_model(mut self) -> Self {
        self.0.audience.push(types::Role::Assistant);
        self
    }

    /// Sets the importance of the resource, from 0.0 (optional) to 1.0 (required).
    #[must_use]
    pub fn priority(mut self, priority: f64) -> Self {
        self.0.priority = Some(priority);
        self
    }

    /// Adds an icon: a `data:` or `https:` URI, or an [`Icon`] with more details.
    #[must_use]
    pub fn icon(mut self, icon: impl Into<Icon>) -> Self {
        self.0.icons.push(icon.into().0);
        self
    }

    /// Adds a member to the definition's `_meta`. Begin its key with a domain that you own, such as
    /// `example.com/`.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        crate::meta::insert_member(&mut self.0.meta, key.into(), value.into());
        self
    }

    /// Sets the options of a view. The URI of the resource must begin with `ui://`.
    #[must_use]
    pub fn view(self, view: View) -> Self {
        self.meta("ui", view.into_value())
    }

    /// Returns the URI, or the URI template.
    pub fn uri(&self) -> &str {
        &self.0.uri
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the description.
    pub fn description(&self) -> &str {
        self.0.description.as_deref().unwrap_or_default()
    }

    pub(crate) fn into_template(self) -> types::ResourceTemplate {
        let definition = self.0;
        types::ResourceTemplate {
            uri_template: definition.uri,
            name: definition.name,
            title: definition.title,
            description: definition.description,
            mime_type: definition.mime_type,
            audience: definition.audience,
            priority: definition.priority,
            icons: definition.icons,
            meta: definition.meta,
        }
    }
}

/// An item of the content of a resource.
///
/// ```
/// use toolbay_plugin::prelude::*;
///
/// /// A picture and what it shows.
/// #[resource("sky://now")]
/// fn sky() -> Vec<Contents> {
///     vec![
///         Contents::text("blue").uri("sky://now/words"),
///         Contents::bytes([0x89, 0x50]).mime_type("image/png").uri("sky://now/picture"),
///     ]
/// }
/// # export!(sky);
/// # fn main() {}
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Contents(pub(crate) types::ResourceContents);

impl Contents {
    /// Creates an item from text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(Some(text.into()), None)
    }

    /// Creates an item from bytes, not base64.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self::of(None, Some(bytes.into()))
    }

    fn of(text: Option<String>, data: Option<Vec<u8>>) -> Self {
        Self(types::ResourceContents {
            uri: String::new(),
            mime_type: None,
            text,
            data,
            meta: None,
        })
    }

    /// Sets the MIME type. The default is the MIME type of the resource's definition.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.0.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the URI of an item below the resource that is read. The default is the URI of that
    /// resource.
    #[must_use]
    pub fn uri(mut self, uri: impl Into<String>) -> Self {
        self.0.uri = uri.into();
        self
    }

    /// Adds a member to the item's `_meta`. Begin its key with a domain that you own, such as
    /// `example.com/`.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        crate::meta::insert_member(&mut self.0.meta, key.into(), value.into());
        self
    }

    /// Returns the text, if the item is text.
    pub fn as_text(&self) -> Option<&str> {
        self.0.text.as_deref()
    }

    /// Returns the bytes, if the item is not text.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        self.0.data.as_deref()
    }
}

/// The types that a function with `#[resource]` can return.
///
/// | the function returns | the client reads |
/// | --- | --- |
/// | `String`, `&str` | text |
/// | `Vec<u8>` | bytes |
/// | [`Json<T>`](Json) | JSON, as text of the type `application/json` |
/// | [`Contents`], `Vec<Contents>` | these items |
/// | `Option<A>` | `A`, or that there is no such resource |
/// | `Result<A, E>` | `A`, or an error |
#[diagnostic::on_unimplemented(
    message = "a resource cannot be `{Self}`",
    label = "not something that a client can read",
    note = "return `String`, `Vec<u8>`, `Json<{Self}>`, `Contents`, or an `Option` or a `Result` of those"
)]
pub trait IntoContents {
    /// Converts the value to the form that is passed to the host. Returns `None` if there is no
    /// such resource.
    fn into_contents(self) -> Result<Option<Vec<Contents>>>;
}

impl IntoContents for Vec<Contents> {
    fn into_contents(self) -> Result<Option<Vec<Contents>>> {
        Ok(Some(self))
    }
}

impl IntoContents for Contents {
    fn into_contents(self) -> Result<Option<Vec<Contents>>> {
        Ok(Some(vec![self]))
    }
}

impl IntoContents for String {
    fn into_contents(self) -> Result<Option<Vec<Contents>>> {
        Contents::text(self).into_contents()
    }
}

impl IntoContents for &str {
    fn into_contents(self) -> Result<Option<Vec<Contents>>> {
        Contents::text(self).into_contents()
    }
}

impl IntoContents for Vec<u8> {
    fn into_contents(self) -> Result<Option<Vec<Contents>>> {
        Contents::bytes(self).into_contents()
    }
}

impl<T: Serialize> IntoContents for Json<T> {
    fn into_contents(self) -> Result<Option<Vec<Contents>>> {
        Contents::text(serde_json::to_string(&self.0)?)
            .mime_type("application/json")
            .into_contents()
    }
}

impl<A: IntoContents> IntoContents for Option<A> {
    fn into_contents(self) -> Result<Option<Vec<Contents>>> {
        self.map_or(Ok(None), IntoContents::into_contents)
    }
}

impl<A: IntoContents, E: Into<Error>> IntoContents for Result<A, E> {
    fn into_contents(self) -> Result<Option<Vec<Contents>>> {
        self.map_err(Into::into)?.into_contents()
    }
}

type ReadResourceFn = fn(&str, &[(String, String)], &Context) -> Result<Option<Vec<Contents>>>;

/// The entry of a resource in `export!`.
#[derive(Debug)]
pub struct ResourceEntry {
    pub(crate) uri: &'static str,
    pub(crate) definition: fn() -> ResourceDefinition,
    pub(crate) read: ReadResourceFn,
}

impl ResourceEntry {
    /// Creates the entry of one resource, or of one template.
    pub const fn of<T: Readable>() -> Self {
        Self {
            uri: T::URI,
            definition: T::definition,
            read: T::read,
        }
    }

    pub(crate) fn is_template(&self) -> bool {
        self.uri.contains('{')
    }

    /// Reads `uri` if it is this resource or matches this template. Returns `None` otherwise.
    pub(crate) fn read(&self, uri: &str, context: &Context) -> Option<Result<Vec<Contents>>> {
        let values = uri_template::match_uri(self.uri, uri)?;
        let contents = (self.read)(uri, &values, context).map(Option::unwrap_or_default);
        Some(contents.map(|contents| {
            fill_defaults(contents, uri, (self.definition)().0.mime_type.as_deref())
        }))
    }
}

/// Sets the URI and the MIME type of items for which the author has not set them.
fn fill_defaults(mut contents: Vec<Contents>, uri: &str, mime_type: Option<&str>) -> Vec<Contents> {
    for Contents(item) in &mut contents {
        if item.uri.is_empty() {
            uri.clone_into(&mut item.uri);
        }
        if item.mime_type.is_none() {
            item.mime_type = mime_type.map(str::to_owned);
        }
    }
    contents
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Note {}

    impl Readable for Note {
        const URI: &'static str = "notes://{id}";

        fn definition() -> ResourceDefinition {
            ResourceDefinition::new(Self::URI, "note", "A note.")
                .mime_type("text/plain")
                .title("Note")
                .for_user()
        }

        fn read(
            uri: &str,
            values: &[(String, String)],
            _: &Context,
        ) -> Result<Option<Vec<Contents>>> {
            match values[0].1.as_str() {
                "0" => Ok(None),
                "1" => Json(uri).into_contents(),
                id => id.into_contents(),
            }
        }
    }

    fn read(uri: &str) -> Option<Vec<Contents>> {
        ResourceEntry::of::<Note>()
            .read(uri, &Context::test())
            .map(Result::unwrap)
    }

    #[test]
    fn items_have_what_the_author_left_out() {
        let contents = read("notes://a%20b").unwrap();
        assert_eq!(contents[0].as_text(), Some("a b"));
        assert_eq!(
            (
                contents[0].0.uri.as_str(),
                contents[0].0.mime_type.as_deref()
            ),
            ("notes://a%20b", Some("text/plain"))
        );
        let json = read("notes://1").unwrap();
        assert_eq!(json[0].0.mime_type.as_deref(), Some("application/json"));
    }

    #[test]
    fn what_does_not_exist_is_empty() {
        assert_eq!(read("notes://0"), Some(Vec::new()));
        assert_eq!(read("notes://a/b"), None);
    }

    #[test]
    fn a_template_has_what_its_resources_have() {
        assert!(ResourceEntry::of::<Note>().is_template());
        let template = Note::definition().into_template();
        assert_eq!(
            (template.uri_template.as_str(), template.name.as_str()),
            (Note::URI, "note")
        );
        assert_eq!(
            (template.title.as_deref(), template.audience.len()),
            (Some("Note"), 1)
        );
    }
}
