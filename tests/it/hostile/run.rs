//! Runs one case of the corpus.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;
use toolbay_model::Limits;

use super::{Case, Expected, book};
use crate::memory::{resident, status};
use crate::support::{
    DEADLINE, Folder, StdioServer, TinyComponent, TinyTool, ToolbayCommand, error_kind_and_text,
    made_async, result_text,
};

/// How much the server may grow during a call beyond the call's memory, in KiB.
const MAX_CALL_GROWTH: u64 = 32 << 10;

/// Maximum duration of 99 of 100 pings during a call. They take a millisecond: this leaves room for
/// a busy machine, and the book shows the measured values.
const MAX_PING: Duration = Duration::from_secs(1);

/// Number of calls after which the server has its usual size.
const WARM_UP: usize = 20;

/// A server with a case in its folder.
pub(crate) struct Run {
    pub(crate) server: StdioServer,
    pub(crate) folder: Folder,
    /// The tool's result.
    pub(crate) result: Value,
    /// Maximum growth of the server during the call, in KiB.
    pub(crate) growth: u64,
    /// Maximum duration of 99 of 100 pings during the call; zero if there was no call.
    pub(crate) ping: Duration,
}

pub(super) fn run(case: &Case) {
    let folder = Folder::with("bystander.wasm", echo());
    let (time, run) = run_in(folder, case);
    book::record_measurements(case, time, &run);
}

/// Like [`run`], with all components in the engine for components with async functions.
pub(super) fn run_with_async(case: &Case) {
    let folder = Folder::new().rewriting(made_async);
    folder.put("bystander.wasm", echo());
    run_in(folder, case);
}

/// Runs a case in a folder with a plugin that is called before and afterwards. Returns how long it
/// took.
fn run_in(folder: Folder, case: &Case) -> (Duration, Run) {
    fs::write(folder.sibling_path("toolbay.toml"), case.config).unwrap();
    // By default, the allocator keeps freed memory for later. This limits how much.
    let mut command = ToolbayCommand::new(&folder)
        .args(["serve"])
        .env("MALLOC_TRIM_THRESHOLD_", "65536");
    if case.grant.contains("read-write") {
        // The grant is written after the server has confined itself.
        fs::create_dir(folder.sibling_path("data")).unwrap();
        command = command.env(
            "TOOLBAY_SERVER_CONFINE_FOLDERS",
            folder.sibling_path("data").to_str().unwrap(),
        );
    }
    let mut server = StdioServer::run(command).with_handshake("2025-11-25");
    server.wait_for_tool("echo");
    for _ in 0..WARM_UP {
        bystander_answers(&mut server);
    }
    let mut before = resident(server.pid());
    if !case.grant.is_empty() {
        folder.put("hostile.toml", case.grant);
    }
    reset_peak(&server);
    let began = Instant::now();
    (case.put)(&folder);
    let mut run = Run {
        server,
        folder,
        result: Value::Null,
        growth: 0,
        ping: Duration::ZERO,
    };
    match case.expected {
        Expected::Noted(why) => {
            let line = run.server.log.wait_for(" WARN not a plugin: ");
            let said = line
                .split_once(" WARN not a plugin: hostile.")
                .unwrap_or_else(|| panic!("{line}"))
                .1;
            let said = said.split_once(": ").unwrap_or_else(|| panic!("{line}")).1;
            assert!(
                matches_pattern(why, said.trim_end()),
                "noted: {line:?}\nexpected: {why:?}"
            );
            // Files that were added later are loaded, and nothing else was logged.
            run.folder
                .put("later.wasm", TinyComponent::new(&["later"]).build());
            run.server.wait_until_listed(&["echo", "later"]);
            assert_eq!(
                run.server.log.text().matches("hostile").count(),
                1,
                "{}",
                run.server.log.text()
            );
        }
        Expected::Refused(why) => {
            let line = run.server.log.wait_for("WARN refused: ");
            let said = line
                .split_once("WARN refused: ")
                .unwrap_or_else(|| panic!("{line}"))
                .1;
            let said = said
                .trim_end()
                .strip_suffix(" plugin=\"hostile\"")
                .unwrap_or_else(|| panic!("{line}"));
            assert!(
                matches_pattern(why, said),
                "refused: {said:?}\nexpected: {why:?}"
            );
            assert_eq!(run.server.tool_names(), ["echo"]);
        }
        Expected::Fails(kind, words) => {
            let result = call(case, &mut run, &mut before);
            let (said_kind, said) = error_kind_and_text(&result);
            assert!(
                said_kind == kind && matches_pattern(words, &said),
                "{said_kind}: {said:?}\nexpected: {kind}: {words:?}"
            );
            run.result = result;
        }
        Expected::Answers(words) => {
            let result = call(case, &mut run, &mut before);
            assert!(
                result.get("isError").is_none() && matches_pattern(words, &result_text(&result)),
                "{result}\nexpected: {words:?}"
            );
            run.result = result;
        }
    }
    let time = began.elapsed();
    run.growth = run.growth.max(peak(&run.server).saturating_sub(before));
    bystander_answers(&mut run.server);
    (case.also)(&mut run);
    wait_until_shrunk_to(&mut run.server, before + case.growth);
    (time, run)
}

