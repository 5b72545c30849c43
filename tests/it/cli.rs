//! The command line: what it prints, and its exit codes.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::{
    CommandOutput, Folder, StdioServer, TinyComponent, TinyTool, ToolbayCommand, hostile,
};

fn toolbay(folder: &Folder, args: &[&str]) -> CommandOutput {
    ToolbayCommand::new(folder).args(args).run()
}

#[test]
fn help() {
    let folder = Folder::new();
    let mut said = String::new();
    for command in [
        "",
        "serve",
        "init",
        "list",
        "check",
        "check-config",
        "doctor",
        "new",
        "dev",
        "pack",
        "add",
        "publish",
        "remove",
        "update",
        "outdated",
        "sync",
        "lock",
        "diff",
        "compile",
        "optimize",
        "install",
        "uninstall",
        "token",
        "console",
        "ps",
        "call",
        "bench",
    ] {
        let args: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let outcome = toolbay(&folder, &args);
        assert_eq!(outcome.code, 0, "{outcome}");
        let _ = writeln!(said, "$ toolbay {}\n{}", args.join(" "), outcome.stdout);
    }
    insta::assert_snapshot!(said);
}

#[test]
fn version_names_the_program() {
    let outcome = toolbay(&Folder::new(), &["--version"]);
    assert_eq!(
        (outcome.code, outcome.stdout),
        (0, format!("toolbay {}\n", env!("CARGO_PKG_VERSION")))
    );
}

#[test]
fn list_shows_one_plugin() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["one"]).build());
    folder.put("b.wasm", TinyComponent::new(&["two"]).build());
    let outcome = toolbay(&folder, &["list", "a"]);
    assert!(
        outcome.code == 0 && outcome.stdout.starts_with("a  ready"),
        "{outcome}"
    );
    assert!(
        outcome.stdout.contains("    one") && !outcome.stdout.contains("two"),
        "{outcome}"
    );
    let outcome = toolbay(&folder, &["list", "b", "--json"]);
    let listed: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(listed["plugins"]["b"]["tools"], json!(["two"]), "{listed}");
    assert!(listed["plugins"].get("a").is_none(), "{listed}");
    for (name, words) in [
        ("aa", "did you mean \"a\"?"),
        ("something", "`toolbay list` shows all plugins"),
    ] {
        let outcome = toolbay(&folder, &["list", name]);
        assert!(
            outcome.code == 1 && outcome.stderr.contains(words),
            "{outcome}"
        );
    }
}

#[test]
fn wrong_usage_exits_with_2() {
    let folder = Folder::new();
    for args in [
        &[][..],
        &["srve"],
        &["serve", "--nonsense"],
        &["call"],
        &["list", "a", "extra"],
        &["serve", "--plugins"],
        &["check", "a.wasm", "--plugins", "."],
    ] {
        let outcome = toolbay(&folder, args);
        assert_eq!(outcome.code, 2, "{args:?}: {outcome}");
        assert!(
            outcome.stdout.is_empty() && outcome.stderr.contains("--help"),
            "{args:?}: {outcome}"
        );
    }
}

