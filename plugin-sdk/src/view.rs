//! Views: pages that clients show with the results of tools.

use serde_json::{Map, Value, json};

/// The options of a view: a page that clients show with the results of a tool (MCP Apps).
///
/// A view is a resource whose URI begins with `ui://`. Its content is one HTML document. It runs in
/// the user's client, without network access. These options request anything that it requires
/// beyond that. The view gets what the operator's grant allows.
///
/// ```
/// use toolbay_plugin::prelude::*;
/// use toolbay_plugin::{ResourceDefinition, View};
///
/// /// Shows the weather on a map.
/// #[tool(view = "ui://weather/map")]
/// fn weather_map() -> &'static str {
///     "sunny everywhere"
/// }
///
/// /// The map.
/// #[resource("ui://weather/map", define = with_tiles)]
/// fn map() -> &'static str {
///     "<!doctype html><title>Map</title>"
/// }
///
/// fn with_tiles(definition: ResourceDefinition) -> ResourceDefinition {
///     definition.view(View::new().resources(["https://tiles.example.com"]).border(false))
/// }
/// # export!(weather_map, map);
/// # fn main() {}
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    csp: Map<String, Value>,
    permissions: Map<String, Value>,
    other_members: Map<String, Value>,
}

impl View {
    /// The MIME type of views.
    pub const MIME_TYPE: &str = "text/html;profile=mcp-app";

    /// Creates the options of a view that requires nothing beyond its own page.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds origins to which the view's scripts send requests or open `WebSocket`s, such as
    /// `https://api.example.com`.
    #[must_use]
    pub fn connect<O: Into<String>>(self, origins: impl IntoIterator<Item = O>) -> Self {
        self.add_origins("connectDomains", origins)
    }

    /// Adds origins of the view's images, scripts, styles, fonts and media.
    #[must_use]
    pub fn resources<O: Into<String>>(self, origins: impl IntoIterator<Item = O>) -> Self {
        self.add_origins("resourceDomains", origins)
    }

    /// Adds origins of the pages in the view's frames.
    #[must_use]
    pub fn frames<O: Into<String>>(self, origins: impl IntoIterator<Item = O>) -> Self {
        self.add_origins("frameDomains", origins)
    }

    /// Adds origins that the view may use as the base of its relative URLs.
    #[must_use]
    pub fn base<O: Into<String>>(self, origins: impl IntoIterator<Item = O>) -> Self {
        self.add_origins("baseUriDomains", origins)
    }

    /// Requests access to the camera.
    #[must_use]
    pub fn camera(self) -> Self {
        self.request_permission("camera")
    }

    /// Requests access to the microphone.
    #[must_use]
    pub fn microphone(self) -> Self {
        self.request_permission("microphone")
    }

    /// Requests access to the user's location.
    #[must_use]
    pub fn geolocation(self) -> Self {
        self.request_permission("geolocation")
    }

    /// Requests write access to the clipboard.
    #[must_use]
    pub fn clipboard_write(self) -> Self {
        self.request_permission("clipboardWrite")
    }

    /// Sets whether the client should draw a border around the view. Without this option, each
    /// client decides.
    #[must_use]
    pub fn border(mut self, yes: bool) -> Self {
        self.other_members
            .insert("prefersBorder".to_owned(), yes.into());
        self
    }

    /// Requests a separate origin for the view, under a name in the form that the client defines.
    #[must_use]
    pub fn domain(mut self, name: impl Into<String>) -> Self {
        self.other_members
            .insert("domain".to_owned(), name.into().into());
        self
    }

    fn add_origins<O: Into<String>>(
        mut self,
        key: &str,
        origins: impl IntoIterator<Item = O>,
    ) -> Self {
        let list = self.csp.entry(key).or_insert_with(|| json!([]));
        if let Value::Array(list) = list {
            list.extend(
                origins
                    .into_iter()
                    .map(|origin| Value::String(origin.into())),
            );
        }
        self
    }

    fn request_permission(mut self, name: &str) -> Self {
        self.permissions.insert(name.to_owned(), json!({}));
        self
    }

    /// Returns the member `ui` of a resource's `_meta`.
    pub(crate) fn into_value(self) -> Value {
        let Self {
            csp,
            permissions,
            other_members: rest,
        } = self;
        let mut ui = Map::new();
        for (key, members) in [("csp", csp), ("permissions", permissions)] {
            if !members.is_empty() {
                ui.insert(key.to_owned(), members.into());
            }
        }
        ui.extend(rest);
        ui.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Definition, ResourceDefinition};

    fn meta(text: Option<&String>) -> Value {
        serde_json::from_str(text.unwrap()).unwrap()
    }

    #[test]
    fn a_view_says_what_it_asks_for() {
        let view = View::new()
            .connect(["https://a.example"])
            .connect(["wss://b.example"])
            .resources(vec![String::from("https://c.example")])
            .frames(["https://d.example"])
            .base(["https://e.example"])
            .camera()
            .microphone()
            .geolocation()
            .clipboard_write()
            .border(true)
            .domain("f.example");
        let definition = ResourceDefinition::new("ui://a/b", "b", "B.").view(view);
        assert_eq!(definition.0.mime_type.as_deref(), Some(View::MIME_TYPE));
        assert_eq!(
            meta(definition.0.meta.as_ref()),
            json!({"ui": {
                "csp": {
                    "connectDomains": ["https://a.example", "wss://b.example"],
                    "resourceDomains": ["https://c.example"],
                    "frameDomains": ["https://d.example"],
                    "baseUriDomains": ["https://e.example"],
                },
                "permissions": {"camera": {}, "microphone": {}, "geolocation": {}, "clipboardWrite": {}},
                "prefersBorder": true,
                "domain": "f.example",
            }})
        );
        assert_eq!(View::new().into_value(), json!({}));
        assert_eq!(
            ResourceDefinition::new("notes://a", "b", "B.").0.mime_type,
            None
        );
    }

    #[test]
    fn a_tool_names_its_view_and_who_calls_it() {
        let definition = Definition::new("a", "A.").view("ui://a/b").app_only();
        assert_eq!(
            meta(definition.0.meta.as_ref()),
            json!({"ui": {"resourceUri": "ui://a/b", "visibility": ["app"]}})
        );
    }
}