/// Calls the tool of the case. First measures the server's memory with the plugin loaded.
fn call(case: &Case, run: &mut Run, before: &mut u64) -> Value {
    run.server.wait_for_tool(case.tool);
    bystander_answers(&mut run.server);
    run.growth = peak(&run.server).saturating_sub(*before);
    *before = resident(run.server.pid());
    let arguments = serde_json::from_str(case.arguments).unwrap();
    reset_peak(&run.server);
    let id = run.server.start_call(case.tool, arguments);
    let mut pings = Vec::new();
    let result = run
        .server
        .finish_call_with_pings(id, |took| pings.push(took));
    pings.sort_unstable();
    run.ping = pings[(pings.len() * 99).div_ceil(100) - 1];
    assert!(
        run.ping < MAX_PING,
        "of {} pings during the call, one in a hundred took {:?}",
        pings.len(),
        run.ping
    );
    let grown = peak(&run.server).saturating_sub(*before);
    let most = memory_limit(case) + MAX_CALL_GROWTH;
    assert!(
        grown <= most,
        "the server grew by {grown} KiB during the call, expected at most {most}"
    );
    result
}

/// Returns the memory that a call of the case may have, in KiB.
fn memory_limit(case: &Case) -> u64 {
    let grant: toml::Table = case.grant.parse().unwrap();
    let memory = grant
        .get("limits")
        .and_then(|limits| limits.get("memory"))
        .and_then(toml::Value::as_str);
    let memory = memory.map_or(Limits::DEFAULT.memory, |text| text.parse().unwrap());
    memory.as_u64() >> 10
}

/// Resets the kernel's peak of resident memory (proc(5), `clear_refs`).
fn reset_peak(server: &StdioServer) {
    fs::write(format!("/proc/{}/clear_refs", server.pid()), "5").unwrap();
}

/// Returns the server's peak memory since the reset, in KiB, without pages of files.
fn peak(server: &StdioServer) -> u64 {
    status(server.pid(), "VmHWM:") - status(server.pid(), "RssFile:")
}

pub(super) fn bystander_answers(server: &mut StdioServer) {
    let arguments = serde_json::json!({"n": 7, "text": "hello"});
    assert_eq!(
        server.text("echo", arguments.clone()),
        arguments.to_string()
    );
}

/// Waits until the server has shrunk. The allocator and the pool return memory after a while; calls
/// make this happen sooner.
fn wait_until_shrunk_to(server: &mut StdioServer, most: u64) {
    let began = Instant::now();
    while resident(server.pid()) > most {
        bystander_answers(server);
        assert!(
            began.elapsed() < DEADLINE,
            "{} KiB resident, expected at most {most}",
            resident(server.pid())
        );
    }
}

/// Returns whether `text` matches `pattern`, where `…` stands for any text.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = parts.next().and_then(|start| text.strip_prefix(start)) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Returns a plugin that returns its arguments.
fn echo() -> Vec<u8> {
    // A result with one text block, written by hand.
    TinyComponent::new(&["echo"])
        .before_call(
            "(i32.store (i32.const 20) (i32.const 64)) (i32.store (i32.const 24) (i32.const 1))
             (i32.store (i32.const 68) (i32.const 1)) (i32.store (i32.const 72) (local.get $arguments))
             (i32.store (i32.const 76) (local.get $arguments-length)) (return (i32.const 16))",
        )
        .build()
}

#[test]
fn repeated_attacks_use_no_more_memory_than_the_first_ones() {
    let folder = Folder::with("bystander.wasm", echo());
    let mut server = StdioServer::start_with_config(&folder, "");
    server.wait_for_tool("echo");
    let mut attack = |from: usize, to: usize| {
        for n in from..to {
            // Each has its own digest and megabytes of code, and is refused.
            let input = format!(
                r#"{{"type":"object","description":"{}"}}"#,
                "x".repeat(2_000_000 + n)
            );
            folder.put(
                "hostile.wasm",
                TinyComponent::with_tools(vec![TinyTool {
                    input,
                    ..TinyTool::new("a")
                }])
                .build(),
            );
            server.log.wait_for_count(
                "refused: its schemas are larger than 1.0 MiB in total (to allow more, raise describe.schemas)",
                n + 1,
            );
            bystander_answers(&mut server);
        }
        resident(server.pid())
    };
    // The allocator keeps some memory for each thread, and which thread an attack uses is random.
    // The total levels off at about 20 MiB. A copy of each attack's data would be 60 MiB.
    let before = attack(0, 30);
    let after = attack(30, 60);
    assert!(
        after < before + (20 << 10),
        "{before} KiB after thirty, {after} KiB after sixty"
    );
}

#[test]
fn patterns() {
    assert!(
        matches_pattern("a…c", "abc")
            && matches_pattern("a…", "a")
            && matches_pattern("…b…", "abc")
            && matches_pattern("a", "a")
            && matches_pattern("a…b…c", "aXbYc")
    );
    assert!(
        !matches_pattern("a", "ab")
            && !matches_pattern("b…", "ab")
            && !matches_pattern("a…c", "abcd")
            && !matches_pattern("a…x…c", "abc")
    );
}
