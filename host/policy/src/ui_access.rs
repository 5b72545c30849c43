//! The permissions of a plugin's views in the user's client.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::host::NormalizedHost;
use crate::web_origin::WebOrigin;

/// The origins and devices that a plugin's views may access. This is the table `[permissions.ui]`
/// of a grant, and also the request of a view. The default is empty.
///
/// A view is a page of the plugin that the user's client shows. It runs in the client, not in the
/// sandbox. The client enforces the permissions that the server reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct UiAccess {
    /// Origins to which scripts may send requests and open `WebSocket`s.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connect: Vec<WebOrigin>,
    /// Origins of images, scripts, styles, fonts and media.
    #[serde(deserialize_with = "loaded", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<WebOrigin>,
    /// Origins of the pages in frames.
    #[serde(deserialize_with = "loaded", skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<WebOrigin>,
    /// Origins that can be the base of relative URLs.
    #[serde(deserialize_with = "loaded", skip_serializing_if = "Vec::is_empty")]
    pub base: Vec<WebOrigin>,
    /// The features of the user's device that views may use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<UiPermission>,
    /// The name of the origin that the client may assign to the view. Each client defines its form.
    /// `None` leaves the choice to the client.
    #[serde(deserialize_with = "domain", skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
}

/// A feature of the user's device that a view may use (an entry of `permissions.ui.permissions`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UiPermission {
    /// The camera.
    Camera,
    /// The microphone.
    Microphone,
    /// The user's location.
    Geolocation,
    /// Writing to the clipboard.
    ClipboardWrite,
}

impl UiPermission {
    /// All permissions.
    pub const ALL: [Self; 4] = [
        Self::Camera,
        Self::Microphone,
        Self::Geolocation,
        Self::ClipboardWrite,
    ];

    /// Returns the name in a grant.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Camera => "camera",
            Self::Microphone => "microphone",
            Self::Geolocation => "geolocation",
            Self::ClipboardWrite => "clipboard-write",
        }
    }
}

impl fmt::Display for UiPermission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A request of a view that the grant does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UiDenial {
    /// The key of `[permissions.ui]`.
    key: &'static str,
    /// The entry.
    entry: String,
}

impl UiDenial {
    /// Returns the TOML under `[permissions]` with which an operator can allow the request.
    pub fn remedy(&self) -> String {
        // No entry needs escaping.
        let Self { key, entry } = self;
        if *key == "domain" {
            format!("ui.{key} = \"{entry}\"")
        } else {
            format!("ui.{key} = [\"{entry}\"]")
        }
    }
}

/// Formats the denied request as the subject or object of a sentence.
impl fmt::Display for UiDenial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = &self.entry;
        match self.key {
            "connect" => write!(f, "connections to {entry}"),
            "resources" => write!(f, "images, scripts, styles and fonts from {entry}"),
            "frames" => write!(f, "frames with pages of {entry}"),
            "base" => write!(f, "URLs relative to {entry}"),
            "domain" => write!(f, "the domain {entry}"),
            _ => write!(f, "the permission {entry}"),
        }
    }
}

impl UiAccess {
    /// Returns whether no access is granted or requested.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Intersects this grant with the request of a view. Returns the allowed part, which never
    /// exceeds the grant or the request, and the denied entries.
    ///
    /// If the grant is narrower than a requested entry, the granted part of the entry is allowed.
    pub fn restrict(&self, wanted: &Self) -> (Self, Vec<UiDenial>) {
        let mut denied = Vec::new();
        let mut origins = |key, granted: &[WebOrigin], wanted: &[WebOrigin]| {
            let mut left = Vec::new();
            for origin in wanted {
                if granted.iter().any(|one| one.covers_all_of(origin)) {
                    add(&mut left, origin);
                } else {
                    denied.push(UiDenial {
                        key,
                        entry: origin.to_string(),
                    });
                    granted
                        .iter()
                        .filter(|one| origin.covers_all_of(one))
                        .for_each(|one| add(&mut left, one));
                }
            }
            left
        };
        let connect = origins("connect", &self.connect, &wanted.connect);
        let resources = origins("resources", &self.resources, &wanted.resources);
        let frames = origins("frames", &self.frames, &wanted.frames);
        let base = origins("base", &self.base, &wanted.base);
        let mut permissions = Vec::new();
        for permission in &wanted.permissions {
            if self.permissions.contains(permission) {
                add(&mut permissions, permission);
            } else {
                denied.push(UiDenial {
                    key: "permissions",
                    entry: permission.to_string(),
                });
            }
        }
        let domain = wanted
            .domain
            .clone()
            .filter(|domain| self.domain.as_ref() == Some(domain));
        if let (None, Some(entry)) = (&domain, &wanted.domain) {
            denied.push(UiDenial {
                key: "domain",
                entry: entry.clone(),
            });
        }
        (
            Self {
                connect,
                resources,
                frames,
                base,
                permissions,
                domain,
            },
            denied,
        )
    }

