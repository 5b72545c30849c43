//! JSON values for a check: each access costs one step of the budget.

use std::borrow::Cow;
use std::iter::Map as Mapped;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object};
use serde_json::map::Iter;
use serde_json::{Map, Number, Value};

use super::{budget, equality};

/// Size of a value that is quoted in one step. The value that a violation contains is formatted at
/// once.
const QUOTED_SIZE_PER_STEP: u64 = 64;

/// The JSON representation that validators are built for.
pub(super) struct CountedJson;

/// A value whose accesses are counted.
#[derive(Clone, Copy)]
pub(super) struct CountedValue<'a>(pub(super) &'a Value);

/// The members of an object.
pub(super) struct CountedMembers<'a>(&'a Map<String, Value>);

/// The elements of an array.
pub(super) struct CountedElements<'a>(&'a [Value]);

impl Json for CountedJson {
    type Node<'a> = CountedValue<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(
        buffer: &mut Value,
        string: &str,
        f: impl FnOnce(CountedValue<'_>) -> T,
    ) -> T {
        *buffer = Value::String(string.to_owned());
        f(CountedValue(buffer))
    }
}

impl<'a> Node<'a, CountedJson> for CountedValue<'a> {
    type Object = CountedMembers<'a>;
    type Array = CountedElements<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<CountedMembers<'a>> {
        budget::charge_access();
        self.0.as_object().map(CountedMembers)
    }

    fn as_array(&self) -> Option<CountedElements<'a>> {
        budget::charge_access();
        self.0.as_array().map(|elements| CountedElements(elements))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.0.as_str();
        budget::charge_text(text.unwrap_or_default());
        text.map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        budget::charge_access();
        self.0.as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        budget::charge_access();
        self.0.as_bool()
    }

    fn is_null(&self) -> bool {
        budget::charge_access();
        self.0.is_null()
    }

    fn json_type(&self) -> JsonType {
        budget::charge_access();
        match self.0 {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        equality::are_equal(self.0, expected)
    }

    /// Returns the value for a violation, which may quote all of it.
    fn to_value(&self) -> Cow<'a, Value> {
        budget::charge_steps(1 + value_size(self.0) / QUOTED_SIZE_PER_STEP);
        Cow::Borrowed(self.0)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        budget::charge_access();
        Some(NodeIdentity::new(std::ptr::from_ref(self.0).addr()))
    }
}

impl<'a> Object<'a, CountedJson> for CountedMembers<'a> {
    type Node = CountedValue<'a>;
    type MemberName = &'a str;
    type MembersIter = Mapped<Iter<'a>, fn((&'a String, &'a Value)) -> (&'a str, CountedValue<'a>)>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<CountedValue<'a>> {
        budget::charge_access();
        self.0.get(key).map(CountedValue)
    }

    fn members(&self) -> Self::MembersIter {
        self.0.iter().map(|(name, value)| {
            budget::charge_name(name);
            (name.as_str(), CountedValue(value))
        })
    }
}

impl<'a> Array<'a, CountedJson> for CountedElements<'a> {
    type Node = CountedValue<'a>;
    type ElementsIter = Mapped<std::slice::Iter<'a, Value>, fn(&'a Value) -> CountedValue<'a>>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> Self::ElementsIter {
        self.0.iter().map(|value| {
            budget::charge_access();
            CountedValue(value)
        })
    }

    fn is_unique(&self) -> bool {
        equality::are_unique(self.0)
    }
}

/// Returns the size of a value: the number of its values, plus one for every eight bytes of text.
fn value_size(value: &Value) -> u64 {
    match value {
        Value::String(text) => 1 + text.len() as u64 / 8,
        Value::Array(items) => items.iter().map(value_size).sum::<u64>() + 1,
        Value::Object(members) => {
            members
                .iter()
                .map(|(name, member)| 1 + name.len() as u64 / 8 + value_size(member))
                .sum::<u64>()
                + 1
        }
        _ => 1,
    }
}
