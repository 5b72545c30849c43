//! A plugin can access and retain nothing except what its grant allows.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::support::{Folder, StdioServer, ToolbayCommand, hostile};

fn server_with_grant(folder: &Folder, grant: &str) -> StdioServer {
    folder.put("hostile.wasm", hostile());
    folder.put("hostile.toml", grant);
    StdioServer::start(folder)
}

#[test]
fn nothing_outlives_a_call() {
    let mut server = StdioServer::start(&Folder::with("hostile.wasm", hostile()));
    for n in 0..1000 {
        assert_eq!(server.text("count", json!({})), "1", "call {n}");
    }
}

#[test]
fn the_environment_has_only_the_granted_variables() {
    let folder = Folder::with("hostile.wasm", hostile());
    let serve = || {
        let command = ToolbayCommand::new(&folder)
            .args(["serve"])
            .env("TEST_OPEN", "an open word")
            .env("TEST_SECRET", "hush");
        StdioServer::run(command).with_handshake("2025-11-25")
    };
    assert_eq!(serve().text("environment", json!({})), "[] []");
    folder.put(
        "hostile.toml",
        "[permissions]\nenvironment = [\"TEST_OPEN\", \"TEST_ABSENT\"]",
    );
    assert_eq!(
        serve().text("environment", json!({})),
        "[\"TEST_OPEN=an open word\"] []"
    );
}

#[test]
fn without_a_grant_a_plugin_has_no_files_and_no_network() {
    let mut server = StdioServer::start(&Folder::with("hostile.wasm", hostile()));
    for path in [
        "/etc/passwd",
        "plugins",
        ".",
        "/",
        "/proc/self/environ",
        "/dev/null",
    ] {
        let (kind, text) = server.failure("read_file", json!({"path": path}));
        assert_eq!(kind, "none");
        assert!(text.contains("os error"), "{path}: {text}");
    }
    server.failure("list_folder", json!({"path": "/"}));
    server.failure("write_file", json!({"path": "/tmp/x", "text": "x"}));
    assert_ne!(server.text("connect", json!({})), "connected");
}

#[test]
fn configuration_reaches_the_plugin() {
    let folder = Folder::new();
    let mut server = server_with_grant(
        &folder,
        "[config]\nunits = \"metric\"\ndepth = 3\nlist = [1, \"a\"]",
    );
    for (key, value) in [
        ("units", "metric"),
        ("depth", "3"),
        ("list", "[1,\"a\"]"),
        ("absent", "nothing"),
    ] {
        assert_eq!(server.text("config", json!({"text": key})), value);
    }
}

/// Creates a folder `data/` that contains a file, and links that lead out of it to `secret`.
fn create_data_folder(folder: &Folder) {
    fs::create_dir_all(folder.sibling_path("data/deep")).unwrap();
    fs::write(folder.sibling_path("secret"), "hush").unwrap();
    fs::write(folder.sibling_path("data/file"), "hello").unwrap();
    symlink("file", folder.sibling_path("data/inside")).unwrap();
    symlink("../secret", folder.sibling_path("data/outside")).unwrap();
    symlink(
        folder.sibling_path("secret"),
        folder.sibling_path("data/absolute"),
    )
    .unwrap();
    symlink("..", folder.sibling_path("data/up")).unwrap();
    symlink("../../secret", folder.sibling_path("data/deep/outside")).unwrap();
}

const WAYS_OUT: [&str; 8] = [
    "/data/../secret",
    "/data/deep/../../secret",
    "/data/outside",
    "/data/absolute",
    "/data/up/secret",
    "/data/deep/outside",
    "/data/deep/../up/secret",
    "../secret",
];

#[test]
fn a_read_only_mount_can_only_be_read() {
    let folder = Folder::new();
    create_data_folder(&folder);
    let mut server = server_with_grant(
        &folder,
        "[[permissions.mounts]]\nhost = \"../data\"\nguest = \"/data\"\naccess = \"read\"",
    );
    assert_eq!(
        server.text("read_file", json!({"path": "/data/file"})),
        "hello"
    );
    assert_eq!(
        server.text("read_file", json!({"path": "/data/inside"})),
        "hello"
    );
    assert_eq!(
        server.text("list_folder", json!({"path": "/data"})),
        "absolute deep file inside outside up"
    );
    for path in WAYS_OUT {
        let (_, text) = server.failure("read_file", json!({"path": path}));
        assert!(!text.contains("hush"), "{path}: {text}");
    }
    for path in ["/data/file", "/data/new", "/data/outside", "/data/../new"] {
        server.failure("write_file", json!({"path": path, "text": "overwritten"}));
    }
    assert_eq!(
        fs::read_to_string(folder.sibling_path("data/file")).unwrap(),
        "hello"
    );
    assert_eq!(
        fs::read_to_string(folder.sibling_path("secret")).unwrap(),
        "hush"
    );
    assert!(!folder.sibling_path("data/new").exists() && !folder.sibling_path("new").exists());
}

#[test]
fn a_read_write_mount_allows_no_access_outside_of_it() {
    let folder = Folder::new();
    create_data_folder(&folder);
    let mut server = server_with_grant(
        &folder,
        "[[permissions.mounts]]\nhost = \"../data\"\nguest = \"/data\"\naccess = \"read-write\"",
    );
    assert_eq!(
        server.text("write_file", json!({"path": "/data/new", "text": "fresh"})),
        "written"
    );
    assert_eq!(
        fs::read_to_string(folder.sibling_path("data/new")).unwrap(),
        "fresh"
    );
    // The next call, in a new instance, finds the file.
    assert_eq!(
        server.text("read_file", json!({"path": "/data/new"})),
        "fresh"
    );
    for path in WAYS_OUT {
        server.failure("write_file", json!({"path": path, "text": "overwritten"}));
    }
    assert_eq!(
        fs::read_to_string(folder.sibling_path("secret")).unwrap(),
        "hush"
    );
}

#[test]
fn a_missing_mount_fails_the_call_with_a_reason() {
    let folder = Folder::new();
    let grant = "# For now.\n[[permissions.mounts]]\nhost = \"../nowhere\"\nguest = \"/data\"\naccess = \"read\"";
    let mut server = server_with_grant(&folder, grant);
    let (_, text) = server.failure("count", json!({}));
    assert_eq!(
        text,
        "cannot mount the folder ../nowhere at /data: it does not exist (hostile.toml:3)"
    );
    fs::write(folder.sibling_path("nowhere"), "a file").unwrap();
    let (_, text) = server.failure("count", json!({}));
    assert_eq!(
        text,
        "cannot mount the folder ../nowhere at /data: it is not a folder (hostile.toml:3)"
    );
    fs::remove_file(folder.sibling_path("nowhere")).unwrap();
    fs::create_dir(folder.sibling_path("nowhere")).unwrap();
    assert_eq!(server.text("count", json!({})), "1");
}

#[test]
fn standard_output_of_a_guest_never_reaches_the_client() {
    let folder = Folder::with("hostile.wasm", hostile());
    let mut server = StdioServer::start_with_config(&folder, "log = \"toolbay=debug\"");
    for _ in 0..10 {
        // Each line from the server must be a response or a notification.
        assert_eq!(server.text("forge_stdout", json!({})), "done");
    }
    server.log.wait_for("forged");
    let (said, _) = server.stop();
    assert!(
        said.iter()
            .all(|message| !message.to_string().contains("forged")),
        "{said:?}"
    );
}
