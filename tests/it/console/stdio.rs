//! `toolbay console`: the console of a server that a client has started.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::PAGES;
use super::site::{cookie, encode_form, hidden_field};
use crate::support::{
    CommandOutput, DEADLINE, Folder, HttpResponse, StdioServer, TinyComponent, ToolbayCommand,
    result_text,
};

/// The plugins and the runtime folder of a user who runs a client and opens a console.
pub(super) struct User {
    pub(super) folder: Folder,
    session: tempfile::TempDir,
}

impl User {
    pub(super) fn new() -> Self {
        let folder = Folder::with("a.wasm", TinyComponent::new(&["echo"]).with_echo().build());
        let session = tempfile::tempdir().unwrap();
        fs::set_permissions(session.path(), fs::Permissions::from_mode(0o700)).unwrap();
        Self { folder, session }
    }

    pub(super) fn toolbay(&self, args: &[&str]) -> ToolbayCommand {
        // This home is not shared with other tests.
        let own = self.session.path().to_str().unwrap();
        ToolbayCommand::new(&self.folder)
            .args(args)
            .env("XDG_RUNTIME_DIR", own)
            .env("HOME", own)
    }

    /// Starts a server and completes the handshake as a client that supports forms.
    fn serve(&self, args: &[&str]) -> StdioServer {
        let mut server = self.connect(args);
        server.wait_for_tool("echo");
        server
    }

    /// Starts a server that offers this tool.
    pub(super) fn serve_with(&self, tool: &str) -> StdioServer {
        let mut server = self.connect(&[]);
        server.wait_for_tool(tool);
        server
    }

    fn connect(&self, args: &[&str]) -> StdioServer {
        let mut server = StdioServer::run(self.toolbay(&[&["serve"][..], args].concat()));
        let client = json!({"name": "test", "version": "1"});
        let capabilities = json!({"elicitation": {"form": {}}});
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client});
        server.result("initialize", hello);
        server.notify("notifications/initialized", json!({}));
        server
    }

    fn console(&self, args: &[&str]) -> CommandOutput {
        self.toolbay(&[&["console"][..], args].concat()).run()
    }

    /// Returns the existing sockets.
    fn sockets(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.session.path().join("toolbay")) else {
            return Vec::new();
        };
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

/// `toolbay console` and a browser that has opened the printed address.
pub(super) struct ConsoleCommand {
    command: Child,
    printed: BufReader<ChildStdout>,
    /// The address on which it listens, such as `127.0.0.1:4711`.
    address: String,
    token: String,
}

impl ConsoleCommand {
    pub(super) fn start(user: &User, args: &[&str]) -> Self {
        let (mut command, _) = user
            .toolbay(&[&["console"][..], args].concat())
            .into_parts();
        Self::run(command.stdin(Stdio::null()))
    }

    fn run(command: &mut Command) -> Self {
        let mut command = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut printed = BufReader::new(command.stdout.take().unwrap());
        let mut line = String::new();
        printed.read_line(&mut line).unwrap();
        let (_, address) = line
            .split_once("opens once at http://")
            .unwrap_or_else(|| panic!("{line:?}"));
        let (address, token) = address.trim().split_once("/console/login#").unwrap();
        Self {
            command,
            printed,
            address: address.to_owned(),
            token: token.to_owned(),
        }
    }

