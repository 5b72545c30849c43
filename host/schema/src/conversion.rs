//! Converts arguments that differ from the schema only in form: a number that was written as a
//! string, or an object as JSON in a string.
//!
//! Only values that the schema rejects in any case are changed, and only if there is exactly one
//! possible meaning. The caller checks the converted value again, so a conversion cannot make an
//! invalid value valid.

use std::cell::Cell;
use std::fmt::{self, Write as _};

use serde_json::{Map, Value};
use toolbay_model::JsonSize;
use toolbay_model::text::clean_line;

use super::schema_parts::{SchemaParts, TypeSet, is_required, item_schema};

/// Maximum number of schema parts that a conversion may visit: a few milliseconds.
const MAX_VISITS: usize = 50_000;

/// Maximum nesting of a value, including the alternatives of its schema.
const MAX_NESTING: usize = 200;

/// Maximum number of conversions in a value. A value that needs more is not what its schema
/// describes.
const MAX_CONVERSIONS: usize = 100;

/// Maximum nesting of alternatives that are inspected.
const MAX_ALTERNATIVE_DEPTH: usize = 8;

/// Maximum number of values, and of bytes, in all strings that are parsed as JSON. They are in
/// addition to those that were counted when the request was read.
const MAX_EMBEDDED_VALUES: u64 = 10_000;
const MAX_EMBEDDED_BYTES: usize = 256 << 10;

/// Maximum edit distance between a name and one of the schema's names for it to count as a
/// misspelling.
const MAX_NAME_DISTANCE: usize = 2;

/// Maximum number of letters that are compared in a name, and the number of visits that a
/// comparison costs.
const MAX_COMPARED_LETTERS: usize = 64;
const NAME_COMPARISON_VISITS: usize = 64;

/// Maximum size of a retained pointer, in bytes. A longer one is truncated.
const MAX_POINTER_BYTES: usize = 200;

/// A conversion of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueConversion {
    /// The location of the value, as a JSON Pointer.
    pub pointer: String,
    /// The kind of the conversion.
    pub kind: ConversionKind,
}

/// A kind of conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConversionKind {
    /// A string became the number that it contains.
    Number,
    /// A string became the boolean that it contains.
    Boolean,
    /// A string became the JSON that it contains.
    Json,
    /// A number or boolean became its text.
    Text,
    /// A value became a list with one item.
    List,
    /// A member that may be absent, and was `null` or the string `null`, was removed.
    Absent,
    /// A member that the schema forbids was removed.
    Dropped,
}

impl ConversionKind {
    /// Returns the name of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Json => "json",
            Self::Text => "text",
            Self::List => "list",
            Self::Absent => "absent",
            Self::Dropped => "dropped",
        }
    }
}

impl fmt::Display for ValueConversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer = if self.pointer.is_empty() {
            "(root)"
        } else {
            &self.pointer
        };
        write!(f, "{pointer}: {}", self.kind.as_str())
    }
}

/// Converts values that the schema rejects. Returns `None` if no value was converted, or if too
/// many would be.
pub(super) fn convert(schema: &Value, value: &mut Value) -> Option<Vec<ValueConversion>> {
    let parts = SchemaParts::new(schema, MAX_VISITS);
    let mut converter = ValueConverter {
        parts,
        text_budget: JsonTextBudget::default(),
        nesting: 0,
        conversions: Vec::new(),
        has_failed: false,
    };
    converter.convert_value(schema, value, &mut String::new(), MAX_ALTERNATIVE_DEPTH);
    (!converter.has_failed && !converter.conversions.is_empty()).then_some(converter.conversions)
}

/// The remaining budget for strings that are parsed as JSON.
struct JsonTextBudget {
    values: Cell<u64>,
    bytes: Cell<usize>,
}

impl Default for JsonTextBudget {
    fn default() -> Self {
        Self {
            values: Cell::new(MAX_EMBEDDED_VALUES),
            bytes: Cell::new(MAX_EMBEDDED_BYTES),
        }
    }
}

impl JsonTextBudget {
    /// Charges the cost of parsing a text; `None` if the budget is insufficient.
    fn try_charge(&self, text: &str) -> Option<()> {
        let bytes = self.bytes.get().checked_sub(text.len())?;
        let values = self
            .values
            .get()
            .checked_sub(JsonSize::measure(text).values)?;
        self.bytes.set(bytes);
        self.values.set(values);
        Some(())
    }
}

struct ValueConverter<'a> {
    parts: SchemaParts<'a>,
    text_budget: JsonTextBudget,
    nesting: usize,
    conversions: Vec<ValueConversion>,
    has_failed: bool,
}

