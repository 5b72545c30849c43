//! Work that the host does for a call: it is charged to the call, ends with the call, and delays no
//! other call.
//!
//! Each attack is made as often concurrently as the machine has processors, so that none would be
//! left for other work.

use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    Folder, StdioServer, TinyComponent, TinyTool, error_kind_and_text, result_text,
};

/// Time within which other requests must be answered during an attack that used to take a minute.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

const TOO_LONG: &str = "The arguments do not match the tool's input schema:\n(root): validation against the schema takes too long";

/// Returns a folder with the tool `attacked`, whose arguments must match this schema, and the tool
/// `other`.
fn folder(schema: &Value) -> Folder {
    let attacked = TinyTool {
        input: schema.to_string(),
        ..TinyTool::new("attacked")
    };
    let folder = Folder::with(
        "attacked.wasm",
        TinyComponent::with_tools(vec![attacked]).build(),
    );
    folder.put("other.wasm", TinyComponent::new(&["other"]).build());
    folder
}

/// Returns a schema whose `x` must match this schema.
fn schema_of_x(schema: Value) -> Value {
    json!({"type": "object", "properties": {"x": schema}})
}

/// Returns different trees of empty arrays, this many bytes in total. They contain nothing to hash,
/// and begin alike.
pub(crate) fn trees(bytes: usize) -> String {
    const COMMON_PREFIX: &str = "[],[],[],[],[],[],[],[],";
    /// Returns all trees with this many arrays in the outermost array, without its brackets.
    fn inside(size: usize) -> Vec<String> {
        if size == 0 {
            return vec![String::new()];
        }
        let split = |first: usize| {
            let children = inside(first);
            let rests = inside(size - 1 - first);
            children.into_iter().flat_map(move |child| {
                rests.clone().into_iter().map(move |rest| {
                    let comma = if rest.is_empty() { "" } else { "," };
                    format!("[{child}]{comma}{rest}")
                })
            })
        };
        (0..size).flat_map(split).collect()
    }
    let mut list = String::from("[");
    for tree in (1..).flat_map(inside) {
        if list.len() + COMMON_PREFIX.len() + tree.len() + 4 > bytes {
            break;
        }
        let comma = if list.len() > 1 { "," } else { "" };
        list.extend([comma, "[", COMMON_PREFIX, &tree, "]"]);
    }
    list + "]"
}

/// Returns this many letters `a` and `b` in an irregular order.
pub(crate) fn letters(count: u32) -> String {
    let letter = |n: u32| {
        if n.wrapping_mul(2_654_435_761) & 1 << 20 == 0 {
            'a'
        } else {
            'b'
        }
    };
    (0..count).map(letter).collect()
}

/// Starts as many calls as there are processors, but at least two. Other requests are answered
/// meanwhile. Returns the results of the calls.
fn attack(server: &mut StdioServer, arguments: &Value) -> Vec<Value> {
    let calls = available_parallelism().map_or(2, NonZero::get).clamp(2, 16);
    let calls: Vec<u64> = (0..calls)
        .map(|_| server.start_call("attacked", arguments.clone()))
        .collect();
    let began = Instant::now();
    for _ in 0..3 {
        server.result("ping", json!({}));
        assert_eq!(server.text("other", json!({})), "fine");
    }
    assert!(
        began.elapsed() < RESPONSE_TIMEOUT,
        "others waited for {:?}",
        began.elapsed()
    );
    calls
        .into_iter()
        .map(|call| server.finish_call(call))
        .collect()
}

#[test]
fn lists_of_trees_of_empty_arrays_do_not_delay_other_calls() {
    let config = "[server]\nrequest_size = \"8MiB\"\nrequest_memory = \"4GiB\"";
    let mut server =
        StdioServer::start_with_config(&folder(&schema_of_x(json!({"uniqueItems": true}))), config);
    server.wait_for_tool("attacked");
    server.wait_for_tool("other");
    let trees: Value = serde_json::from_str(&trees(2 << 20)).unwrap();
    for result in attack(&mut server, &json!({"x": trees})) {
        assert_eq!(result_text(&result), "fine");
    }
    let mut twice: Value = serde_json::from_str(&self::trees(20_000)).unwrap();
    let first = twice[0].clone();
    twice.as_array_mut().unwrap().push(first);
    let (kind, said) = error_kind_and_text(&server.call("attacked", json!({"x": twice})));
    assert_eq!(kind, "invalid-arguments");
    assert!(said.contains("/x: "), "{said}");
}

