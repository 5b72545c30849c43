//! Views: pages of a plugin that a client shows with a tool's result (MCP Apps,
//! `io.modelcontextprotocol/ui`).
//!
//! A view runs in the user's client and not in the sandbox. The client decides what the view may
//! access, based on the `_meta.ui` that the server sends. Therefore, only known members of a view's
//! `_meta` are passed on, limited to what the grant allows.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};
use toolbay_model::text::clean_line;
use toolbay_policy::{
    UiAccess, UiDenial, UiPermission, WebOrigin, parse_resource_origin, parse_view_domain,
};

use crate::resource_uri::uri;

/// The MIME type of views.
pub(crate) const MIME_TYPE: &str = "text/html;profile=mcp-app";

/// The member of `_meta` for tools and resources.
pub(crate) const META_MEMBER: &str = "ui";

/// The beginning of the URIs of views.
const URI_PREFIX: &str = "ui://";

/// Maximum number of entries of a list.
const MAX_ENTRIES: usize = 64;

/// Maximum number of warnings about one view.
const MAX_WARNINGS: usize = 8;

/// Maximum length of an entry in a warning, in bytes.
const MAX_SHOWN_ENTRY_BYTES: usize = 200;

/// The lists of origins: the name in MCP, the parser of an entry, and the list in the access.
const ORIGIN_LISTS: [(&str, OriginParser, OriginSlot); 4] = [
    ("connectDomains", WebOrigin::parse, |access| {
        &mut access.connect
    }),
    ("resourceDomains", parse_resource_origin, |access| {
        &mut access.resources
    }),
    ("frameDomains", parse_resource_origin, |access| {
        &mut access.frames
    }),
    ("baseUriDomains", parse_resource_origin, |access| {
        &mut access.base
    }),
];

type OriginParser = fn(&str) -> Result<WebOrigin, String>;
type OriginSlot = fn(&mut UiAccess) -> &mut Vec<WebOrigin>;

/// Returns whether a resource with this URI is a view. The comparison ignores case: clients should
/// not treat a scheme in capital letters as a view, but one might.
pub(crate) fn is_view(uri: &str) -> bool {
    uri::scheme(uri).is_ok_and(|scheme| scheme.eq_ignore_ascii_case(uri::VIEW_SCHEME))
}

/// Returns the first part of a view's URI: the id of the plugin that owns it, if there is such a
/// plugin.
fn authority(uri: &str) -> Option<&str> {
    uri.strip_prefix(URI_PREFIX)?.split(['/', '?', '#']).next()
}

/// Checks that the URI of a view, or a template of such URIs, names its owner unambiguously.
///
/// # Errors
///
/// Returns a description of the problem: the end of a sentence about the resource.
pub(crate) fn check_authority(uri: &str) -> Result<(), String> {
    if !is_view(uri) {
        return Ok(());
    }
    let Some(authority) = authority(uri) else {
        return Err(format!(
            "the URI of a view must begin with {URI_PREFIX:?}, in lower case"
        ));
    };
    let part = match authority
        .find(['@', ':', '{', '}', '[', ']', '\\'])
        .and_then(|at| authority.get(at..at + 1))
    {
        None => return Ok(()),
        Some("@") => "user information",
        Some(":") => "a port",
        Some("{" | "}") => "a variable",
        Some(_) => "a bracket",
    };
    Err(format!(
        "a view cannot have {part} between {URI_PREFIX:?} and the first \"/\"; write the plugin's name there"
    ))
}

/// The owners of views: the ids of all plugins, by their lower-case form.
pub(crate) struct ViewOwners<'a>(BTreeMap<String, Vec<&'a str>>);

impl<'a> ViewOwners<'a> {
    pub(crate) fn new(ids: impl Iterator<Item = &'a String>) -> Self {
        let mut owners = BTreeMap::<_, Vec<_>>::new();
        for id in ids {
            owners
                .entry(id.to_lowercase())
                .or_default()
                .push(id.as_str());
        }
        Self(owners)
    }

    /// Returns the plugin that owns the view at `uri`, if it is not the plugin `plugin_id`. The
    /// comparison ignores percent-encoding and case, unless two plugins differ only in these.
    pub(crate) fn other_owner(&self, plugin_id: &str, uri: &str) -> Option<&'a str> {
        let name = percent_decode_str(authority(uri)?).decode_utf8_lossy();
        let candidates = self.0.get(&name.to_lowercase())?;
        let owner = candidates
            .iter()
            .find(|id| **id == name)
            .or_else(|| candidates.iter().find(|id| **id == plugin_id));
        owner
            .or(candidates.first())
            .copied()
            .filter(|id| *id != plugin_id)
    }
}

