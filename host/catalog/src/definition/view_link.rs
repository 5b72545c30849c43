//! The link of a tool to the view that shows its results (MCP Apps, `_meta.ui` of a tool).

use serde_json::{Map, Value};
use toolbay_model::JsonText;
use toolbay_model::text::clean_line;

use crate::definition::view::META_MEMBER;
use crate::resource_uri::uri;

/// The member for the link that predates `_meta.ui`. Clients read both.
const LEGACY_META_MEMBER: &str = "ui/resourceUri";

/// The members of `_meta` that name a view.
pub const META_MEMBERS: [&str; 2] = [META_MEMBER, LEGACY_META_MEMBER];

/// The possible callers of a tool.
const TOOL_CALLERS: [&str; 2] = ["model", "app"];

/// Maximum length of a text in a warning, in bytes.
const MAX_SHOWN_TEXT_BYTES: usize = 200;

/// The link of a tool to its view, from the tool's `_meta`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ViewLink {
    /// The URI of its view.
    pub(crate) uri: Option<String>,
    /// The callers that may call the tool; empty for both.
    visibility: Vec<&'static str>,
    /// Warnings about members that were left out.
    pub(crate) warnings: Vec<String>,
}

impl ViewLink {
    /// Removes the members about views from a tool's `_meta` and parses them.
    pub(crate) fn take_from(meta: &mut Map<String, Value>) -> Self {
        let mut link = Self::default();
        let legacy_uri = meta.remove(LEGACY_META_MEMBER);
        let mut uri = None;
        match meta.remove(META_MEMBER) {
            None => {}
            Some(Value::Object(ui)) => {
                for (key, value) in ui {
                    match key.as_str() {
                        "resourceUri" => uri = Some(value),
                        "visibility" => link.read_visibility(&value),
                        "csp" | "permissions" | "domain" | "prefersBorder" => {
                            link.warnings.push(format!(
                                "{key} has no effect in a tool's _meta.ui; set it in the _meta.ui of the view"
                            ));
                        }
                        _ => link.warnings.push(format!(
                            "tools have no member {:?} in _meta.ui",
                            clean_line(&key, MAX_SHOWN_TEXT_BYTES)
                        )),
                    }
                }
            }
            Some(_) => link
                .warnings
                .push("ui in its _meta must be a JSON object".to_owned()),
        }
        match uri.or(legacy_uri) {
            None => {}
            Some(Value::String(text)) => match check_view_uri(&text) {
                Ok(()) => link.uri = Some(text),
                Err(why) => link.warnings.push(format!(
                    "its view {:?} {why}",
                    clean_line(&text, MAX_SHOWN_TEXT_BYTES)
                )),
            },
            Some(_) => link
                .warnings
                .push("resourceUri in its _meta.ui must be a string".to_owned()),
        }
        link.warnings.truncate(TOOL_CALLERS.len() * 4);
        link
    }

    fn read_visibility(&mut self, value: &Value) {
        let parse_caller = |value: &Value| {
            TOOL_CALLERS
                .into_iter()
                .find(|audience| value.as_str() == Some(audience))
        };
        let callers: Option<Vec<&str>> = value
            .as_array()
            .filter(|all| all.len() <= TOOL_CALLERS.len())
            .and_then(|all| all.iter().map(parse_caller).collect());
        match callers {
            Some(all) if !all.is_empty() => self.visibility = all,
            _ => self.warnings.push(
                "visibility in its _meta.ui must be a list of \"model\" and \"app\"".to_owned(),
            ),
        }
    }

    /// Returns this link without the URI of the view.
    pub(crate) fn without_uri(&self) -> Self {
        Self {
            uri: None,
            ..self.clone()
        }
    }

    /// Adds the members for clients to the rest of a tool's `_meta`.
    pub(crate) fn add_to(&self, meta: &mut Map<String, Value>) {
        let mut ui = Map::new();
        if let Some(uri) = &self.uri {
            ui.insert("resourceUri".to_owned(), uri.clone().into());
            meta.insert(LEGACY_META_MEMBER.to_owned(), uri.clone().into());
        }
        if !self.visibility.is_empty() {
            ui.insert("visibility".to_owned(), self.visibility.clone().into());
        }
        if !ui.is_empty() {
            meta.insert(META_MEMBER.to_owned(), ui.into());
        }
    }

