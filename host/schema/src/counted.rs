//! JSON values as a check accesses them: each access costs one step of the budget.

use std::borrow::Cow;
use std::iter::Map as Mapped;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, cmp, unique};
use serde_json::map::Iter;
use serde_json::{Map, Number, Value};

use super::budget;

/// The representation that validators are built for.
pub(super) struct Counted;

/// A value whose accesses are counted.
#[derive(Clone, Copy)]
pub(super) struct Looked<'a>(pub(super) &'a Value);

/// The members of an object.
pub(super) struct Members<'a>(&'a Map<String, Value>);

/// The elements of an array.
pub(super) struct Elements<'a>(&'a [Value]);

impl Json for Counted {
    type Node<'a> = Looked<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(Looked<'_>) -> T) -> T {
        *buffer = Value::String(string.to_owned());
        f(Looked(buffer))
    }
}

impl<'a> Node<'a, Counted> for Looked<'a> {
    type Object = Members<'a>;
    type Array = Elements<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Members<'a>> {
        budget::look();
        self.0.as_object().map(Members)
    }

    fn as_array(&self) -> Option<Elements<'a>> {
        budget::look();
        self.0.as_array().map(|elements| Elements(elements))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        budget::read();
        self.0.as_str().map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        budget::look();
        self.0.as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        budget::look();
        self.0.as_bool()
    }

    fn is_null(&self) -> bool {
        budget::look();
        self.0.is_null()
    }

    fn json_type(&self) -> JsonType {
        budget::look();
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
        budget::look();
        cmp::equal(self.0, expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Borrowed(self.0)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        budget::look();
        Some(NodeIdentity::new(std::ptr::from_ref(self.0).addr()))
    }
}

impl<'a> Object<'a, Counted> for Members<'a> {
    type Node = Looked<'a>;
    type MemberName = &'a str;
    type MembersIter = Mapped<Iter<'a>, fn((&'a String, &'a Value)) -> (&'a str, Looked<'a>)>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<Looked<'a>> {
        budget::look();
        self.0.get(key).map(Looked)
    }

    fn members(&self) -> Self::MembersIter {
        self.0.iter().map(|(name, value)| {
            // A pattern may apply to the name.
            budget::read();
            (name.as_str(), Looked(value))
        })
    }
}

impl<'a> Array<'a, Counted> for Elements<'a> {
    type Node = Looked<'a>;
    type ElementsIter = Mapped<std::slice::Iter<'a, Value>, fn(&'a Value) -> Looked<'a>>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> Self::ElementsIter {
        self.0.iter().map(|value| {
            budget::look();
            Looked(value)
        })
    }

    fn is_unique(&self) -> bool {
        self.0.iter().for_each(|_| budget::look());
        unique::is_unique(self.0)
    }
}
