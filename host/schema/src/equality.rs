//! Equality of JSON values as JSON Schema defines it, within the budget of a check.
//!
//! 1 and 1.0 are equal, and the order of members is not significant. Comparing each element of a
//! long array with each other would take years, so `uniqueItems` compares keyed hashes. A client
//! cannot cause collisions, because it does not have the key.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash as _, Hasher as _, RandomState};

use jsonschema::json::cmp;
use serde_json::{Number, Value};

use super::budget;

/// The range of the integers that a JSON number can represent exactly: those of `i64` and of `u64`.
const INTEGER_RANGE: std::ops::Range<f64> =
    -9_223_372_036_854_775_808.0..18_446_744_073_709_551_616.0;

/// Returns whether two values are equal. Costs one step for each pair of values that is compared.
pub(super) fn are_equal(left: &Value, right: &Value) -> bool {
    budget::charge_access();
    match (left, right) {
        (Value::String(left), Value::String(right)) => {
            left.len() == right.len() && {
                budget::charge_text(left);
                left == right
            }
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| are_equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, left)| {
                    budget::charge_text(name);
                    right.get(name).is_some_and(|right| are_equal(left, right))
                })
        }
        (left, right) => cmp::equal(left, right),
    }
}

/// Returns whether all values are different. Costs one step for each value within them.
pub(super) fn are_unique(items: &[Value]) -> bool {
    let hash_builder = RandomState::new();
    // No capacity is reserved, because the budget may be exhausted before the end.
    let mut seen: HashMap<u64, Vec<&Value>> = HashMap::new();
    items.iter().all(|item| {
        let others = seen.entry(hash_value(item, &hash_builder)).or_default();
        // There is at most one, except for random collisions.
        let is_new = !others.iter().any(|other| are_equal(other, item));
        others.push(item);
        is_new
    })
}

/// Returns a hash that is the same for equal values. It includes the kind and length of each value,
/// so that values of different structure have different hashes.
fn hash_value(value: &Value, hash_builder: &RandomState) -> u64 {
    budget::charge_access();
    let mut state = hash_builder.build_hasher();
    match value {
        Value::Null => state.write_u8(0),
        Value::Bool(yes) => (1_u8, yes).hash(&mut state),
        Value::Number(number) => (2_u8, canonical_number(number)).hash(&mut state),
        Value::String(text) => {
            budget::charge_text(text);
            (3_u8, text).hash(&mut state);
        }
        Value::Array(items) => {
            (4_u8, items.len()).hash(&mut state);
            for item in items {
                state.write_u64(hash_value(item, hash_builder));
            }
        }
        Value::Object(members) => {
            // A sum does not depend on the order. Its terms are keyed hashes, so that a client
            // cannot choose them.
            let sum = members.iter().fold(0_u64, |sum, (name, member)| {
                budget::charge_text(name);
                sum.wrapping_add(hash_builder.hash_one((name, hash_value(member, hash_builder))))
            });
            (5_u8, members.len(), sum).hash(&mut state);
        }
    }
    state.finish()
}

/// A number in a form that can be hashed: equal numbers have the same form.
#[derive(Hash)]
enum CanonicalNumber {
    Integer(i128),
    /// The bits of an `f64` that is not a 64-bit integer.
    Other(u64),
}

fn canonical_number(number: &Number) -> CanonicalNumber {
    if let Some(integer) = number.as_i128() {
        return CanonicalNumber::Integer(integer);
    }
    let float = number.as_f64().unwrap_or_default();
    if float.fract() == 0.0 && INTEGER_RANGE.contains(&float) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "an integer within the range of 64 bits"
        )]
        return CanonicalNumber::Integer(float as i128);
    }
    CanonicalNumber::Other(float.to_bits())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Numbers that have several equal representations, and their neighbours.
    fn number() -> impl Strategy<Value = Value> {
        prop_oneof![
            (-3_i64..3).prop_map(Value::from),
            (-3_i8..3).prop_map(|n| Value::from(f64::from(n))),
            (-6_i8..6).prop_map(|n| Value::from(f64::from(n) / 2.0)),
            prop::sample::select(vec![
                json!(-0.0),
                json!(i64::MIN),
                json!(-9_223_372_036_854_775_808.0),
                json!(u64::MAX),
                json!(18_446_744_073_709_551_616.0),
                json!(9_007_199_254_740_993_u64),
                json!(9_007_199_254_740_992.0),
                json!(1e300),
            ]),
        ]
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            number(),
            "[ab]{0,2}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::vec(("[ab]", inner), 0..3)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// Returns an equal value, with its members in another order and its integers as floats.
    fn equal_value(value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(equal_value).collect(),
            Value::Object(members) => Value::Object(
                members
                    .iter()
                    .rev()
                    .map(|(name, member)| (name.clone(), equal_value(member)))
                    .collect(),
            ),
            Value::Number(number) => match number.as_i64() {
                Some(small) if small.unsigned_abs() < 1 << 53 => json!(number.as_f64()),
                _ => value.clone(),
            },
            value => value.clone(),
        }
    }

    proptest! {
        #[test]
        fn equality_is_that_of_json_schema(left in value(), right in value()) {
            prop_assert_eq!(are_equal(&left, &right), cmp::equal(&left, &right));
            prop_assert!(are_equal(&left, &equal_value(&left)));
        }

        #[test]
        fn hashes_are_equal_where_values_are(left in value(), right in value()) {
            let hashes = RandomState::new();
            prop_assert_eq!(hash_value(&left, &hashes) == hash_value(&right, &hashes), cmp::equal(&left, &right));
            prop_assert_eq!(hash_value(&left, &hashes), hash_value(&equal_value(&left), &hashes));
        }

        #[test]
        fn unique_items_are_those_of_json_schema(items in prop::collection::vec(value(), 0..20)) {
            prop_assert_eq!(are_unique(&items), jsonschema::json::unique::is_unique(&items));
        }
    }

    #[test]
    fn trees_of_empty_arrays_have_different_hashes() {
        let hashes = RandomState::new();
        let trees = [
            json!([]),
            json!([[]]),
            json!([[], []]),
            json!([[[]]]),
            json!([[[]], []]),
            json!([[], [[]]]),
        ];
        for (at, left) in trees.iter().enumerate() {
            for (other, right) in trees.iter().enumerate() {
                assert_eq!(
                    hash_value(left, &hashes) == hash_value(right, &hashes),
                    at == other,
                    "{left} {right}"
                );
            }
        }
    }
}