#[test]
fn an_invalid_configuration_exits_with_64() {
    let folder = Folder::new();
    let mut said = String::new();
    for config in [
        "page_sise = 1",
        "[server]\nrequest_size = \"1GiB\"",
        "[limits]\ntimeout = \"soon\"",
        "[server]\ncalls = 0",
        "[limits]\nconcurrency = 0",
        "[rate_limit]\ncalls = 60",
        "log = \"inof\"",
        "plugins = \"nowhere\"",
        "not TOML",
    ] {
        std::fs::write(folder.sibling_path("toolbay.toml"), config).unwrap();
        for command in [&["serve"][..], &["list"], &["call", "a"]] {
            let outcome = toolbay(&folder, command);
            assert_eq!(outcome.code, 64, "{config}: {outcome}");
            assert!(outcome.stdout.is_empty(), "{outcome}");
            if command == ["serve"] {
                said += &outcome.stderr;
            }
        }
    }
    std::fs::remove_file(folder.sibling_path("toolbay.toml")).unwrap();
    for (name, value) in [
        ("TOOLBAY_PAGE_SISE", "1"),
        ("TOOLBAY_LIMITS_FUEL", "much"),
        ("TOOLBAY_CONFIG", "nowhere.toml"),
    ] {
        let outcome = ToolbayCommand::new(&folder)
            .args(["list"])
            .env(name, value)
            .run();
        assert_eq!(outcome.code, 64, "{name}: {outcome}");
        said += &outcome.stderr;
    }
    for args in [
        ["--plugins", "nowhere"],
        ["--config", "nowhere.toml"],
        ["--log", "a=b=c"],
    ] {
        let outcome = ToolbayCommand::new(&folder)
            .args(["serve"])
            .args(args)
            .run();
        assert_eq!(outcome.code, 64, "{args:?}: {outcome}");
        said += &outcome.stderr;
    }
    let outcome = ToolbayCommand::new(&folder)
        .args(["serve"])
        .env("TOOLBAY_LOG", "toolbay=loud")
        .run();
    assert_eq!(outcome.code, 64, "{outcome}");
    said += &outcome.stderr;
    // An empty variable counts as unset.
    let outcome = ToolbayCommand::new(&folder)
        .args(["list"])
        .env("TOOLBAY_CONFIG", "")
        .run();
    assert_eq!(outcome.code, 0, "{outcome}");
    insta::assert_snapshot!(said);
}

#[test]
fn flags_override_variables_and_variables_override_the_file() {
    let folder = Folder::new();
    for name in ["file", "variable", "flag"] {
        std::fs::create_dir(folder.sibling_path(name)).unwrap();
        std::fs::write(
            folder.sibling_path(name).join("a.wasm"),
            TinyComponent::new(&[name]).build(),
        )
        .unwrap();
    }
    std::fs::write(folder.sibling_path("toolbay.toml"), "plugins = \"file\"").unwrap();
    let listed = |command: ToolbayCommand| command.run().stdout;
    assert!(listed(ToolbayCommand::new(&folder).args(["list"])).contains("Does file."));
    let variable = || ToolbayCommand::new(&folder).env("TOOLBAY_PLUGINS", "variable");
    assert!(listed(variable().args(["list"])).contains("Does variable."));
    assert!(listed(variable().args(["list", "--plugins", "flag"])).contains("Does flag."));
}

/// Replaces the limits in the output of `list --json`, so that a new limit changes one line: those
/// of the server by their keys, the ceilings by a reference, and those of each grant by the ones
/// that differ.
fn shorten_limits(text: &str) -> String {
    let mut value: Value = serde_json::from_str(text).unwrap();
    let limits = value["server"]["limits"].take();
    let limits = limits.as_object().unwrap();
    let mut keys: Vec<&String> = limits.keys().collect();
    keys.sort_unstable();
    value["server"]["limits"] = json!(keys);
    let ceilings = value["server"]["ceilings"].take();
    assert!(ceilings.as_object().unwrap().keys().eq(limits.keys()));
    value["server"]["ceilings"] = "the same keys".into();
    for plugin in value["plugins"].as_object_mut().unwrap().values_mut() {
        if let Some(granted) = plugin.pointer_mut("/grant/limits") {
            let granted = granted.as_object_mut().unwrap();
            assert!(granted.keys().eq(limits.keys()));
            granted.retain(|key, amount| limits[key] != *amount);
        }
    }
    format!("{value:#}\n")
}

