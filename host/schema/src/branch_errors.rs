//! Finds the errors of the intended branch of `anyOf` or `oneOf`.
//!
//! A value that matches no branch violates all of them. Listing every violation does not help an
//! author: a number that is too large is not a string either. If all branches but one are for
//! values of another kind, only the violations of that branch are reported.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;

/// Maximum nesting of branches that are inspected.
const MAX_BRANCH_DEPTH: usize = 16;

/// Reports the error itself, or the errors of the one branch that the value was intended for.
pub(crate) fn report_intended<'a>(
    error: &'a ValidationError<'a>,
    report: &mut dyn FnMut(&'a ValidationError<'a>),
) {
    report_intended_within(error, MAX_BRANCH_DEPTH, report);
}

fn report_intended_within<'a>(
    error: &'a ValidationError<'a>,
    depth: usize,
    report: &mut dyn FnMut(&'a ValidationError<'a>),
) {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return report(error);
    };
    match intended_branch(context, error.instance_path().as_str()) {
        Some(branch) if depth > 0 => {
            for error in branch {
                report_intended_within(error, depth - 1, report);
            }
        }
        _ => report(error),
    }
}

/// Returns the only branch whose violations do not show that it is for another kind of value than
/// the one at `pointer`.
fn intended_branch<'a>(
    branches: &'a [Vec<ValidationError<'static>>],
    pointer: &str,
) -> Option<&'a [ValidationError<'static>]> {
    let only_branch_without = |is_other: fn(&ValidationError<'static>) -> bool| {
        let is_candidate = |errors: &&Vec<ValidationError<'static>>| {
            !errors.is_empty()
                && !errors
                    .iter()
                    .any(|error| error.instance_path().as_str() == pointer && is_other(error))
        };
        let mut candidates = branches.iter().filter(is_candidate);
        match (candidates.next(), candidates.next()) {
            (Some(only), None) => Some(only.as_slice()),
            _ => None,
        }
    };
    // An object with the wrong members can still be intended for a branch, if that is the only one
    // for objects. The same applies to a string that is not in an enumeration.
    only_branch_without(is_member_mismatch)
        .or_else(|| only_branch_without(is_kind_mismatch))
        .or_else(|| only_branch_without(is_type_mismatch))
}

fn is_type_mismatch(error: &ValidationError<'static>) -> bool {
    matches!(error.kind(), ValidationErrorKind::Type { .. })
}

fn is_kind_mismatch(error: &ValidationError<'static>) -> bool {
    is_type_mismatch(error)
        || matches!(
            error.kind(),
            ValidationErrorKind::Enum { .. } | ValidationErrorKind::Constant { .. }
        )
}

fn is_member_mismatch(error: &ValidationError<'static>) -> bool {
    // The library reports `additionalProperties` without `properties` as a schema `false`.
    let forbids_members = || {
        error
            .schema_path()
            .as_str()
            .ends_with("/additionalProperties")
    };
    is_kind_mismatch(error)
        || match error.kind() {
            ValidationErrorKind::Required { .. }
            | ValidationErrorKind::AdditionalProperties { .. }
            | ValidationErrorKind::UnevaluatedProperties { .. } => true,
            ValidationErrorKind::FalseSchema => forbids_members(),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::JsonSchema;

    fn violation_texts(schema: &Value, value: &Value) -> Vec<String> {
        let schema = JsonSchema::compile(&schema.to_string()).unwrap();
        schema
            .violations(value)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    /// Like the schemas of plain functions: an optional integer, a wide one, and a variant with a
    /// record.
    fn schema() -> Value {
        let byte = json!({"type": "integer", "minimum": 0, "maximum": 255});
        let case = |name: &str, of: Value| json!({"type": "object", "properties": {name: of}, "required": [name], "additionalProperties": false});
        let point = json!({
            "type": "object", "properties": {"x": byte, "y": byte}, "required": ["x", "y"], "additionalProperties": false
        });
        json!({
            "type": "object",
            "properties": {
                "n": {"anyOf": [byte, {"type": "null"}]},
                "wide": {"anyOf": [
                    {"type": "integer", "minimum": 0},
                    {"type": "string", "pattern": "^[0-9]{1,20}$"}
                ]},
                "p": {"anyOf": [point, {"type": "null"}]},
                "shape": {"anyOf": [
                    {"type": "string", "enum": ["none"]}, case("circle", byte.clone()), case("at", point.clone())
                ]},
            }
        })
    }

    #[test]
    fn errors_are_reported_within_the_intended_branch() {
        let cases = [
            (
                json!({"n": 300}),
                "/n: 300 is greater than the maximum of 255",
            ),
            (
                json!({"wide": -1}),
                "/wide: -1 is less than the minimum of 0",
            ),
            (
                json!({"wide": "12x"}),
                "/wide: \"12x\" does not match \"^[0-9]{1,20}$\"",
            ),
            (
                json!({"p": {"x": 1, "y": 300}}),
                "/p/y: 300 is greater than the maximum of 255",
            ),
            (json!({"p": {"x": 1}}), "/p: \"y\" is a required property"),
            (
                json!({"shape": {"circle": 300}}),
                "/shape/circle: 300 is greater than the maximum of 255",
            ),
            (
                json!({"shape": {"at": {"x": 0, "y": -1}}}),
                "/shape/at/y: -1 is less than the minimum of 0",
            ),
            (
                json!({"shape": "square"}),
                "/shape: \"square\" is not one of \"none\"",
            ),
        ];
        for (value, expected) in cases {
            assert_eq!(violation_texts(&schema(), &value), [expected]);
        }
    }

    #[test]
    fn all_branches_are_reported_if_the_intended_one_is_unclear() {
        for value in [
            json!({"n": "x"}),
            json!({"shape": 7}),
            json!({"shape": {"square": 1}}),
        ] {
            let said = violation_texts(&schema(), &value);
            assert_eq!(said.len(), 1);
            assert!(
                said[0].contains("is not valid under any of the schemas"),
                "{said:?}"
            );
        }
    }

    #[test]
    fn a_branch_without_members_is_not_intended_for_an_object_with_members() {
        let empty = json!({"type": "object", "additionalProperties": false});
        let point =
            json!({"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]});
        let schema = json!({"anyOf": [empty, point]});
        assert_eq!(
            violation_texts(&schema, &json!({"x": "1"})),
            ["/x: \"1\" is not of type \"integer\""]
        );
    }

    #[test]
    fn nested_branches_are_inspected_to_a_limited_depth() {
        let mut schema = json!({"type": "integer", "maximum": 9});
        for _ in 0..20 {
            schema = json!({"anyOf": [schema, {"type": "null"}]});
        }
        let said = violation_texts(&schema, &json!(10));
        assert_eq!(said.len(), 1, "{said:?}");
    }
}
