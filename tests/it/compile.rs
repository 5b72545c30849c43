//! Compilation: its limits, what is remembered, and that it delays nothing else.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::hostile::{doubling, nested_blocks};
use crate::support::{Folder, StdioServer, TinyComponent, ToolbayCommand, hostile};

/// Returns a configuration with `[compile]`, the test's own compile cache, and a log line for each
/// compilation.
fn config(compile: &str) -> String {
    format!("log = \"toolbay=debug\"\n[compile]\ncache_folder = \"store\"\n{compile}")
}

/// Returns the reason why the plugin `bomb` is refused.
fn refusal(server: &StdioServer) -> String {
    let line = server.log.wait_for("WARN refused: ");
    let (_, why) = line
        .split_once("WARN refused: ")
        .unwrap_or_else(|| panic!("{line}"));
    why.replace(" plugin=\"bomb\"", "").trim_end().to_owned()
}

#[test]
fn every_limit_of_the_compiler_is_named_in_its_error() {
    let cases = [
        (
            "memory = \"256MiB\"",
            doubling(24),
            "compiling it needs more than 256.0 MiB of memory (to allow more, raise compile.memory)",
        ),
        (
            "cpu_time = \"1s\"",
            nested_blocks(5000),
            "compiling it took more than 1s of CPU time (to allow more, raise compile.cpu_time)",
        ),
        (
            "timeout = \"700ms\"",
            nested_blocks(5000),
            "compiling it took longer than 700ms (to allow more, raise compile.timeout); the load is retried automatically",
        ),
    ];
    for (limit, bomb, why) in cases {
        let folder = Folder::with("bomb.wasm", bomb);
        let mut server = StdioServer::start_with_config(&folder, &config(limit));
        assert_eq!(refusal(&server), why);
        folder.put("a.wasm", TinyComponent::new(&["a"]).build());
        server.wait_until_listed(&["a"]);
    }
}

#[test]
fn a_refusal_is_remembered_until_the_file_changes() {
    let bomb = nested_blocks(5000);
    let folder = Folder::with("bomb.wasm", &bomb);
    let mut server = StdioServer::start_with_config(&folder, &config("cpu_time = \"1s\""));
    let why = refusal(&server);
    let spent = processor_time_of_children(&server);
    assert!(spent >= Duration::from_millis(500), "{spent:?}");
    // The same bytes again: in place, as a new file, and under another name.
    folder.overwrite("bomb.wasm", &bomb);
    server.log.wait_for_count(&why, 2);
    folder.put("bomb.wasm", &bomb);
    server.log.wait_for_count(&why, 3);
    folder.put("other.wasm", &bomb);
    server.log.wait_for_count(&why, 4);
    folder.put("bomb.toml", "[limits]\nfuel = 7");
    server.log.wait_for_count(&why, 5);
    assert_eq!(
        processor_time_of_children(&server),
        spent,
        "nothing was compiled for these"
    );
    // Different bytes are compiled.
    folder.put("bomb.wasm", TinyComponent::new(&["mended"]).build());
    server.wait_until_listed(&["mended"]);
}

/// Returns the CPU time of the server's child processes that have ended.
fn processor_time_of_children(server: &StdioServer) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", server.pid())).unwrap();
    let fields: Vec<&str> = text
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .collect();
    // `cutime` and `cstime` in hundredths of a second: fields 16 and 17 of proc(5), of which the
    // first two are cut off here.
    let ticks: u64 = fields[13].parse::<u64>().unwrap() + fields[14].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

#[test]
fn a_slow_compile_delays_no_call_and_no_other_plugin() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    // With less memory, a fast machine refuses the file before the test ends.
    let mut server = StdioServer::start_with_config(&folder, &config("memory = \"8GiB\""));
    server.wait_until_listed(&["a"]);
    // This takes more than a minute; waiting for it would exceed the test's deadline.
    folder.put("bomb.wasm", nested_blocks(5000));
    for n in 0..5 {
        let name = format!("b{n}");
        folder.put(
            &format!("{name}.wasm"),
            TinyComponent::new(&[&name]).build(),
        );
        server.wait_for_tool(&name);
        assert_eq!(server.text(&name, json!({})), "fine");
        assert_eq!(server.text("a", json!({})), "fine");
    }
    assert!(
        !server.log.text().contains("WARN refused: "),
        "it still compiles: {}",
        server.log.text()
    );
    // The server does not wait for the compilation when it ends either: dropping it checks that it
    // exits successfully.
    folder.remove("bomb.wasm");
    folder.remove("a.wasm");
    server.wait_until_listed(&["b0", "b1", "b2", "b3", "b4"]);
}