    /// Returns a tool's `_meta` with this link in place of its own.
    pub(crate) fn replace_in(&self, meta: Option<&JsonText>) -> Option<JsonText> {
        let mut members: Map<_, _> = meta
            .and_then(|meta| serde_json::from_str(meta.get()).ok())
            .unwrap_or_default();
        members.remove(META_MEMBER);
        members.remove(LEGACY_META_MEMBER);
        self.add_to(&mut members);
        (!members.is_empty()).then(|| JsonText::new(&Value::Object(members)))
    }
}

/// Checks the URI of a view.
///
/// # Errors
///
/// Returns a description of the problem: the end of a sentence that begins with the URI.
fn check_view_uri(text: &str) -> Result<(), String> {
    uri::check(text)?;
    if text
        .strip_prefix(uri::VIEW_SCHEME)
        .is_some_and(|rest| rest.starts_with("://"))
    {
        return Ok(());
    }
    Err("must begin with \"ui://\"".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn taken(meta: Value) -> (ViewLink, Value) {
        let mut meta = serde_json::from_value(meta).unwrap();
        let link = ViewLink::take_from(&mut meta);
        link.add_to(&mut meta);
        (link, meta.into())
    }

    #[test]
    fn both_forms_are_read_and_both_are_written() {
        let both = json!({"ui": {"resourceUri": "ui://a/b"}, "ui/resourceUri": "ui://a/b", "x": 1});
        for meta in [
            json!({"ui": {"resourceUri": "ui://a/b"}, "x": 1}),
            json!({"ui/resourceUri": "ui://a/b", "x": 1}),
        ] {
            assert_eq!(
                taken(meta),
                (
                    ViewLink {
                        uri: Some("ui://a/b".into()),
                        ..ViewLink::default()
                    },
                    both.clone()
                )
            );
        }
        let two = json!({"ui": {"resourceUri": "ui://a/b"}, "ui/resourceUri": "ui://other"});
        assert_eq!(taken(two).1["ui/resourceUri"], "ui://a/b");
        let hidden = json!({"ui": {"visibility": ["app"]}});
        assert_eq!(taken(hidden.clone()).1, hidden);
    }

    #[test]
    fn malformed_members_are_left_out_and_reported() {
        let metas = [
            json!({"ui": "ui://a/b"}),
            json!({"ui": {"resourceUri": 1}}),
            json!({"ui": {"resourceUri": "https://example.com"}}),
            json!({"ui/resourceUri": "UI://a"}),
            json!({"ui/resourceUri": "ui:a"}),
            json!({"ui": {"resourceUri": "ui://a/../b"}}),
            json!({"ui": {"visibility": ["model", "admin"]}}),
            json!({"ui": {"visibility": []}}),
            json!({"ui": {"csp": {"connectDomains": ["https://a.example"]}}}),
            json!({"ui": {"resourceURI": "ui://a"}}),
        ];
        let mut said = Vec::new();
        for meta in metas {
            let (link, left) = taken(meta);
            assert_eq!(left, json!({}), "{link:?}");
            said.extend(link.warnings);
        }
        insta::assert_snapshot!(said.join("\n"));
    }

    #[test]
    fn a_link_is_replaced() {
        let (link, meta) =
            taken(json!({"ui": {"resourceUri": "ui://a/b", "visibility": ["app"]}, "x": 1}));
        let put = |link: &ViewLink, meta: &Value| {
            link.replace_in(Some(&JsonText::new(meta)))
                .map(|json| json.get().to_owned())
        };
        assert_eq!(
            put(&link.without_uri(), &meta).unwrap(),
            r#"{"x":1,"ui":{"visibility":["app"]}}"#
        );
        let (link, meta) = taken(json!({"ui": {"resourceUri": "ui://a/b"}}));
        assert_eq!(put(&link.without_uri(), &meta), None);
    }
}
