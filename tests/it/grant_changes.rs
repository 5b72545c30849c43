//! Restrictions of a grant hold while its files change: a new restriction applies at once, and a
//! new permission when the files have been unchanged for a second.

use std::fs::{self, File};
use std::io::Write as _;
use std::process::Command;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use serde_json::json;

use crate::support::{Folder, StdioServer, TinyComponent, ToolbayCommand};

/// A file that a slow program is writing in place: while this exists, the file keeps changing.
struct SlowWriter {
    stop: Sender<()>,
    thread: JoinHandle<File>,
}

impl SlowWriter {
    /// Starts to write a file of the plugin folder, as an editor or `cp` does.
    fn begin(folder: &Folder, name: &str, beginning: &str) -> Self {
        let mut file = File::create(folder.plugin_path(name)).unwrap();
        file.write_all(beginning.as_bytes()).unwrap();
        file.sync_all().unwrap();
        let (stop, stopped) = channel();
        let thread = spawn(move || {
            while stopped.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout)
            {
                file.write_all(b"\n").unwrap();
            }
            file
        });
        Self { stop, thread }
    }

    /// Writes the rest of the file.
    fn end(self, rest: &str) {
        drop(self.stop);
        self.thread
            .join()
            .unwrap()
            .write_all(rest.as_bytes())
            .unwrap();
    }
}

/// Returns a plugin with a few tools.
fn texts(answer: &str) -> Vec<u8> {
    TinyComponent::new(&["count", "read_file", "slugify"])
        .with_text(answer)
        .build()
}

fn assert_unknown(server: &mut StdioServer, tool: &str) {
    let error = server.error("tools/call", json!({ "name": tool }));
    assert_eq!(error["message"], format!("Unknown tool: {tool}"));
}

/// Returns the description of the tool `count`, which changes when a complete grant applies. Checks
/// that the tool `slugify` is not listed.
fn count_description(server: &mut StdioServer) -> Option<String> {
    let tools = server.tools();
    assert!(
        tools.iter().all(|tool| tool["name"] != "slugify"),
        "{tools:?}"
    );
    let count = tools.iter().find(|tool| tool["name"] == "count")?;
    Some(count["description"].as_str()?.to_owned())
}

#[test]
fn the_first_half_of_a_grant_does_not_enable_a_tool_that_the_previous_grant_disables() {
    let folder = Folder::with("text.wasm", texts("one"));
    folder.put("text.toml", "[tools.slugify]\ndisabled = true\n");
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["count", "read_file"]);
    let writer = SlowWriter::begin(&folder, "text.toml", "[tools.read_file]\ndisabled = true\n");
    // The first half's restrictions apply at once.
    server.wait_until("read_file is disabled", |server| {
        count_description(server);
        server.tool_names() == ["count"]
    });
    assert_unknown(&mut server, "slugify");
    assert_unknown(&mut server, "read_file");
    writer.end("[tools.slugify]\ndisabled = true\n[tools.count]\ndescription = \"Counts.\"\n");
    server.wait_until("the whole grant applies", |server| {
        count_description(server).is_some_and(|words| words == "Counts.")
    });
    assert_unknown(&mut server, "slugify");
    assert_eq!(server.tool_names(), ["count"]);
}

#[test]
fn an_empty_grant_that_is_being_written_enables_no_tool() {
    let folder = Folder::with("text.wasm", texts("one"));
    folder.put("text.toml", "[tools.slugify]\ndisabled = true\n");
    folder.put("gate.wasm", TinyComponent::new(&["first"]).build());
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["count", "first", "read_file"]);
    let writer = SlowWriter::begin(&folder, "text.toml", "");
    // The server scans the folder after that.
    folder.put("gate.wasm", TinyComponent::new(&["second"]).build());
    server.wait_until("the other plugin is loaded", |server| {
        count_description(server);
        server.tool_names().contains(&"second".to_owned())
    });
    assert_unknown(&mut server, "slugify");
    // An empty file that no longer changes is the operator's intention.
    writer.end("");
    server.wait_until_listed(&["count", "read_file", "second", "slugify"]);
}

#[test]
fn a_new_plugin_is_offered_when_its_grant_is_complete() {
    let folder = Folder::new();
    folder.put("gate.wasm", TinyComponent::new(&["first"]).build());
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["first"]);
    let writer = SlowWriter::begin(&folder, "text.toml", "[tools.read_file]\ndisabled = true\n");
    folder.put("text.wasm", texts("one"));
    folder.put("gate.wasm", TinyComponent::new(&["second"]).build());
    server.wait_until("the other plugin is loaded", |server| {
        assert_eq!(
            count_description(server),
            None,
            "a tool of the new plugin is listed"
        );
        server.tool_names() == ["second"]
    });
    writer.end("[tools.slugify]\ndisabled = true\n");
    server.wait_until("the new plugin is offered", |server| {
        count_description(server).is_some()
    });
    server.wait_until_listed(&["count", "second"]);
}

