//! Mutates JSON into other JSON. Random changes to bytes seldom result in another valid schema.

use serde_json::{Map, Value, json};

/// Schemas with meaningful content, which can be nested.
const SCHEMAS: &str = r##"[
    true, false, {}, {"type":"string"}, {"type":["object","array"]}, {"type":"integer"}, {"enum":[1,"a",null]},
    {"const":{"a":[1]}}, {"minimum":0}, {"exclusiveMaximum":1e300}, {"multipleOf":0.01}, {"maxLength":2},
    {"pattern":"^a+$"}, {"pattern":"(a*)*b"}, {"pattern":"^(?=a)(a+)+\\1$"}, {"pattern":"^(a|a)*\\1b"}, {"pattern":"\\p{L}{2,40}"},
    {"format":"date-time"}, {"format":"regex"}, {"format":"uri"}, {"format":"email"}, {"format":"idn-hostname"},
    {"required":["a"]}, {"minProperties":1}, {"properties":{"a":{"type":"string"},"b":true}},
    {"patternProperties":{"^a":{"type":"string"}}}, {"additionalProperties":false}, {"propertyNames":{"maxLength":1}},
    {"dependentRequired":{"a":["b"]}}, {"dependentSchemas":{"a":{"required":["b"]}}}, {"dependencies":{"a":["b"]}},
    {"items":{"type":"integer"}}, {"prefixItems":[true,{"type":"string"}]}, {"items":[{"type":"string"}]},
    {"additionalItems":false}, {"contains":{"type":"string"}}, {"contains":true,"minContains":2,"maxContains":3},
    {"minItems":1}, {"uniqueItems":true}, {"allOf":[{"type":"object"}]}, {"anyOf":[{"type":"object"},true]},
    {"oneOf":[{"type":"object"},{"required":["a"]}]}, {"not":{"type":"string"}},
    {"if":{"required":["a"]},"then":{"required":["b"]},"else":false}, {"unevaluatedProperties":false},
    {"unevaluatedItems":{"type":"string"}}, {"$ref":"#"}, {"$ref":"#/$defs/a"}, {"$ref":"#a"}, {"$dynamicRef":"#a"},
    {"$recursiveRef":"#"}, {"$anchor":"a"}, {"$dynamicAnchor":"a"}, {"$recursiveAnchor":true}, {"$id":"a"},
    {"$id":"http://example.com/a"}, {"$ref":"a"}, {"$defs":{"a":{"type":"string"}}},
    {"definitions":{"a":{"$ref":"#/$defs/a"}}}, {"$schema":"http://json-schema.org/draft-07/schema#"},
    {"$schema":"http://json-schema.org/draft-04/schema#"}, {"$schema":"https://json-schema.org/draft/2019-09/schema"},
    {"$ref":"http://json-schema.org/draft-07/schema#"}, {"$ref":"https://json-schema.org/draft/2020-12/schema"},
    {"contentEncoding":"base64","contentMediaType":"application/json"}, {"$comment":"a"}, {"default":{"$ref":"#"}}
]"##;

/// Values to check.
const VALUES: &str = r##"[null, true, 0, 1, -1, 0.5, 1e300, 9007199254740993, 18446744073709551615, "", "a", "aaaaaaaaaa!",
    "2024-02-30T25:61:61Z", "a@b.c", "(", [], [1,1], [1,"a",null], ["a","a"], {}, {"a":1}, {"a":"a","b":{"a":[]}},
    {"$ref":"#"}, [[[[]]]]]"##;

/// Makes one to three mutations. `text` is a schema on one line and a value after it.
pub fn mutated(text: &[u8], seed: u32) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    let (schema, value) = text.split_once('\n').unwrap_or((text, "null"));
    let mut schema: Value = serde_json::from_str(schema).ok()?;
    let mut value: Value = serde_json::from_str(value).unwrap_or(Value::Null);
    let mut dice = Dice(u64::from(seed) << 16 | 0x9e37);
    for _ in 0..=dice.below(3) {
        if dice.below(3) == 0 {
            change(&mut value, &mut dice, VALUES);
        } else {
            change(&mut schema, &mut dice, SCHEMAS);
        }
    }
    Some(format!("{schema}\n{value}"))
}

/// Mutates one node.
fn change(root: &mut Value, dice: &mut Dice, fragments: &str) {
    let places = places(root);
    let elsewhere = root
        .pointer(dice.one_of::<String>(&places))
        .cloned()
        .unwrap_or_default();
    let reference = json!({"$ref": format!("#{}", dice.one_of(&places))});
    let fragment = fragment(dice, fragments);
    let place = dice.one_of(&places).clone();
    let Some(node) = root.pointer_mut(&place) else {
        return;
    };
    match dice.below(9) {
        0 => *node = fragment,
        1 => *node = elsewhere,
        2 => *node = reference,
        3 => join(node, elsewhere),
        4 => join(node, reference),
        5 => remove(node, dice),
        6 => {
            let word = ["allOf", "anyOf", "oneOf", "items", "not", "contains", "a"][dice.below(7)];
            let inner = node.take();
            let twice = dice.below(2) == 0 && word.ends_with("Of");
            *node = json!({word: if twice { json!([inner, fragment]) } else if word.ends_with("Of") { json!([inner]) } else { inner }});
        }
        _ => join(node, fragment),
    }
}

/// Adds the members of another object to an object, or an element to an array.
fn join(node: &mut Value, other: Value) {
    match (node, other) {
        (Value::Object(members), Value::Object(others)) => members.extend(others),
        (Value::Array(items), other) => items.push(other),
        (node, other) => *node = other,
    }
}

fn remove(node: &mut Value, dice: &mut Dice) {
    match node {
        Value::Array(items) if !items.is_empty() => drop(items.remove(dice.below(items.len()))),
        Value::Object(members) if !members.is_empty() => {
            let key = members
                .keys()
                .nth(dice.below(members.len()))
                .cloned()
                .unwrap_or_default();
            members.remove(&key);
        }
        node => *node = Value::Object(Map::new()),
    }
}

fn fragment(dice: &mut Dice, fragments: &str) -> Value {
    let mut fragments: Vec<Value> =
        serde_json::from_str(fragments).expect("the fragments are JSON");
    fragments.swap_remove(dice.below(fragments.len()))
}

/// Returns the pointers to all nodes of a value.
fn places(root: &Value) -> Vec<String> {
    let mut places = Vec::new();
    let mut open = vec![(String::new(), root)];
    while let Some((place, value)) = open.pop() {
        match value {
            Value::Array(items) => {
                open.extend(
                    items
                        .iter()
                        .enumerate()
                        .map(|(index, item)| (format!("{place}/{index}"), item)),
                );
            }
            Value::Object(members) => open.extend(members.iter().map(|(key, member)| {
                let key = key.replace('~', "~0").replace('/', "~1");
                (format!("{place}/{key}"), member)
            })),
            _ => {}
        }
        places.push(place);
    }
    places
}

/// Pseudo-random numbers from a seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % most.max(1) as u64) as usize
    }

    fn one_of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}