#[test]
fn list_shows_plugins_tools_and_grants() {
    let folder = Folder::with(
        "weather.wasm",
        TinyComponent::new(&["now", "tomorrow", "yesterday"]).build(),
    );
    folder.put(
        "weather.toml",
        r#"
            prefix = "w"
            [limits]
            fuel = 20_000_000_000
            timeout = "90s"
            memory = "256MiB"
            output_items = 7
            concurrency = 100
            [tools.tomorrow.limits]
            timeout = "2m"
            [tools.yesterday]
            disabled = true
            [rate_limit]
            calls = 60
            per = "1m"
            [permissions]
            environment = ["LANG", "TZ"]
            [[permissions.mounts]]
            host = "./data/."
            guest = "/data"
            access = "read"
            [[permissions.mounts]]
            host = "/var/out"
            guest = "/out"
            access = "read-write"
            [config]
            units = "metric"
            key = "a secret"
        "#,
    );
    std::fs::create_dir(folder.plugin_path("data")).unwrap();
    std::fs::create_dir(folder.plugin_path("folder.wasm")).unwrap();
    folder.put("LOUD.WASM", "");
    folder.put("lonely.toml", "");
    std::fs::write(
        folder.sibling_path("toolbay.toml"),
        "[limits]\nmemory = \"3GiB\"\n[ceilings]\nmemory = \"2GiB\"",
    )
    .unwrap();
    let quiet = TinyTool {
        description: None,
        ..TinyTool::new("quiet")
    };
    folder.put("plain.wasm", TinyComponent::with_tools(vec![quiet]).build());
    folder.put("broken.wasm", "hello");
    let outcome = toolbay(&folder, &["list"]);
    insta::assert_snapshot!("list", outcome);
    let mut outcome = toolbay(&folder, &["list", "--json"]);
    outcome.stdout = shorten_limits(&outcome.stdout);
    insta::assert_snapshot!("list_json", outcome);
    assert!(!outcome.raw_stdout.contains("a secret"), "{outcome}");
}

#[test]
fn list_of_an_empty_folder_prints_the_next_step() {
    let outcome = toolbay(&Folder::new(), &["list"]);
    assert_eq!(
        (outcome.code, outcome.stdout.as_str()),
        (0, "no plugins in plugins; copy a .wasm file into it\n")
    );
}

