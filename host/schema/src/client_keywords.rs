//! Rewrites the keywords that validators of clients refuse when they compile a schema, or that they
//! apply although the dialect of the schema ignores them.
//!
//! Several clients compile every schema of a list, and lose the whole list if one of them fails.
//! Their validators know drafts 6 to 2020-12, often only one of these, and do not distinguish
//! between their keywords.

use std::collections::BTreeSet;

use jsonschema::Draft;
use serde_json::{Map, Value, json};

use super::keywords::{for_each_subschema_mut, is_schema_map};

/// The dialect of a rewritten schema of draft 4.
const DRAFT_4_SUCCESSOR: &str = "http://json-schema.org/draft-07/schema#";

/// Keywords that belong to no dialect, but that validators of clients apply or refuse.
const EXTENSION_KEYWORDS: [&str; 6] = [
    "nullable",
    "$async",
    "formatMinimum",
    "formatMaximum",
    "formatExclusiveMinimum",
    "formatExclusiveMaximum",
];

/// The drafts that apply a keyword: the first one and the last one.
const DRAFTS_OF_KEYWORDS: [(&str, Draft, Draft); 15] = [
    ("const", Draft::Draft6, Draft::Draft202012),
    ("contains", Draft::Draft6, Draft::Draft202012),
    ("propertyNames", Draft::Draft6, Draft::Draft202012),
    ("if", Draft::Draft7, Draft::Draft202012),
    ("then", Draft::Draft7, Draft::Draft202012),
    ("else", Draft::Draft7, Draft::Draft202012),
    ("dependentRequired", Draft::Draft201909, Draft::Draft202012),
    ("dependentSchemas", Draft::Draft201909, Draft::Draft202012),
    ("minContains", Draft::Draft201909, Draft::Draft202012),
    ("maxContains", Draft::Draft201909, Draft::Draft202012),
    ("unevaluatedItems", Draft::Draft201909, Draft::Draft202012),
    (
        "unevaluatedProperties",
        Draft::Draft201909,
        Draft::Draft202012,
    ),
    ("contentSchema", Draft::Draft201909, Draft::Draft202012),
    ("prefixItems", Draft::Draft202012, Draft::Draft202012),
    ("additionalItems", Draft::Draft4, Draft::Draft201909),
];

/// Like [`DRAFTS_OF_KEYWORDS`], for references and anchors.
const DRAFTS_OF_REFERENCES: [(&str, Draft, Draft); 5] = [
    ("$anchor", Draft::Draft201909, Draft::Draft202012),
    ("$recursiveRef", Draft::Draft201909, Draft::Draft201909),
    ("$recursiveAnchor", Draft::Draft201909, Draft::Draft201909),
    ("$dynamicRef", Draft::Draft202012, Draft::Draft202012),
    ("$dynamicAnchor", Draft::Draft202012, Draft::Draft202012),
];

/// Keywords that limit values. Drafts up to 7 ignore them next to a reference.
const LIMITING_KEYWORDS: [&str; 33] = [
    "type",
    "enum",
    "const",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minItems",
    "maxItems",
    "uniqueItems",
    "items",
    "additionalItems",
    "contains",
    "minProperties",
    "maxProperties",
    "required",
    "properties",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
    "dependencies",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
];

/// Keywords that are references.
const REFERENCE_KEYWORDS: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Keywords that name a schema for references.
const ANCHOR_KEYWORDS: [&str; 3] = ["$anchor", "$dynamicAnchor", "$recursiveAnchor"];

/// Removes the identifiers on which no reference depends, and the references and anchors of other
/// dialects.
///
/// If a client uses one validator for a whole list, the validator resolves an `$id` to the first
/// schema that has it, even within another schema with the same `$id`. It also refuses the keyword
/// `id`.
pub(super) fn rewrite_identifiers(schema: &mut Value, draft: Draft) {
    let mut identifiers = IdentifierKeywords {
        draft,
        are_needed: false,
    };
    identifiers.are_needed = identifiers.has_dependent(schema, true, false);
    identifiers.rewrite(schema);
    if let Some(members) = schema.as_object_mut()
        && draft == Draft::Draft4
        && members.contains_key("$schema")
    {
        members.insert("$schema".into(), DRAFT_4_SUCCESSOR.into());
    }
}

