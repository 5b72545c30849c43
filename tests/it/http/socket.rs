//! A server on a Unix socket: how the socket is created, which clients are served, which files are
//! replaced, and when it is removed.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use serde_json::json;
use toolbay_testkit::ProgramProcess;

use super::neighbour::{post, stateless};
use crate::support::{
    DEADLINE, Folder, ProgramLog, TinyComponent, ToolbayCommand, hostile, initialize,
};

/// A server on a Unix socket. Dropping it stops it and checks that it exited successfully.
struct SocketServer {
    process: ProgramProcess,
    _folder: Folder,
    path: PathBuf,
    log: ProgramLog,
}

impl SocketServer {
    /// Serves on `mcp.sock` next to the plugin folder.
    fn start(folder: &Folder, config: &str) -> Self {
        folder.write_config(config);
        let path = folder.sibling_path("mcp.sock");
        let flag = format!("unix:{}", path.display());
        Self::run(
            folder,
            ToolbayCommand::new(folder).args(["serve", "--http", &flag]),
            path,
        )
    }

    fn run(folder: &Folder, command: ToolbayCommand, path: PathBuf) -> Self {
        let (mut command, _) = command.into_parts();
        let log = ProgramLog::default();
        let process =
            ProgramProcess::start(command.stdin(Stdio::null()), |_| (), log.line_handler())
                .unwrap();
        log.wait_for("listening on unix:");
        let server = Self {
            process,
            _folder: folder.clone(),
            path,
            log,
        };
        let begun = Instant::now();
        while !server
            .get("/readyz", "Host: localhost\r\n")
            .starts_with("HTTP/1.1 200")
        {
            assert!(
                begun.elapsed() < DEADLINE,
                "it is not ready:\n{}",
                server.log.text()
            );
        }
        server
    }

    fn end(&mut self) {
        self.process.terminate().unwrap();
        let code = self.process.wait_for_exit(DEADLINE).unwrap().code();
        assert_eq!(code, Some(0), "{}", self.log.text());
    }

    fn connect(&self) -> UnixStream {
        connect(&self.path)
    }

    /// Sends a request and returns all data until the connection is closed.
    fn ask(&self, request: &[u8]) -> String {
        exchange(self.connect(), request)
    }

    fn get(&self, path: &str, headers: &str) -> String {
        self.ask(format!("GET {path} HTTP/1.1\r\n{headers}\r\n").as_bytes())
    }
}

impl Drop for SocketServer {
    fn drop(&mut self) {
        if !std::thread::panicking() && !self.process.has_exited().unwrap() {
            self.end();
        }
    }
}

fn connect(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
    stream
}

/// Sends a request, closes the write side, and reads until the end.
fn exchange(mut stream: UnixStream, request: &[u8]) -> String {
    // The server does not read all of a request that it rejects early.
    drop(stream.write_all(request));
    drop(stream.shutdown(std::net::Shutdown::Write));
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    String::from_utf8(reply).unwrap()
}

fn call(word: &str) -> Vec<u8> {
    stateless(
        "tools/call",
        json!({"name": "a", "arguments": {"word": word}}),
    )
}

fn echo() -> Folder {
    Folder::with("tiny.wasm", TinyComponent::new(&["a"]).with_echo().build())
}

#[test]
fn a_unix_socket_is_served_only_for_its_user_and_removed_at_the_end() {
    let folder = echo();
    let mut server = SocketServer::start(&folder, "");
    let line = server.log.wait_for("listening on unix:");
    assert!(
        line.ends_with("mcp.sock (for http://localhost/mcp)"),
        "{line}"
    );
    assert_eq!(fs::metadata(&server.path).unwrap().mode() & 0o7777, 0o600);
    let reply = server.ask(&call("hello"));
    assert!(
        reply.starts_with("HTTP/1.1 200") && reply.contains("hello"),
        "{reply}"
    );
    // A session, on one connection.
    let mut stream = server.connect();
    stream
        .write_all(&post("", initialize("2025-11-25").to_string().as_bytes()))
        .unwrap();
    let mut head = String::new();
    while !head.contains("\"id\":") {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).unwrap();
        head.push_str(std::str::from_utf8(&piece[..read]).unwrap());
    }
    let session = head
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "))
        .unwrap()
        .to_owned();
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let reply = exchange(
        stream,
        &post(&format!("Mcp-Session-Id: {session}\r\n"), ping),
    );
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    // The socket is removed although the server is confined.
    assert!(
        server.log.text().contains("confined: landlock"),
        "{}",
        server.log.text()
    );
    server.end();
    assert!(!server.path.exists());
}