#[test]
fn cached_plugins_do_not_wait_for_plugins_that_are_compiled() {
    let folder = Folder::with("z.wasm", TinyComponent::new(&["z"]).build());
    let config = config("[server]\nstartup_wait = \"0s\"");
    StdioServer::start_with_config(&folder, &config).wait_until_listed(&["z"]);
    // More plugins than are loaded at once. Each takes more than a minute; waiting for one would
    // exceed the test's deadline.
    for n in 0..12 {
        folder.put(&format!("bomb{n}.wasm"), nested_blocks(5000 + n));
    }
    let mut server = StdioServer::start_with_config(&folder, &config);
    server.wait_until_listed(&["z"]);
    assert_eq!(server.text("z", json!({})), "fine");
    assert!(
        !server.log.text().contains("WARN refused: "),
        "they still compile: {}",
        server.log.text()
    );
}

#[test]
fn the_previous_version_serves_while_a_plugin_is_compiled_again() {
    let folder = Folder::with(
        "a.wasm",
        TinyComponent::new(&["a"]).with_text("one").build(),
    );
    let mut server = StdioServer::start_with_config(&folder, &config("cpu_time = \"1s\""));
    server.wait_until_listed(&["a"]);
    folder.put("a.wasm", nested_blocks(5000));
    let refused = "refused; the previous version stays in service: compiling it took more than 1s";
    server.wait_until("the new version is refused", |server| {
        assert_eq!(server.text("a", json!({})), "one");
        server.log.text().contains(refused)
    });
    assert_eq!(server.text("a", json!({})), "one");
}

#[test]
fn only_the_crashing_plugin_is_disabled_and_a_new_file_enables_it() {
    let crashing = |answer: &str| {
        TinyComponent::new(&["bad"])
            .with_text(answer)
            .before_call("unreachable")
            .build()
    };
    let folder = Folder::with("bad.wasm", crashing("one"));
    folder.put("good.wasm", TinyComponent::new(&["good"]).build());
    folder.put("hostile.wasm", hostile());
    let mut server = StdioServer::start_with_config(
        &folder,
        "[circuit_breaker]\ncrashes = 2\ndisable_duration = \"1h\"",
    );
    server.wait_for_tool("good");
    server.wait_for_tool("bad");
    for _ in 0..2 {
        assert_eq!(server.failure("bad", json!({})).0, "trap");
    }
    server
        .log
        .wait_for("disabled for 1h after 2 crashes in a row");
    let (kind, text) = server.failure("bad", json!({}));
    assert_eq!(kind, "disabled");
    assert!(
        text.starts_with("The tool's plugin is disabled for a short time because it crashed repeatedly. Retry after 3"),
        "{text}"
    );
    assert_eq!(server.text("good", json!({})), "fine");
    // Another plugin may still crash for the first time.
    assert_eq!(server.failure("panic", json!({})).0, "trap");
    assert_eq!(
        server.text("echo", json!({"text": "still here"})),
        "still here"
    );
    // A changed file starts with no crashes, even if it crashes as well.
    folder.put("bad.wasm", crashing("two"));
    server.wait_until("the rest ends", |server| {
        server.failure("bad", json!({})).0 == "trap"
    });
    folder.put(
        "bad.wasm",
        TinyComponent::new(&["bad"]).with_text("mended").build(),
    );
    server.wait_until("it is mended", |server| {
        server.call("bad", json!({})).get("isError").is_none()
    });
    assert_eq!(server.text("bad", json!({})), "mended");
}

#[test]
fn a_disabled_plugin_is_enabled_again_automatically() {
    let folder = Folder::with("hostile.wasm", hostile());
    let mut server = StdioServer::start_with_config(
        &folder,
        "[circuit_breaker]\ncrashes = 1\ndisable_duration = \"100ms\"",
    );
    assert_eq!(server.failure("panic", json!({})).0, "trap");
    server.wait_until("the rest ends", |server| {
        server.call("count", json!({})).get("isError").is_none()
    });
}

#[test]
fn files_without_code_have_nothing_to_compile() {
    let folder = Folder::with("tiny.wasm", TinyComponent::new(&["a"]).build());
    std::fs::create_dir(folder.plugin_path("docs.prompts")).unwrap();
    std::fs::write(folder.plugin_path("docs.prompts/hello.md"), "Hello.").unwrap();
    let outcome = ToolbayCommand::new(&folder).args(["compile"]).run();
    assert_eq!(
        (outcome.code, outcome.stdout.as_str()),
        (0, "docs  has nothing to compile\ntiny  compiled\n"),
        "{outcome}"
    );
}

