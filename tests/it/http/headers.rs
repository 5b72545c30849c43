//! Headers that repeat parts of the body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::support::{Folder, HttpResponse, HttpServer, MODERN, TinyComponent, TinyTool, modern};

fn code(response: HttpResponse) -> (u16, Value) {
    let status = response.status;
    (status, response.json()["error"]["code"].clone())
}

#[test]
fn method_name_and_version_must_be_those_of_the_body() {
    let server = HttpServer::start(&Folder::with("a.wasm", TinyComponent::new(&["a"]).build()))
        .wait_until_ready();
    let call = |headers: &[(&str, &str)]| {
        code(server.post_stateless("tools/call", json!({"name": "a"}), headers))
    };
    let encoded = format!("=?base64?{}?=", BASE64.encode("a"));
    for fine in [
        &[][..],
        &[("mcp-name", "a")],
        &[("MCP-NAME", &encoded)],
        &[("Mcp-Method", "tools/call")],
    ] {
        assert_eq!(call(fine), (200, Value::Null), "{fine:?}");
    }
    let wrong: [&[(&str, &str)]; 11] = [
        &[("Mcp-Name", "b")],
        &[("Mcp-Name", "A")],
        &[("Mcp-Name", "-")],
        &[("Mcp-Name", "=?base64?!!?=")],
        &[("Mcp-Name", "=?BASE64?YQ==?=")],
        &[("Mcp-Method", "Tools/Call")],
        &[("Mcp-Method", "tools/list")],
        &[("Mcp-Method", "-")],
        &[("MCP-Protocol-Version", "-")],
        &[("MCP-Protocol-Version", "2025-11-25")],
        &[("Mcp-Name", "a"), ("Mcp-Name", "a")],
    ];
    for headers in wrong {
        assert_eq!(call(headers), (400, json!(-32020)), "{headers:?}");
    }
    // The headers of a call of an unknown tool are checked as well.
    let unknown = |headers: &[(&str, &str)]| {
        code(server.post_stateless("tools/call", json!({"name": "nobody"}), headers))
    };
    assert_eq!(unknown(&[]), (200, json!(-32602)));
    assert_eq!(unknown(&[("Mcp-Name", "a")]), (400, json!(-32020)));
    // The error has the id of the request.
    let response = server
        .post_stateless("tools/call", json!({"name": "a"}), &[("Mcp-Name", "b")])
        .json();
    assert_eq!(response["id"], 1);
    assert_eq!(
        response["error"]["message"],
        "Header mismatch: Mcp-Name is \"b\", but the body has \"a\""
    );
}

#[test]
fn a_notification_needs_only_the_version_header() {
    let server = HttpServer::start(&Folder::new());
    let message =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let response = server.post(
        &[("MCP-Protocol-Version", MODERN)],
        message.to_string().as_bytes(),
    );
    assert_eq!((response.status, response.text()), (202, String::new()));
}

/// Returns a tool whose arguments `region`, `at.n` and `dry` are repeated in headers.
fn mirrored() -> TinyTool {
    let schema = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "at": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
        "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
        "plain": {"type": "string"}
    }});
    TinyTool {
        input: schema.to_string(),
        ..TinyTool::new("mirrored")
    }
}

