//! An entry of `permissions.http`.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::method::HttpMethod;
use crate::origin_pattern::OriginPattern;
use crate::path::PathPrefix;

/// A rule for the requests that a plugin can send: an origin, or a table with an origin and the
/// allowed methods and paths.
///
/// ```toml
/// http = ["https://api.example.com", { origin = "https://api.github.com", methods = ["GET"], paths = ["/v1/"] }]
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpRule {
    table: HttpRuleTable,
}

/// The rule as a table.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct HttpRuleTable {
    origin: OriginPattern,
    /// `None` allows every [`HttpMethod`].
    #[serde(
        default,
        deserialize_with = "methods",
        skip_serializing_if = "Option::is_none"
    )]
    methods: Option<Vec<HttpMethod>>,
    /// `None` allows every path.
    #[serde(
        default,
        deserialize_with = "paths",
        skip_serializing_if = "Option::is_none"
    )]
    paths: Option<Vec<PathPrefix>>,
}

impl HttpRule {
    /// Creates a rule that allows every request to these origins.
    pub fn new(origin: OriginPattern) -> Self {
        Self {
            table: HttpRuleTable {
                origin,
                methods: None,
                paths: None,
            },
        }
    }

    /// Creates a rule that allows one method at the paths that begin with `path`.
    pub(crate) fn for_method_and_path(
        origin: OriginPattern,
        method: HttpMethod,
        path: PathPrefix,
    ) -> Self {
        Self {
            table: HttpRuleTable {
                origin,
                methods: Some(vec![method]),
                paths: Some(vec![path]),
            },
        }
    }

    /// Returns the origins that the rule covers.
    pub fn origin(&self) -> &OriginPattern {
        &self.table.origin
    }

    /// Returns the methods that the rule allows, at least one. `None` allows every [`HttpMethod`].
    pub fn methods(&self) -> Option<&[HttpMethod]> {
        self.table.methods.as_deref()
    }

    /// Returns the path prefixes that the rule allows, at least one. `None` allows every path.
    pub fn paths(&self) -> Option<&[PathPrefix]> {
        self.table.paths.as_deref()
    }

    /// Returns whether this rule allows every request that the other allows. Compares path prefixes
    /// for equality only.
    pub(crate) fn covers_all_of(&self, other: &Self) -> bool {
        fn has_all<T: PartialEq>(wide: Option<&[T]>, narrow: Option<&[T]>) -> bool {
            match (wide, narrow) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(wide), Some(narrow)) => narrow.iter().all(|entry| wide.contains(entry)),
            }
        }
        self.origin().covers_all_of(other.origin())
            && has_all(self.methods(), other.methods())
            && has_all(self.paths(), other.paths())
    }
}

/// Formats the rule as TOML, in one line. No part needs escaping: see the syntax that
/// [`OriginPattern`], [`HttpMethod`] and [`PathPrefix`] accept.
impl fmt::Display for HttpRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HttpRuleTable {
            origin,
            methods,
            paths,
        } = &self.table;
        if methods.is_none() && paths.is_none() {
            return write!(f, "\"{origin}\"");
        }
        write!(f, "{{ origin = \"{origin}\"")?;
        if let Some(methods) = methods {
            let methods: Vec<&str> = methods.iter().map(HttpMethod::as_str).collect();
            write!(f, ", methods = [\"{}\"]", methods.join("\", \""))?;
        }
        if let Some(paths) = paths {
            let paths: Vec<&str> = paths.iter().map(PathPrefix::as_str).collect();
            write!(f, ", paths = [\"{}\"]", paths.join("\", \""))?;
        }
        f.write_str(" }")
    }
}

impl<'de> Deserialize<'de> for HttpRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StringOrTable;

        impl<'de> Visitor<'de> for StringOrTable {
            type Value = HttpRule;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an origin in quotes, such as \"https://api.example.com\", or a table with `origin`")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<HttpRule, E> {
                OriginPattern::parse(text)
                    .map(HttpRule::new)
                    .map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<HttpRule, A::Error> {
                Ok(HttpRule {
                    table: HttpRuleTable::deserialize(MapAccessDeserializer::new(map))?,
                })
            }
        }

        deserializer.deserialize_any(StringOrTable)
    }
}

/// Serializes the rule as a string, unless it has methods or paths.
impl Serialize for HttpRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.table.methods.is_none() && self.table.paths.is_none() {
            return self.table.origin.serialize(serializer);
        }
        self.table.serialize(serializer)
    }
}

fn methods<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<HttpMethod>>, D::Error> {
    let methods = deduplicate(Vec::<HttpMethod>::deserialize(deserializer)?);
    if methods.is_empty() {
        return Err(D::Error::custom(
            "expected at least one method; to allow every method, leave out `methods`",
        ));
    }
    Ok(Some(methods))
}

fn paths<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<PathPrefix>>, D::Error> {
    let paths = deduplicate(Vec::<PathPrefix>::deserialize(deserializer)?);
    if paths.is_empty() {
        return Err(D::Error::custom(
            "expected at least one path; to allow every path, leave out `paths`",
        ));
    }
    Ok(Some(paths))
}

/// Removes duplicate entries and preserves the order.
fn deduplicate<T: PartialEq>(entries: Vec<T>) -> Vec<T> {
    let mut unique = Vec::with_capacity(entries.len());
    for entry in entries {
        if !unique.contains(&entry) {
            unique.push(entry);
        }
    }
    unique
}

#[cfg(test)]
mod tests;