impl<'a> ValueConverter<'a> {
    fn record(&mut self, pointer: &str, kind: ConversionKind) {
        self.has_failed |= self.conversions.len() >= MAX_CONVERSIONS;
        if !self.has_failed {
            self.conversions.push(ValueConversion {
                pointer: clean_line(pointer, MAX_POINTER_BYTES),
                kind,
            });
        }
    }

    /// Converts a value and its parts.
    fn convert_value(
        &mut self,
        schema: &'a Value,
        value: &mut Value,
        pointer: &mut String,
        depth: usize,
    ) {
        self.has_failed |= self.nesting >= MAX_NESTING || !self.parts.try_visit();
        let Some(members) = self.parts.resolve(schema).filter(|_| !self.has_failed) else {
            return;
        };
        let allowed = self.parts.types(schema);
        if !allowed.is_superset(TypeSet::of_value(value)) {
            self.convert_mismatch(schema, allowed, value, pointer);
        }
        self.nesting += 1;
        match value {
            Value::Object(object) => self.convert_members(members, object, pointer),
            Value::Array(items) => self.convert_items(members, items, pointer),
            _ => {}
        }
        self.convert_alternatives(members, value, pointer, depth);
        self.nesting -= 1;
    }

    fn convert_alternatives(
        &mut self,
        members: &'a Map<String, Value>,
        value: &mut Value,
        pointer: &mut String,
        depth: usize,
    ) {
        if depth == 0 {
            return;
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(branches) = members.get(keyword).and_then(Value::as_array)
                && let Some(intended) = self.intended_alternative(branches, value)
            {
                self.convert_value(intended, value, pointer, depth - 1);
            }
        }
        for part in members
            .get("allOf")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            self.convert_value(part, value, pointer, depth - 1);
        }
    }

    /// Converts a value whose type is not allowed.
    fn convert_mismatch(
        &mut self,
        schema: &'a Value,
        allowed: TypeSet,
        value: &mut Value,
        pointer: &str,
    ) {
        if let Value::String(text) = value
            && let Some((parsed, kind)) = parse_string(text, allowed, &self.text_budget)
        {
            *value = parsed;
            return self.record(pointer, kind);
        }
        // A value that is not a valid item must not become a list: the list would be invalid as
        // well.
        let is_item = |schema: &'a Value| {
            let items = item_schema(self.parts.resolve(schema)?, 0)?;
            let allowed = self.parts.types(items);
            let is_parsable = value
                .as_str()
                .is_some_and(|text| parse_string(text, allowed, &self.text_budget).is_some());
            (allowed.is_superset(TypeSet::of_value(value)) || is_parsable).then_some(())
        };
        if allowed.contains("array")
            && !value.is_null()
            && self
                .with_alternatives(schema)
                .any(|schema| is_item(schema).is_some())
        {
            *value = Value::Array(vec![value.take()]);
            self.record(pointer, ConversionKind::List);
        }
    }

    /// Returns a schema and its alternatives.
    fn with_alternatives(&self, schema: &'a Value) -> impl Iterator<Item = &'a Value> + use<'a> {
        let members = self.parts.resolve(schema);
        let branches_of = move |keyword| {
            members
                .and_then(|members| members.get(keyword))
                .and_then(Value::as_array)
        };
        let branches = branches_of("anyOf")
            .into_iter()
            .chain(branches_of("oneOf"))
            .flatten();
        std::iter::once(schema).chain(branches)
    }

    /// Returns the only alternative that the value can be intended for.
    fn intended_alternative(&self, branches: &'a [Value], value: &Value) -> Option<&'a Value> {
        let is_candidate = |branch: &&'a Value| {
            self.parts
                .types(branch)
                .is_superset(TypeSet::of_value(value))
                && self.matches_constants(branch, value)
        };
        let mut candidates = branches.iter().filter(is_candidate);
        match (candidates.next(), candidates.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    }

    /// Returns whether an object has the required members of an alternative, and its constants,
    /// such as its kind.
    fn matches_constants(&self, branch: &'a Value, value: &Value) -> bool {
        let (Some(members), Some(object)) = (self.parts.resolve(branch), value.as_object()) else {
            return true;
        };
        let Some(properties) = members.get("properties").and_then(Value::as_object) else {
            return true;
        };
        properties.iter().all(
            |(name, schema)| match (schema.get("const"), object.get(name)) {
                (Some(constant), Some(value)) => constant == value,
                (Some(_), None) => !is_required(members, name),
                (None, _) => true,
            },
        ) && members
            .get("required")
            .and_then(Value::as_array)
            .is_none_or(|required| {
                required
                    .iter()
                    .filter_map(Value::as_str)
                    .all(|name| object.contains_key(name))
            })
    }

    fn convert_members(
        &mut self,
        schema: &'a Map<String, Value>,
        object: &mut Map<String, Value>,
        pointer: &mut String,
    ) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let additional_schema = schema.get("additionalProperties");
        let has_patterns = schema.contains_key("patternProperties");
        let names: Vec<String> = object.keys().cloned().collect();
        for name in names {
            let length = pointer.len();
            pointer.push('/');
            pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            match properties.and_then(|properties| properties.get(&name)) {
                Some(member) => {
                    let allowed = self.parts.types(member);
                    let is_null = match object.get(&name) {
                        Some(Value::Null) => !allowed.contains("null"),
                        Some(Value::String(text)) => text == "null" && !allowed.contains("string"),
                        _ => false,
                    };
                    if is_null && !is_required(schema, &name) {
                        object.remove(&name);
                        self.record(pointer, ConversionKind::Absent);
                    } else if let Some(value) = object.get_mut(&name) {
                        self.convert_value(member, value, pointer, MAX_ALTERNATIVE_DEPTH);
                    }
                }
                None if has_patterns => {}
                None if additional_schema == Some(&Value::Bool(false)) => {
                    // A misspelled member is not dropped, so that the caller learns the correct
                    // name.
                    let letters = significant_letters(&name);
                    let mut known_names = properties.into_iter().flat_map(Map::keys);
                    let is_intended = |known_name: &String| {
                        // If no visits are left for a comparison, the name counts as similar.
                        !object.contains_key(known_name)
                            && self.are_similar(&letters, known_name).unwrap_or(true)
                    };
                    if known_names.any(is_intended) {
                        self.has_failed = true;
                    } else {
                        object.remove(&name);
                        self.record(pointer, ConversionKind::Dropped);
                    }
                }
                None => {
                    if let (Some(rest), Some(value)) = (additional_schema, object.get_mut(&name)) {
                        self.convert_value(rest, value, pointer, MAX_ALTERNATIVE_DEPTH);
                    }
                }
            }
            pointer.truncate(length);
            if self.has_failed {
                return;
            }
        }
    }

    /// Returns whether a name differs from these letters by so few that it may be a misspelling;
    /// `None` if no visits are left.
    fn are_similar(&self, letters: &str, name: &str) -> Option<bool> {
        let other = self::significant_letters(name);
        let [one, two] = [letters, &other].map(|letters| letters.chars().count());
        let max_distance = MAX_NAME_DISTANCE.min(one.min(two) / 3);
        let has_similar_length = one.abs_diff(two) <= max_distance;
        self.parts
            .try_visits(if has_similar_length {
                NAME_COMPARISON_VISITS
            } else {
                1
            })
            .then(|| has_similar_length && strsim::levenshtein(letters, &other) <= max_distance)
    }

    fn convert_items(
        &mut self,
        schema: &'a Map<String, Value>,
        items: &mut [Value],
        pointer: &mut String,
    ) {
        for (number, value) in items.iter_mut().enumerate() {
            let Some(item) = item_schema(schema, number) else {
                return;
            };
            let length = pointer.len();
            let _ = write!(pointer, "/{number}");
            self.convert_value(item, value, pointer, MAX_ALTERNATIVE_DEPTH);
            pointer.truncate(length);
            if self.has_failed {
                return;
            }
        }
    }
}