#[test]
fn a_grant_that_is_removed_and_recreated_loses_no_restriction() {
    let folder = Folder::with("text.wasm", texts("one"));
    folder.put("text.toml", "[tools.slugify]\ndisabled = true\n");
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["count", "read_file"]);
    folder.remove("text.toml");
    folder.put(
        "text.toml",
        "[tools.slugify]\ndisabled = true\n[tools.count]\ndescription = \"Counts.\"\n",
    );
    server.wait_until("the new grant applies", |server| {
        count_description(server).is_some_and(|words| words == "Counts.")
    });
    // A grant that stays absent is removed.
    folder.remove("text.toml");
    server.wait_until_listed(&["count", "read_file", "slugify"]);
}

#[test]
fn a_stricter_grant_applies_while_the_component_is_refused() {
    let folder = Folder::with("text.wasm", texts("one"));
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["count", "read_file", "slugify"]);
    folder.put("text.wasm", "garbage");
    server
        .log
        .wait_for("refused; the previous version stays in service");
    folder.put("text.toml", "[tools.slugify]\ndisabled = true\n");
    server.wait_until_listed(&["count", "read_file"]);
    assert_unknown(&mut server, "slugify");
    assert_eq!(server.text("count", json!({})), "one");
    // If a grant names tools that the version in service does not have, its other restrictions
    // apply.
    folder.put(
        "text.toml",
        "[tools.slugify]\ndisabled = true\n[tools.read_file]\ndisabled = true\n[tools.new]\n",
    );
    server.wait_until_listed(&["count"]);
    // A grant for another file excludes the version in service.
    folder.put(
        "text.toml",
        format!("component = \"sha256:{}\"\n", "0".repeat(64)),
    );
    server.wait_until_listed(&[]);
    assert!(
        server.log.text().contains("withdrawn"),
        "{}",
        server.log.text()
    );
    folder.put("text.toml", "[tools.slugify]\ndisabled = true\n");
    folder.put("text.wasm", texts("two"));
    server.wait_until_listed(&["count", "read_file"]);
    assert_eq!(server.text("count", json!({})), "two");
}

#[test]
fn a_stricter_configuration_applies_while_the_component_or_the_grant_is_refused() {
    let folder = Folder::with("text.wasm", texts("one"));
    folder.put("other.wasm", TinyComponent::new(&["other"]).build());
    folder.write_config("");
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["count", "other", "read_file", "slugify"]);
    folder.put("text.wasm", "garbage");
    folder.put("other.toml", "hidden");
    server
        .log
        .wait_for_count("refused; the previous version stays in service", 2);
    assert_eq!(server.text("count", json!({})), "one");
    folder.write_config("[rate_limit]\ncalls = 1\nper = \"1h\"\n");
    assert!(
        Command::new("kill")
            .args(["-HUP", &server.pid().to_string()])
            .status()
            .unwrap()
            .success()
    );
    for tool in ["count", "other"] {
        server.wait_until("the rate limit applies", |server| {
            server
                .request_and_wait("tools/call", json!({ "name": tool }))
                .to_string()
                .contains("rate limit")
        });
    }
}

#[test]
fn the_tools_of_a_deleted_component_are_removed_whatever_its_grant_says() {
    let folder = Folder::with("text.wasm", texts("one"));
    fs::create_dir(folder.plugin_path("text.prompts")).unwrap();
    fs::write(folder.plugin_path("text.prompts/hello.md"), "Hello").unwrap();
    folder.put("text.toml", "[tools.slugify]\ndisabled = true\n");
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["count", "read_file"]);
    folder.remove("text.wasm");
    server.wait_until_listed(&[]);
    assert_unknown(&mut server, "count");
    assert_unknown(&mut server, "slugify");
    // The remaining files have no tools, but the grant names a tool.
    let line = server.log.wait_for("refused: text.toml: tools:");
    assert!(
        line.contains("there is no text.wasm, so the plugin has no tools"),
        "{line}"
    );
    folder.put("text.toml", "");
    server.wait_until("its prompt is there", |server| {
        server.result("prompts/list", json!({}))["prompts"][0]["name"] == "hello"
    });
}

#[test]
fn keys_of_tools_are_refused_for_a_plugin_of_plain_files() {
    for (key, text) in [
        ("tools", "[tools.slugify]\ndisabled = true\n".to_owned()),
        ("enabled_tools", "enabled_tools = [\"*\"]\n".to_owned()),
        (
            "component",
            format!("component = \"sha256:{}\"\n", "0".repeat(64)),
        ),
    ] {
        let folder = Folder::new();
        fs::create_dir(folder.plugin_path("text.prompts")).unwrap();
        fs::write(folder.plugin_path("text.prompts/hello.md"), "Hello").unwrap();
        folder.put("text.toml", text);
        let listed = ToolbayCommand::new(&folder).args(["list"]).run().stdout;
        let why = format!(
            "text.toml: {key}: there is no text.wasm, so the plugin has no tools; remove `{key}`, or add"
        );
        assert!(
            listed.contains("text  refused") && listed.contains(&why),
            "{listed}"
        );
    }
}
