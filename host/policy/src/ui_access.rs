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
    pub fn restrict(&self, requested: &Self) -> (Self, Vec<UiDenial>) {
        let mut denied = Vec::new();
        let mut origins = |key, granted: &[WebOrigin], requested_origins: &[WebOrigin]| {
            let mut allowed = Vec::new();
            for origin in requested_origins {
                if granted.iter().any(|one| one.covers_all_of(origin)) {
                    add(&mut allowed, origin);
                } else {
                    denied.push(UiDenial {
                        key,
                        entry: origin.to_string(),
                    });
                    granted
                        .iter()
                        .filter(|one| origin.covers_all_of(one))
                        .for_each(|one| add(&mut allowed, one));
                }
            }
            allowed
        };
        let connect = origins("connect", &self.connect, &requested.connect);
        let resources = origins("resources", &self.resources, &requested.resources);
        let frames = origins("frames", &self.frames, &requested.frames);
        let base = origins("base", &self.base, &requested.base);
        let mut permissions = Vec::new();
        for permission in &requested.permissions {
            if self.permissions.contains(permission) {
                add(&mut permissions, permission);
            } else {
                denied.push(UiDenial {
                    key: "permissions",
                    entry: permission.to_string(),
                });
            }
        }
        let domain = requested
            .domain
            .clone()
            .filter(|domain| self.domain.as_ref() == Some(domain));
        if let (None, Some(entry)) = (&domain, &requested.domain) {
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
            .map(|(label, origins)| format!("{label}: {}", comma_separated(origins)))
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
fn extend_unique<T: Clone + PartialEq>(entries: &mut Vec<T>, additional: &[T]) {
    for entry in additional {
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
        Err(error) => Err(format!("{text:?} {error}")),
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
            "{text:?} is a WebSocket origin, which only `connect` allows; begin it with \"https://\""
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
mod tests;
