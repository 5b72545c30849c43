//! Arguments as models write them: converted where the operator allows it, and otherwise reported
//! with an example.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::{Folder, HttpServer, StdioServer, TinyComponent, TinyTool, ToolbayCommand};

fn echo() -> Vec<u8> {
    let input = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1}, "deep": {"type": "boolean"}, "tags": {"type": "array", "items": {"type": "string"}},
            "at": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
        },
        "required": ["n"],
        "additionalProperties": false,
    });
    let tool = TinyTool {
        input: input.to_string(),
        ..TinyTool::new("echo")
    };
    TinyComponent::with_tools(vec![tool]).with_echo().build()
}

const LENIENT: &str = "[server]\narguments = \"lenient\"\n";

/// What a weak model makes of `{"n": 5, "deep": true, "tags": ["a"], "at": {"x": 1}}`.
fn weak_arguments() -> Value {
    json!({"n": "5", "deep": "true", "tags": "a", "at": "{\"x\": 1}", "sessionId": "s"})
}

fn first_text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[test]
fn by_default_nothing_is_converted_and_the_error_has_an_example() {
    let folder = Folder::with("echo.wasm", echo());
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("echo");
    let result = server.call("echo", weak_arguments());
    assert_eq!(result["isError"], true);
    assert!(
        first_text(&result).ends_with("\nFor example: {\"n\":1}"),
        "{result}"
    );
    assert_eq!(
        server.text("echo", json!({"n": 1})),
        r#"{"n":1}"#,
        "the example is right"
    );
}

#[test]
fn lenient_converts_unambiguous_arguments_and_reports_it() {
    let folder = Folder::with("echo.wasm", echo());
    let mut server = StdioServer::start_with_config(&folder, LENIENT);
    server.wait_for_tool("echo");
    let result = server.call("echo", weak_arguments());
    let told: Value = serde_json::from_str(first_text(&result)).unwrap();
    assert_eq!(
        told,
        json!({"n": 5, "deep": true, "tags": ["a"], "at": {"x": 1}})
    );
    let mut kinds: Vec<String> = result["_meta"]["dev.toolbay/converted"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            format!(
                "{} {}",
                one["pointer"].as_str().unwrap(),
                one["kind"].as_str().unwrap()
            )
        })
        .collect();
    kinds.sort();
    assert_eq!(
        kinds,
        [
            "/at json",
            "/deep boolean",
            "/n number",
            "/sessionId dropped",
            "/tags list"
        ]
    );
    // Valid arguments are not changed, and no conversion is reported.
    let result = server.call("echo", json!({"n": 5}));
    assert!(
        result["_meta"].get("dev.toolbay/converted").is_none(),
        "{result}"
    );
    // Arguments that are still invalid after conversion are an error.
    assert_eq!(
        server.failure("echo", json!({"n": "0"})).0,
        "invalid-arguments"
    );
    assert_eq!(
        server.failure("echo", json!({"n": "five"})).0,
        "invalid-arguments"
    );
    // A misspelled property name is not dropped.
    let (kind, text) = server.failure("echo", json!({"n": 1, "Tags": ["a"]}));
    assert!(
        kind == "invalid-arguments" && text.contains("Tags"),
        "{text}"
    );
}