    pub(super) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> HttpResponse {
        let host = headers
            .iter()
            .find(|(name, _)| *name == "Host")
            .map_or(self.address.as_str(), |(_, host)| *host);
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        for (name, value) in headers.iter().filter(|(name, _)| *name != "Host") {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        HttpResponse::read(stream)
    }

    pub(super) fn post(&self, path: &str, cookie: &str, form: &[(&str, &str)]) -> HttpResponse {
        let origin = format!("http://{}", self.address);
        let kind = ("Content-Type", "application/x-www-form-urlencoded");
        self.request(
            "POST",
            path,
            &[("Origin", &origin), ("Cookie", cookie), kind],
            &encode_form(form),
        )
    }

    /// Opens the console with the printed token and returns the cookie.
    pub(super) fn enter(&self) -> Option<String> {
        cookie(&self.post("/console/login", "", &[("token", &self.token)]))
    }

    pub(super) fn page(&self, cookie: &str, path: &str) -> String {
        let got = self.request("GET", &format!("/console{path}"), &[("Cookie", cookie)], "");
        assert_eq!(got.status, 200, "{path}");
        got.text()
    }

    /// Waits for the end of the command, and returns its exit code and its output.
    fn wait_for_exit(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.command
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        self.printed.read_to_string(&mut said).unwrap();
        (self.command.wait().unwrap().code(), said)
    }
}

#[test]
fn an_operator_opens_the_console_of_a_server_that_a_client_has_started() {
    let user = User::new();
    let mut server = user.serve(&[]);
    server.log.wait_for("confined: landlock abi ");
    let mode = fs::metadata(user.session.path().join("toolbay"))
        .unwrap()
        .permissions()
        .mode()
        & 0o777;
    assert_eq!((mode, user.sockets().len()), (0o700, 1));
    let opened = ConsoleCommand::start(&user, &[]);
    let cookie = opened.enter().unwrap();
    assert_eq!(opened.enter(), None, "a token works once");
    for page in PAGES {
        opened.page(&cookie, page);
    }
    assert!(result_text(&server.call("echo", json!({"said": "hello"}))).contains("hello"));
    assert!(opened.page(&cookie, "/calls").contains(">echo</a>"));
    let page = opened.page(&cookie, "/tool?name=echo");
    let csrf = hidden_field(&page, "csrf");
    let schema = hidden_field(&page, "schema");
    let form = [
        ("csrf", csrf.as_str()),
        ("tool", "echo"),
        ("schema", &schema),
        ("raw", "yes"),
        ("json", "{}"),
    ];
    assert!(
        opened
            .post("/console/tool", &cookie, &form)
            .text()
            .contains("badge good\">ok</span>")
    );
    // No other path is served, and no requests for other hosts or from other pages.
    for path in ["/mcp", "/metrics", "/healthz", "/readyz", "/sse"] {
        for method in ["GET", "POST"] {
            assert_eq!(
                opened
                    .request(method, path, &[("Cookie", &cookie)], "")
                    .status,
                404,
                "{method} {path}"
            );
        }
    }
    for host in [
        "evil.example",
        "evil.example:80",
        "localhost.evil.example",
        "192.0.2.1",
    ] {
        let got = opened.request(
            "GET",
            "/console",
            &[("Cookie", &cookie), ("Host", host)],
            "",
        );
        assert_eq!(got.status, 403, "{host}");
    }
    let foreign = [
        ("Origin", "http://evil.example"),
        ("Cookie", cookie.as_str()),
    ];
    assert_eq!(
        opened
            .request(
                "POST",
                "/console/cache",
                &foreign,
                &encode_form(&[("csrf", &csrf)])
            )
            .status,
        403
    );
    assert_eq!(opened.request("GET", "/console", &[], "").status, 303);
    assert!(
        opened
            .request("GET", "/console/login", &[], "")
            .text()
            .contains("toolbay console")
    );
    // A second command has its own token and opens the same console.
    let pid = server.pid().to_string();
    let second = ConsoleCommand::start(&user, &["--pid", &pid]);
    assert!(second.page(&cookie, "/calls").contains(">echo</a>"));
    assert!(second.enter().is_some());
    assert_eq!(server.stop().1, Some(0));
    assert!(user.sockets().is_empty());
    for command in [opened, second] {
        let (code, said) = command.wait_for_exit();
        assert_eq!(code, Some(0), "{said}");
        assert!(
            said.contains(&format!("the server {pid} has ended")),
            "{said}"
        );
    }
}

#[test]
fn a_call_whose_client_never_answers_is_answered_in_a_console_that_is_opened_afterwards() {
    let user = User::new();
    user.folder.put("a.toml", "require_approval = \"always\"\n");
    let mut server = user.serve(&[]);
    let id = server.request(
        "tools/call",
        json!({"name": "echo", "arguments": {"said": "hello"}}),
    );
    let question = server.wait_for("the question", |message: &Value| {
        message["method"] == "elicitation/create"
    });
    let opened = ConsoleCommand::start(&user, &[]);
    let cookie = opened.enter().unwrap();
    assert!(opened.page(&cookie, "").contains("1 call"));
    let page = opened.page(&cookie, "/approvals");
    assert!(
        page.contains("hello") && page.contains("by stdio"),
        "{page}"
    );
    let form = [
        ("csrf", hidden_field(&page, "csrf")),
        ("id", hidden_field(&page, "id")),
        ("answer", "approve".to_owned()),
    ];
    let form: Vec<(&str, &str)> = form
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    assert_eq!(opened.post("/console/approval", &cookie, &form).status, 303);
    let withdrawn = server.wait_for("the withdrawal", |message| {
        message["method"] == "notifications/cancelled"
    });
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    assert!(result_text(&server.wait_for_response(id)["result"]).contains("hello"));
    assert_eq!(opened.post("/console/approval", &cookie, &form).status, 409);
}

#[test]
fn several_servers_require_a_choice_and_no_server_is_an_error_with_advice() {
    let user = User::new();
    let none = user.console(&[]);
    assert_eq!((none.code, none.stdout.as_str()), (1, ""), "{none}");
    assert!(
        none.stderr
            .starts_with("toolbay: no server has a console that answers: "),
        "{none}"
    );
    let first = user.serve(&[]);
    let second = user.serve(&[]);
    let several = user.console(&[]);
    assert_eq!(
        (several.code, several.stdout.as_str()),
        (64, ""),
        "{several}"
    );
    for server in [&first, &second] {
        let line = format!(
            "  toolbay console --pid {:<8} <root>/plugins, for ",
            server.pid()
        );
        assert!(several.stderr.contains(&line), "{line}: {several}");
    }
    let unknown = user.console(&["--pid", "1"]);
    assert_eq!(unknown.code, 1);
    assert!(
        unknown
            .stderr
            .contains("no server with the process number 1 has a console that answers"),
        "{unknown}"
    );
    let opened = ConsoleCommand::start(&user, &["--pid", &second.pid().to_string()]);
    let cookie = opened.enter().unwrap();
    opened.page(&cookie, "");
    // A server that was killed leaves its socket until another process scans the folder.
    first.kill();
    assert_eq!(user.sockets().len(), 2);
    let third = user.serve(&[]);
    assert_eq!(user.sockets().len(), 2);
    drop((second, third));
    assert_eq!(opened.wait_for_exit().0, Some(0));
    assert_eq!(user.console(&[]).code, 1);
}

#[test]
fn a_server_whose_console_is_disabled_or_has_no_socket_still_serves() {
    let user = User::new();
    for config in ["[console]\nstdio = false\n", "[console]\nenabled = false\n"] {
        user.folder.write_config(config);
        let mut server = user.serve(&[]);
        assert!(user.sockets().is_empty(), "{config}");
        assert!(result_text(&server.call("echo", json!({}))).contains("{}"));
        assert_eq!(user.console(&[]).code, 1, "{config}");
    }
    user.folder.write_config("");
    let off = user
        .toolbay(&["serve"])
        .env("TOOLBAY_CONSOLE_STDIO", "false");
    let mut server = StdioServer::run(off).with_handshake("2025-11-25");
    server.wait_for_tool("echo");
    assert!(user.sockets().is_empty());
    drop(server);
    // A folder that other users can enter is not used, nor is a symbolic link; the server uses the
    // other location.
    let folder = user.session.path().join("toolbay");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let server = user.serve(&[]);
    assert!(user.sockets().is_empty());
    let opened = ConsoleCommand::start(&user, &[]);
    assert!(opened.enter().is_some());
    drop(server);
    assert_eq!(opened.wait_for_exit().0, Some(0));
    fs::write(user.session.path().join(".local/state/toolbay/file"), "").unwrap();
    fs::remove_dir(user.session.path().join(".local/state/toolbay/console")).unwrap();
    fs::write(
        user.session.path().join(".local/state/toolbay/console"),
        "in the way",
    )
    .unwrap();
    let mut server = user.serve(&[]);
    server
        .log
        .wait_for("`toolbay console` cannot open the console of this server: ");
    assert!(result_text(&server.call("echo", json!({}))).contains("{}"));
}

#[test]
fn idle_connections_delay_neither_the_client_nor_the_shutdown() {
    let user = User::new();
    let mut server = user.serve(&[]);
    let opened = ConsoleCommand::start(&user, &[]);
    let cookie = opened.enter().unwrap();
    let silent: Vec<TcpStream> = (0..100)
        .map(|n| {
            let mut stream = TcpStream::connect(&opened.address).unwrap();
            // Some send nothing, some half a request, some no HTTP, and some the beginning of a
            // token request.
            stream
                .write_all([&b""[..], b"GET /console HT", b"\x16\x03\x01", b"l"][n % 4])
                .unwrap();
            stream
        })
        .collect();
    assert!(result_text(&server.call("echo", json!({}))).contains("{}"));
    drop(silent);
    opened.page(&cookie, "/calls");
    // Also directly at the socket.
    let socket = user.sockets().remove(0);
    let _held: Vec<_> = (0..200)
        .filter_map(|_| std::os::unix::net::UnixStream::connect(&socket).ok())
        .collect();
    assert!(result_text(&server.call("echo", json!({}))).contains("{}"));
    assert_eq!(server.stop().1, Some(0));
    assert_eq!(opened.wait_for_exit().0, Some(0));
}

#[test]
fn a_waiting_call_is_listed_shown_and_answered_in_a_terminal() {
    let user = User::new();
    user.folder.put(
        "a.toml",
        "require_approval = \"always\"\napprove_by = \"console\"\n",
    );
    let approvals = |args: &[&str]| user.toolbay(&[&["approvals"][..], args].concat()).run();
    assert_eq!(approvals(&[]).code, 1, "no server runs");
    let mut server = user.serve(&[]);
    assert_eq!(approvals(&[]).stdout, "no call waits for an operator\n");
    for (answer, word) in [("yes", "allowed"), ("no", "declined")] {
        let params = json!({"name": "echo", "arguments": {"said": "hello"}});
        let id = server.request("tools/call", params);
        let listed = loop {
            let listed = approvals(&["list", "--json"]);
            let calls: Value = serde_json::from_str(&listed.raw_stdout).unwrap();
            if let Some(call) = calls.get(0) {
                break call.clone();
            }
        };
        assert_eq!(
            (&listed["tool"], &listed["caller"]),
            (&json!("echo"), &json!("stdio"))
        );
        assert!(listed.get("question").is_none(), "{listed}");
        let number = listed["id"].to_string();
        let line = format!("{number:>4}  echo of a, by stdio, for ");
        let table = approvals(&[]);
        assert!(table.stdout.contains(&line), "{table}");
        let shown = approvals(&["show", &number]);
        assert!(
            shown.stdout.contains("    | {\"said\":\"hello\"}\n")
                && shown.stdout.contains("yes allows this call."),
            "{shown}"
        );
        let answered = approvals(&["answer", &number, answer]);
        assert!(
            answered.code == 0 && answered.stdout.starts_with(word),
            "{answered}"
        );
        let response = server.wait_for_response(id);
        assert_eq!(
            response["result"]["isError"] == true,
            answer == "no",
            "{response}"
        );
        for args in [&["show", number.as_str()][..], &["answer", &number, "yes"]] {
            let late = approvals(args);
            assert!(
                late.code == 1 && late.stderr.contains("no call with the number"),
                "{late}"
            );
        }
    }
    assert_eq!(approvals(&["answer", "1", "maybe"]).code, 2);
    server
        .log
        .wait_for("approval: approved plugin=\"a\" tool=\"echo\"");
    server.log.wait_for("by=\"terminal\"");
    assert_eq!(server.stop().1, Some(0));
}
