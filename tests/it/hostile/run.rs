//! Runs one case of the corpus.

use std::fs;
use std::time::Instant;

use serde_json::Value;
use toolbay_model::Limits;

use super::{Case, Expected, book};
use crate::support::{DEADLINE, Folder, Server, Tiny, Tool, Toolbay, failure, text};

/// How much the server may grow during a call beyond the call's memory, in KiB.
const PEAK: u64 = 32 << 10;

/// Calls that make the server as large as it gets without an attack.
const WARM_UP: usize = 20;

/// A server with a case in it.
pub(crate) struct Run {
    pub(crate) server: Server,
    pub(crate) folder: Folder,
    /// What the tool answered: its result.
    pub(crate) result: Value,
}

pub(super) fn run(case: &Case) {
    let folder = Folder::with("bystander.wasm", echo());
    fs::write(folder.beside("toolbay.toml"), case.config).unwrap();
    // The allocator keeps what is free for the next that asks, unless it is told how much of that.
    let command = Toolbay::new(&folder).args(["serve"]).env("MALLOC_TRIM_THRESHOLD_", "65536");
    let mut server = Server::run(command).initialized("2025-11-25");
    server.wait_for_tool("echo");
    for _ in 0..WARM_UP {
        bystander_answers(&mut server);
    }
    let mut before = resident(&server);
    if !case.grant.is_empty() {
        folder.put("hostile.toml", case.grant);
    }
    let began = Instant::now();
    (case.put)(&folder);
    let mut run = Run { server, folder, result: Value::Null };
    match case.expected {
        Expected::Noted(why) => {
            let line = run.server.log.wait_for(" INFO not a plugin: ");
            let said = line.split_once(" INFO not a plugin: hostile.").unwrap_or_else(|| panic!("{line}")).1;
            let said = said.split_once(": ").unwrap_or_else(|| panic!("{line}")).1;
            assert!(fits(why, said.trim_end()), "noted: {line:?}\nexpected: {why:?}");
            // What comes later in the folder is there, and nothing more was said.
            run.folder.put("later.wasm", Tiny::new(&["later"]).build());
            run.server.wait_until_listed(&["echo", "later"]);
            assert_eq!(run.server.log.text().matches("hostile").count(), 1, "{}", run.server.log.text());
        }
        Expected::Refused(why) => {
            let line = run.server.log.wait_for("WARN refused: ");
            let said = line.split_once("WARN refused: ").unwrap_or_else(|| panic!("{line}")).1;
            let said = said.trim_end().strip_suffix(" plugin=\"hostile\"").unwrap_or_else(|| panic!("{line}"));
            assert!(fits(why, said), "refused: {said:?}\nexpected: {why:?}");
            assert_eq!(run.server.names(), ["echo"]);
        }
        Expected::Fails(kind, words) => {
            let result = call(case, &mut run, &mut before);
            let (said_kind, said) = failure(&result);
            assert!(said_kind == kind && fits(words, &said), "{said_kind}: {said:?}\nexpected: {kind}: {words:?}");
            run.result = result;
        }
        Expected::Answers(words) => {
            let result = call(case, &mut run, &mut before);
            assert!(result.get("isError").is_none() && fits(words, &text(&result)), "{result}\nexpected: {words:?}");
            run.result = result;
        }
    }
    book::took(case, began.elapsed());
    bystander_answers(&mut run.server);
    (case.also)(&mut run);
    shrinks_to(&mut run.server, before + case.growth);
}

/// Calls the tool of the case, having noted what memory the server has with the plugin loaded.
fn call(case: &Case, run: &mut Run, before: &mut u64) -> Value {
    run.server.wait_for_tool(case.tool);
    bystander_answers(&mut run.server);
    *before = resident(&run.server);
    let arguments = serde_json::from_str(case.arguments).unwrap();
    forget_peak(&run.server);
    let result = run.server.call(case.tool, arguments);
    let grown = peak(&run.server).saturating_sub(*before);
    let most = memory_limit(case) + PEAK;
    assert!(grown <= most, "the server grew by {grown} KiB during the call, expected at most {most}");
    result
}

