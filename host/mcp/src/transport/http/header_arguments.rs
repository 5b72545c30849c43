//! The arguments that `Mcp-Param-…` headers repeat, as the body spells them.

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use toolbay_model::ParamHeader;

/// Returns the argument that each header mirrors; `None` for an argument that the body does not
/// have.
pub(super) fn find_mirrored<'a>(
    arguments: Option<&'a RawValue>,
    headers: &[ParamHeader],
) -> Vec<Option<&'a RawValue>> {
    let mut found = vec![None; headers.len()];
    if let Some(arguments) = arguments {
        collect_members(
            arguments,
            &mut found
                .iter_mut()
                .zip(headers.iter().map(|header| header.path.as_slice()))
                .collect(),
        );
    }
    found
}

/// The slot for an argument, and the remaining path to it.
type ArgumentPath<'w, 'a> = (&'w mut Option<&'a RawValue>, &'w [String]);

fn collect_members<'a>(value: &'a RawValue, wanted: &mut Vec<ArgumentPath<'_, 'a>>) {
    let names: HashSet<&str> = wanted
        .iter()
        .filter_map(|(_, path)| path.first())
        .map(String::as_str)
        .collect();
    let members =
        serde_json::Deserializer::from_str(value.get()).deserialize_map(WantedMembers(&names));
    // A value that is not an object has no members.
    let Ok(members) = members else { return };
    let mut deeper: HashMap<&str, Vec<ArgumentPath<'_, 'a>>> = HashMap::new();
    for (place, path) in wanted {
        let Some((name, rest)) = path.split_first() else {
            continue;
        };
        let Some(member) = members.get(name.as_str()) else {
            continue;
        };
        if rest.is_empty() {
            **place = Some(member);
        } else {
            deeper.entry(name).or_default().push((place, rest));
        }
    }
    for (name, mut wanted) in deeper {
        if let Some(member) = members.get(name) {
            collect_members(member, &mut wanted);
        }
    }
}

/// Visitor that collects the members with these names and skips the others. Of several members with
/// the same name, the last one counts, as in the call.
struct WantedMembers<'n>(&'n HashSet<&'n str>);

impl<'de> Visitor<'de> for WantedMembers<'_> {
    type Value = HashMap<String, &'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = HashMap::new();
        while let Some(name) = map.next_key::<String>()? {
            if self.0.contains(name.as_str()) {
                members.insert(name, map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use toolbay_model::HeaderKind;

    use super::*;

    fn found(arguments: &str, paths: &[&[&str]]) -> Vec<Option<String>> {
        let header = |path: &&[&str]| ParamHeader {
            name: "x".into(),
            path: path.iter().map(|name| (*name).to_owned()).collect(),
            kind: HeaderKind::Integer,
        };
        let headers: Vec<ParamHeader> = paths.iter().map(header).collect();
        let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
        find_mirrored(Some(&arguments), &headers)
            .into_iter()
            .map(|raw| raw.map(|raw| raw.get().to_owned()))
            .collect()
    }

    #[test]
    fn arguments_are_found_as_they_are_written() {
        let paths: [&[&str]; 4] = [&["a"], &["b", "c"], &["b", "d", "e"], &["none", "c"]];
        let text = r#"{"a": 18446744073709551617, "x": [{"a": 1}], "b": {"c" : 1.0, "d": {"\u0065": "f"}}}"#;
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            found(text, &paths),
            [
                some("18446744073709551617"),
                some("1.0"),
                some("\"f\""),
                None
            ]
        );
        assert_eq!(
            found(r#"{"a": 1, "b": {"c": 2}, "a": 3, "b": 7}"#, &paths),
            [some("3"), None, None, None]
        );
        for text in ["[]", "7", "\"a\"", "null", "{}"] {
            assert_eq!(found(text, &paths), [const { None }; 4], "{text}");
        }
        assert!(find_mirrored(None, &[]).is_empty());
    }
}