/// The keywords of a dialect that identify schemas.
struct IdentifierKeywords {
    draft: Draft,
    /// True if references depend on identifiers.
    are_needed: bool,
}

impl IdentifierKeywords {
    fn keyword(&self) -> &'static str {
        if self.draft == Draft::Draft4 {
            "id"
        } else {
            "$id"
        }
    }

    /// Returns whether an identifier is an anchor, as drafts up to 7 write it.
    fn is_anchor(&self, identifier: &str) -> bool {
        self.draft <= Draft::Draft7 && identifier.starts_with('#') && identifier != "#"
    }

    /// Returns whether a reference depends on an identifier: it is not relative to the document, or
    /// it is in a part of the document that has a separate identifier. `is_in_part` is true within
    /// such a part.
    fn has_dependent(&self, value: &Value, is_root: bool, is_in_part: bool) -> bool {
        match value {
            Value::Array(items) => items
                .iter()
                .any(|item| self.has_dependent(item, false, is_in_part)),
            Value::Object(members) => {
                let identifier = members.get(self.keyword()).and_then(Value::as_str);
                let is_in_part =
                    is_in_part || (!is_root && identifier.is_some_and(|own| !self.is_anchor(own)));
                let mut references = REFERENCE_KEYWORDS
                    .iter()
                    .filter_map(|key| members.get(*key)?.as_str());
                references.any(|target| is_in_part || !target.starts_with('#'))
                    || members
                        .values()
                        .any(|member| self.has_dependent(member, false, is_in_part))
            }
            _ => false,
        }
    }

    fn rewrite(&self, schema: &mut Value) {
        let Some(members) = schema.as_object_mut() else {
            return;
        };
        members.retain(|keyword, _| !is_of_other_draft(&DRAFTS_OF_REFERENCES, keyword, self.draft));
        let [draft_4_id, id] = ["id", "$id"].map(|keyword| members.remove(keyword));
        let identifier = if self.draft == Draft::Draft4 {
            draft_4_id
        } else {
            id
        };
        if let Some(Value::String(text)) = identifier {
            if self.are_needed {
                members.insert("$id".into(), text.into());
            } else if let Some(anchor) = text.strip_prefix('#').filter(|_| self.is_anchor(&text)) {
                members.insert("$anchor".into(), anchor.into());
            }
        }
        for_each_subschema_mut(members, &mut |_, schema| self.rewrite(schema));
    }
}

/// Rewrites the keywords of each schema of a document.
pub(super) struct ClientKeywords {
    draft: Draft,
    /// The keywords in the targets of references, which must stay.
    target_keywords: BTreeSet<String>,
    /// True if a reference names an anchor.
    has_anchor_references: bool,
}

impl ClientKeywords {
    /// Creates the rewriter for a document whose dialect was `draft`.
    pub(super) fn new(schema: &Value, draft: Draft) -> Self {
        let mut keywords = Self {
            draft,
            target_keywords: BTreeSet::new(),
            has_anchor_references: false,
        };
        keywords.collect_targets(schema);
        keywords
    }

    /// Returns whether the dialect has `prefixItems`.
    pub(super) fn has_prefix_items(&self) -> bool {
        self.draft >= Draft::Draft202012
    }

