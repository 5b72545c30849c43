//! Grants must match their plugin: they name its tools, and can be limited to one file.

use serde_json::json;

use crate::http::auth::token;
use crate::support::{
    CommandOutput, Folder, HttpServer, StdioServer, TinyComponent, ToolbayCommand,
    error_kind_and_text,
};

fn run(folder: &Folder, args: &[&str]) -> CommandOutput {
    ToolbayCommand::new(folder).args(args).run()
}

/// Returns a plugin with a few tools.
fn texts(answer: &str) -> Vec<u8> {
    TinyComponent::new(&["count", "read_file", "slugify"])
        .with_text(answer)
        .build()
}

/// Returns the digest of the plugin's file, as `toolbay check` prints it.
fn digest(folder: &Folder) -> String {
    let outcome = run(folder, &["check", "plugins/text.wasm"]);
    let (_, digest) = outcome
        .raw_stdout
        .split_once("sha256 ")
        .unwrap_or_else(|| panic!("{outcome}"));
    digest.lines().next().unwrap().trim().to_owned()
}

#[test]
fn a_plugin_whose_grant_has_another_name_is_refused() {
    let folder = Folder::with("text.wasm", texts("one"));
    let rename =
        |from, to| std::fs::rename(folder.plugin_path(from), folder.plugin_path(to)).unwrap();
    folder.put("text.TOML", "[tools.slugify]\ndisabled = true");
    let mut server = StdioServer::start(&folder);
    let why = "text.TOML looks like its grant, whose name must be text.toml: rename text.TOML or delete it";
    server.log.wait_for(why);
    assert!(server.tool_names().is_empty());
    let listed = run(&folder, &["list"]).stdout;
    assert!(
        listed.contains("text  refused") && listed.contains(why),
        "{listed}"
    );
    let called = run(&folder, &["call", "count"]);
    assert_eq!((called.code, called.stdout.as_str()), (1, ""), "{called}");
    rename("text.TOML", "text.toml");
    server.wait_until_listed(&["count", "read_file"]);
    // A tool stays disabled when the grant in service is renamed.
    rename("text.toml", "text.toml.txt");
    server.log.wait_for("text.toml.txt looks like its grant");
    assert_eq!(server.tool_names(), ["count", "read_file"]);
    assert_eq!(
        server.error("tools/call", json!({"name": "slugify"}))["message"],
        "Unknown tool: slugify"
    );
    folder.remove("text.toml.txt");
    server.wait_until_listed(&["count", "read_file", "slugify"]);
}

#[test]
fn a_grant_ends_at_the_time_that_it_states() {
    let folder = Folder::with("text.wasm", texts("one"));
    folder.put("text.toml", "until = 2026-01-01\n");
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["count", "read_file", "slugify"]);
    let result = server.call("count", json!({}));
    let (kind, text) = error_kind_and_text(&result);
    assert_eq!(kind, "disabled", "{result}");
    assert!(
        text.contains("ended at 2026-01-01T00:00:00Z (until)"),
        "{text}"
    );
    let listed = run(&folder, &["list"]).stdout;
    for words in [
        "ends at 2026-01-01T00:00:00Z",
        "the grant ended at 2026-01-01T00:00:00Z (until): all calls of the plugin are rejected",
    ] {
        assert!(listed.contains(words), "{words}: {listed}");
    }
    let listed = run(&folder, &["check-config"]);
    assert!(listed.stdout.contains("the grant ended at"), "{listed}");
    // A longer grant applies without a restart.
    folder.put("text.toml", "until = 9999-12-31T23:59:59+14:00\n");
    loop {
        let result = server.call("count", json!({}));
        if result["isError"] != true {
            break;
        }
    }
    for (wrong, why) in [
        ("until = \"2027-01-01\"", "without quotation marks"),
        ("until = 2027-01-01T08:00:00", "with a zone"),
        ("until = 08:00:00", "expected a date"),
        ("until = 7", "expected a date"),
        ("untill = 2027-01-01", "did you mean `until`?"),
    ] {
        folder.put("text.toml", wrong);
        let listed = run(&folder, &["list"]).stdout;
        assert!(
            listed.contains("text  refused") && listed.contains(why),
            "{wrong}: {listed}"
        );
    }
}

#[test]
fn the_log_shows_what_a_changed_grant_allows_and_no_longer_allows() {
    let folder = Folder::with("text.wasm", texts("one"));
    folder.put(
        "text.toml",
        "[permissions]\nhttp = [\"https://a.example\"]\nenvironment = [\"LANG\"]\n",
    );
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["count", "read_file", "slugify"]);
    folder.put(
        "text.toml",
        "[permissions]\nhttp = [\"https://b.example\"]\nenvironment = [\"LANG\"]\n[limits]\nfuel = 7_000_000\n",
    );
    let line = server.log.wait_for("grant changed");
    assert!(
        line.contains(
            r#"no longer HTTP requests: "https://a.example"; now HTTP requests: "https://b.example"; fuel: 7,000,000"#
        ) && !line.contains("LANG"),
        "{line}"
    );
    // A deleted grant allows nothing.
    folder.remove("text.toml");
    let line = server.log.wait_for("no longer environment variables: LANG");
    assert!(
        line.contains(r#"HTTP requests: "https://b.example""#) && !line.contains("; now"),
        "{line}"
    );
}

