//! What is called, how often, and what must come of it.

use std::time::Duration;

use fastrand::Rng;
use serde_json::{Value, json};
use toolbay_testkit::Answer;

use crate::counts::kind;

/// The JSON-RPC error for a tool that there is not.
const UNKNOWN_TOOL: &str = "-32602";

/// One thing to do.
pub(crate) enum Deed {
    /// To call a tool.
    Call(Call),
    /// To call the tool of any slot, by whose change its answer is judged.
    CallSlot,
    /// To send `ping`.
    Ping,
    /// To send a line that is no request.
    Garbage(&'static str),
}

/// A call of a tool.
pub(crate) struct Call {
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
    pub(crate) expected: Expected,
    /// After how long nobody waits for it any more.
    pub(crate) cancel: Option<Duration>,
}

/// What must come of a call.
#[derive(Debug)]
pub(crate) enum Expected {
    /// Text, and nothing but this.
    Text(String),
    /// Structured content with this value at this place.
    Value(&'static str, Value),
    /// Some content of this type.
    Content(&'static str),
    /// Success, whatever it says.
    Success,
    /// An error of one of these kinds.
    Kind(&'static [&'static str]),
}

type Make = fn(&mut Rng) -> Deed;

/// How many of a thousand deeds are which, about.
const MIX: &[(u32, Make)] = &[
    (280, |random| echo(random, 8, 200)),
    (10, |random| echo(random, 10_000, 100_000)),
    (1, |random| echo(random, 500_000, 900_000)),
    (120, |random| {
        let (a, b) = (random.u32(..1000), random.u32(..1000));
        let expression = json!({"expression": format!("{a} + {b} * 2")});
        call(
            "evaluate",
            expression,
            Expected::Value("/structuredContent/value", json!(f64::from(a) + 2.0 * f64::from(b))),
        )
    }),
    (60, |random| {
        let numbers: Vec<u32> = (0..random.usize(1..200)).map(|_| random.u32(..1000)).collect();
        let sum: u32 = numbers.iter().sum();
        call(
            "calculate_total",
            json!({"numbers": numbers}),
            Expected::Value("/structuredContent/total", json!(f64::from(sum))),
        )
    }),
    (40, |_| {
        let days = json!({"start": "2026-01-01", "end": "2026-01-02"});
        call("time_difference", days, Expected::Value("/structuredContent/seconds", json!(86400.0)))
    }),
    (10, |_| call("qr_svg", json!({"text": "toolbay"}), Expected::Content("text"))),
    (2, |_| call("line_chart", json!({"values": [1, 3, 2], "size": "small"}), Expected::Content("image"))),
    (200, |_| Deed::CallSlot),
    // Whatever another call has left behind would show.
    (60, |_| call("bad.count", json!({}), Expected::Text("1".to_owned()))),
    (40, |_| Deed::Ping),
    (2, |_| Deed::Garbage("{\"jsonrpc\": \"2.0\", \"id\"")),
    (2, |_| Deed::Garbage("[]")),
    // What callers get wrong.
    (10, |_| fails("no_such_tool", json!({}), &[UNKNOWN_TOOL])),
    (10, |_| fails("evaluate", json!({"expression": 7}), &["invalid-arguments"])),
    (10, |_| fails("evaluate", json!({"expression": "1 +"}), &["invalid-arguments"])),
    // What plugins do.
    (5, |_| fails("bad.fail", json!({}), &["failed"])),
    (5, |_| fails("bad.refuse", json!({}), &["invalid-arguments"])),
    (6, |_| fails("flood.spin", json!({}), &["fuel"])),
    (4, |_| fails("flood.clock", json!({}), &["fuel"])),
    (4, |_| fails("flood.random", json!({}), &["fuel"])),
    (4, |_| fails("bad.hoard", json!({}), &["memory"])),
    (4, |_| fails("bad.recurse", json!({}), &["stack"])),
    // A plugin that crashes call after call rests for a while.
    (5, |_| fails("crash.panic", json!({}), &["trap", "disabled"])),
    (5, |_| fails("crash.exit", json!({}), &["trap", "disabled"])),
    (4, |_| fails("crash.fail", json!({}), &["failed", "disabled"])),
    // Too large: cut, with a link to the whole, which makes room for the next one.
    (3, |_| call("bad.big_output", json!({"n": 2_000_000}), Expected::Success)),
    (3, |_| fails("bad.many_items", json!({"n": 2000}), &["output"])),
    (1, |_| fails("bad.flood_stdout", json!({"n": 10_000_000}), &["output"])),
    (5, |_| fails("bad.mismatch", json!({}), &["invalid-output"])),
    (8, |_| fails("bad.sleep_hour", json!({}), &["deadline"])),
    (5, |_| call("bad.forge_stdout", json!({}), Expected::Text("done".to_owned()))),
    (3, |_| call("bad.log_flood", json!({"n": 3}), Expected::Success)),
    (3, |_| call("bad.progress", json!({"n": 100}), Expected::Text("100 steps".to_owned()))),
    (3, |_| call("bad.environment", json!({}), Expected::Text("[] []".to_owned()))),
    (3, |_| call("bad.connect", json!({}), Expected::Success)),
    // What nobody waits for to its end.
    (8, |random| cancelled("long.spin", random)),
    (4, |random| cancelled("long.clock", random)),
    (4, |random| cancelled("long.random", random)),
    (10, |random| cancelled("long.sleep", random)),
    (20, |random| {
        let Deed::Call(call) = echo(random, 8, 200) else { return Deed::Ping };
        Deed::Call(Call { cancel: Some(Duration::from_micros(random.u64(..600))), ..call })
    }),
];

/// The next thing to do.
pub(crate) fn deed(random: &mut Rng) -> Deed {
    let all: u32 = MIX.iter().map(|(weight, _)| weight).sum();
    let mut left = random.u32(..all);
    for (weight, make) in MIX {
        match left.checked_sub(*weight) {
            Some(rest) => left = rest,
            None => return make(random),
        }
    }
    Deed::Ping
}

/// A light call, for bursts.
pub(crate) fn light(random: &mut Rng) -> Deed {
    echo(random, 8, 200)
}

fn echo(random: &mut Rng, least: usize, most: usize) -> Deed {
    // Quotes and characters beyond ASCII, because they are written in other ways on the wire.
    let part = format!("{:x} \"ü\" 🦀\n", random.u64(..));
    let text = part.repeat(random.usize(least..most).div_ceil(part.len()));
    call("bad.echo", json!({"text": text}), Expected::Text(text))
}

fn call(tool: &'static str, arguments: Value, expected: Expected) -> Deed {
    Deed::Call(Call { tool, arguments, expected, cancel: None })
}

fn fails(tool: &'static str, arguments: Value, kinds: &'static [&'static str]) -> Deed {
    call(tool, arguments, Expected::Kind(kinds))
}

/// Would go on for ever. When it is answered nevertheless, that is a fault.
fn cancelled(tool: &'static str, random: &mut Rng) -> Deed {
    let cancel = Some(Duration::from_micros(random.u64(..20_000)));
    Deed::Call(Call { tool, arguments: json!({}), expected: Expected::Kind(&[]), cancel })
}

impl Expected {
    /// Whether this came of the call; else what came.
    pub(crate) fn judge(&self, answer: &Answer) -> Result<(), String> {
        let fits = match (self, answer) {
            (Self::Text(text), Ok(result)) => succeeded(answer) && said(result) == Some(text),
            (Self::Value(place, value), Ok(result)) => succeeded(answer) && result.pointer(place) == Some(value),
            (Self::Content(kind), Ok(result)) => {
                let content = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                succeeded(answer) && content.iter().any(|block| block.get("type").is_some_and(|is| is == kind))
            }
            (Self::Success, _) => succeeded(answer),
            (Self::Kind(kinds), _) => kinds.contains(&kind(answer).as_str()),
            (_, Err(_)) => false,
        };
        if fits { Ok(()) } else { Err(format!("expected {self:?}, got {}: {answer:?}", kind(answer))) }
    }
}

fn succeeded(answer: &Answer) -> bool {
    kind(answer) == "ok"
}

/// The text that a result begins with.
pub(crate) fn said(result: &Value) -> Option<&str> {
    result.pointer("/content/0/text").and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolbay_testkit::Refusal;

    #[test]
    fn every_deed_has_its_turn() {
        let mut random = Rng::with_seed(7);
        let mut tools = std::collections::BTreeSet::new();
        for _ in 0..50_000 {
            if let Deed::Call(call) = deed(&mut random) {
                tools.insert(call.tool);
            }
        }
        // Those of slots, pings and garbage have no tool; six are echoes.
        assert!(tools.len() > 25 && tools.contains("bad.flood_stdout"), "{tools:?}");
    }

    #[test]
    fn answers_are_judged_by_what_they_must_be() {
        let text = Expected::Text("a".to_owned());
        text.judge(&Ok(json!({"content": [{"type": "text", "text": "a"}]}))).unwrap();
        text.judge(&Ok(json!({"content": [{"type": "text", "text": "b"}]}))).unwrap_err();
        text.judge(&Ok(json!({"content": [{"type": "text", "text": "a"}], "isError": true}))).unwrap_err();
        let unknown = || Err(Refusal { code: -32602, message: String::new() });
        Expected::Kind(&[UNKNOWN_TOOL]).judge(&unknown()).unwrap();
        text.judge(&unknown()).unwrap_err();
        Expected::Content("image").judge(&Ok(json!({"content": [{"type": "text"}]}))).unwrap_err();
        Expected::Value("/a/0", json!(1)).judge(&Ok(json!({"a": [1]}))).unwrap();
    }
}