    fn collect_targets(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.collect_targets(item)),
            Value::Object(members) => {
                for target in REFERENCE_KEYWORDS
                    .iter()
                    .filter_map(|key| members.get(*key)?.as_str())
                {
                    self.has_anchor_references |= target != "#" && !target.starts_with("#/");
                    let mut segments = target.split('/').skip(1);
                    while let Some(keyword) = segments.next() {
                        self.target_keywords.insert(keyword.to_owned());
                        if is_schema_map(keyword) {
                            segments.next();
                        }
                    }
                }
                self.has_anchor_references |= members.contains_key("$dynamicRef");
                self.has_anchor_references |= members.contains_key("$recursiveRef");
                members
                    .values()
                    .for_each(|member| self.collect_targets(member));
            }
            _ => {}
        }
    }

    /// Rewrites the keywords of one schema, but not those of its subschemas:
    ///
    /// - Keywords that the dialect ignores are removed, and so is `nullable`.
    /// - An exclusive bound of draft 4 becomes a number.
    /// - An empty `enum` becomes `"not": {}`.
    pub(super) fn rewrite(&self, members: &mut Map<String, Value>, is_root: bool) {
        let has_ignored_siblings =
            self.draft <= Draft::Draft7 && members.get("$ref").is_some_and(Value::is_string);
        members.retain(|keyword, value| {
            let keyword = keyword.as_str();
            // Every client requires the type at the root.
            let is_ignored = EXTENSION_KEYWORDS.contains(&keyword)
                || is_of_other_draft(&DRAFTS_OF_KEYWORDS, keyword, self.draft)
                || (ANCHOR_KEYWORDS.contains(&keyword) && !self.has_anchor_references)
                || (keyword == "discriminator" && !value.is_object())
                || (has_ignored_siblings
                    && LIMITING_KEYWORDS.contains(&keyword)
                    && !(is_root && keyword == "type"));
            !is_ignored || self.target_keywords.contains(keyword)
        });
        if self.draft == Draft::Draft4 {
            rewrite_exclusive_bound(members, "minimum", "exclusiveMinimum");
            rewrite_exclusive_bound(members, "maximum", "exclusiveMaximum");
        }
        if members
            .get("enum")
            .and_then(Value::as_array)
            .is_some_and(Vec::is_empty)
        {
            members.remove("enum");
            // This allows no value, whatever another `not` would forbid.
            members.insert("not".into(), json!({}));
        }
    }
}

/// Returns whether a table has the keyword only for other drafts than this one.
fn is_of_other_draft(table: &[(&str, Draft, Draft)], keyword: &str, draft: Draft) -> bool {
    let draft = draft.min(Draft::Draft202012);
    table.iter().any(|(table_keyword, first, last)| {
        *table_keyword == keyword && !(*first..=*last).contains(&draft)
    })
}

