//! A plugin file on the command line, arguments as `KEY=VALUE`, and suggestions for unknown names.

use std::fmt::Write as _;

use serde_json::json;

use crate::http::auth::{bearer, token};
use crate::support::{
    CommandOutput, Folder, HttpServer, StdioServer, TinyComponent, TinyTool, ToolbayCommand,
};

fn toolbay(folder: &Folder, args: &[&str]) -> CommandOutput {
    ToolbayCommand::new(folder).args(args).run()
}

/// Two plugins, of which the first has a grant with a prefix.
fn two_plugins() -> Folder {
    let folder = Folder::with(
        "a.wasm",
        TinyComponent::new(&["one"]).with_text("1").build(),
    );
    folder.put("a.toml", "prefix = \"my\"");
    folder.put(
        "b.wasm",
        TinyComponent::new(&["two"]).with_text("2").build(),
    );
    folder
}

#[test]
fn a_file_is_called_with_its_grant_and_without_other_plugins() {
    let folder = two_plugins();
    let called = toolbay(&folder, &["call", "plugins/a.wasm", "my_one"]);
    assert_eq!(
        (called.code, called.stdout.as_str()),
        (0, "1\n"),
        "{called}"
    );
    // From within the folder, and with the configuration of the folder's parent.
    let (mut command, _kept) = ToolbayCommand::new(&folder)
        .args(["call", "b.wasm", "two"])
        .into_parts();
    let output = command
        .current_dir(folder.plugin_folder())
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"2\n", "{output:?}");
    let other = toolbay(&folder, &["call", "plugins/a.wasm", "two"]);
    assert_eq!(other.code, 1, "{other}");
    assert!(other.stderr.contains("unknown tool \"two\""), "{other}");
}

#[test]
fn a_grant_that_is_misnamed_or_invalid_refuses_the_file_as_in_a_folder() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["one"]).build());
    folder.put("b.wasm", "not a plugin");
    for (name, grant, reason) in [
        ("a.toml.txt", "", "a.toml.txt looks like its grant"),
        ("a.toml", "prefixx = \"my\"", "prefixx"),
    ] {
        folder.put(name, grant);
        let called = toolbay(&folder, &["call", "plugins/a.wasm", "one"]);
        assert_eq!(called.code, 1, "{called}");
        let listed = toolbay(&folder, &["list", "a"]);
        assert!(
            listed.stdout.contains(reason) && !called.stdout.contains("fine"),
            "{called}{listed}"
        );
        folder.remove(name);
    }
    // The grant of another plugin with a similar name is not that of this one.
    folder.put("A.wasm", TinyComponent::new(&["big"]).build());
    folder.put("A.toml", "prefix = \"other\"");
    let called = toolbay(&folder, &["call", "plugins/a.wasm", "one"]);
    assert_eq!(called.code, 0, "{called}");
}

#[test]
fn a_server_of_a_file_offers_only_that_plugin() {
    let folder = two_plugins();
    let mut server =
        StdioServer::run(ToolbayCommand::new(&folder).args(["serve", "plugins/a.wasm"]))
            .with_handshake("2025-11-25");
    server.wait_until_listed(&["my_one"]);
    // A changed grant applies at once, and another plugin does not appear.
    folder.put("c.wasm", TinyComponent::new(&["three"]).build());
    folder.put("a.toml", "prefix = \"your\"");
    server.wait_until_listed(&["your_one"]);
}

#[test]
fn mistakes_with_plugin_files_are_explained() {
    let folder = two_plugins();
    folder.put("upper.WASM", "");
    let mut said = String::new();
    for args in [
        &["call", "plugins/missing.wasm", "one"][..],
        &["call", "plugins/upper.WASM", "one"],
        &["call", "plugins/a.wasm"],
        &["call", "plugins/a.wasm", "--plugins", "plugins", "my_one"],
        &["call", "plugins/a.wasm", "my_on"],
        &["serve", "plugins"],
        &["serve", "plugins/a.toml"],
        &["serve", "missing.wasm"],
    ] {
        let outcome = toolbay(&folder, args);
        assert_ne!(outcome.code, 0, "{outcome}");
        let _ = writeln!(
            said,
            "$ toolbay {}\n{}exit code {}\n",
            args.join(" "),
            outcome.stderr,
            outcome.code
        );
    }
    insta::assert_snapshot!(said);
}

/// A plugin whose tool `echo` returns its arguments.
fn echo() -> Folder {
    let tool = TinyTool {
        input: json!({
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "at": {"type": "object", "properties": {"x": {"type": "number"}}},
            },
            "additionalProperties": false,
        })
        .to_string(),
        ..TinyTool::new("echo")
    };
    Folder::with(
        "a.wasm",
        TinyComponent::with_tools(vec![tool]).with_echo().build(),
    )
}