/// Returns the value that a string contains, where a string is not allowed.
fn parse_string(
    text: &str,
    allowed: TypeSet,
    text_budget: &JsonTextBudget,
) -> Option<(Value, ConversionKind)> {
    if allowed.contains("string") {
        return None;
    }
    let text = text.trim();
    if let "true" | "True" | "false" | "False" = text
        && allowed.contains("boolean")
    {
        return Some((
            Value::Bool(text.eq_ignore_ascii_case("true")),
            ConversionKind::Boolean,
        ));
    }
    if text == "null" && allowed.contains("null") {
        return Some((Value::Null, ConversionKind::Json));
    }
    let starts_with = |with: &[char]| text.starts_with(with);
    let kind = match () {
        () if starts_with(&['{']) && allowed.contains("object") => ConversionKind::Json,
        () if starts_with(&['[']) && allowed.contains("array") => ConversionKind::Json,
        () if starts_with(&['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
            && allowed.contains("number") =>
        {
            ConversionKind::Number
        }
        () => return None,
    };
    text_budget.try_charge(text)?;
    let value: Value = serde_json::from_str(text).ok()?;
    // A float with more digits is not exact: a different text could result in the same number.
    let is_exact = !value.is_f64() || text.bytes().filter(u8::is_ascii_digit).count() <= 15;
    (allowed.is_superset(TypeSet::of_value(&value)) && is_exact).then_some((value, kind))
}

/// Returns the letters of a name that are significant in a comparison: in lower case and without
/// word separators.
fn significant_letters(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .take(MAX_COMPARED_LETTERS)
        .collect()
}

#[cfg(test)]
mod tests;