/// The access that a view requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ViewRequest {
    access: UiAccess,
    /// If set, whether the client should draw a border around the view.
    border: Option<bool>,
    /// Warnings about members that were left out.
    pub(crate) warnings: Vec<String>,
}

impl ViewRequest {
    /// Reads the `_meta` of a view. Malformed members are left out.
    pub(crate) fn read(meta: &Map<String, Value>) -> Self {
        let mut request = Self::default();
        match meta.get(META_MEMBER) {
            None => {}
            Some(Value::Object(ui)) => ui
                .iter()
                .for_each(|(key, value)| request.read_member(key, value)),
            Some(_) => request.add_warning("ui in its _meta must be a JSON object"),
        }
        request
    }

    fn read_member(&mut self, key: &str, value: &Value) {
        match (key, value) {
            ("csp", Value::Object(csp)) => csp
                .iter()
                .for_each(|(key, value)| self.read_origins(key, value)),
            ("permissions", Value::Object(permissions)) => {
                permissions
                    .keys()
                    .for_each(|name| self.read_permission(name));
            }
            ("domain", Value::String(text)) => match parse_view_domain(text) {
                Ok(domain) => self.access.domain = Some(domain),
                Err(why) => self.add_warning(&format!("domain: {why}")),
            },
            ("prefersBorder", Value::Bool(border)) => self.border = Some(*border),
            ("csp" | "permissions", _) => self.add_warning(&format!("{key} must be a JSON object")),
            ("domain", _) => self.add_warning("domain must be a string"),
            ("prefersBorder", _) => self.add_warning("prefersBorder must be true or false"),
            _ => self.add_warning(&format!(
                "views have no member {:?}",
                clean_line(key, MAX_SHOWN_ENTRY_BYTES)
            )),
        }
    }

    fn read_origins(&mut self, key: &str, value: &Value) {
        let Some((_, parse, slot)) = ORIGIN_LISTS.into_iter().find(|(name, ..)| *name == key)
        else {
            return self.add_warning(&format!(
                "csp has no member {:?}",
                clean_line(key, MAX_SHOWN_ENTRY_BYTES)
            ));
        };
        let Value::Array(entries) = value else {
            return self.add_warning(&format!("{key} must be a list of origins"));
        };
        if entries.len() > MAX_ENTRIES {
            self.add_warning(&format!("{key} has more than {MAX_ENTRIES} entries"));
        }
        for entry in entries.iter().take(MAX_ENTRIES) {
            match entry.as_str().map(parse) {
                Some(Ok(origin)) => slot(&mut self.access).push(origin),
                Some(Err(why)) => self.add_warning(&format!(
                    "{key}: {}",
                    clean_line(&why, MAX_SHOWN_ENTRY_BYTES)
                )),
                None => self.add_warning(&format!("{key} must be a list of origins")),
            }
        }
    }

    fn read_permission(&mut self, name: &str) {
        match UiPermission::ALL
            .into_iter()
            .find(|permission| permission_member(*permission) == name)
        {
            Some(permission) => self.access.permissions.push(permission),
            None => self.add_warning(&format!(
                "there is no permission {:?}",
                clean_line(name, MAX_SHOWN_ENTRY_BYTES)
            )),
        }
    }

    fn add_warning(&mut self, why: &str) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(why.to_owned());
        }
    }

    /// Returns the requested access.
    pub(crate) fn access(&self) -> &UiAccess {
        &self.access
    }

    /// Returns the `_meta` for clients under a grant, and the access that the grant denies. The
    /// `_meta` is empty if nothing is left.
    pub(crate) fn granted_meta(&self, grant: &UiAccess) -> (Map<String, Value>, Vec<UiDenial>) {
        let (access, denied) = grant.restrict(&self.access);
        (access_meta(&access, self.border), denied)
    }
}