#[test]
fn the_mode_and_the_path_of_a_socket_are_as_configured() {
    let folder = echo();
    fs::create_dir(folder.sibling_path("run")).unwrap();
    let config = "[http]\nlisten = \"unix:run/mcp.sock\"\nsocket_mode = \"0666\"\n";
    folder.write_config(config);
    let path = folder.sibling_path("run/mcp.sock");
    // The mode does not depend on the umask.
    let command = ToolbayCommand::new(&folder)
        .args(["serve"])
        .with_shell_wrapper("umask 077; exec \"$@\"");
    let mut server = SocketServer::run(&folder, command, path.clone());
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o666);
    assert!(server.ask(&call("hello")).contains("hello"));
    server.end();
    assert!(!path.exists());
    // Without a directory in the path, the socket is in the folder where the server is started.
    folder.write_config("[http]\nlisten = \"unix:mcp.sock\"\n");
    let path = folder.sibling_path("mcp.sock");
    let mut server = SocketServer::run(
        &folder,
        ToolbayCommand::new(&folder).args(["serve"]),
        path.clone(),
    );
    server.end();
    assert!(!path.exists());
}

#[test]
fn hosts_and_origins_are_checked_and_probes_are_answered() {
    let server = SocketServer::start(
        &echo(),
        "[http]\nanonymous = true\nallowed_hosts = [\"tools.example.com\"]",
    );
    let status = |headers: &str| {
        server
            .get("/mcp", headers)
            .split(' ')
            .nth(1)
            .unwrap()
            .to_owned()
    };
    for good in [
        "Host: localhost\r\n",
        "Host: tools.example.com\r\n",
        "Host: localhost\r\nOrigin: http://localhost:1\r\n",
    ] {
        // The request is admitted, but has no session.
        assert_eq!(status(good), "400", "{good}");
    }
    let malformed = ["", "Host: localhost\r\nHost: localhost\r\n"];
    for headers in malformed {
        assert!(
            server
                .get("/mcp", headers)
                .ends_with("exactly one Host header is required"),
            "{headers}"
        );
    }
    for bad in [
        "Host: evil.example\r\n",
        "Host: /run/mcp.sock\r\n",
        "Host: localhost\r\nOrigin: http://evil.example\r\n",
        "Host: localhost\r\nOrigin: null\r\n",
    ] {
        assert_eq!(status(bad), "403", "{bad}");
    }
    assert!(
        server
            .get("/healthz", "Host: x\r\n")
            .starts_with("HTTP/1.1 200")
    );
    // With configured host names, requests may come from others through a proxy.
    assert!(
        server
            .get("/metrics", "Host: localhost\r\n")
            .starts_with("HTTP/1.1 403")
    );
    let unnamed = SocketServer::start(&echo(), "");
    assert!(
        unnamed
            .get("/metrics", "Host: localhost\r\n")
            .starts_with("HTTP/1.1 200")
    );
    // Browsers cannot connect to a Unix socket themselves.
    assert!(
        server
            .get("/console", "Host: localhost\r\n")
            .starts_with("HTTP/1.1 404")
    );
    assert!(!server.log.text().contains("console/login"));
}

#[test]
fn configured_tokens_are_required() {
    let hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let server = SocketServer::start(
        &echo(),
        &format!("[[http.tokens]]\nname = \"ci\"\nsha256 = \"{hash}\""),
    );
    let without = call("hello");
    assert!(server.ask(&without).starts_with("HTTP/1.1 401"));
    let with = String::from_utf8(without).unwrap().replacen(
        "Host:",
        "Authorization: Bearer test\r\nHost:",
        1,
    );
    assert!(server.ask(with.as_bytes()).starts_with("HTTP/1.1 200"));
}

#[test]
fn the_limits_of_an_address_apply_to_a_user() {
    let config = "[http]\nconnections = 8\nconnections_per_address = 2\nidle_timeout = \"1m\"";
    let server = SocketServer::start(&echo(), config);
    // Two connections without a complete request, and one beyond the limit.
    let mut silent: Vec<UnixStream> = (0..2).map(|_| server.connect()).collect();
    for stream in &mut silent {
        stream.write_all(b"GET ").unwrap();
    }
    assert!(
        server
            .get("/healthz", "Host: localhost\r\n")
            .starts_with("HTTP/1.1 200")
    );
    assert!(server.ask(&call("hello")).starts_with("HTTP/1.1 503"));
    drop(silent);
    let begun = Instant::now();
    while !server.ask(&call("hello")).starts_with("HTTP/1.1 200") {
        assert!(begun.elapsed() < DEADLINE, "{}", server.log.text());
    }
}

#[test]
fn a_client_that_disconnects_cancels_its_call() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put(
        "hostile.toml",
        "[limits]\nfuel = 1_000_000_000_000_000\ntimeout = \"10m\"",
    );
    let server = SocketServer::start(&folder, "");
    let mut stream = server.connect();
    stream
        .write_all(&stateless(
            "tools/call",
            json!({"name": "loop_forever", "arguments": {}}),
        ))
        .unwrap();
    // The stream begins with a comment when the call runs.
    let mut first = [0; 1];
    stream.read_exact(&mut first).unwrap();
    drop(stream);
    let begun = Instant::now();
    loop {
        let metrics = server.get("/metrics", "Host: localhost\r\n");
        let running = metrics
            .lines()
            .find(|line| line.starts_with("toolbay_calls_running"))
            .unwrap()
            .to_owned();
        if running.ends_with(" 0") {
            break;
        }
        assert!(begun.elapsed() < DEADLINE, "{running}");
    }
}

