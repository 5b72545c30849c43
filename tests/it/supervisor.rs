//! The interface to systemd: `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `LISTEN_FDS`.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram, UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::support::{DEADLINE, Folder, TinyComponent, ToolbayCommand};

/// Waits for the next message to the supervisor that has this line, and returns it.
fn wait_for_message(socket: &UnixDatagram, line: &str) -> String {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < DEADLINE, "nothing says {line}");
        let mut message = [0; 4096];
        let length = socket.recv(&mut message).unwrap();
        let message = String::from_utf8(message[..length].to_vec()).unwrap();
        if message.lines().any(|own| own.starts_with(line)) {
            return message;
        }
    }
}

/// A server with a supervisor's socket. A shell starts the server with `exec`, so that `LISTEN_PID`
/// and `WATCHDOG_PID` can name the server's process.
struct SupervisedServer {
    child: Child,
    socket: UnixDatagram,
    _folder: Folder,
}

impl Drop for SupervisedServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn start_supervised(folder: &Folder, script: &str, input: Stdio) -> SupervisedServer {
    let path = folder.sibling_path("notify");
    drop(std::fs::remove_file(&path));
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    let (toolbay, _) = ToolbayCommand::new(folder).into_parts();
    let mut shell = Command::new("/bin/bash");
    shell.args(["-c", script]).env_clear().envs(
        toolbay
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    shell
        .env("TOOLBAY", toolbay.get_program())
        .env("NOTIFY_SOCKET", path);
    let child = shell
        .current_dir(folder.root())
        .stdin(input)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    SupervisedServer {
        child,
        socket,
        _folder: folder.clone(),
    }
}

fn signal(server: &SupervisedServer, name: &str) {
    assert!(
        Command::new("kill")
            .args([name, &server.child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn a_supervisor_is_notified_of_the_state_of_the_server() {
    let folder = Folder::with(
        "tiny.wasm",
        TinyComponent::new(&["a", "b"]).with_echo().build(),
    );
    let script =
        "export WATCHDOG_PID=$$ WATCHDOG_USEC=200000; exec \"$TOOLBAY\" serve --http 127.0.0.1:0";
    let mut server = start_supervised(&folder, script, Stdio::null());
    wait_for_message(&server.socket, "READY=1");
    wait_for_message(&server.socket, "STATUS=serving 1 plugin with 2 tools");
    for _ in 0..3 {
        wait_for_message(&server.socket, "WATCHDOG=1");
    }
    folder.put("more.wasm", TinyComponent::new(&["c"]).with_echo().build());
    wait_for_message(&server.socket, "STATUS=serving 2 plugins with 3 tools");
    signal(&server, "-HUP");
    assert!(wait_for_message(&server.socket, "RELOADING=1").contains("MONOTONIC_USEC="));
    wait_for_message(&server.socket, "READY=1");
    signal(&server, "-TERM");
    wait_for_message(&server.socket, "STOPPING=1");
    assert!(server.child.wait().unwrap().success());
}

#[test]
fn a_confined_server_notifies_a_supervisor_with_an_abstract_socket() {
    let folder = Folder::with("tiny.wasm", TinyComponent::new(&["a"]).with_echo().build());
    let name = format!("toolbay-test-notify-{}", std::process::id());
    let socket = UnixDatagram::bind_addr(&UnixAddress::from_abstract_name(&name).unwrap()).unwrap();
    socket.set_read_timeout(Some(DEADLINE)).unwrap();
    let script =
        format!("export NOTIFY_SOCKET=@{name}; exec \"$TOOLBAY\" serve --http 127.0.0.1:0");
    let mut server = start_supervised(&folder, &script, Stdio::null());
    wait_for_message(&socket, "READY=1");
    wait_for_message(&socket, "STATUS=serving 1 plugin with 1 tool");
    signal(&server, "-TERM");
    wait_for_message(&socket, "STOPPING=1");
    assert!(server.child.wait().unwrap().success());
}

#[test]
fn an_inherited_socket_is_served_and_its_address_is_checked() {
    let folder = Folder::with("tiny.wasm", TinyComponent::new(&["a"]).with_echo().build());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // A client connects before the server runs.
    let mut early = TcpStream::connect(address).unwrap();
    early
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut server = start_with_socket(&folder, listener);
    let mut reply = String::new();
    early.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    wait_for_message(&server.socket, "READY=1");
    signal(&server, "-TERM");
    assert!(server.child.wait().unwrap().success());
    // An inherited address that other machines can reach needs tokens, too.
    let open = TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], 0))).unwrap();
    let mut refused = start_with_socket(&folder, open);
    assert_eq!(refused.child.wait().unwrap().code(), Some(64));
}

#[test]
fn an_inherited_unix_socket_is_served_and_not_removed() {
    let folder = Folder::with("tiny.wasm", TinyComponent::new(&["a"]).with_echo().build());
    let path = folder.sibling_path("mcp.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let mut early = UnixStream::connect(&path).unwrap();
    early.set_read_timeout(Some(DEADLINE)).unwrap();
    early
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut server = start_with_socket(&folder, listener);
    let mut reply = String::new();
    early.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    signal(&server, "-TERM");
    assert!(server.child.wait().unwrap().success());
    // The supervisor owns the socket's file.
    assert!(path.exists());
    // No file permissions protect an abstract socket.
    let name = format!("toolbay-test-{}", std::process::id());
    let open = UnixListener::bind_addr(&UnixAddress::from_abstract_name(name).unwrap()).unwrap();
    assert_eq!(
        start_with_socket(&folder, open)
            .child
            .wait()
            .unwrap()
            .code(),
        Some(64)
    );
    // Clients cannot connect to a datagram socket.
    let datagrams = UnixDatagram::bind(folder.sibling_path("datagrams")).unwrap();
    assert_eq!(
        start_with_socket(&folder, datagrams)
            .child
            .wait()
            .unwrap()
            .code(),
        Some(64)
    );
}

/// Starts a server that inherits a socket as systemd passes it: as descriptor 3.
fn start_with_socket(folder: &Folder, listener: impl Into<OwnedFd>) -> SupervisedServer {
    let script =
        "exec 3<&0 0</dev/null; export LISTEN_FDS=1 LISTEN_PID=$$; exec \"$TOOLBAY\" serve";
    start_supervised(folder, script, Stdio::from(listener.into()))
}

#[test]
fn the_packaged_service_listens_only_on_a_socket_of_its_group() {
    let unit = |name: &str| {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/systemd/");
        std::fs::read_to_string(format!("{path}{name}")).unwrap()
    };
    let socket = unit("toolbay.socket");
    let service = unit("toolbay.service");
    let group = unit("toolbay.sysusers");
    for line in [
        "ListenStream=/run/toolbay/mcp.sock",
        "SocketMode=0660",
        "SocketGroup=toolbay",
    ] {
        assert!(
            socket.lines().any(|found| found == line),
            "{line}:\n{socket}"
        );
    }
    assert_eq!(socket.matches("ListenStream=").count(), 1, "{socket}");
    // The service has that socket and no port, however it is started.
    assert!(
        service
            .lines()
            .any(|found| found == "Requires=toolbay.socket"),
        "{service}"
    );
    let start = service
        .lines()
        .find(|line| line.starts_with("ExecStart="))
        .unwrap();
    assert!(!start.contains("--http"), "{start}");
    assert!(group.lines().any(|found| found == "g toolbay -"), "{group}");
}