#[test]
fn arguments_are_given_as_keys_and_values() {
    let folder = echo();
    std::fs::write(folder.sibling_path("note.txt"), "two\nlines").unwrap();
    for (args, expected) in [
        (
            &["city=Bern", "days=3", "tags=a", "tags=b", "at.x=1.5"][..],
            json!({"city": "Bern", "days": 3, "tags": ["a", "b"], "at": {"x": 1.5}}),
        ),
        (&["city=@note.txt"], json!({"city": "two\nlines"})),
        (&["tags:=[\"x\"]"], json!({"tags": ["x"]})),
        (&["city=7"], json!({"city": "7"})),
    ] {
        let called = toolbay(&folder, &[&["call", "echo"][..], args].concat());
        assert_eq!(called.code, 0, "{called}");
        let echoed: serde_json::Value = serde_json::from_str(&called.raw_stdout).unwrap();
        assert_eq!(echoed, expected, "{args:?}");
    }
    let mut said = String::new();
    for args in [
        &["citty=Bern"][..],
        &["days=three"],
        &["days=@missing.txt"],
        &["Bern"],
        &["city=Bern", "seven"],
        &["city=a", "city=b"],
        &["unknown:=1"],
    ] {
        let outcome = toolbay(&folder, &[&["call", "echo"][..], args].concat());
        assert_eq!(outcome.code, 1, "{outcome}");
        let _ = writeln!(
            said,
            "$ toolbay call echo {}\n{}",
            args.join(" "),
            outcome.stderr
        );
    }
    insta::assert_snapshot!(said);
}

#[test]
fn a_result_without_files_saves_nothing() {
    let folder = echo();
    let called = toolbay(&folder, &["call", "echo", "--output", "out"]);
    assert_eq!(called.code, 0, "{called}");
    assert!(called.stderr.contains("nothing was saved"), "{called}");
    assert!(!folder.sibling_path("out").exists());
}

#[test]
fn an_unknown_name_is_answered_with_similar_names_that_the_caller_may_use() {
    let folder = Folder::with(
        "a.wasm",
        TinyComponent::new(&["read_notes", "read_note_secret", "zzz"]).build(),
    );
    let (all, all_lines) = token("all", "");
    let (few, few_lines) = token("few", "tools = [\"read_notes\"]");
    let server = HttpServer::start_with_config(&folder, &format!("{all_lines}{few_lines}"))
        .wait_until_ready();
    let error = |token: &str, method: &str, params: serde_json::Value| {
        let answer = server.post_stateless(method, params, &[("Authorization", &bearer(token))]);
        answer.response_message()["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let call = |token: &str, name: &str| error(token, "tools/call", json!({"name": name}));
    assert_eq!(
        call(&all, "read_note"),
        "Unknown tool: read_note. Did you mean read_notes or read_note_secret?"
    );
    assert_eq!(
        call(&few, "read_note"),
        "Unknown tool: read_note. Did you mean read_notes?"
    );
    // A tool that exists and one that does not are answered in the same way.
    for name in ["read_note_secret", "read_note_secreT"] {
        assert_eq!(
            call(&few, name),
            format!("Unknown tool: {name}. Did you mean read_notes?")
        );
    }
    assert_eq!(call(&few, "zzz"), "Unknown tool: zzz");
    assert_eq!(
        call(&all, &"x".repeat(40_000)).len(),
        "Unknown tool: ".len() + 200
    );
    assert_eq!(
        error(&all, "prompts/get", json!({"name": "read_note"})),
        "Unknown prompt: read_note"
    );
}

#[test]
fn prompts_and_resources_are_suggested_too() {
    let folder = Folder::new();
    for (path, text) in [
        ("notes.prompts/summarize.md", "Summarize."),
        ("notes.resources/readme.md", "Read."),
    ] {
        let path = folder.plugin_folder().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let mut server = StdioServer::start(&folder);
    let prompts = server.result("prompts/list", json!({}));
    let prompt = prompts["prompts"][0]["name"].as_str().unwrap().to_owned();
    let resources = server.result("resources/list", json!({}));
    let uri = resources["resources"][0]["uri"]
        .as_str()
        .unwrap()
        .to_owned();
    let wrong = prompt.replace("summarize", "summarise");
    assert_eq!(
        server.error("prompts/get", json!({"name": wrong}))["message"],
        format!("Unknown prompt: {wrong}. Did you mean {prompt}?")
    );
    let wrong = uri.replace("readme", "raedme");
    assert_eq!(
        server.error("resources/read", json!({"uri": wrong}))["message"],
        format!("Resource not found: {wrong}. Did you mean {uri}?")
    );
}

#[test]
fn a_call_is_measured_many_times() {
    let folder = two_plugins();
    let args = ["bench", "plugins/b.wasm", "two", "--calls", "3"];
    let measured = toolbay(&folder, &args);
    assert_eq!(measured.code, 0, "{measured}");
    assert!(
        measured
            .stdout
            .starts_with("3 calls of two, one after another: "),
        "{measured}"
    );
    let as_json = toolbay(&folder, &[&args[..], &["--json"]].concat());
    let as_json: serde_json::Value = serde_json::from_str(&as_json.raw_stdout).unwrap();
    assert_eq!(as_json["calls"], 3, "{as_json}");
    assert!(as_json["max_fuel"].as_u64().unwrap() > 0, "{as_json}");
    folder.put("b.toml", "require_approval = \"always\"");
    let refused = toolbay(&folder, &args);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("a person must allow"), "{refused}");
}