/// Returns a folder with a plugin that is refused after two seconds and one that is ready at once.
fn folder_with_slow_plugin() -> Folder {
    let folder = Folder::with("tiny.wasm", TinyComponent::new(&["a"]).build());
    folder.put("bomb.wasm", nested_blocks(5000));
    folder.write_config("[compile]\ncache_folder = \"store\"\ncpu_time = \"2s\"");
    folder
}

#[test]
fn progress_is_printed_in_lines_without_a_terminal() {
    let folder = folder_with_slow_plugin();
    let outcome = ToolbayCommand::new(&folder)
        .args(["compile"])
        .env("TERM", "xterm")
        .run();
    assert_eq!(
        (outcome.code, outcome.stdout.as_str()),
        (1, "tiny  compiled\n"),
        "{outcome}"
    );
    assert!(
        outcome
            .stderr
            .contains(" of 2 plugins are loaded; loading "),
        "{outcome}"
    );
    assert!(!outcome.stderr.contains(['\r', '\u{1b}', '[']), "{outcome}");
    let outcome = ToolbayCommand::new(&folder).args(["list", "--json"]).run();
    assert!(
        serde_json::from_str::<serde_json::Value>(&outcome.raw_stdout).is_ok(),
        "{outcome}"
    );
    folder.write_config("[compile]\ncache_folder = \"other\"\ncpu_time = \"2s\"");
    let outcome = ToolbayCommand::new(&folder)
        .args(["check", "plugins/bomb.wasm"])
        .run();
    assert!(
        outcome
            .stderr
            .contains("toolbay: compiling plugins/bomb.wasm ("),
        "{outcome}"
    );
}

#[test]
fn progress_is_shown_as_a_bar_on_a_terminal() {
    let folder = folder_with_slow_plugin();
    let on_terminal = "exec script --quiet --return --command \"$*\" /dev/null";
    let outcome = ToolbayCommand::new(&folder)
        .args(["compile"])
        .env("TERM", "xterm")
        .with_shell_wrapper(on_terminal)
        .run();
    assert_eq!(outcome.code, 1, "{outcome}");
    assert!(
        outcome.stdout.contains(" compiling ") && outcome.stdout.contains(" of 2 ["),
        "{outcome}"
    );
    assert!(
        outcome.stdout.contains("tiny  compiled") && !outcome.stdout.contains("plugins are loaded"),
        "{outcome}"
    );
    // A terminal that cannot update a line gets separate lines.
    folder.write_config("[compile]\ncache_folder = \"other\"\ncpu_time = \"2s\"");
    let outcome = ToolbayCommand::new(&folder)
        .args(["compile"])
        .env("TERM", "dumb")
        .with_shell_wrapper(on_terminal)
        .run();
    assert!(
        outcome
            .stdout
            .contains(" of 2 plugins are loaded; loading "),
        "{outcome}"
    );
}

#[test]
fn a_starting_server_logs_the_plugins_that_it_waits_for() {
    let folder = Folder::with("tiny.wasm", TinyComponent::new(&["a"]).build());
    folder.put("bomb.wasm", nested_blocks(5000));
    // With the default limit, the compiler can end before the server logs what it waits for.
    let mut server = StdioServer::start_with_config(&folder, &config("memory = \"8GiB\"\n"));
    server.wait_until_listed(&["a"]);
    server
        .log
        .wait_for("1 of 2 plugins are loaded; still loading bomb");
    for compiler in compilers(server.pid()) {
        let killed = Command::new("kill")
            .args(["-KILL", &compiler.to_string()])
            .status()
            .unwrap();
        assert!(killed.success(), "{compiler}");
    }
    server.log.wait_for("all plugins are loaded or refused");
}

/// Returns the processes in which this server compiles.
fn compilers(server: u32) -> Vec<u32> {
    let read =
        |id: u32, file: &str| fs::read_to_string(format!("/proc/{id}/{file}")).unwrap_or_default();
    let parent = |id: u32| {
        read(id, "stat")
            .rsplit_once(')')?
            .1
            .split_whitespace()
            .nth(1)?
            .parse::<u32>()
            .ok()
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| parent(*id) == Some(server) && read(*id, "cmdline").contains("compile-worker"))
        .collect()
}
