//! Results that are larger than a client receives: a part that fits, and a link to the whole
//! result.

use serde_json::{Value, json};

use crate::http::auth::token;
use crate::memory::resident;
use crate::support::{
    Folder, HttpServer, StdioServer, ToolbayCommand, error_kind_and_text, hostile,
};

/// The part of a result that clients receive in most of the tests.
const SMALL: &str = "[results]\nshown = \"16KiB\"\n";

/// Limits that allow results of 16 MiB.
const LARGE: &str = "[limits]\ntransfer = \"64MiB\"\n";

fn folder(grant: &str) -> Folder {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", grant);
    folder
}

/// Returns the lines that the guest's tool `lines` returns.
fn lines(bytes: usize) -> String {
    let letters = "abcdefghijklmnopqrstuvwxyz ".repeat(2);
    let lines: Vec<String> = (0..bytes / 64)
        .map(|number| format!("{number:08} {letters}\n"))
        .collect();
    lines.concat()
}

/// Returns the only link of a result.
fn link(result: &Value) -> &Value {
    let blocks = result["content"].as_array().unwrap();
    let links: Vec<&Value> = blocks
        .iter()
        .filter(|block| block["type"] == "resource_link")
        .collect();
    assert_eq!(links.len(), 1, "{result}");
    links[0]
}

fn uri(result: &Value) -> String {
    link(result)["uri"].as_str().unwrap().to_owned()
}

/// Returns the part that the user sees, with the URI replaced.
fn shown_content(result: &Value) -> Value {
    let mut shown = result.clone();
    let address = uri(result);
    let blocks = shown["content"].as_array_mut().unwrap();
    for block in blocks {
        for member in ["text", "uri"] {
            if let Some(text) = block[member].as_str() {
                let text = text.replace(&address, "toolbay://results/ID");
                let is_long = text.len() > 1000;
                let text = if is_long {
                    format!("{}… {}", &text[..40], &text[text.len() - 70..])
                } else {
                    text
                };
                block[member] = text.into();
            }
        }
        if let Some(data) = block["data"].as_str() {
            block["data"] = format!("{} characters", data.len()).into();
        }
    }
    shown["_meta"] = Value::Null;
    shown
}

#[test]
fn results_of_64_kib_to_16_mib_are_cut_at_a_line_and_stored_whole() {
    let folder = folder(LARGE);
    for bytes in [64 << 10, 1 << 20, 4 << 20, (16 << 20) - 4096] {
        let mut server = StdioServer::start_with_config(&folder, SMALL);
        let result = server.call("lines", json!({"n": bytes}));
        assert!(result.get("isError").is_none(), "{result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(
            text.len() <= 16 << 10 && text.len() > 14 << 10,
            "{}",
            text.len()
        );
        let whole = lines(bytes);
        assert!(whole.starts_with(text) && text.ends_with('\n'));
        let uri = uri(&result);
        assert_eq!(link(&result)["size"], whole.len());
        let read = server.result("resources/read", json!({"uri": uri}));
        assert_eq!(read["contents"].as_array().unwrap().len(), 1);
        assert_eq!(read["contents"][0]["uri"], uri);
        assert!(read["contents"][0]["text"] == whole, "{bytes}");
        let part = server.result(
            "resources/read",
            json!({"uri": format!("{uri}?offset=128&length=64")}),
        );
        assert_eq!(part["contents"][0]["text"], whole[128..192]);
        assert_eq!(server.text("count", json!({})), "1");
    }
}

#[test]
fn every_revision_shows_the_beginning_of_a_long_text_and_a_link() {
    let folder = folder("");
    let mut seen = Vec::new();
    for revision in StdioServer::start(&folder).session_revisions() {
        let mut server = StdioServer::start_with_revision_and_config(&revision, &folder, SMALL);
        let result = server.call("lines", json!({"n": 100_000}));
        let said = if result["content"]
            .as_array()
            .unwrap()
            .iter()
            .any(|block| block["type"] == "resource_link")
        {
            shown_content(&result)
        } else {
            let note = result["content"][2]["text"].as_str().unwrap();
            assert!(note.contains("toolbay://results/"), "{result}");
            json!("the link is text")
        };
        seen.push((revision, said));
    }
    let server = HttpServer::start_with_config(&folder, SMALL).wait_until_ready();
    let result = server
        .post_stateless(
            "tools/call",
            json!({"name": "lines", "arguments": {"n": 100_000}}),
            &[],
        )
        .response_message();
    seen.push(("2026-07-28".to_owned(), shown_content(&result["result"])));
    insta::assert_json_snapshot!(seen);
}