/// Returns the `_meta` of a view with this access.
pub(crate) fn access_meta(access: &UiAccess, border: Option<bool>) -> Map<String, Value> {
    let mut access = access.clone();
    let mut csp = Map::new();
    for (name, _, slot) in ORIGIN_LISTS {
        let origins: Vec<String> = slot(&mut access).iter().map(ToString::to_string).collect();
        if !origins.is_empty() {
            csp.insert(name.to_owned(), origins.into());
        }
    }
    let permissions: Map<_, _> = access
        .permissions
        .iter()
        .map(|permission| (permission_member(*permission).to_owned(), json!({})))
        .collect();
    let mut ui = Map::new();
    for (name, members) in [("csp", csp), ("permissions", permissions)] {
        if !members.is_empty() {
            ui.insert(name.to_owned(), members.into());
        }
    }
    if let Some(domain) = access.domain {
        ui.insert("domain".to_owned(), domain.into());
    }
    if let Some(border) = border {
        ui.insert("prefersBorder".to_owned(), border.into());
    }
    if ui.is_empty() {
        Map::new()
    } else {
        Map::from_iter([(META_MEMBER.to_owned(), ui.into())])
    }
}

/// Returns the name of a permission in MCP.
const fn permission_member(permission: UiPermission) -> &'static str {
    match permission {
        UiPermission::Camera => "camera",
        UiPermission::Microphone => "microphone",
        UiPermission::Geolocation => "geolocation",
        UiPermission::ClipboardWrite => "clipboardWrite",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    fn grant() -> UiAccess {
        let origin = |text: &str| vec![WebOrigin::parse(text).unwrap()];
        UiAccess {
            connect: origin("https://api.example.com"),
            resources: origin("https://cdn.example.com"),
            permissions: vec![UiPermission::ClipboardWrite],
            ..UiAccess::default()
        }
    }

    #[test]
    fn known_and_granted_access_passes() {
        let asked = json!({"ui": {
            "csp": {"connectDomains": ["https://api.example.com", "https://evil.example"],
                    "resourceDomains": ["https://cdn.example.com"], "frameDomains": ["https://a.example"]},
            "permissions": {"camera": {}, "clipboardWrite": {"anything": 1}},
            "prefersBorder": false,
        }, "openai/widgetCSP": {"connect_domains": ["https://evil.example"]}});
        let wish = ViewRequest::read(&object(asked));
        assert_eq!(wish.warnings, Vec::<String>::new());
        let (meta, denied) = wish.granted_meta(&grant());
        let expected = json!({"ui": {
            "csp": {"connectDomains": ["https://api.example.com"], "resourceDomains": ["https://cdn.example.com"]},
            "permissions": {"clipboardWrite": {}},
            "prefersBorder": false,
        }});
        assert_eq!(Value::Object(meta), expected);
        assert_eq!(denied.len(), 3);
        assert_eq!(
            ViewRequest::read(&Map::new()).granted_meta(&grant()),
            (Map::new(), Vec::new()),
            "who asks for nothing gets nothing"
        );
    }

    #[test]
    fn malformed_members_are_left_out_and_reported() {
        let asked = [
            json!({"ui": 1}),
            json!({"ui": {"csp": [], "permissions": "camera", "domain": 1, "prefersBorder": "no", "resourceUri": "ui://a"}}),
            json!({"ui": {"csp": {"connectDomains": ["*", "'unsafe-inline'", "data:", "https://a.example; script-src *", 7]}}}),
            json!({"ui": {"csp": {"resourceDomains": "https://a.example", "scriptDomains": ["https://a.example"]}}}),
            json!({"ui": {"csp": {"resourceDomains": ["wss://a.example", "https://a.example/"]}, "permissions": {"usb": {}}}}),
            json!({"ui": {"domain": "a b"}}),
        ];
        let mut said = Vec::new();
        for asked in asked {
            let wish = ViewRequest::read(&object(asked));
            assert!(wish.access.is_empty(), "{wish:?}");
            said.extend(wish.warnings);
        }
        insta::assert_snapshot!(said.join("\n"));
    }

    #[test]
    fn a_flood_of_entries_is_bounded() {
        let many: Vec<String> = (0..100_000)
            .map(|n| format!("https://a{n}.example"))
            .collect();
        let wish = ViewRequest::read(&object(
            json!({"ui": {"csp": {"connectDomains": many, "frameDomains": vec!["*"; 100_000]}}}),
        ));
        assert_eq!(
            (
                wish.access.connect.len(),
                wish.access.frames.len(),
                wish.warnings.len()
            ),
            (MAX_ENTRIES, 0, MAX_WARNINGS)
        );
    }

    #[test]
    fn a_view_is_recognized_by_its_scheme() {
        assert!(is_view("ui://chart/view") && is_view("UI://chart/view") && is_view("ui:x"));
        assert!(!is_view("uix://chart/view") && !is_view("notes://ui://"));
        assert_eq!(
            (
                authority("ui://chart/view"),
                authority("ui://chart"),
                authority("notes://a")
            ),
            (Some("chart"), Some("chart"), None)
        );
    }
}