/// Rewrites the boolean `exclusive`, which draft 4 has next to a bound.
fn rewrite_exclusive_bound(members: &mut Map<String, Value>, bound: &str, exclusive: &str) {
    let Some(is_exclusive) = members.get(exclusive).and_then(Value::as_bool) else {
        return;
    };
    members.remove(exclusive);
    if is_exclusive && let Some(limit) = members.remove(bound) {
        members.insert(exclusive.into(), limit);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{JsonSchema, client_schema};

    const DRAFT_4: &str = "http://json-schema.org/draft-04/schema#";
    const DRAFT_7: &str = "http://json-schema.org/draft-07/schema#";

    /// Checks the rewritten schema, and that both accept the same of these values.
    fn check(schema: &Value, expected: &Value, values: &[Value]) {
        let rewritten = client_schema(schema);
        assert_eq!(&rewritten, expected, "{schema}");
        let accepts = |schema: &Value, value: &Value| {
            JsonSchema::compile(&schema.to_string())
                .unwrap()
                .violations(value)
                .is_empty()
        };
        for value in values {
            assert_eq!(
                accepts(schema, value),
                accepts(&rewritten, value),
                "{schema} {value}"
            );
        }
    }

    #[test]
    fn bounds_of_draft_4_become_numbers() {
        let schema = json!({"$schema": DRAFT_4, "id": "https://x/", "properties": {
            "id": {"type": "number", "minimum": 1, "exclusiveMinimum": true, "maximum": 5, "exclusiveMaximum": false},
            "b": {"const": 7, "if": {}, "then": 5},
        }});
        let expected = json!({"$schema": DRAFT_7, "properties": {
            "id": {"type": "number", "exclusiveMinimum": 1, "maximum": 5}, "b": {},
        }});
        let values = [
            json!({"id": 1}),
            json!({"id": 2}),
            json!({"id": 5}),
            json!({"id": 6}),
            json!({"b": 1}),
        ];
        check(&schema, &expected, &values);
    }

    #[test]
    fn an_empty_enumeration_allows_nothing() {
        let schema =
            json!({"properties": {"a": {"enum": []}, "b": {"enum": [], "not": {"type": "null"}}}});
        let expected = json!({"properties": {"a": {"not": {}}, "b": {"not": {}}}});
        check(
            &schema,
            &expected,
            &[json!({}), json!({"a": 1}), json!({"b": 1})],
        );
        let choice = json!({"anyOf": [{"enum": []}, {"enum": []}]});
        check(
            &choice,
            &json!({"anyOf": [{"not": {}}, {"not": {}}]}),
            &[json!(1)],
        );
    }

    #[test]
    fn keywords_that_only_client_validators_support_are_removed() {
        let schema = json!({"type": "object", "$async": true, "discriminator": "kind", "properties": {
            "a": {"anyOf": [{"type": "string"}], "nullable": true},
            "b": {"type": "string", "nullable": "yes", "formatMinimum": 5},
            "c": {"id": 5, "additionalItems": "x", "$recursiveRef": "#"},
            "nullable": {"discriminator": {"propertyName": "kind"}, "default": {"id": 1, "nullable": 2}},
            "id": {"$ref": "#/properties/b"},
        }});
        let text = json!({"type": "string"});
        let expected = json!({"type": "object", "properties": {
            "a": {"anyOf": [text]}, "b": text, "c": {},
            "nullable": {"discriminator": {"propertyName": "kind"}, "default": {"id": 1, "nullable": 2}},
            "id": {"$ref": "#/$defs/b"},
        }, "$defs": {"b": text}});
        check(
            &schema,
            &expected,
            &[
                json!({"a": null}),
                json!({"b": null}),
                json!({"c": [1]}),
                json!({"id": 1}),
            ],
        );
    }

    #[test]
    fn siblings_of_a_reference_are_removed_if_the_dialect_ignores_them() {
        let schema = json!({"$schema": DRAFT_7, "type": "object", "properties": {
            "x": {"$ref": "#/definitions/a", "maxLength": 1, "title": "X"},
        }, "definitions": {"a": {"type": "string"}}});
        let expected = json!({"$schema": DRAFT_7, "type": "object", "properties": {
            "x": {"$ref": "#/$defs/a", "title": "X"},
        }, "$defs": {"a": {"type": "string"}}});
        check(&schema, &expected, &[json!({"x": "long"}), json!({"x": 1})]);
        let newer =
            json!({"properties": {"x": {"$ref": "#/$defs/a", "maxLength": 1}}, "$defs": {"a": {}}});
        check(&newer, &newer, &[json!({"x": "long"})]);
    }

    #[test]
    fn identifiers_are_removed_if_no_reference_needs_them() {
        let schema = json!({"$id": "https://x/s", "properties": {"a": {"$id": "a", "type": "string"}, "b": {
            "$anchor": "b", "type": "integer"}, "c": {"$ref": "#b"}}});
        let number = json!({"type": "integer"});
        let expected = json!({"properties": {"a": {"type": "string"}, "b": number, "c": {"$ref": "#/$defs/b"}},
            "$defs": {"b": number}});
        check(&schema, &expected, &[json!({"c": "x"}), json!({"c": 1})]);
        let old = json!({"$schema": DRAFT_4, "definitions": {"b": {"id": "#b", "type": "integer"}},
            "properties": {"c": {"$ref": "#b"}}});
        let expected = json!({"$schema": DRAFT_7, "$defs": {"b": number}, "properties": {"c": {"$ref": "#/$defs/b"}}});
        check(&old, &expected, &[json!({"c": "x"}), json!({"c": 1})]);
        let needed =
            json!({"properties": {"a": {"$id": "a", "type": "string"}, "c": {"$ref": "a"}}});
        check(&needed, &needed, &[json!({"c": "x"}), json!({"c": 1})]);
        let old = json!({"$schema": DRAFT_4, "properties": {"a": {"id": "http://x/a", "type": "string"}, "c": {
            "$ref": "http://x/a"}}});
        let rewritten = client_schema(&old);
        assert_eq!(
            rewritten["properties"]["a"],
            json!({"$id": "http://x/a", "type": "string"})
        );
    }
}