#[test]
fn a_grant_without_an_end_does_not_end() {
    let folder = Folder::with("text.wasm", texts("one"));
    folder.put("text.toml", "[limits]\nfuel = 1000000\n");
    let listed = run(&folder, &["list"]).stdout;
    assert!(!listed.contains("ends at"), "{listed}");
    assert_eq!(run(&folder, &["call", "count"]).code, 0);
}

#[test]
fn a_grant_for_a_tool_that_does_not_exist_is_refused_with_the_nearest_name() {
    let folder = Folder::with("text.wasm", texts("one"));
    folder.put("text.toml", "[tools.slugify]\ndisabled = true");
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["count", "read_file"]);
    // The mistake does not enable the tool that the previous grant disables.
    folder.put(
        "text.toml",
        "[tools.slugifi]\nrequire_approval = \"always\"",
    );
    let why = "text.toml: tools.slugifi: the plugin has no tool with this name; did you mean \"slugify\"?";
    let line = server.log.wait_for("refused");
    assert!(line.contains(why), "{line}");
    assert_eq!(server.tool_names(), ["count", "read_file"]);
    assert_eq!(server.text("count", json!({})), "one");
    assert_eq!(
        server.error("tools/call", json!({"name": "slugify"}))["message"],
        "Unknown tool: slugify"
    );
    // A server that starts now does not serve the tool either, and the command that inspects the
    // plugin fails.
    let listed = run(&folder, &["list"]).stdout;
    assert!(
        listed.contains("text  refused") && listed.contains(why),
        "{listed}"
    );
    let called = run(&folder, &["call", "slugify"]);
    assert_eq!((called.code, called.stdout.as_str()), (1, ""), "{called}");
    let checked = run(&folder, &["check", "plugins/text.wasm"]);
    assert!(
        checked.code == 1 && checked.stdout.contains(why),
        "{checked}"
    );
    folder.put(
        "text.toml",
        "[tools.slugify]\ndescription = \"Makes slugs.\"",
    );
    server.wait_until_listed(&["count", "read_file", "slugify"]);
    assert_eq!(run(&folder, &["check", "plugins/text.wasm"]).code, 0);
}

#[test]
fn an_update_that_renames_a_tool_does_not_drop_its_protection() {
    let folder = Folder::with("text.wasm", texts("one"));
    folder.put("text.toml", "[tools.slugify]\ndisabled = true");
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["count", "read_file"]);
    folder.put(
        "text.wasm",
        TinyComponent::new(&["count", "read_file", "slugify_text"])
            .with_text("two")
            .build(),
    );
    let line = server.log.wait_for("refused");
    assert!(line.contains("did you mean \"slugify_text\"?"), "{line}");
    assert_eq!(server.tool_names(), ["count", "read_file"]);
    assert_eq!(server.text("count", json!({})), "one");
}

#[test]
fn only_the_tools_that_a_grant_lists_are_offered() {
    let folder = Folder::with("text.wasm", texts("one"));
    folder.put(
        "text.toml",
        "prefix = \"t\"\nenabled_tools = [\"read_*\", \"count\"]",
    );
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["t_count", "t_read_file"]);
    assert_eq!(
        server.error("tools/call", json!({"name": "t_slugify"}))["message"],
        "Unknown tool: t_slugify"
    );
    // A tool that an update adds is offered if the list names it.
    folder.put(
        "text.wasm",
        TinyComponent::new(&["count", "erase", "read_file", "read_link", "slugify"]).build(),
    );
    server.wait_until_listed(&["t_count", "t_read_file", "t_read_link"]);
    // Other keys of a tool do not offer it, and a tool of the list can be disabled.
    folder.put(
        "text.toml",
        "enabled_tools = [\"read_*\"]\n[tools.erase]\ntitle = \"Erase\"\n[tools.read_link]\ndisabled = true",
    );
    server.wait_until_listed(&["read_file"]);
    folder.put("text.toml", "enabled_tools = [\"raed_file\"]");
    let line = server.log.wait_for("refused");
    let why = "text.toml: enabled_tools: the plugin has no tool \"raed_file\"; did you mean \"read_file\"?";
    assert!(line.contains(why), "{line}");
    assert_eq!(server.tool_names(), ["read_file"]);
}

