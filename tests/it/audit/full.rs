//! What happens to calls when their lines cannot be written to the log (`audit.when_full`).

use serde_json::{Value, json};

use super::{CONFIG, events, lines_of, outcomes, verify_intact, wait_for_event};
use crate::support::{Folder, StdioServer, ToolbayCommand, error_kind_and_text, hostile};

/// Returns a text at least as long as the longest text that the log stores of a call.
fn long_text() -> String {
    "x".repeat(16 << 10)
}

/// Starts a server whose disk is full after the first lines.
fn start_on_full_disk(folder: &Folder, config: &str) -> StdioServer {
    folder.write_config(config);
    let script = "ulimit -S -f 32; exec \"$@\"";
    let mut server = StdioServer::run(
        ToolbayCommand::new(folder)
            .args(["serve"])
            .with_shell_wrapper(script),
    )
    .with_handshake("2025-11-25");
    server.wait_for_tool("echo");
    server
}

/// Lets the disk accept all further writes.
fn lift_disk_limit(server: &StdioServer) {
    let pid = rustix::process::Pid::from_raw(server.pid().cast_signed());
    let room = rustix::process::Rlimit {
        current: None,
        maximum: None,
    };
    rustix::process::prlimit(pid, rustix::process::Resource::Fsize, room).unwrap();
}

/// Returns how many calls succeeded, according to their lines.
fn succeeded(folder: &Folder) -> usize {
    lines_of(folder, "audit")
        .iter()
        .filter(|line| line["event"] == "call" && line["outcome"] == "ok")
        .count()
}

#[test]
fn with_drop_a_full_log_delays_no_call_and_reports_lost_lines() {
    let folder = Folder::with("hostile.wasm", hostile());
    let mut server = start_on_full_disk(&folder, &format!("{CONFIG}when_full = \"drop\"\n"));
    let mut made = 0;
    server.wait_until("the log is full", |server| {
        made += 1;
        assert_eq!(server.text("echo", json!({"text": "x"})), "x");
        server.log.text().contains("cannot write the audit log: ")
    });
    for _ in 0..20 {
        made += 1;
        assert_eq!(server.text("echo", json!({"text": "x"})), "x");
    }
    verify_intact(&folder);
    lift_disk_limit(&server);
    let lost = wait_for_event(&mut server, &folder, "lost", 1);
    assert!(
        lost["reason"] == "disk" && lost["lines"].as_u64() > Some(0),
        "{lost}"
    );
    server.log.wait_for("lines of the audit log were lost");
    made += 1;
    server.text("echo", json!({"text": "x"}));
    server.stop();
    // Each call has a line, or the log reports the line as lost.
    let lost = usize::try_from(verify_intact(&folder)["lost"].as_u64().unwrap()).unwrap();
    assert!(
        succeeded(&folder) + lost >= made,
        "{} + {lost} of {made}",
        succeeded(&folder)
    );
}

#[test]
fn with_refuse_a_full_log_rejects_calls_with_a_reason() {
    let folder = Folder::with("hostile.wasm", hostile());
    let mut server = start_on_full_disk(&folder, &format!("{CONFIG}when_full = \"refuse\"\n"));
    let mut made = 0;
    let mut refused = 0;
    let call = |server: &mut StdioServer, made: &mut usize, refused: &mut u64| {
        let result = server.call("echo", json!({"text": "x"}));
        if result.get("isError").is_none() {
            *made += 1;
            return true;
        }
        let (kind, said) = error_kind_and_text(&result);
        let why = "The server did not run the tool because its audit log cannot record the call: the log's disk is full or too slow \
                   (audit.when_full). Retry after 1000 ms.";
        assert_eq!((kind.as_str(), said.as_str()), ("busy", why));
        assert_eq!(
            result["_meta"]["dev.toolbay/retry-after-ms"], 1000,
            "{result}"
        );
        *refused += 1;
        false
    };
    server.wait_until("a call is refused", |server| {
        !call(server, &mut made, &mut refused)
    });
    server.log.wait_for("cannot write the audit log: ");
    for _ in 0..20 {
        assert!(
            !call(&mut server, &mut made, &mut refused),
            "the disk is still full"
        );
    }
    lift_disk_limit(&server);
    server.wait_until("a call is made", |server| {
        call(server, &mut made, &mut refused)
    });
    server.log.wait_for("the audit log can be written again");
    server.stop();
    assert_eq!(verify_intact(&folder)["lost"], 0);
    assert_eq!(succeeded(&folder), made, "no call was made without a line");
    assert_eq!(
        outcomes(&folder),
        [("busy".to_owned(), refused), ("ok".to_owned(), made as u64)].into()
    );
    let limits = events(&folder, "limit");
    assert!(
        limits.iter().all(|line| line["limit"] == "audit.when_full") && !limits.is_empty(),
        "{limits:?}"
    );
}

#[test]
fn by_default_calls_wait_for_a_full_disk_and_no_line_is_lost() {
    // `FIRST` lines fit into the queue of 18 MiB; together with `OTHERS` they exceed it.
    const FIRST: usize = 900;
    const OTHERS: usize = 300;
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", "[limits]\ntimeout = \"1h\"\n");
    let config = format!(
        "{CONFIG}files = 100\narguments = \"full\"\n[server]\nsuspended_calls = 0\n\
         queue = 10_000\nqueue_timeout = \"1h\"\n"
    );
    let mut server = start_on_full_disk(&folder, &config);
    let begin = |server: &mut StdioServer, calls: usize| -> Vec<u64> {
        (0..calls)
            .map(|_| server.start_call("echo", json!({"text": long_text()})))
            .collect()
    };
    for _ in 0..FIRST / 30 {
        for id in begin(&mut server, 30) {
            server.finish_call(id);
        }
    }
    let ids = begin(&mut server, OTHERS);
    server
        .log
        .wait_for("calls wait until their deadline (audit.when_full)");
    lift_disk_limit(&server);
    for id in ids {
        let answer = server.finish_call(id);
        assert!(answer.get("isError").is_none(), "{}", shortened(&answer));
    }
    server.stop();
    assert_eq!(verify_intact(&folder)["lost"], 0);
    assert_eq!(succeeded(&folder), FIRST + OTHERS);
}

fn shortened(answer: &Value) -> String {
    answer.to_string().chars().take(500).collect()
}

#[test]
fn a_call_that_waits_for_the_log_until_its_deadline_is_not_made() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", "[limits]\ntimeout = \"5s\"\n");
    let config = format!(
        "{CONFIG}files = 100\narguments = \"full\"\n[server]\nqueue = 10_000\nqueue_timeout = \"1h\"\n"
    );
    let mut server = start_on_full_disk(&folder, &config);
    let mut made = 0;
    let mut refused = 0;
    while refused == 0 {
        let ids: Vec<u64> = (0..30)
            .map(|_| server.start_call("echo", json!({"text": long_text()})))
            .collect();
        for id in ids {
            let result = server.finish_call(id);
            if result.get("isError").is_none() {
                made += 1;
                continue;
            }
            let (kind, said) = error_kind_and_text(&result);
            assert!(
                kind == "busy" && said.contains("its audit log cannot record the call"),
                "{said}"
            );
            refused += 1;
        }
    }
    lift_disk_limit(&server);
    server.log.wait_for("the audit log can be written again");
    server.stop();
    assert_eq!(verify_intact(&folder)["lost"], 0);
    assert_eq!(
        outcomes(&folder),
        [("busy".to_owned(), refused), ("ok".to_owned(), made)].into()
    );
}