#[test]
fn a_pattern_that_needs_a_state_for_every_byte_does_not_delay_other_calls() {
    let schema = schema_of_x(json!({"pattern": "[ab]*a[ab]{20000}[^ab]"}));
    let mut server =
        StdioServer::start_with_config(&folder(&schema), "[server]\nrequest_size = \"8MiB\"");
    server.wait_for_tool("attacked");
    server.wait_for_tool("other");
    let text = letters(1 << 20);
    for result in attack(&mut server, &json!({"x": text})) {
        assert_eq!(
            error_kind_and_text(&result),
            ("invalid-arguments".to_owned(), TOO_LONG.to_owned())
        );
    }
}

#[test]
fn patterns_for_names_that_need_a_state_for_every_byte_do_not_delay_other_calls() {
    let schema = schema_of_x(
        json!({"patternProperties": {"[ab]*a[ab]{20000}[^ab]": false, "^(?=a)(a|b)+c": false}}),
    );
    let mut server =
        StdioServer::start_with_config(&folder(&schema), "[server]\nrequest_size = \"8MiB\"");
    server.wait_for_tool("attacked");
    server.wait_for_tool("other");
    for result in attack(&mut server, &json!({"x": {"ab".repeat(1 << 19): 1}})) {
        assert_eq!(
            error_kind_and_text(&result),
            ("invalid-arguments".to_owned(), TOO_LONG.to_owned())
        );
    }
}

/// Returns a schema with forty levels, each of which refers to the next one twice.
fn doubling() -> Value {
    let levels: serde_json::Map<String, Value> = (0..40)
        .map(|n| {
            let next = json!({"$ref": format!("#/$defs/l{}", n + 1)});
            (format!("l{n}"), json!({"anyOf": [next, next]}))
        })
        .chain([("l40".to_owned(), json!({"type": "string"}))])
        .collect();
    json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/l0"}}, "$defs": levels})
}

#[test]
fn a_check_of_arguments_ends_at_the_deadline_of_its_call() {
    let folder = folder(&doubling());
    folder.put("attacked.toml", "[limits]\ntimeout = \"10ms\"");
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("attacked");
    let (kind, said) = error_kind_and_text(&server.call("attacked", json!({"x": 7})));
    assert_eq!(kind, "deadline");
    assert_eq!(
        said,
        "The tool did not finish within 10ms (to allow more, raise limits.timeout)."
    );
}

#[test]
fn a_check_of_a_result_ends_at_the_deadline_of_its_call() {
    let tool = TinyTool {
        output: Some(doubling().to_string()),
        ..TinyTool::new("attacked")
    };
    let folder = Folder::with(
        "attacked.wasm",
        TinyComponent::with_tools(vec![tool])
            .with_structured(r#"{"x": 7}"#)
            .build(),
    );
    folder.put("attacked.toml", "[limits]\ntimeout = \"10ms\"");
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("attacked");
    let (kind, said) = error_kind_and_text(&server.call("attacked", json!({})));
    assert_eq!(kind, "deadline");
    assert_eq!(
        said,
        "The tool did not finish within 10ms (to allow more, raise limits.timeout)."
    );
}

#[test]
fn a_check_holds_the_permit_of_its_call() {
    let folder = folder(&doubling());
    folder.put("attacked.toml", "[limits]\nconcurrency = 1");
    let mut server = StdioServer::start_with_config(&folder, "[server]\nqueue_timeout = \"1ms\"");
    server.wait_for_tool("attacked");
    let calls = [(); 4].map(|()| server.start_call("attacked", json!({"x": 7})));
    let kinds = calls.map(|call| error_kind_and_text(&server.finish_call(call)).0);
    assert_eq!(
        kinds.iter().filter(|kind| *kind == "busy").count(),
        3,
        "{kinds:?}"
    );
    assert_eq!(
        kinds
            .iter()
            .filter(|kind| *kind == "invalid-arguments")
            .count(),
        1,
        "{kinds:?}"
    );
}

#[test]
fn a_check_ends_when_its_call_is_cancelled() {
    let folder = folder(&doubling());
    folder.put("attacked.toml", "[limits]\nconcurrency = 1");
    let mut server = StdioServer::start_with_config(&folder, "[server]\nqueue_timeout = \"1ms\"");
    server.wait_for_tool("attacked");
    let is_busy = |server: &mut StdioServer| {
        server
            .call("attacked", json!({"x": "fits"}))
            .get("isError")
            .is_some()
    };
    let began = Instant::now();
    // Each would take at least half a second if it continued.
    for _ in 0..40 {
        let mut calls = Vec::new();
        server.wait_until("the check holds its permit", |server| {
            // On a busy machine, the previous check may have ended by itself.
            calls.push(server.start_call("attacked", json!({"x": 7})));
            is_busy(server)
        });
        for call in calls {
            server.notify("notifications/cancelled", json!({"requestId": call}));
        }
        server.wait_until("the permit is free", |server| !is_busy(server));
    }
    assert!(
        began.elapsed() < RESPONSE_TIMEOUT,
        "took {:?}",
        began.elapsed()
    );
}