#[test]
fn without_enabled_tools_every_tool_is_offered() {
    let folder = Folder::with("text.wasm", texts("one"));
    folder.put("text.toml", "prefix = \"t\"");
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["t_count", "t_read_file", "t_slugify"]);
}

#[test]
fn a_grant_for_one_file_is_not_inherited_by_another() {
    let folder = Folder::with("text.wasm", texts("one"));
    let first = digest(&folder);
    folder.put("text.toml", format!("component = \"sha256:{first}\""));
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["count", "read_file", "slugify"]);
    folder.put("text.wasm", texts("two"));
    let line = server.log.wait_for("refused");
    assert!(
        line.contains(&format!(
            "text.toml: component: the grant is for the file with sha256:{first}"
        )),
        "{line}"
    );
    assert_eq!(server.text("count", json!({})), "one");
    let checked = run(&folder, &["check", "plugins/text.wasm"]);
    assert_eq!(checked.code, 1, "{checked}");
    let second = digest(&folder);
    assert_ne!(first, second);
    folder.put("text.toml", format!("component = \"sha256:{second}\""));
    server.wait_for_text("count", "two", &["one"]);
}

#[test]
fn a_grant_without_a_digest_allows_another_file() {
    let folder = Folder::with("text.wasm", texts("one"));
    folder.put("text.toml", "[tools.slugify]\ndisabled = true");
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["count", "read_file"]);
    folder.put("text.wasm", texts("two"));
    server.wait_for_text("count", "two", &["one"]);
}

#[test]
fn check_refuses_and_warns_about_mounts_as_a_server_does() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let mount = |host: &str| {
        format!(
            "[[permissions.mounts]]\nhost = {host:?}\nguest = \"/g\"\naccess = \"read-write\"\n"
        )
    };
    let check = || run(&folder, &["check", "plugins/a.wasm"]);
    folder.put("a.toml", mount("."));
    let refused = check();
    assert_eq!(refused.code, 1, "{refused}");
    let why = "a.toml:2: the mount of . contains the plugin folder";
    assert!(refused.stdout.contains(why), "{refused}");
    let listed = run(&folder, &["list"]);
    assert!(listed.stdout.contains(why), "{listed}");
    folder.put("a.toml", mount("../missing"));
    let warned = check();
    assert_eq!(warned.code, 0, "{warned}");
    assert!(
        warned.stdout.contains("missing") && warned.stdout.contains("does not exist"),
        "{warned}"
    );
}

#[test]
fn a_client_reads_what_is_enforced_for_the_tools_that_it_can_see() {
    let folder = Folder::with("text.wasm", texts("one"));
    std::fs::create_dir(folder.sibling_path("data")).unwrap();
    folder.put(
        "text.toml",
        "require_approval = \"always\"\napprove_by = \"console\"\nuntil = 9999-12-31\n\
         [limits]\nfuel = 123456\n[tools.read_file]\nrequire_approval = \"never\"\n[permissions]\n\
         http = [\"https://api.example.com\"]\n\
         [[permissions.mounts]]\nhost = \"../data\"\nguest = \"/data\"\naccess = \"read\"\n",
    );
    folder.put("other.wasm", TinyComponent::new(&["hidden"]).build());
    let (word, tokens) = token("ci", "tools = [\"count\", \"read_file\"]");
    let server = HttpServer::start_with_config(&folder, &tokens).wait_until_ready();
    let bearer = format!("Bearer {word}");
    let session = server.start_session_with_capabilities(
        "2025-11-25",
        json!({}),
        &[("Authorization", &bearer)],
    );
    let read = session.result("resources/read", json!({"uri": "toolbay://policy"}));
    let text = read["contents"][0]["text"].as_str().unwrap();
    let policy: serde_json::Value = serde_json::from_str(text).unwrap();
    let names: Vec<&String> = policy["tools"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["count", "read_file"], "{policy}");
    let count = &policy["tools"]["count"];
    assert_eq!(
        count["approval"],
        "a person must allow it, before each call, in the console"
    );
    assert!(policy["tools"]["read_file"].get("approval").is_none());
    assert_eq!(count["limits"]["fuel"], 123_456);
    assert_eq!(count["grant_ends"], "9999-12-31T00:00:00Z");
    assert_eq!(
        count["permissions"],
        json!([
            "read files in the folder /data",
            "send requests to https://api.example.com"
        ])
    );
    let root = folder.root().display().to_string();
    assert!(!text.contains(&root) && !text.contains("hidden"), "{text}");
    // Another URI, and other parameters, are not the policy.
    for uri in [
        "toolbay://policy/",
        "toolbay://policy?a",
        "TOOLBAY://policy2",
    ] {
        let response = session
            .request("resources/read", json!({"uri": uri}))
            .response_message();
        assert_eq!(response["error"]["code"], -32_002, "{uri}: {response}");
    }
}