#[test]
fn call_prints_the_result_and_its_usage() {
    let folder = Folder::with("hostile.wasm", hostile());
    let outcome = toolbay(&folder, &["call", "echo", r#"{"text": "hello"}"#]);
    assert_eq!(
        (outcome.code, outcome.stdout.as_str()),
        (0, "hello\n"),
        "{outcome}"
    );
    assert_eq!(outcome.stderr, "<used>\n");
    let outcome = ToolbayCommand::new(&folder)
        .args(["call", "echo", "-"])
        .run_with("{\"text\":\n\"from input\"}");
    assert_eq!(
        (outcome.code, outcome.stdout.as_str()),
        (0, "from input\n"),
        "{outcome}"
    );
    let outcome = toolbay(&folder, &["call", "progress", r#"{"n": 2}"#]);
    assert_eq!(outcome.stdout, "2 steps\n");
    assert_eq!(
        outcome.stderr,
        "progress: 1/2: step 1\nprogress: 2/2: step 2\n<used>\n"
    );
}

#[test]
fn call_prints_json_if_requested() {
    let folder = Folder::with("hostile.wasm", hostile());
    let outcome = toolbay(&folder, &["call", "--json", "echo", r#"{"text": "hello"}"#]);
    let mut result: Value = serde_json::from_str(&outcome.raw_stdout).unwrap();
    let usage = result["_meta"]["dev.toolbay/usage"].take();
    assert!(usage["fuel"].as_u64().unwrap() > 0, "{usage}");
    assert_eq!(
        result["content"],
        json!([{"type": "text", "text": "hello"}])
    );
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
}

#[test]
fn a_call_that_fails_exits_with_1_and_prints_the_reason() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", "[limits]\nfuel = 10_000_000");
    let mut said = String::new();
    for args in [
        &["call", "ecko"][..],
        &["call", "zzz"],
        &["call", "echo", "{"],
        &["call", "echo", "[]"],
        &["call", "echo", r#"{"text": 7}"#],
        &["call", "fail"],
        &["call", "refuse"],
        &["call", "loop_forever"],
        &["call", "--json", "mismatch"],
    ] {
        let outcome = toolbay(&folder, args);
        assert_eq!(outcome.code, 1, "{args:?}: {outcome}");
        let stdout = if args.contains(&"--json") {
            "JSON\n".to_owned()
        } else {
            outcome.stdout
        };
        let _ = writeln!(
            said,
            "$ toolbay {}\n{stdout}{}",
            args.join(" "),
            outcome.stderr
        );
    }
    insta::assert_snapshot!(said);
}

#[test]
fn files_without_code_are_neither_called_nor_checked_and_the_reason_is_printed() {
    let folder = Folder::new();
    let prompts = folder.plugin_folder().join("notes.prompts");
    std::fs::create_dir_all(&prompts).unwrap();
    std::fs::write(prompts.join("hello.md"), "Hello.").unwrap();
    let called = toolbay(&folder, &["call", "hello"]);
    assert_eq!(called.code, 1);
    assert!(
        called
            .stderr
            .contains("\"hello\" is a prompt, not a tool: clients get it with prompts/get"),
        "{called}"
    );
    for path in [prompts.join("hello.md"), prompts] {
        let checked = toolbay(&folder, &["check", path.to_str().unwrap()]);
        assert!(
            checked.code == 1
                && checked
                    .stderr
                    .contains("is not a component: `toolbay list` shows"),
            "{checked}"
        );
    }
}

#[test]
fn an_unknown_tool_is_reported_with_the_number_of_plugins_that_may_offer_it() {
    let folder = Folder::with("broken.wasm", "hello");
    folder.put("a.wasm", TinyComponent::new(&["sum"]).build());
    folder.put("b.wasm", TinyComponent::new(&["sum", "other"]).build());
    for n in 0..12 {
        folder.put(&format!("more-{n:02}.wasm"), "hello");
    }
    let outcome = toolbay(&folder, &["call", "weather"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(outcome.stderr, @r#"
    toolbay: unknown tool "weather"; `toolbay list` shows the available tools
      14 plugins with problems may offer it: `toolbay list` shows them
    "#);
    // The problem of a plugin with the name of the tool is shown.
    let outcome = toolbay(&folder, &["call", "broken"]);
    insta::assert_snapshot!(outcome.stderr, @r#"
    toolbay: unknown tool "broken"; `toolbay list` shows the available tools
      plugin "broken" was refused: not a WebAssembly file: it starts with "hello", not with "\0asm"
      14 plugins with problems may offer it: `toolbay list` shows them
    "#);
}

#[test]
fn images_are_printed_as_a_description() {
    let folder = Folder::with("qr.wasm", crate::support::sample("qr"));
    let outcome = toolbay(&folder, &["call", "qr_png", r#"{"text": "a"}"#]);
    assert!(
        outcome.stdout.starts_with("[image, image/png, ") && outcome.stdout.ends_with(" bytes]\n"),
        "{outcome}"
    );
}

#[test]
fn serve_takes_its_folder_from_a_flag_and_logs_only_to_standard_error() {
    let folder = Folder::new();
    std::fs::create_dir(folder.sibling_path("elsewhere")).unwrap();
    std::fs::write(
        folder.sibling_path("elsewhere/a.wasm"),
        TinyComponent::new(&["a"]).build(),
    )
    .unwrap();
    let command =
        ToolbayCommand::new(&folder).args(["serve", "--plugins", "elsewhere", "--log", "debug"]);
    let mut server = StdioServer::run(command).with_handshake("2025-11-25");
    server.wait_until_listed(&["a"]);
    server
        .log
        .wait_for("serving over standard input and output");
    server.stop();
    // A level without a target applies only to the server. Messages of its libraries would be
    // hundreds of lines.
    let log = server.log.text();
    assert!(log.lines().count() < 20, "{log}");
}
