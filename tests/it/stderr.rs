//! Standard error is not essential: its reader may stop or disconnect, and a file may be full. No
//! call waits for it.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::process::Command;

use serde_json::json;

use crate::support::{Folder, ProgramLog, StdioServer, TinyComponent, ToolbayCommand, hostile};

/// Creates a folder with a plugin that may write many log lines in one call, and with a FIFO.
fn folder() -> Folder {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("hostile.toml", "[limits]\nlog = \"8MiB\"");
    assert!(
        Command::new("mkfifo")
            .arg(folder.sibling_path("log"))
            .status()
            .unwrap()
            .success()
    );
    folder
}

/// Starts a server that logs everything, through a shell script.
fn start_with_script(folder: &Folder, script: &str) -> StdioServer {
    StdioServer::run(
        ToolbayCommand::new(folder)
            .args(["serve", "--log", "debug"])
            .with_shell_wrapper(script),
    )
}

/// Starts a server whose standard error is a FIFO, and returns the other end too.
fn with_fifo(folder: &Folder) -> (StdioServer, File) {
    let server = start_with_script(folder, "exec \"$@\" 2>log");
    // Opening either end waits for the other.
    let reader = File::open(folder.sibling_path("log")).unwrap();
    (server.with_handshake("2025-11-25"), reader)
}

/// Makes a plugin log 12 MB, which is more than any pipe or queue holds.
fn flood(server: &mut StdioServer) {
    server.wait_for_tool("log_flood");
    for _ in 0..3 {
        server.call("log_flood", json!({"n": 4000}));
    }
    assert_eq!(
        server.text("echo", json!({"text": "still here"})),
        "still here"
    );
}

fn terminate(mut server: StdioServer) {
    assert!(
        Command::new("kill")
            .args(["-s", "TERM", &server.pid().to_string()])
            .status()
            .unwrap()
            .success()
    );
    let (_, code) = server.wait_for_exit();
    assert_eq!(code, Some(0));
}

#[test]
fn the_server_survives_a_reader_that_disconnects() {
    let folder = folder();
    let (mut server, reader) = with_fifo(&folder);
    let mut line = String::new();
    let mut reader = BufReader::new(reader);
    // The previous line names the configuration.
    for _ in 0..2 {
        reader.read_line(&mut line).unwrap();
    }
    assert!(
        line.contains("serving over standard input and output"),
        "{line}"
    );
    drop(reader);
    flood(&mut server);
    terminate(server);
}

#[test]
fn a_reader_that_stops_reading_delays_no_call_and_no_shutdown() {
    let folder = folder();
    let (mut server, _reader) = with_fifo(&folder);
    flood(&mut server);
    terminate(server);
}

#[test]
fn a_late_reader_gets_the_number_of_dropped_lines() {
    let folder = folder();
    let (mut server, reader) = with_fifo(&folder);
    flood(&mut server);
    let log = ProgramLog::follow(reader);
    let notice = log.wait_for(" log lines were dropped: standard error was not read in time");
    let words: Vec<&str> = notice.split_whitespace().collect();
    assert_eq!(words[1], "WARN", "{notice}");
    let dropped: usize = words[2].parse().unwrap();
    let told = log.text().matches("INFO line ").count();
    assert!(
        dropped > 1000 && told > 1000 && dropped + told >= 12_000,
        "{dropped} dropped, {told} told"
    );
    // No line is missing from here on.
    server.text("tell", json!({"text": "log"}));
    log.wait_for("it is  plugin=\"hostile\" tool=\"tell\"");
    assert_eq!(log.text().matches(" dropped: standard error").count(), 1);
    terminate(server);
}

#[test]
fn the_server_survives_a_standard_error_that_cannot_be_written() {
    for redirection in ["2>/dev/full", "2>&-", "2</dev/null"] {
        let folder = folder();
        let mut server = start_with_script(&folder, &format!("exec \"$@\" {redirection}"))
            .with_handshake("2025-11-25");
        flood(&mut server);
        terminate(server);
    }
}

#[test]
fn the_server_survives_a_log_file_that_cannot_grow() {
    let folder = folder();
    let mut server =
        start_with_script(&folder, "ulimit -f 8; exec \"$@\" 2>small").with_handshake("2025-11-25");
    flood(&mut server);
    terminate(server);
    let length = std::fs::metadata(folder.sibling_path("small"))
        .unwrap()
        .len();
    assert!((1..=8 << 10).contains(&length), "{length}");
}

#[test]
fn compiled_code_that_cannot_be_written_is_reported_once() {
    let folder = Folder::with(
        "a.wasm",
        TinyComponent::new(&["a"])
            .with_text("not compiled before")
            .build(),
    );
    std::fs::write(
        folder.sibling_path("toolbay.toml"),
        "[compile]\ncache_folder = \"store\"",
    )
    .unwrap();
    let listed = ToolbayCommand::new(&folder)
        .args(["list"])
        .with_shell_wrapper("ulimit -f 1; exec \"$@\"")
        .run();
    let why = "! cannot write the compiled code: the disk is full, or files are limited in size (ulimit -f); the \
               load is retried automatically";
    assert!(listed.code == 0 && listed.stdout.contains(why), "{listed}");
    let listed = ToolbayCommand::new(&folder).args(["list"]).run();
    assert!(listed.stdout.contains("1 tool from 1 plugin"), "{listed}");
}

#[test]
fn a_command_that_cannot_print_its_output_fails() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    for command in [&["list"][..], &["list", "--json"], &["call", "a"]] {
        let outcome = ToolbayCommand::new(&folder)
            .args(command)
            .with_shell_wrapper("exec \"$@\" >/dev/full")
            .run();
        assert_eq!(outcome.code, 1, "{command:?}: {outcome}");
        let why =
            "toolbay: failed to write to standard output: No space left on device (os error 28)\n";
        assert_eq!(outcome.stderr.matches(why).count(), 1, "{outcome}");
        let closed = ToolbayCommand::new(&folder)
            .args(command)
            .with_shell_wrapper("exec \"$@\" 2>&-")
            .run();
        assert!(
            closed.code == 0 && !closed.stdout.is_empty(),
            "{command:?}: {closed}"
        );
    }
    let refused = ToolbayCommand::new(&folder)
        .args(["call", "none"])
        .with_shell_wrapper("exec \"$@\" 2>/dev/full")
        .run();
    assert_eq!(refused.code, 1, "{refused}");
    // A token that the user does not receive is useless.
    let lost = ToolbayCommand::new(&folder)
        .args(["token", "me"])
        .with_shell_wrapper("exec \"$@\" 2>/dev/full")
        .run();
    assert_eq!((lost.code, lost.stdout.as_str()), (1, ""), "{lost}");
}
