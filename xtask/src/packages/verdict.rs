//! The outcomes of calls, compared with the claims of the lists.

use serde_json::Value;

use super::row::{PackageRegistry, PackageRow, RowClaim};

/// Maximum number of characters of a value in a message.
const MAX_SHOWN_CHARS: usize = 300;

/// The outcome of a call in a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallVerdict {
    /// The value is that of the reference program.
    Works,
    /// The plugin is not built, or the call ends with an error.
    Fails(String),
    /// The value, or a request, is not that of the reference program.
    Differs(String),
}

/// The step in which a plugin failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailedStep {
    Build,
    Call,
}

/// Compares two values. `what` is the kind of the values.
pub(super) fn compare(what: &str, plugin: &Value, reference: &Value) -> CallVerdict {
    if plugin == reference {
        return CallVerdict::Works;
    }
    CallVerdict::Differs(format!(
        "{what} {}, but the reference program has {}",
        shorten(&plugin.to_string()),
        shorten(&reference.to_string())
    ))
}

/// Returns the reason for which a verdict contradicts the claim of a row, or `None`.
pub(super) fn contradiction(
    row: &PackageRow,
    step: FailedStep,
    verdict: &CallVerdict,
) -> Option<String> {
    match (row.claim(), verdict) {
        (_, CallVerdict::Differs(text)) => Some(format!("wrong answer: {text}")),
        (RowClaim::Works, CallVerdict::Works) => None,
        (RowClaim::Works, CallVerdict::Fails(text)) => Some(text.clone()),
        (_, CallVerdict::Works) => {
            Some("it works; remove `fails` or `instead` from its row".to_owned())
        }
        (RowClaim::Fails(part), CallVerdict::Fails(text)) => {
            (!text.contains(part)).then(|| format!("the error does not contain {part:?}: {text}"))
        }
        (RowClaim::Refused(part), CallVerdict::Fails(text)) => {
            if !text.contains(part) {
                return Some(format!("the error does not name {part:?}: {text}"));
            }
            // In Python, the build finds native code. In JavaScript, a package fails where it uses
            // a module of Node.
            if row.registry == PackageRegistry::Pypi {
                if step != FailedStep::Build {
                    return Some(format!("the build does not refuse it: {text}"));
                }
                if text.trim().lines().count() != 1 {
                    return Some(format!("the error is not one line: {text}"));
                }
            }
            None
        }
    }
}

/// Returns the beginning of a text.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(registry: PackageRegistry, more: &str) -> PackageRow {
        let text = format!("name = \"a\"\nversion = \"1\"\ncode = \"\"\n{more}");
        PackageRow {
            registry,
            ..toml::from_str(&text).unwrap()
        }
    }

    fn is_contradicted(more: &str, verdict: &CallVerdict) -> bool {
        contradiction(&row(PackageRegistry::Npm, more), FailedStep::Call, verdict).is_some()
    }

    #[test]
    fn values_are_compared() {
        assert_eq!(
            compare("value", &json!({"a": 1}), &json!({"a": 1})),
            CallVerdict::Works
        );
        let CallVerdict::Differs(text) = compare("value", &json!([1]), &json!(["1"])) else {
            panic!("they are equal");
        };
        assert_eq!(text, "value [1], but the reference program has [\"1\"]");
        assert_eq!(shorten(&"ä".repeat(301)), format!("{}…", "ä".repeat(300)));
    }

    #[test]
    fn a_claim_that_is_not_true_is_reported() {
        let fails = CallVerdict::Fails("no sockets: use `fetch`".to_owned());
        let differs = CallVerdict::Differs(String::new());
        let [known, refused] = ["fails = \"sockets\"", "instead = \"use `fetch`\""];
        for claim in ["", known, refused] {
            assert!(is_contradicted(claim, &differs), "{claim}");
        }
        assert!(!is_contradicted("", &CallVerdict::Works) && is_contradicted("", &fails));
        for claim in [known, refused] {
            assert!(is_contradicted(claim, &CallVerdict::Works), "{claim}");
            assert!(!is_contradicted(claim, &fails), "{claim}");
            let other = CallVerdict::Fails("another error".to_owned());
            assert!(is_contradicted(claim, &other), "{claim}");
        }
    }

    #[test]
    fn a_package_with_native_code_is_refused_by_the_build_in_one_line() {
        let row = row(PackageRegistry::Pypi, "instead = \"json\"");
        let refusal =
            |step, text: &str| contradiction(&row, step, &CallVerdict::Fails(text.to_owned()));
        assert_eq!(refusal(FailedStep::Build, "app.py:1: use json\n"), None);
        assert!(refusal(FailedStep::Call, "use json").is_some());
        assert!(refusal(FailedStep::Build, "Traceback\nuse json").is_some());
    }
}