#[test]
fn blocks_that_do_not_fit_are_omitted_and_can_be_read_one_by_one() {
    let mut server = StdioServer::start_with_config(&folder(""), SMALL);
    let result = server.call("illustrated", json!({"n": 100_000}));
    insta::assert_json_snapshot!(shown_content(&result));
    let uri = uri(&result);
    let read = server.result("resources/read", json!({"uri": uri}));
    let items = read["contents"].as_array().unwrap();
    assert_eq!(items.len(), 3);
    assert_eq!(items[0]["text"], "The picture:");
    assert_eq!(items[1]["mimeType"], "image/png");
    let image = server.result("resources/read", json!({"uri": format!("{uri}/1")}));
    assert_eq!(image["contents"][0]["blob"], items[1]["blob"]);
    for (wrong, why) in [
        (format!("{uri}/3"), "the result has the parts 0 to 2"),
        (
            format!("{uri}?offset=1"),
            "offset and length: the result has several parts; add the number of one to the URI, such as /0",
        ),
        (
            format!("{uri}/2?offset=100001"),
            "offset: this part of the result has 99968 bytes",
        ),
    ] {
        let error = server.error("resources/read", json!({"uri": wrong}));
        assert_eq!(error["message"], why);
    }
}

#[test]
fn structured_content_of_a_schema_that_does_not_fit_is_an_error_with_a_link() {
    let mut server = StdioServer::start_with_config(&folder(""), SMALL);
    let fits = server.call("rows", json!({"n": 4096}));
    assert_eq!(
        fits["structuredContent"]["rows"].as_array().unwrap().len(),
        64
    );
    let result = server.call("rows", json!({"n": 100_000}));
    assert!(result.get("structuredContent").is_none());
    assert_eq!(result["isError"], true);
    assert_eq!(result["_meta"]["dev.toolbay/error"], "output");
    let read = server.result("resources/read", json!({"uri": uri(&result)}));
    assert_eq!(read["contents"][0]["mimeType"], "application/json");
    let whole: Value = serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(whole["rows"].as_array().unwrap().len(), 100_000 / 64);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with(r#"{"rows":["00000000 abc"#), "{text}");
}

#[test]
fn a_long_failure_is_cut_with_a_note() {
    let mut server = StdioServer::start_with_config(&folder(""), SMALL);
    let result = server.call("fail_at_length", json!({"n": 100_000}));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(result["isError"], true);
    assert!(text.len() < 16 << 10, "{}", text.len());
    assert!(
        text.ends_with("\n[Cut: the message has 97.6 KiB, and at most 16.0 KiB are shown.]"),
        "{text}"
    );
}

#[test]
fn the_oversize_limit_selects_a_link_or_an_error() {
    let over = json!({"n": 2 << 20});
    let (kind, text) = error_kind_and_text(
        &StdioServer::start(&folder("[limits]\noversize = \"error\"")).call("lines", over.clone()),
    );
    assert_eq!(kind, "output");
    assert_eq!(
        text,
        "The tool's result is larger than 1.0 MiB (to allow more, raise limits.output)."
    );
    // A tool and the server can set it too.
    let grant = "[limits]\noversize = \"error\"\n[tools.lines.limits]\noversize = \"link\"";
    let mut server = StdioServer::start(&folder(grant));
    link(&server.call("lines", over.clone()));
    assert_eq!(
        error_kind_and_text(&server.call("big_output", over.clone())).0,
        "output"
    );
    let mut server = StdioServer::start_with_config(&folder(""), "[limits]\noversize = \"error\"");
    assert_eq!(
        error_kind_and_text(&server.call("lines", over.clone())).0,
        "output"
    );
    // A result above the maximum size for storage is an error, too.
    let mut server = StdioServer::start_with_config(&folder(""), "[results]\nsize = \"1536KiB\"");
    let (kind, text) = error_kind_and_text(&server.call("lines", over));
    assert_eq!(kind, "output");
    assert_eq!(
        text,
        "The tool's result is larger than 1.5 MiB, the maximum that is stored (to allow more, raise results.size, which applies \
         to all plugins)."
    );
}

#[test]
fn a_stored_result_can_be_read_only_by_its_caller() {
    // The tools that a caller may use do not affect access to its results.
    let (ada, one) = token("ada", "tools = [\"lines\"]");
    let (bob, other) = token("bob", "");
    let config = format!("{SMALL}{one}{other}");
    let server = HttpServer::start_with_config(&folder(""), &config).wait_until_ready();
    let ask = |method: &str, params: Value, token: &str| {
        let authorization = format!("Bearer {token}");
        server
            .post_stateless(method, params, &[("Authorization", &authorization)])
            .response_message()
    };
    let result = ask(
        "tools/call",
        json!({"name": "lines", "arguments": {"n": 100_000}}),
        &ada,
    );
    let uri = uri(&result["result"]);
    let read = |token: &str| ask("resources/read", json!({"uri": uri}), token);
    assert_eq!(read(&ada)["result"]["contents"][0]["uri"], uri);
    let refused = read(&bob);
    assert_eq!(
        refused["error"]["message"],
        format!("Resource not found: {uri}"),
        "{refused}"
    );
    // No list contains the result.
    let list = ask("resources/list", json!({}), &ada);
    assert_eq!(list["result"]["resources"], json!([]), "{list}");
}

#[test]
fn a_stored_result_is_removed_after_its_ttl() {
    let mut server =
        StdioServer::start_with_config(&folder(""), &format!("{SMALL}ttl = \"300ms\"\n"));
    let result = server.call("lines", json!({"n": 100_000}));
    let note = result["content"][1]["text"].as_str().unwrap().to_owned();
    assert!(note.contains("has the whole result for 300ms;"), "{note}");
    let uri = uri(&result);
    server.wait_until("the result is gone", |server| {
        let id = server.request("resources/read", json!({"uri": uri}));
        let answer = server.wait_for_response(id);
        answer["error"]["message"] == format!("Resource not found: {uri}")
    });
}

#[test]
fn the_total_size_of_stored_results_is_limited() {
    let config = "[results]\nshown = \"16KiB\"\nmemory = \"8MiB\"\n";
    let mut server = StdioServer::start_with_config(&folder(""), config);
    let call = |server: &mut StdioServer| uri(&server.call("lines", json!({"n": 1 << 20})));
    let first = call(&mut server);
    for _ in 0..20 {
        call(&mut server);
    }
    let before = resident(server.pid());
    let mut last = String::new();
    for _ in 0..100 {
        last = call(&mut server);
    }
    let grown = resident(server.pid()).saturating_sub(before);
    assert!(grown < 8 << 10, "{grown} KiB");
    server.result("resources/read", json!({"uri": last}));
    server.error("resources/read", json!({"uri": first}));
    // A result larger than half of the memory is shown, and not stored.
    let result = server.call("lines", json!({"n": 5 << 20}));
    let note = result["content"][1]["text"].as_str().unwrap();
    assert!(
        note.ends_with("The rest was not kept, because it is too large.]"),
        "{note}"
    );
}

#[test]
fn a_task_has_a_result_that_fits_and_a_link() {
    let folder = folder("[tools.lines]\ntask_support = \"required\"");
    let mut server = StdioServer::start_with_config(&folder, SMALL);
    let created = server.result(
        "tools/call",
        json!({"name": "lines", "arguments": {"n": 100_000}, "task": {}}),
    );
    let result = server.result("tasks/result", json!({"taskId": created["task"]["taskId"]}));
    let uri = uri(&result);
    let read = server.result("resources/read", json!({"uri": uri}));
    assert!(read["contents"][0]["text"] == lines(100_000));
}

#[test]
fn a_command_prints_a_result_whole() {
    let folder = folder("");
    let outcome = ToolbayCommand::new(&folder)
        .args(["call", "lines", "{\"n\": 2097152}"])
        .run();
    assert!(
        outcome.raw_stdout.starts_with(&lines(2 << 20)),
        "{} bytes",
        outcome.raw_stdout.len()
    );
}
