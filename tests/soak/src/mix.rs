//! The mix of requests, with their weights and expected results.

use std::time::Duration;

use fastrand::Rng;
use serde_json::{Value, json};
use toolbay_testkit::RequestResult;

use crate::counts::kind;

/// The JSON-RPC error for an unknown tool.
const UNKNOWN_TOOL: &str = "-32602";

/// A single action of a caller.
pub(crate) enum Deed {
    /// Calls a tool.
    Call(Call),
    /// Calls the tool of a random slot, whose changes determine the valid results.
    CallSlot,
    /// Sends `ping`.
    Ping,
    /// Sends a line that is not a request.
    Garbage(&'static str),
}

/// A call of a tool.
pub(crate) struct Call {
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
    pub(crate) expected: Expected,
    /// The time after which it is cancelled.
    pub(crate) cancel: Option<Duration>,
}

/// The expected result of a call.
#[derive(Debug)]
pub(crate) enum Expected {
    /// Exactly this text.
    Text(String),
    /// Structured content with this value at this pointer.
    Value(&'static str, Value),
    /// Content of this type.
    Content(&'static str),
    /// Success with any content.
    Success,
    /// An error of one of these kinds.
    Kind(&'static [&'static str]),
}

type Make = fn(&mut Rng) -> Deed;

/// The actions with their approximate weights, in thousandths.
const MIX: &[(u32, Make)] = &[
    (280, |random| echo(random, 8, 200)),
    (10, |random| echo(random, 10_000, 100_000)),
    (1, |random| echo(random, 500_000, 900_000)),
    (120, |random| {
        let a = random.u32(..1000);
        let b = random.u32(..1000);
        let expression = json!({"expression": format!("{a} + {b} * 2")});
        call(
            "evaluate",
            expression,
            Expected::Value(
                "/structuredContent/value",
                json!(f64::from(a) + 2.0 * f64::from(b)),
            ),
        )
    }),
    (60, |random| {
        let numbers: Vec<u32> = (0..random.usize(1..200))
            .map(|_| random.u32(..1000))
            .collect();
        let sum: u32 = numbers.iter().sum();
        call(
            "calculate_total",
            json!({"numbers": numbers}),
            Expected::Value("/structuredContent/total", json!(f64::from(sum))),
        )
    }),
    (40, |_| {
        let days = json!({"start": "2026-01-01", "end": "2026-01-02"});
        call(
            "time_difference",
            days,
            Expected::Value("/structuredContent/seconds", json!(86400.0)),
        )
    }),
    (10, |_| {
        call(
            "qr_svg",
            json!({"text": "toolbay"}),
            Expected::Content("text"),
        )
    }),
    (2, |_| {
        call(
            "line_chart",
            json!({"values": [1, 3, 2], "size": "small"}),
            Expected::Content("image"),
        )
    }),
    (200, |_| Deed::CallSlot),
    // This would reveal any state that another call has left.
    (60, |_| {
        call("bad.count", json!({}), Expected::Text("1".to_owned()))
    }),
    (40, |_| Deed::Ping),
    (2, |_| Deed::Garbage("{\"jsonrpc\": \"2.0\", \"id\"")),
    (2, |_| Deed::Garbage("[]")),
    // Mistakes of callers.
    (10, |_| fails("no_such_tool", json!({}), &[UNKNOWN_TOOL])),
    (10, |_| {
        fails("evaluate", json!({"expression": 7}), &["invalid-arguments"])
    }),
    (10, |_| {
        fails(
            "evaluate",
            json!({"expression": "1 +"}),
            &["invalid-arguments"],
        )
    }),
    // Failures of plugins.
    (5, |_| fails("bad.fail", json!({}), &["failed"])),
    (5, |_| {
        fails("bad.refuse", json!({}), &["invalid-arguments"])
    }),
    (6, |_| fails("flood.spin", json!({}), &["fuel"])),
    (4, |_| fails("flood.clock", json!({}), &["fuel"])),
    (4, |_| fails("flood.random", json!({}), &["fuel"])),
    (4, |_| fails("bad.hoard", json!({}), &["memory"])),
    (4, |_| fails("bad.recurse", json!({}), &["stack"])),
    // A plugin that crashes repeatedly is disabled for a while.
    (5, |_| {
        fails("crash.panic", json!({}), &["trap", "disabled"])
    }),
    (5, |_| fails("crash.exit", json!({}), &["trap", "disabled"])),
    (4, |_| {
        fails("crash.fail", json!({}), &["failed", "disabled"])
    }),
    // The output is too large. It is truncated, with a link to the full output, which evicts
    // earlier ones.
    (3, |_| {
        call("bad.big_output", json!({"n": 2_000_000}), Expected::Success)
    }),
    (3, |_| {
        fails("bad.many_items", json!({"n": 2000}), &["output"])
    }),
    (1, |_| {
        fails("bad.flood_stdout", json!({"n": 10_000_000}), &["output"])
    }),
    (5, |_| fails("bad.mismatch", json!({}), &["invalid-output"])),
    (8, |_| fails("bad.sleep_hour", json!({}), &["deadline"])),
    (5, |_| {
        call(
            "bad.forge_stdout",
            json!({}),
            Expected::Text("done".to_owned()),
        )
    }),
    (3, |_| {
        call("bad.log_flood", json!({"n": 3}), Expected::Success)
    }),
    (3, |_| {
        call(
            "bad.progress",
            json!({"n": 100}),
            Expected::Text("100 steps".to_owned()),
        )
    }),
    (3, |_| {
        call(
            "bad.environment",
            json!({}),
            Expected::Text("[] []".to_owned()),
        )
    }),
    (3, |_| call("bad.connect", json!({}), Expected::Success)),
    // Calls that are cancelled.
    (8, |random| cancelled("long.spin", random)),
    (4, |random| cancelled("long.clock", random)),
    (4, |random| cancelled("long.random", random)),
    (10, |random| cancelled("long.sleep", random)),
    (20, |random| {
        let Deed::Call(call) = echo(random, 8, 200) else {
            return Deed::Ping;
        };
        Deed::Call(Call {
            cancel: Some(Duration::from_micros(random.u64(..600))),
            ..call
        })
    }),
];

/// Returns the next action.
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

/// Returns a light call, for bursts.
pub(crate) fn light(random: &mut Rng) -> Deed {
    echo(random, 8, 200)
}

fn echo(random: &mut Rng, least: usize, most: usize) -> Deed {
    // Quotes and non-ASCII characters, because they are encoded differently in JSON.
    let part = format!("{:x} \"ü\" 🦀\n", random.u64(..));
    let text = part.repeat(random.usize(least..most).div_ceil(part.len()));
    call("bad.echo", json!({"text": text}), Expected::Text(text))
}

fn call(tool: &'static str, arguments: Value, expected: Expected) -> Deed {
    Deed::Call(Call {
        tool,
        arguments,
        expected,
        cancel: None,
    })
}

fn fails(tool: &'static str, arguments: Value, kinds: &'static [&'static str]) -> Deed {
    call(tool, arguments, Expected::Kind(kinds))
}

/// Returns a call that would never end. A response to it is a failure.
fn cancelled(tool: &'static str, random: &mut Rng) -> Deed {
    let cancel = Some(Duration::from_micros(random.u64(..20_000)));
    Deed::Call(Call {
        tool,
        arguments: json!({}),
        expected: Expected::Kind(&[]),
        cancel,
    })
}

impl Expected {
    /// Checks whether a call has this result. The error describes the actual result.
    pub(crate) fn judge(&self, answer: &RequestResult) -> Result<(), String> {
        let fits = match (self, answer) {
            (Self::Text(text), Ok(result)) => succeeded(answer) && said(result) == Some(text),
            (Self::Value(place, value), Ok(result)) => {
                succeeded(answer) && result.pointer(place) == Some(value)
            }
            (Self::Content(kind), Ok(result)) => {
                let content = result
                    .get("content")
                    .and_then(Value::as_array)
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                succeeded(answer)
                    && content
                        .iter()
                        .any(|block| block.get("type").is_some_and(|is| is == kind))
            }
            (Self::Success, _) => succeeded(answer),
            (Self::Kind(kinds), _) => kinds.contains(&kind(answer).as_str()),
            (_, Err(_)) => false,
        };
        if fits {
            Ok(())
        } else {
            Err(format!(
                "expected {self:?}, got {}: {answer:?}",
                kind(answer)
            ))
        }
    }
}

fn succeeded(answer: &RequestResult) -> bool {
    kind(answer) == "ok"
}

/// Returns the text at the start of a result.
pub(crate) fn said(result: &Value) -> Option<&str> {
    result.pointer("/content/0/text").and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolbay_testkit::RpcError;

    #[test]
    fn every_deed_has_its_turn() {
        let mut random = Rng::with_seed(7);
        let mut tools = std::collections::BTreeSet::new();
        for _ in 0..50_000 {
            if let Deed::Call(call) = deed(&mut random) {
                tools.insert(call.tool);
            }
        }
        // Actions for slots, pings and garbage have no tool, and six actions are echoes.
        assert!(
            tools.len() > 25 && tools.contains("bad.flood_stdout"),
            "{tools:?}"
        );
    }

    #[test]
    fn answers_are_judged_by_what_they_must_be() {
        let text = Expected::Text("a".to_owned());
        text.judge(&Ok(json!({"content": [{"type": "text", "text": "a"}]})))
            .unwrap();
        text.judge(&Ok(json!({"content": [{"type": "text", "text": "b"}]})))
            .unwrap_err();
        text.judge(&Ok(
            json!({"content": [{"type": "text", "text": "a"}], "isError": true}),
        ))
        .unwrap_err();
        let unknown = || {
            Err(RpcError {
                code: -32602,
                message: String::new(),
            })
        };
        Expected::Kind(&[UNKNOWN_TOOL]).judge(&unknown()).unwrap();
        text.judge(&unknown()).unwrap_err();
        Expected::Content("image")
            .judge(&Ok(json!({"content": [{"type": "text"}]})))
            .unwrap_err();
        Expected::Value("/a/0", json!(1))
            .judge(&Ok(json!({"a": [1]})))
            .unwrap();
    }
}
