//! The properties of values that a schema states directly: their types, and the schemas of their
//! parts.
//!
//! The results are approximate. A caller that creates a value with them must check it.

use std::cell::Cell;

use serde_json::{Map, Value};

/// Maximum nesting of alternatives that are inspected.
const MAX_ALTERNATIVE_DEPTH: usize = 8;

/// Maximum number of consecutive references that are followed.
const MAX_REFERENCE_HOPS: usize = 16;

/// A set of types of JSON values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TypeSet(u8);

/// The names of the types, in the order of their bits.
const TYPE_NAMES: [&str; 7] = [
    "null", "boolean", "integer", "number", "string", "array", "object",
];

impl TypeSet {
    pub(super) const ALL: Self = Self(0x7f);
    const NONE: Self = Self(0);

    /// Returns the type with this name. `number` includes `integer`.
    pub(super) fn from_name(name: &str) -> Self {
        match name {
            "number" => Self(0b1100),
            name => TYPE_NAMES
                .iter()
                .position(|known| *known == name)
                .map_or(Self::NONE, |at| Self(1 << at)),
        }
    }

    /// Returns the type of a value.
    pub(super) fn of_value(value: &Value) -> Self {
        Self::from_name(match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if is_integer(number) => "integer",
            Value::Number(_) => return Self(0b1000),
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        })
    }

    pub(super) fn contains(self, name: &str) -> bool {
        !self.intersection(Self::from_name(name)).is_empty()
    }

    /// Returns whether this set contains all types of the other.
    pub(super) fn is_superset(self, other: Self) -> bool {
        self.intersection(other) == other
    }

    pub(super) fn is_empty(self) -> bool {
        self == Self::NONE
    }

    pub(super) fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Returns whether a number is an integer in JSON Schema.
fn is_integer(number: &serde_json::Number) -> bool {
    number.is_i64()
        || number.is_u64()
        || number.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// A schema whose parts are inspected, with a limit on the number of visits.
pub(super) struct SchemaParts<'a> {
    root: &'a Value,
    visits_left: Cell<usize>,
}

impl<'a> SchemaParts<'a> {
    pub(super) fn new(root: &'a Value, max_visits: usize) -> Self {
        Self {
            root,
            visits_left: Cell::new(max_visits),
        }
    }

    /// Charges one visit; `false` if none is left.
    pub(super) fn try_visit(&self) -> bool {
        self.try_visits(1)
    }

    /// Charges this number of visits; `false` if fewer are left.
    pub(super) fn try_visits(&self, count: usize) -> bool {
        let left = self.visits_left.get().checked_sub(count);
        self.visits_left.set(left.unwrap_or_default());
        left.is_some()
    }

    /// Follows the references of a schema. Returns `None` if the target is not an object, or if
    /// there are too many references in a row.
    pub(super) fn resolve(&self, schema: &'a Value) -> Option<&'a Map<String, Value>> {
        resolve_references(self.root, schema)
    }

    /// Returns the types that values of a schema can have; all types if no visits are left.
    pub(super) fn types(&self, schema: &'a Value) -> TypeSet {
        self.types_within(schema, MAX_ALTERNATIVE_DEPTH)
    }

    fn types_within(&self, schema: &'a Value, depth: usize) -> TypeSet {
        if !self.try_visit() {
            return TypeSet::ALL;
        }
        let Some(members) = self.resolve(schema) else {
            return if schema == &Value::Bool(false) {
                TypeSet::NONE
            } else {
                TypeSet::ALL
            };
        };
        let mut types = match members.get("type") {
            Some(Value::String(name)) => TypeSet::from_name(name),
            Some(Value::Array(names)) => names
                .iter()
                .filter_map(Value::as_str)
                .fold(TypeSet::NONE, |all, name| {
                    all.union(TypeSet::from_name(name))
                }),
            _ => TypeSet::ALL,
        };
        if let Some(value) = members.get("const") {
            types = types.intersection(TypeSet::of_value(value));
        }
        if let Some(Value::Array(values)) = members.get("enum") {
            types = types.intersection(values.iter().fold(TypeSet::NONE, |all, value| {
                all.union(TypeSet::of_value(value))
            }));
        }
        if depth > 0 {
            for keyword in ["anyOf", "oneOf"] {
                if let Some(branches) = members.get(keyword).and_then(Value::as_array) {
                    let any =
                        |all: TypeSet, branch| all.union(self.types_within(branch, depth - 1));
                    types = types.intersection(branches.iter().fold(TypeSet::NONE, any));
                }
            }
            for part in members
                .get("allOf")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                types = types.intersection(self.types_within(part, depth - 1));
            }
        }
        types
    }
}

fn resolve_references<'a>(root: &'a Value, schema: &'a Value) -> Option<&'a Map<String, Value>> {
    let mut schema = schema;
    for _ in 0..MAX_REFERENCE_HOPS {
        let members = schema.as_object()?;
        match members.get("$ref").and_then(Value::as_str) {
            Some(target) => {
                let pointer = percent_encoding::percent_decode_str(target.strip_prefix('#')?)
                    .decode_utf8()
                    .ok()?;
                schema = root.pointer(&pointer)?;
            }
            None => return Some(members),
        }
    }
    None
}

/// Returns the schema of the item with this index.
pub(super) fn item_schema(schema: &Map<String, Value>, number: usize) -> Option<&Value> {
    let prefix = match (schema.get("prefixItems"), schema.get("items")) {
        (Some(Value::Array(prefix)), _) | (None, Some(Value::Array(prefix))) => prefix.as_slice(),
        _ => &[],
    };
    prefix.get(number).or_else(|| match schema.get("items") {
        Some(Value::Array(_)) => schema.get("additionalItems"),
        items => items,
    })
}

/// Returns whether an object must have a member.
pub(super) fn is_required(schema: &Map<String, Value>, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|required| required == name))
}
