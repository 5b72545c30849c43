//! JSON that no honest client sends.

use fastrand::Rng;

use crate::text::Text;

/// Approximate sizes in bytes, with their weights.
const SIZES: [(usize, u32); 6] = [
    (20, 8),
    (700, 4),
    (9000, 4),
    (200_000, 3),
    (1_200_000, 2),
    (4_300_000, 1),
];

/// Depths of nesting; 128 is the maximum that is accepted.
const DEPTHS: [usize; 7] = [2, 64, 127, 128, 129, 5000, 900_000];

const NUMBERS: [&str; 16] = [
    "0",
    "-0",
    "-1",
    "1.0",
    "1e3",
    "0.1e-400",
    "1e999",
    "-1E+308",
    "9007199254740993",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775809",
    "123456789012345678901234567890123456789",
    "01",
    "+1",
    "NaN",
];

const STRINGS: [&[u8]; 14] = [
    b"",
    b" ",
    b"a",
    b"\\u0000",
    b"\\ud800",
    b"\\udc00\\ud800",
    b"\\ud83d\\ude00",
    b"\\x",
    b"\0",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\xc0\xaf",
    b"\\u202e\\u001b[31m\\r\\n",
    b"../../etc/passwd",
];

const PLAIN: [&str; 6] = ["null", "true", "false", "{}", "[]", "\"x\""];

/// Returns a random element, chosen by weight.
pub(crate) fn weighted<T: Copy + Default>(random: &mut Rng, from: &[(T, u32)]) -> T {
    let all: u32 = from.iter().map(|(_, weight)| weight).sum();
    let mut at = random.u32(..all);
    for (one, weight) in from {
        match at.checked_sub(*weight) {
            None => return *one,
            Some(left) => at = left,
        }
    }
    T::default()
}

/// Returns a random size in bytes.
fn size(random: &mut Rng) -> usize {
    weighted(random, &SIZES)
}

fn pick<T: Copy>(random: &mut Rng, from: &[T]) -> Option<T> {
    random.choice(from).copied()
}

/// Returns a random value.
pub(crate) fn odd(random: &mut Rng) -> Text {
    match random.u8(..12) {
        0 | 1 => Text::new(pick(random, &PLAIN).unwrap_or_default()),
        2 | 3 => Text::new(pick(random, &NUMBERS).unwrap_or_default()),
        4 | 5 => Text::new("\"")
            .and(pick(random, &STRINGS).unwrap_or_default())
            .and("\""),
        6 => Text::new("\"").then(long(random)).and("\""),
        7 => deep(random),
        8 => many(random),
        9 => members(random),
        10 => Text::new(r#"{"a":1,"a":2,"":{"":{"":3}}}"#),
        // A number that is longer than any machine type.
        _ => Text::new("1").then(Text::repeated("0", size(random).min(200_000))),
    }
}

/// Returns the content of a string.
pub(crate) fn long(random: &mut Rng) -> Text {
    let piece = pick(
        random,
        &["x", "\\n", "\\u0000", "é", "😀", "\\\\\\\"", "a b"],
    )
    .unwrap_or_default();
    Text::repeated(piece, size(random) / piece.len().max(1))
}

fn deep(random: &mut Rng) -> Text {
    let depth = pick(random, &DEPTHS).unwrap_or_default();
    match random.u8(..4) {
        0 => Text::repeated("[", depth).then(Text::repeated("]", depth)),
        1 => Text::repeated("{\"a\":", depth)
            .and("0")
            .then(Text::repeated("}", depth)),
        2 => Text::repeated("[{\"\":", depth / 2)
            .and("0")
            .then(Text::repeated("}]", depth / 2)),
        // The brackets are never closed.
        _ => Text::repeated("[", depth),
    }
}

fn many(random: &mut Rng) -> Text {
    let piece = pick(
        random,
        &[
            "0,",
            "[0],",
            "[],",
            "{},",
            "\"\",",
            "{\"\":0},",
            "[[[[0]]]],",
            "1e5,",
        ],
    );
    let piece = piece.unwrap_or_default();
    Text::new("[")
        .then(Text::repeated(piece, size(random) / piece.len().max(1)))
        .and("0]")
}

fn members(random: &mut Rng) -> Text {
    let after = pick(random, &["\":0,", "\":{},", "\":[0],", "\":null,"]).unwrap_or_default();
    Text::new("{")
        .then(Text::numbered(
            "\"",
            after,
            size(random) / (after.len() + 6),
        ))
        .and("\"z\":0}")
}

/// Returns text that is not valid JSON.
pub(crate) fn broken(random: &mut Rng) -> Text {
    const BROKEN: [&[u8]; 16] = [
        b"",
        b" ",
        b"{",
        b"}",
        b"[",
        b"[]",
        b"[,]",
        b"{\"jsonrpc\"",
        b"\"",
        b"\xef\xbb\xbf{}",
        b"\xff\xff",
        b"\0",
        b"{}{}",
        b"null",
        b"7",
        b"// no",
    ];
    if random.u8(..4) == 0 {
        odd(random)
    } else {
        Text::new(pick(random, &BROKEN).unwrap_or_default())
    }
}

/// Returns an object with these members, one of which is often replaced by an unexpected value, and
/// whether it is unchanged.
pub(crate) fn object(random: &mut Rng, mut members: Vec<(&str, Text)>, rate: u32) -> (Text, bool) {
    let is_odd = random.u32(..100) < rate && !members.is_empty();
    if is_odd {
        let at = random.usize(..members.len());
        let changed = members.get(at).map_or("", |(name, _)| name);
        match random.u8(..6) {
            0 => drop(members.remove(at)),
            1 => members.push((changed, odd(random))),
            2 => members.push(("unheard-of", odd(random))),
            _ => {
                let value = odd(random);
                if let Some((_, old)) = members.get_mut(at) {
                    *old = value;
                }
            }
        }
    }
    let mut text = Text::new("{");
    for (n, (name, value)) in members.into_iter().enumerate() {
        text = text
            .and(if n > 0 { "," } else { "" })
            .and(format!("\"{name}\":"))
            .then(value);
    }
    (text.and("}"), !is_odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_as_given_or_not() {
        let mut random = Rng::with_seed(1);
        let members = || vec![("a", Text::new("1")), ("b", Text::new("[2]"))];
        let (text, whole) = object(&mut random, members(), 0);
        assert_eq!(
            (text.to_string(), whole),
            (r#"{\"a\":1,\"b\":[2]}"#.to_owned(), true)
        );
        assert!((0..100).all(|_| !object(&mut random, members(), 100).1));
    }

    #[test]
    fn nothing_is_much_larger_than_the_server_takes() {
        let mut random = Rng::with_seed(2);
        for _ in 0..2000 {
            let odd = odd(&mut random);
            let broken = broken(&mut random);
            assert!(
                odd.bytes("").len() < 10 << 20 && broken.bytes("").len() < 10 << 20,
                "{odd} {broken}"
            );
        }
    }
}