#[test]
fn strict_in_a_grant_overrides_the_server_and_lenient_in_a_grant_suffices() {
    let folder = Folder::with("echo.wasm", echo());
    folder.put("echo.toml", "arguments = \"strict\"");
    let mut server = StdioServer::start_with_config(&folder, LENIENT);
    server.wait_for_tool("echo");
    assert_eq!(
        server.failure("echo", json!({"n": "5"})).0,
        "invalid-arguments"
    );
    let folder = Folder::with("echo.wasm", echo());
    folder.put("echo.toml", "arguments = \"lenient\"");
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("echo");
    assert_eq!(server.text("echo", json!({"n": "5"})), r#"{"n":5}"#);
}

#[test]
fn arguments_in_a_string_are_a_specific_error_or_are_parsed() {
    let folder = Folder::with("echo.wasm", echo());
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("echo");
    let (kind, text) = server.failure("echo", json!("{\"n\": 5}"));
    assert_eq!(kind, "invalid-arguments");
    assert!(
        text.contains("\n(root): arguments must be an object: send the object itself"),
        "{text}"
    );
    let folder = Folder::with("echo.wasm", echo());
    let mut server = StdioServer::start_with_config(&folder, LENIENT);
    server.wait_for_tool("echo");
    let result = server.call("echo", json!("{\"n\": 5}"));
    assert_eq!(first_text(&result), r#"{"n":5}"#);
    assert_eq!(
        result["_meta"]["dev.toolbay/converted"],
        json!([{"pointer": "", "kind": "json"}])
    );
    // The values in the string are converted, too.
    let result = server.call("echo", json!("{\"n\": \"5\"}"));
    assert_eq!(first_text(&result), r#"{"n":5}"#);
    for (string, part) in [
        (
            "[1]",
            "\n(root): arguments must be an object, not a string that contains a list",
        ),
        ("{\"n\": 1e999}", "\n/n: the number is too large"),
        ("{\"n\": 0}", "\n/n: "),
        (
            "{\"n\": 1",
            "\n(root): arguments must be an object, and the string is not JSON",
        ),
    ] {
        let (kind, text) = server.failure("echo", json!(string));
        assert!(kind == "invalid-arguments" && text.contains(part), "{text}");
    }
}

#[test]
fn a_number_for_a_prompt_is_an_error_or_becomes_text() {
    let folder = || {
        let folder = Folder::new();
        let prompts = folder.plugin_path("p.prompts");
        std::fs::create_dir_all(&prompts).unwrap();
        std::fs::write(
            prompts.join("review.md"),
            "---\narguments:\n  - name: code\n---\nReview {{code}}.",
        )
        .unwrap();
        folder
    };
    let with = |code: Value| json!({"name": "review", "arguments": {"code": code}});
    let strict = folder();
    let mut server = StdioServer::start(&strict);
    server.result("prompts/list", json!({}));
    let error = server.error("prompts/get", with(json!(5)));
    assert_eq!(
        (&error["code"], &error["data"][0]["pointer"]),
        (&json!(-32602), &json!("/code")),
        "{error}"
    );
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("expected a string, not a number"),
        "{error}"
    );
    let lenient = folder();
    let mut server = StdioServer::start_with_config(&lenient, LENIENT);
    server.result("prompts/list", json!({}));
    for (code, text) in [
        (json!(5), "Review 5."),
        (json!(true), "Review true."),
        (json!("x"), "Review x."),
    ] {
        let prompt = server.result("prompts/get", with(code));
        assert_eq!(prompt["messages"][0]["content"]["text"], text);
    }
    let error = server.error("prompts/get", with(json!([5])));
    assert!(
        error["message"].as_str().unwrap().contains("\n/code: "),
        "{error}"
    );
}

/// SHA-256 digests of the tokens `strict` and `lenient`.
const TOKENS: &str = "[[http.tokens]]\nname = \"strict\"\n\
    sha256 = \"STRICT\"\narguments = \"strict\"\n\
    [[http.tokens]]\nname = \"lenient\"\n\
    sha256 = \"LENIENT\"\narguments = \"lenient\"\nschemas = \"portable\"\n";

#[test]
fn a_token_selects_how_arguments_are_checked_and_schemas_are_written() {
    let folder = Folder::with("echo.wasm", echo());
    let hash = |token: &str| hex::encode(Sha256::digest(token));
    let tokens = TOKENS
        .replace("STRICT", &hash("strict"))
        .replace("LENIENT", &hash("lenient"));
    folder.write_config(&tokens);
    let server =
        HttpServer::run(ToolbayCommand::new(&folder).args(["serve", "--http", "127.0.0.1:0"]));
    let with = |method: &str, params: Value, token: &str| {
        let bearer = format!("Bearer {token}");
        server
            .post_stateless(method, params, &[("authorization", &bearer)])
            .response_message()["result"]
            .clone()
    };
    let list =
        |token: &str| with("tools/list", json!({}), token)["tools"][0]["inputSchema"].clone();
    let strict = list("strict");
    let lenient = list("lenient");
    assert_eq!(strict["additionalProperties"], false, "{strict}");
    assert!(
        lenient.get("additionalProperties").is_none() && lenient["required"] == json!(["n"]),
        "{lenient}"
    );
    let call = |token: &str, arguments: Value| {
        with(
            "tools/call",
            json!({"name": "echo", "arguments": arguments}),
            token,
        )
    };
    assert_eq!(call("strict", json!({"n": "5"}))["isError"], true);
    assert_eq!(
        first_text(&call("lenient", json!({"n": "5"}))),
        r#"{"n":5}"#
    );
    // Validation uses the plugin's own schema.
    assert_eq!(call("strict", json!({"n": 5, "other": 1}))["isError"], true);
}

#[test]
fn the_audit_log_records_the_converted_arguments() {
    let folder = Folder::with("echo.wasm", echo());
    let mut server = StdioServer::start_with_config(
        &folder,
        &format!("{LENIENT}[audit]\nfolder = \"log\"\narguments = \"full\"\n"),
    );
    server.wait_for_tool("echo");
    assert_eq!(
        server.text("echo", json!({"n": "5", "extra": 1})),
        r#"{"n":5}"#
    );
    assert_eq!(
        server.failure("echo", json!({"n": "0", "extra": 1})).0,
        "invalid-arguments"
    );
    server.stop();
    let files = std::fs::read_dir(folder.sibling_path("log"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let text: String = files
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let calls: Vec<Value> = lines.filter(|line| line["event"] == "call").collect();
    let of = |outcome: &str| {
        calls
            .iter()
            .find(|call| call["outcome"] == outcome)
            .unwrap_or_else(|| panic!("{text}"))
    };
    let call = of("ok");
    assert_eq!(
        call["converted"],
        json!({"dropped": 1, "number": 1}),
        "{call}"
    );
    assert_eq!(call["arguments"], r#"{"n":5}"#, "{call}");
    assert_eq!(
        call["arguments_sha256"],
        hex::encode(Sha256::digest(r#"{"n":5}"#)),
        "{call}"
    );
    // Rejected arguments are recorded as they were sent.
    let rejected = of("invalid-arguments");
    assert!(rejected.get("converted").is_none(), "{rejected}");
    let sent: Value = serde_json::from_str(rejected["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(sent, json!({"n": "0", "extra": 1}), "{rejected}");
}

#[test]
fn an_approval_shows_the_converted_arguments() {
    let folder = Folder::with("echo.wasm", echo());
    folder.put(
        "echo.toml",
        "require_approval = \"always\"\narguments = \"lenient\"",
    );
    let mut server = StdioServer::spawn(&folder);
    let client = json!({"name": "test", "version": "1"});
    let capabilities = json!({"elicitation": {}});
    server.result(
        "initialize",
        json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client}),
    );
    server.notify("notifications/initialized", json!({}));
    server.wait_for_tool("echo");
    let id = server.start_call("echo", json!({"n": "5", "sessionId": "s"}));
    let question = server.wait_for("the question", |message| {
        message["method"] == "elicitation/create"
    });
    let shown = question["params"]["message"].as_str().unwrap();
    assert!(
        shown.contains("\"n\": 5") || shown.contains("\"n\":5") || shown.contains("n: 5"),
        "{shown}"
    );
    assert!(!shown.contains("sessionId"), "{shown}");
    let _ = id;
}