#[test]
fn oversized_and_incomplete_requests_get_their_errors() {
    let server = SocketServer::start(
        &echo(),
        "[server]\nrequest_size = \"1MiB\"\n[http]\nidle_timeout = \"300ms\"",
    );
    let large = call(&"x".repeat(900_000));
    assert!(server.ask(&large).starts_with("HTTP/1.1 200"));
    // Rejected while it is still sending.
    assert!(
        server
            .ask(&call(&"x".repeat(8 << 20)))
            .starts_with("HTTP/1.1 413")
    );
    let mut half = server.connect();
    half.write_all(&large[..large.len() / 2]).unwrap();
    let mut reply = String::new();
    half.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 408"), "{reply}");
}

#[test]
fn a_dead_socket_is_replaced_and_a_live_one_is_not() {
    let folder = echo();
    let mut killed = SocketServer::start(&folder, "");
    killed.process.kill().unwrap();
    assert!(killed.path.exists());
    let mut server = SocketServer::start(&folder, "");
    let flag = format!("unix:{}", server.path.display());
    let second = ToolbayCommand::new(&folder)
        .args(["serve", "--http", &flag])
        .run();
    assert_eq!(
        (second.code, second.stderr.as_str()),
        (
            1,
            "toolbay: failed to listen on unix:<root>/mcp.sock: another program listens there\n"
        )
    );
    assert!(
        server.ask(&call("hello")).contains("hello"),
        "the first one goes on"
    );
    // A file that has replaced the socket is not removed at the end.
    fs::remove_file(&server.path).unwrap();
    let _other = UnixListener::bind(&server.path).unwrap();
    server.end();
    assert!(server.path.exists());
}

#[test]
fn a_file_that_is_not_a_socket_is_not_replaced_and_an_unusable_path_is_an_error() {
    let folder = echo();
    fs::write(folder.sibling_path("file"), "kept").unwrap();
    symlink(folder.sibling_path("file"), folder.sibling_path("link")).unwrap();
    fs::create_dir(folder.sibling_path("dir")).unwrap();
    let said = |path: &str| {
        let flag = format!("unix:{}", folder.sibling_path(path).display());
        let outcome = ToolbayCommand::new(&folder)
            .args(["serve", "--http", &flag])
            .run();
        assert_eq!(outcome.code, 64, "{outcome}");
        assert_eq!(outcome.stdout, "");
        outcome.stderr
    };
    let long = "x".repeat(107);
    let all = ["file", "link", "dir", "missing/mcp.sock", "file/mcp.sock"]
        .map(said)
        .concat();
    insta::assert_snapshot!(all);
    let too_long = said(&long);
    assert!(
        too_long.contains(
            "http.listen: the path of a Unix socket has at most 107 bytes, and this one "
        ),
        "{too_long}"
    );
    assert_eq!(
        fs::read_to_string(folder.sibling_path("file")).unwrap(),
        "kept"
    );
    assert!(
        folder.sibling_path("link").is_symlink()
            && folder.sibling_path("dir").is_dir()
            && !folder.sibling_path("missing").exists()
    );
    // Not TLS: the files that it would need are not even read.
    folder.write_config("[http.tls]\ncertificate = \"a\"\nkey = \"b\"");
    assert!(said("mcp.sock").contains("http.tls: a Unix socket has no TLS"));
    assert!(!folder.sibling_path("mcp.sock").exists());
}

#[test]
fn escaped_code_can_only_remove_files_in_the_folder_of_the_socket() {
    let folder = echo();
    let elsewhere = tempfile::tempdir().unwrap();
    let at = |name: &str| elsewhere.path().join(name).display().to_string();
    fs::write(at("file"), "x").unwrap();
    fs::write(at("other"), "x").unwrap();
    let lines = [
        format!("read {}", at("file")),
        format!("write {}", at("file")),
        format!("write {}", at("new")),
        format!("link {}", at("link")),
        format!("list {}", at("")),
        format!("remove {}", at("other")),
    ];
    let flag = format!("unix:{}", at("mcp.sock"));
    let outcome = ToolbayCommand::new(&folder)
        .args(["escape", "--http", &flag])
        .run_with(&(lines.join("\n") + "\n"));
    assert_eq!(outcome.code, 0, "{outcome}");
    let said: Vec<&str> = outcome
        .raw_stdout
        .lines()
        .map(|line| line.rsplit(": ").next().unwrap())
        .collect();
    let denied = "permission denied";
    assert_eq!(
        said,
        [denied, denied, denied, denied, denied, "done"],
        "{outcome}"
    );
}