    /// Adds the entries of `other`. Its domain is added only if this access has no domain.
    pub fn merge(&mut self, other: &Self) {
        let Self {
            connect,
            resources,
            frames,
            base,
            permissions,
            domain,
        } = other;
        extend_unique(&mut self.connect, connect);
        extend_unique(&mut self.resources, resources);
        extend_unique(&mut self.frames, frames);
        extend_unique(&mut self.base, base);
        extend_unique(&mut self.permissions, permissions);
        self.domain = self.domain.take().or_else(|| domain.clone());
    }

    /// Returns the lines of TOML that grant this access under `[permissions]`.
    pub fn remedies(&self) -> Vec<String> {
        let Self {
            connect,
            resources,
            frames,
            base,
            permissions,
            domain,
        } = self;
        let quoted = |entries: Vec<String>| {
            entries
                .iter()
                .map(|entry| format!("{entry:?}"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let texts = |origins: &[WebOrigin]| origins.iter().map(ToString::to_string).collect();
        let lists: [(&str, Vec<String>); 5] = [
            ("connect", texts(connect)),
            ("resources", texts(resources)),
            ("frames", texts(frames)),
            ("base", texts(base)),
            (
                "permissions",
                permissions.iter().map(ToString::to_string).collect(),
            ),
        ];
        let lists = lists.into_iter().filter(|(_, entries)| !entries.is_empty());
        let mut lines: Vec<String> = lists
            .map(|(key, entries)| format!("ui.{key} = [{}]", quoted(entries)))
            .collect();
        lines.extend(
            domain
                .iter()
                .map(|domain| format!("ui.domain = {domain:?}")),
        );
        lines
    }

    /// Describes each key that has entries, in one line each, for the operator.
    pub fn summary_lines(&self) -> Vec<String> {
        let Self {
            connect,
            resources,
            frames,
            base,
            permissions,
            domain,
        } = self;
        let origins = [
            ("connections of views", connect),
            ("images, scripts, styles and fonts of views", resources),
            ("frames of views", frames),
            ("base URLs of views", base),
        ];
        let mut lines: Vec<String> = origins
            .into_iter()
            .filter(|(_, origins)| !origins.is_empty())
            .map(|(what, origins)| format!("{what}: {}", comma_separated(origins)))
            .collect();
        if !permissions.is_empty() {
            lines.push(format!(
                "devices of views: {}",
                comma_separated(permissions)
            ));
        }
        lines.extend(
            domain
                .iter()
                .map(|domain| format!("domain of views: {domain}")),
        );
        lines
    }
}

fn comma_separated(items: &[impl ToString]) -> String {
    items
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Adds an entry unless the list contains it.
fn add<T: Clone + PartialEq>(entries: &mut Vec<T>, entry: &T) {
    if !entries.contains(entry) {
        entries.push(entry.clone());
    }
}

/// Adds each of these entries unless the list contains it.
fn extend_unique<T: Clone + PartialEq>(entries: &mut Vec<T>, more: &[T]) {
    for entry in more {
        add(entries, entry);
    }
}

/// Checks the name of the origin that a client may assign to a view.
///
/// # Errors
///
/// Returns a message with the name in quotes and the mistake.
pub fn parse_view_domain(text: &str) -> Result<String, String> {
    match NormalizedHost::parse(text) {
        Ok(NormalizedHost::Name(name)) if name.contains('.') => Ok(name),
        Ok(_) => Err(format!(
            "{text:?} is not a name with a dot, such as \"views.example.com\""
        )),
        Err(malformed) => Err(format!("{text:?} {malformed}")),
    }
}

/// Parses an origin from which resources are loaded. `WebSocket` origins are rejected, because they
/// load no resources.
///
/// # Errors
///
/// Returns a message with the origin in quotes, the mistake, and a correct form.
pub fn parse_resource_origin(text: &str) -> Result<WebOrigin, String> {
    match WebOrigin::parse(text)? {
        origin if origin.is_websocket() => Err(format!(
            "{text:?} is of WebSockets, which only `connect` has; begin it with \"https://\""
        )),
        origin => Ok(origin),
    }
}

fn loaded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<WebOrigin>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts
        .iter()
        .map(|text| parse_resource_origin(text).map_err(D::Error::custom))
        .collect()
}

fn domain<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_view_domain(&text).map(Some).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;
    use toolbay_settings::toml_file;

    use super::*;
    use crate::permissions::Permissions;

    fn access(text: &str) -> UiAccess {
        toml_file::parse("a.toml", text).unwrap()
    }

    #[test]
    fn every_key_is_read() {
        let text = "connect = [\"https://api.example.com\", \"wss://live.example.com\"]\n\
            resources = [\"https://*.example.org\"]\nframes = [\"https://a.example\"]\nbase = [\"https://b.example\"]\n\
            permissions = [\"camera\", \"microphone\", \"geolocation\", \"clipboard-write\"]\ndomain = \"a.example\"";
        let all = access(text);
        assert_eq!(all.permissions, UiPermission::ALL);
        assert_eq!(access(&toml::to_string(&all).unwrap()), all);
        assert_eq!((all.summary_lines().len(), all.remedies().len()), (6, 6));
        let granted: Permissions = toml_file::parse("a.toml", &all.remedies().join("\n")).unwrap();
        assert_eq!(granted.ui, all);
        let mut sum = UiAccess::default();
        (0..2).for_each(|_| sum.merge(&all));
        assert_eq!(sum, all);
        assert!(access("").is_empty() && access("").summary_lines().is_empty());
    }

    #[test]
    fn a_mistake_names_its_place_and_the_nearest_key() {
        let mistakes = [
            "[iu]",
            "[ui]\nconect = []",
            "[ui]\nresource = []",
            "[ui]\nframe = []",
            "[ui]\nscripts = []",
            "[ui]\nconnect = [\"*\"]",
            "[ui]\nresources = [\"wss://a.example\"]",
            "[ui]\nconnect = [\"https://a.example; script-src *\"]",
            "[ui]\npermissions = [\"clipboard\"]",
            "[ui]\npermissions = [\"clipboardWrite\"]",
            "[ui]\ndomain = \"https://a.example\"",
            "[ui]\nconnect = \"https://a.example\"",
        ];
        let parse = |text: &str| toml_file::parse::<Permissions>("a.toml", text).unwrap_err();
        let said: Vec<String> = mistakes.iter().map(|text| parse(text)).collect();
        insta::assert_snapshot!(said.join("\n"));
    }

    #[test]
    fn a_view_gets_what_it_asks_for_and_is_granted() {
        let granted = access(
            "connect = [\"https://api.example.com\"]\nresources = [\"https://cdn.example.org\"]\npermissions = [\"camera\"]",
        );
        let wanted = access(
            "connect = [\"https://api.example.com\", \"https://api.example.com\", \"https://evil.example\"]\n\
             resources = [\"https://*.example.org\"]\nframes = [\"https://a.example\"]\nbase = [\"https://b.example\"]\n\
             permissions = [\"camera\", \"microphone\"]\ndomain = \"c.example\"",
        );
        let (left, denied) = granted.restrict(&wanted);
        assert_eq!(left, granted);
        let said: Vec<String> = denied
            .iter()
            .map(|denied| format!("{denied}: {}", denied.remedy()))
            .collect();
        insta::assert_snapshot!(said.join("\n"));
        assert_eq!(UiAccess::default().restrict(&wanted).0, UiAccess::default());
        assert_eq!(
            granted.restrict(&UiAccess::default()),
            (UiAccess::default(), Vec::new())
        );
        for denied in denied {
            let more: Permissions = toml_file::parse("a.toml", &denied.remedy()).unwrap();
            assert!(!more.ui.is_empty(), "{denied:?}");
        }
    }

    /// Texts as an attacker would write them.
    fn origin() -> impl Strategy<Value = String> {
        let scheme = select(vec![
            "https://", "http://", "wss://", "ws://", "HTTPS://", "data:", "blob:", "//", "", "'",
            "*",
        ]);
        let host = select(vec![
            "a.example",
            "*.a.example",
            "b.a.example",
            "*.b.a.example",
            "A.EXAMPLE",
            "a.example.",
            "*",
            "*.example",
            "localhost",
            "127.0.0.1",
            "[::1]",
            "'self'",
            "self'",
            "a example",
            "bücher.example",
            "a。example",
            "",
        ]);
        let end = select(vec![
            "",
            "",
            "",
            ":443",
            ":80",
            ":8080",
            ":*",
            "/",
            "/x",
            "; script-src *",
            " 'unsafe-inline'",
            "\n",
            ",",
            "?",
            "#",
            "%3b",
            "\u{0}",
            "@b.example",
        ]);
        prop_oneof![
            (scheme, host, end).prop_map(|(scheme, host, end)| format!("{scheme}{host}{end}")),
            ".{0,40}"
        ]
    }

    fn accesses() -> impl Strategy<Value = UiAccess> {
        let origins = || {
            prop::collection::vec(origin(), 0..6).prop_map(|texts| {
                texts
                    .iter()
                    .filter_map(|text| WebOrigin::parse(text).ok())
                    .collect::<Vec<_>>()
            })
        };
        let permissions = prop::collection::vec(select(UiPermission::ALL.to_vec()), 0..4);
        let domain = select(vec![
            None,
            Some("a.example".to_owned()),
            Some("b.example".to_owned()),
        ]);
        (
            origins(),
            origins(),
            origins(),
            origins(),
            permissions,
            domain,
        )
            .prop_map(
                |(connect, resources, frames, base, permissions, domain)| UiAccess {
                    connect,
                    resources,
                    frames,
                    base,
                    permissions,
                    domain,
                },
            )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn an_origin_is_one_source_of_a_policy(text in origin()) {
            if let Ok(origin) = WebOrigin::parse(&text) {
                let text = origin.to_string();
                let (scheme, rest) = text.split_once("://").unwrap();
                prop_assert!(["https", "http", "wss", "ws"].contains(&scheme), "{text}");
                let host = rest.strip_prefix("*.").unwrap_or(rest);
                let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.:".contains(c);
                prop_assert!(!host.is_empty() && host.chars().all(allowed), "{text}");
                prop_assert_eq!(WebOrigin::parse(&text), Ok(origin));
            }
        }

        #[test]
        fn what_is_left_is_wanted_and_granted(granted in accesses(), wanted in accesses()) {
            let (left, denied) = granted.restrict(&wanted);
            let covered = |by: &[WebOrigin], all: &[WebOrigin]| {
                all.iter().all(|origin| by.iter().any(|one| one.covers_all_of(origin)))
            };
            for by in [&granted, &wanted] {
                prop_assert!(covered(&by.connect, &left.connect) && covered(&by.resources, &left.resources));
                prop_assert!(covered(&by.frames, &left.frames) && covered(&by.base, &left.base));
                prop_assert!(left.permissions.iter().all(|one| by.permissions.contains(one)));
                prop_assert!(left.domain.is_none() || left.domain == by.domain);
            }
            // All requests that are not denied are allowed.
            if denied.is_empty() {
                prop_assert!(covered(&left.connect, &wanted.connect) && covered(&left.frames, &wanted.frames));
            }
            // A second intersection changes nothing and denies nothing more.
            prop_assert_eq!(granted.restrict(&left), (left.clone(), Vec::new()));
        }
    }
}
