//! The capabilities that a client declared: their names, which is all that tools check, and the
//! kinds of questions that they cover.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use toolbay_model::{QuestionKind, QuestionKindSet};

use crate::protocol::revision::Revision;

/// Maximum number of names that are stored per client. The protocol has fewer than ten.
const MAX_NAMES: usize = 64;

/// Maximum length of a stored name, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// The names of the capabilities that a client declared: at most 64, each with at most 128 bytes.
/// Other names are ignored. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapabilityNames {
    names: Arc<BTreeSet<Box<str>>>,
    /// The kinds of questions that the client declared, regardless of its revision.
    declared_questions: QuestionKindSet,
    /// If set, the client declared the extension [`TASKS_EXTENSION`].
    supports_tasks: bool,
}

/// Name of the extension for calls that continue as tasks.
pub(crate) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

impl CapabilityNames {
    /// Returns whether the client accepts a task as the result of a call (the extension of
    /// 2026-07-28).
    pub(crate) fn supports_tasks(&self) -> bool {
        self.supports_tasks
    }

    /// Returns whether the client declared the capability with this name.
    pub fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Returns the kinds of questions that a client of this revision answers. Kinds that the
    /// revision does not define are excluded.
    pub fn answerable(&self, revision: Revision) -> QuestionKindSet {
        let features = revision.features();
        let mut answerable = QuestionKindSet::default();
        for kind in QuestionKind::ALL {
            let is_answerable = match kind {
                // Before there were modes, every elicitation was a form.
                QuestionKind::Form if !features.elicitation_modes => {
                    features.forms
                        && (self.declared_questions.contains(kind)
                            || self.declared_questions.contains(QuestionKind::Url))
                }
                QuestionKind::Form | QuestionKind::Sampling | QuestionKind::Roots => {
                    self.declared_questions.contains(kind)
                }
                QuestionKind::Url => {
                    features.elicitation_modes && self.declared_questions.contains(kind)
                }
                QuestionKind::SamplingWithTools => {
                    features.sampling_tools && self.declared_questions.contains(kind)
                }
            };
            if is_answerable {
                answerable = answerable.with(kind);
            }
        }
        answerable
    }
}

impl<'de> Deserialize<'de> for CapabilityNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(DeclaredCapabilities)
    }
}

/// Visitor that collects the names of an object's members. It reads a member's value only if the
/// value declares which questions the client answers.
struct DeclaredCapabilities;

impl<'de> Visitor<'de> for DeclaredCapabilities {
    type Value = CapabilityNames;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut names = BTreeSet::new();
        let mut declared = QuestionKindSet::default();
        let mut tasks = false;
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "elicitation" | "sampling" | "roots" => {
                    let value: Box<RawValue> = map.next_value()?;
                    // A value that is not an object declares nothing.
                    if let Ok(MemberNames(parts)) = serde_json::from_str(value.get()) {
                        declared = declared_kinds(&name, &parts)
                            .into_iter()
                            .fold(declared, QuestionKindSet::with);
                    }
                }
                "extensions" => {
                    let value: Box<RawValue> = map.next_value()?;
                    tasks = serde_json::from_str(value.get())
                        .is_ok_and(|MemberNames(names)| names.contains(TASKS_EXTENSION));
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
            if names.len() < MAX_NAMES && name.len() <= MAX_NAME_BYTES {
                names.insert(name.into_boxed_str());
            }
        }
        Ok(CapabilityNames {
            names: Arc::new(names),
            declared_questions: declared,
            supports_tasks: tasks,
        })
    }
}

/// Returns the kinds of questions that a capability with these members declares.
fn declared_kinds(name: &str, parts: &BTreeSet<Box<str>>) -> Vec<QuestionKind> {
    let kind_if = |kind, declared: bool| declared.then_some(kind);
    match name {
        // An empty object means forms: that syntax is older than the modes.
        "elicitation" => [
            kind_if(
                QuestionKind::Form,
                parts.contains("form") || !parts.contains("url"),
            ),
            kind_if(QuestionKind::Url, parts.contains("url")),
        ]
        .into_iter()
        .flatten()
        .collect(),
        "sampling" => [
            Some(QuestionKind::Sampling),
            kind_if(QuestionKind::SamplingWithTools, parts.contains("tools")),
        ]
        .into_iter()
        .flatten()
        .collect(),
        _ => vec![QuestionKind::Roots],
    }
}

/// The names of an object's members, within the same bounds. A member whose value is `null` counts
/// as absent.
struct MemberNames(BTreeSet<Box<str>>);

impl<'de> Deserialize<'de> for MemberNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CapabilityMembers;
        impl<'de> Visitor<'de> for CapabilityMembers {
            type Value = MemberNames;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut names = BTreeSet::new();
                while let Some((name, value)) = map.next_entry::<String, Option<IgnoredAny>>()? {
                    if value.is_some() && names.len() < MAX_NAMES && name.len() <= MAX_NAME_BYTES {
                        names.insert(name.into_boxed_str());
                    }
                }
                Ok(MemberNames(names))
            }
        }
        deserializer.deserialize_map(CapabilityMembers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::revision_changes::revision_changes;

    fn read(text: &str) -> serde_json::Result<CapabilityNames> {
        serde_json::from_str(text)
    }

    #[test]
    fn stored_names_are_bounded() {
        let few =
            read(r#"{"roots": {"listChanged": true}, "sampling": [[]], "r\u006fots": 7}"#).unwrap();
        assert!(few.contains("roots") && few.contains("sampling") && !few.contains("listChanged"));
        assert_eq!(few.names.len(), 2);
        let many: Vec<String> = (0..1000).map(|n| format!("\"{n}\":{{}}")).collect();
        assert_eq!(
            read(&format!("{{{}}}", many.join(",")))
                .unwrap()
                .names
                .len(),
            MAX_NAMES
        );
        let long = format!(
            r#"{{"{}": {{}}, "a": {{}}}}"#,
            "x".repeat(MAX_NAME_BYTES + 1)
        );
        assert_eq!(read(&long).unwrap().names.len(), 1);
        for wrong in ["[]", "7", "\"roots\"", "null"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn answerable_questions_depend_on_capabilities_and_revision() {
        let cases = [
            "{}",
            r#"{"elicitation":{}}"#,
            r#"{"elicitation":{"form":{}}}"#,
            r#"{"elicitation":{"url":{}}}"#,
            r#"{"elicitation":{"form":{},"url":{}}}"#,
            r#"{"elicitation":{"form":{},"url":null}}"#,
            r#"{"elicitation":7}"#,
            r#"{"sampling":{}}"#,
            r#"{"sampling":{"tools":{},"context":{}}}"#,
            r#"{"sampling":[{"tools":1}]}"#,
            r#"{"roots":{"listChanged":true}}"#,
            r#"{"roots":null,"tasks":{"requests":{"sampling":{}}}}"#,
            r#"{"roots":{},"sampling":{"tools":{}},"elicitation":{"url":{},"form":{}}}"#,
        ];
        let lines = cases.map(|case| {
            let declared = read(case).unwrap();
            let kinds = Revision::ALL.map(|revision| {
                let answerable = declared.answerable(revision);
                let kinds = QuestionKind::ALL
                    .into_iter()
                    .filter(|kind| answerable.contains(*kind));
                (revision, format!("  {:?}", kinds.collect::<Vec<_>>()))
            });
            format!("{case}\n{}", revision_changes(kinds))
        });
        insta::assert_snapshot!(lines.concat());
    }
}