/// The memory that a call of the case may have, in KiB.
fn memory_limit(case: &Case) -> u64 {
    let grant: toml::Table = case.grant.parse().unwrap();
    let memory = grant.get("limits").and_then(|limits| limits.get("memory")).and_then(toml::Value::as_str);
    let memory = memory.map_or(Limits::DEFAULT.memory, |text| text.parse().unwrap());
    memory.as_u64() >> 10
}

/// Has the kernel measure the peak of resident memory anew (proc(5), `clear_refs`).
fn forget_peak(server: &Server) {
    fs::write(format!("/proc/{}/clear_refs", server.pid()), "5").unwrap();
}

/// The most memory that the server held since then, in KiB: with pages of files, which are few.
fn peak(server: &Server) -> u64 {
    status(server, "VmHWM:") - status(server, "RssFile:")
}

pub(super) fn bystander_answers(server: &mut Server) {
    let arguments = serde_json::json!({"n": 7, "text": "hello"});
    assert_eq!(server.text("echo", arguments.clone()), arguments.to_string());
}

/// Memory is given back when the allocator and the pool come to it: calls help them along.
fn shrinks_to(server: &mut Server, most: u64) {
    let began = Instant::now();
    while resident(server) > most {
        bystander_answers(server);
        assert!(began.elapsed() < DEADLINE, "{} KiB resident, expected at most {most}", resident(server));
    }
}

/// The memory that the server holds, in KiB: what is resident but for pages of files, which are its
/// program's code as far as that was needed yet.
fn resident(server: &Server) -> u64 {
    status(server, "VmRSS:") - status(server, "RssFile:")
}

/// A value of the server's process, in KiB.
fn status(server: &Server, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Whether `text` is `pattern`, where `…` stands for anything.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = parts.next().and_then(|start| text.strip_prefix(start)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// A plugin that answers its arguments.
fn echo() -> Vec<u8> {
    // A result with one text block, built by hand where nothing else is.
    Tiny::new(&["echo"])
        .before_call(
            "(i32.store (i32.const 20) (i32.const 64)) (i32.store (i32.const 24) (i32.const 1))
             (i32.store (i32.const 68) (i32.const 1)) (i32.store (i32.const 72) (local.get $arguments))
             (i32.store (i32.const 76) (local.get $arguments-length)) (return (i32.const 16))",
        )
        .build()
}

#[test]
fn attack_after_attack_leaves_no_more_than_the_first_ones() {
    let folder = Folder::with("bystander.wasm", echo());
    let mut server = Server::configured(&folder, "");
    server.wait_for_tool("echo");
    let mut attack = |from: usize, to: usize| {
        for n in from..to {
            // Each of its own digest, of megabytes, and refused.
            let input = format!(r#"{{"type":"object","description":"{}"}}"#, "x".repeat(2_000_000 + n));
            folder.put("hostile.wasm", Tiny::of(vec![Tool { input, ..Tool::new("a") }]).build());
            server.log.wait_for_count(
                "refused: its schemas are larger than 1.0 MiB in total (to allow more, raise describe.schemas)",
                n + 1,
            );
            bystander_answers(&mut server);
        }
        resident(&server)
    };
    // The allocator keeps some room for each thread, and which thread an attack meets is chance: it levels off at
    // about 20 MiB. One copy of what each attack brings, were it kept, would be 60 MiB.
    let before = attack(0, 30);
    let after = attack(30, 60);
    assert!(after < before + (20 << 10), "{before} KiB after thirty, {after} KiB after sixty");
}

#[test]
fn patterns() {
    assert!(fits("a…c", "abc") && fits("a…", "a") && fits("…b…", "abc") && fits("a", "a") && fits("a…b…c", "aXbYc"));
    assert!(!fits("a", "ab") && !fits("b…", "ab") && !fits("a…c", "abcd") && !fits("a…x…c", "abc"));
}