#[test]
fn arguments_in_headers_must_be_those_of_the_body() {
    let server = HttpServer::start(&Folder::with(
        "a.wasm",
        TinyComponent::with_tools(vec![mirrored()]).build(),
    ))
    .wait_until_ready();
    let call = |arguments: Value, headers: &[(&str, &str)]| {
        code(server.post_stateless(
            "tools/call",
            json!({"name": "mirrored", "arguments": arguments}),
            headers,
        ))
    };
    let encoded = |text: &str| format!("=?base64?{}?=", BASE64.encode(text));
    let greeting = encoded("Hello, 世界");
    let fine: [(Value, &[(&str, &str)]); 10] = [
        (json!({}), &[]),
        (json!({"plain": "x"}), &[]),
        (json!({"region": null}), &[]),
        (json!({"region": "eu"}), &[("Mcp-Param-Region", "eu")]),
        (json!({"region": "eu"}), &[("mcp-param-REGION", "eu")]),
        (
            json!({"region": "Hello, 世界"}),
            &[("Mcp-Param-Region", &greeting)],
        ),
        (json!({"at": {"n": 42}}), &[("Mcp-Param-N", "42")]),
        (json!({"at": {"n": 42}}), &[("Mcp-Param-N", "42.0")]),
        (json!({"dry": true}), &[("Mcp-Param-Dry-Run", "true")]),
        (json!({"plain": "x"}), &[("Mcp-Param-Unknown", "anything")]),
    ];
    for (arguments, headers) in fine {
        let (status, code) = call(arguments.clone(), headers);
        // `null` is not a string; the model gets an error for that.
        assert_eq!(
            (status, code),
            (200, Value::Null),
            "{arguments} {headers:?}"
        );
    }
    let wrong: [(Value, &[(&str, &str)]); 9] = [
        (json!({"region": "eu"}), &[]),
        (json!({"region": "eu"}), &[("Mcp-Param-Region", "us")]),
        (json!({"region": "eu"}), &[("Mcp-Param-Region", "EU")]),
        (
            json!({"region": "eu"}),
            &[("Mcp-Param-Region", "=?base64?%%?=")],
        ),
        (json!({}), &[("Mcp-Param-Region", "eu")]),
        (json!({"region": null}), &[("Mcp-Param-Region", "null")]),
        (json!({"at": {"n": 42}}), &[("Mcp-Param-N", "43")]),
        (json!({"dry": true}), &[("Mcp-Param-Dry-Run", "True")]),
        (
            json!({"region": "eu"}),
            &[("Mcp-Param-Region", "eu"), ("Mcp-Param-Region", "eu")],
        ),
    ];
    for (arguments, headers) in wrong {
        assert_eq!(
            call(arguments.clone(), headers),
            (400, json!(-32020)),
            "{arguments} {headers:?}"
        );
    }
    // Numbers are compared as they are written, not as floating-point numbers.
    let exact = |body: &str, header: &str| {
        let arguments = json!({"name": "mirrored", "arguments": {"at": {"n": "NUMBER"}}});
        let message = modern(json!(1), "tools/call", arguments)
            .to_string()
            .replace("\"NUMBER\"", body);
        let headers = [
            ("MCP-Protocol-Version", MODERN),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "mirrored"),
            ("Mcp-Param-N", header),
        ];
        code(server.post(&headers, message.as_bytes())).1 != json!(-32020)
    };
    for (body, header) in [
        ("9007199254740993", "9007199254740993"),
        ("18446744073709551617", "18446744073709551617"),
        ("1000", "1e3"),
        ("1e3", "1000"),
        ("1.0", "1"),
        ("-0", "0"),
        ("0", "-0.0"),
    ] {
        assert!(exact(body, header), "{body} {header}");
    }
    for (body, header) in [
        ("9007199254740993", "9007199254740992"),
        ("9007199254740993", "9007199254740993.1"),
        ("18446744073709551617", "18446744073709551616"),
        ("18446744073709551615", "18446744073709551616"),
        ("1", "01"),
        ("1", "+1"),
        ("1", "0x1"),
        ("1", "1."),
        ("1000", "1e4"),
        ("1", "\"1\""),
    ] {
        assert!(!exact(body, header), "{body} {header}");
    }
    // In sessions, the headers are not checked.
    let called = server.start_session("2025-11-25").result(
        "tools/call",
        json!({"name": "mirrored", "arguments": {"region": "eu"}}),
    );
    assert!(called.get("isError").is_none(), "{called}");
}

#[test]
fn a_long_argument_is_compared_and_not_quoted() {
    let server = HttpServer::start(&Folder::with(
        "a.wasm",
        TinyComponent::with_tools(vec![mirrored()]).build(),
    ))
    .wait_until_ready();
    let call = |plain: usize, region: &str, header: &str| {
        let arguments = json!({"plain": "x".repeat(plain), "region": region});
        let params = json!({"name": "mirrored", "arguments": arguments});
        server.post_stateless("tools/call", params, &[("Mcp-Param-Region", header)])
    };
    assert_eq!(code(call(500_000, "eu", "eu")), (200, Value::Null));
    assert_eq!(code(call(500_000, "eu", "us")), (400, json!(-32020)));
    let said = call(0, &"é".repeat(250_000), "us").json()["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    let expected = format!(
        "Header mismatch: Mcp-Param-Region is \"us\", but the body has \"{}\"…",
        "é".repeat(100)
    );
    assert_eq!(said, expected);
}

#[test]
fn a_tool_with_an_invalid_header_annotation_is_refused() {
    let tool = TinyTool {
        input: mirrored().input.replace("\"integer\"", "\"number\""),
        ..mirrored()
    };
    let folder = Folder::with("bad.wasm", TinyComponent::with_tools(vec![tool]).build());
    folder.put("good.wasm", TinyComponent::new(&["good"]).build());
    let server = HttpServer::start(&folder).wait_until_ready();
    let line = server.log.wait_for("refused");
    assert!(
        line.contains(
            "x-mcp-header \"N\" must be on a property of type string, integer or boolean"
        ),
        "{line}"
    );
    let listed = server.result("tools/list", json!({}));
    assert_eq!(listed["tools"].as_array().unwrap().len(), 1, "{listed}");
}

#[test]
fn a_body_without_a_revision_or_a_session_is_rejected() {
    let server = HttpServer::start(&Folder::new());
    let bare = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(
        code(server.post(&[], bare.to_string().as_bytes())),
        (400, json!(-32600)),
        "no session either"
    );
    let stated = modern(json!(1), "tools/list", json!({}));
    assert_eq!(
        code(server.post(&[], stated.to_string().as_bytes())),
        (400, json!(-32020)),
        "no headers at all"
    );
}
