//! Integers that every client reads exactly.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::ops::Deref;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An integer that is a string in JSON, for identifiers and for amounts beyond 2<sup>53</sup>.
///
/// JSON numbers have no limit, but many clients, and all clients in JavaScript, read them as 64-bit
/// floating-point numbers: 9007199254740993 becomes 9007199254740992. Toolbay warns about results
/// whose schema allows such numbers.
///
/// ```
/// use serde::Serialize;
/// use toolbay_plugin::prelude::*;
/// use toolbay_plugin::IntString;
///
/// #[derive(Serialize, JsonSchema)]
/// struct Order {
///     id: IntString<u64>,
/// }
///
/// let order = Order { id: IntString(9_007_199_254_740_993) };
/// assert_eq!(toolbay_plugin::serde_json::to_string(&order).unwrap(), r#"{"id":"9007199254740993"}"#);
/// ```
///
/// In arguments, it also accepts a number, if the schema allows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntString<T>(pub T);

impl<T> Deref for IntString<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> From<T> for IntString<T> {
    fn from(integer: T) -> Self {
        Self(integer)
    }
}

impl<T: Display> Display for IntString<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Display> Serialize for IntString<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de, T: FromStr> Deserialize<'de> for IntString<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Digits<T>(PhantomData<T>);

        impl<T: FromStr> Visitor<'_> for Digits<T> {
            type Value = IntString<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer, as a string")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                text.parse()
                    .map(IntString)
                    .map_err(|_| E::custom(format!("{text:?} is not an integer in its range")))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
                self.visit_str(&number.to_string())
            }
        }

        deserializer
            .deserialize_any(Digits(PhantomData))
            .map_err(D::Error::custom)
    }
}

impl<T> JsonSchema for IntString<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "IntString".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^-?[0-9]+$"})
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_a_string_of_digits() {
        assert_eq!(
            serde_json::to_value(IntString(u64::MAX)).unwrap(),
            json!("18446744073709551615")
        );
        let read = |value| serde_json::from_value::<IntString<i64>>(value).map(|IntString(n)| n);
        assert_eq!(read(json!("-9223372036854775808")).unwrap(), i64::MIN);
        assert_eq!(read(json!(-7)).unwrap(), -7);
        assert_eq!(read(json!(7)).unwrap(), 7);
        let wrong = read(json!("9223372036854775808")).unwrap_err().to_string();
        assert_eq!(
            wrong,
            "\"9223372036854775808\" is not an integer in its range"
        );
        assert!(
            read(json!(7.5))
                .unwrap_err()
                .to_string()
                .contains("expected an integer, as a string")
        );
    }

    #[test]
    fn its_schema_is_one_of_strings() {
        let schema = crate::schema::of_output::<Vec<IntString<u64>>>().to_value();
        assert_eq!(
            schema["items"],
            json!({"type": "string", "pattern": "^-?[0-9]+$"})
        );
    }
}
