//! Tests of `cbor`.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn hex(text: &str) -> Vec<u8> {
    hex::decode(text).unwrap()
}

fn read(text: &str) -> Result<String, CborError> {
    to_json(&hex(text), 1000, &Interrupt::default())
}

fn malformed(text: &str) -> &'static str {
    match read(text) {
        Err(CborError::Malformed(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// Appendix A of RFC 8949, as far as JSON can represent it.
#[test]
fn the_examples_of_the_standard_are_read() {
    let cases = [
        ("00", "0"),
        ("1bffffffffffffffff", "18446744073709551615"),
        ("3bffffffffffffffff", "-18446744073709551616"),
        ("20", "-1"),
        ("f93c00", "1.0"),
        ("fb3ff199999999999a", "1.1"),
        ("fa7f7fffff", "3.4028234663852886e+38"),
        ("f97c00", "null"),
        ("f97e00", "null"),
        ("f4", "false"),
        ("f5", "true"),
        ("f6", "null"),
        ("f7", "null"),
        (
            "c074323031332d30332d32315432303a30343a30305a",
            "\"2013-03-21T20:04:00Z\"",
        ),
        ("4401020304", "{\"$bytes\":\"AQIDBA==\"}"),
        ("62225c", r#""\"\\""#),
        ("64f0908591", "\"\u{10151}\""),
        ("80", "[]"),
        ("8301820203820405", "[1,[2,3],[4,5]]"),
        ("a0", "{}"),
        ("a201020304", r#"{"1":2,"3":4}"#),
        ("a26161016162820203", r#"{"a":1,"b":[2,3]}"#),
        ("5f42010243030405ff", "{\"$bytes\":\"AQIDBAU=\"}"),
        ("7f657374726561646d696e67ff", "\"streaming\""),
        // Chunks that end in the middle of a character are joined.
        ("7f61c361a9ff", "\"é\""),
        ("9f018202039f0405ffff", "[1,[2,3],[4,5]]"),
        ("bf6346756ef563416d7421ff", r#"{"Fun":true,"Amt":-2}"#),
        ("a162246101", r#"{"$$a":1}"#),
    ];
    for (cbor, json) in cases {
        assert_eq!(read(cbor).as_deref(), Ok(json), "{cbor}");
    }
}

#[test]
fn cbor_that_is_malformed_or_has_no_json_form_is_refused() {
    let cases = [
        ("", UNEXPECTED_END),
        ("61", UNEXPECTED_END),
        ("18", UNEXPECTED_END),
        ("8201", UNEXPECTED_END),
        ("9f01", UNEXPECTED_END),
        ("c0", UNEXPECTED_END),
        ("5bffffffffffffffff00", UNEXPECTED_END),
        ("9bffffffffffffffff", UNEXPECTED_END),
        ("1c", "has a byte with which no item begins"),
        ("61ff", "has a text that is not UTF-8"),
        ("7f4161ff", "has a string with a piece of another kind"),
        ("7f7f6161ffff", "has a string with a piece of another kind"),
        ("a1f501", "has a key that is neither a text nor an integer"),
        ("a16161ff", "has an end without a beginning"),
        ("ff", "has an end without a beginning"),
        ("f0", "has a simple value that JSON does not have"),
        ("0000", "continues after its end"),
    ];
    for (cbor, why) in cases {
        assert_eq!(malformed(cbor), why, "{cbor}");
    }
}

#[test]
fn depth_and_length_are_bounded() {
    let nested = |depth: usize| format!("{}80", "81".repeat(depth - 1));
    assert_eq!(read(&nested(64)).unwrap().len(), 128);
    assert_eq!(malformed(&nested(65)), "is nested more than 64 levels deep");
    let endless = [vec![0x81; 10_000_000], vec![0x80]].concat();
    let refused = Err(CborError::Malformed("is nested more than 64 levels deep"));
    assert_eq!(
        to_json(&endless, usize::MAX, &Interrupt::default()),
        refused
    );
    let tags = [vec![0xc0; 10_000_000], vec![0x80]].concat();
    assert_eq!(
        to_json(&tags, 2, &Interrupt::default()).as_deref(),
        Ok("[]")
    );
    for large in ["\u{1}\u{1}", "é", "\\"] {
        let cbor = from_json(&json!([large])).unwrap();
        let length = to_json(&cbor, usize::MAX, &Interrupt::default())
            .unwrap()
            .len();
        assert!(to_json(&cbor, length, &Interrupt::default()).is_ok());
        assert_eq!(
            to_json(&cbor, length - 1, &Interrupt::default()),
            Err(CborError::TooLarge)
        );
    }
}

#[test]
fn reading_stops_when_it_is_interrupted() {
    let cbor = [vec![0x99, 0x04, 0x00], vec![0xf6; 1024]].concat();
    let interrupt = Interrupt::default();
    assert!(to_json(&cbor, usize::MAX, &interrupt).is_ok());
    interrupt.raise();
    assert_eq!(
        to_json(&cbor, usize::MAX, &interrupt),
        Err(CborError::Interrupted)
    );
}

#[test]
fn encoding_is_deterministic() {
    let cases = [
        (
            json!({"b": 1, "aa": 2, "a": 3, "": 4}),
            "a4600461610361620162616102",
        ),
        (json!(23), "17"),
        (json!(24), "1818"),
        (json!(u64::MAX), "1bffffffffffffffff"),
        (json!(-1), "20"),
        (json!(i64::MIN), "3b7fffffffffffffff"),
        (json!(1.0), "f93c00"),
        (json!(100_000.0), "fa47c35000"),
        (json!(1.1), "fb3ff199999999999a"),
        (json!([null, true, false]), "83f6f5f4"),
        (json!({"$bytes": "AQIDBA=="}), "4401020304"),
        (
            json!({"$bytes": "AQ==", "a": 1}),
            "a2616101662462797465736441513d3d",
        ),
        (json!({"$$a": 1}), "a162246101"),
    ];
    for (value, cbor) in cases {
        assert_eq!(hex::encode(from_json(&value).unwrap()), cbor, "{value}");
    }
    for wrong in [json!({"$bytes": "?"}), json!({"$bytes": 1})] {
        assert!(from_json(&wrong).unwrap_err().contains("base64"));
    }
    assert!(
        from_json(&json!({"$a": 1, "$$a": 2}))
            .unwrap_err()
            .contains("\"$a\"")
    );
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|n| Value::from(f64::from(n) / 4.0)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(r"(\$\$)?[a-z]{0,2}", inner, 0..6)
                .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

proptest! {
    #[test]
    fn encoded_values_are_decoded_again(value in values()) {
        let cbor = from_json(&value).unwrap();
        let json = to_json(&cbor, usize::MAX, &Interrupt::default()).unwrap();
        let read: Value = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(from_json(&read).unwrap(), cbor);
    }

    #[test]
    fn any_bytes_become_json_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(json) = to_json(&bytes, 4000, &Interrupt::default()) {
            prop_assert!(serde_json::from_str::<Value>(&json).is_ok(), "{}", json);
        }
    }
}
