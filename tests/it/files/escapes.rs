//! Attempts to leave a mounted folder: none reads or changes anything outside of it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::steps;
use crate::support::{Folder, Server, hostile, text};

/// What nobody may read.
const SECRET: &str = "hush-hush";

const MOUNT: &str = "[[permissions.mounts]]\nhost = \"../data\"\nguest = \"/data\"\naccess = \"read-write\"\n";

/// What a plugin does, in one call, to get out.
const ATTEMPTS: &[(&str, &[&str])] = &[
    ("goes up", &["read /data/../secret", "write /data/../secret x", "append /data/../secret x"]),
    ("goes up twice, from a folder", &["folder /data/a", "read /data/a/../../secret", "write /data/a/../../new x"]),
    ("goes up from a folder that does not exist", &["read /data/none/../../secret", "write /data/none/../../new x"]),
    ("goes up past the root", &["read /data/../../../../../../../../etc/passwd", "list /data/../.."]),
    ("uses no mount", &["read secret", "read ../secret", "write new x", "list .", "list /", "list .."]),
    ("names files of the system", &["read /etc/passwd", "read /proc/self/environ", "read /proc/1/root/etc/passwd"]),
    ("names an absolute path below its own", &["read /data//etc/passwd", "read /data/./../secret"]),
    ("lists what is above", &["list /data/..", "list /data/../", "list /data/../outside", "list /data/../outside/."]),
    ("makes folders above", &["folder /data/../new", "folders /data/../new/deep", "folder /data/../outside/new"]),
    ("removes what is above", &["remove /data/../secret", "remove-all /data/../outside", "remove-folder /data/.."]),
    ("moves files out", &["write /data/a 1", "rename /data/a /data/../new", "rename /data/a /data/../outside/file"]),
    (
        "moves files in",
        &["rename /data/../secret /data/a", "read /data/a", "rename /data/../outside /data/b", "list /data/b"],
    ),
    (
        "moves its own folder",
        &["rename /data /data/a", "rename /data/. /data/../new", "rename /data/../data /data/../new"],
    ),
    (
        "links files in",
        &["link /data/../secret /data/a", "read /data/a", "link /data/absolute /data/b", "read /data/b"],
    ),
    ("links files out", &["write /data/a 1", "link /data/a /data/../new", "link /data/a /data/../outside/new"]),
    ("makes an absolute link", &["symlink /etc/passwd /data/a", "read /data/a", "append /data/a x"]),
    ("makes a link upwards", &["symlink ../secret /data/a", "read /data/a", "write /data/a x", "size /data/a 0"]),
    (
        "makes a link to what does not exist yet",
        &["symlink ../new /data/a", "write /data/a x", "open h /data/a", "put h 10", "folders /data/a/b"],
    ),
    (
        "makes a link to a folder above",
        &["symlink .. /data/a", "read /data/a/secret", "list /data/a", "write /data/a/new x", "remove /data/a/secret"],
    ),
    (
        "makes a chain of links",
        &["symlink b /data/a", "symlink c /data/b", "symlink ../secret /data/c", "read /data/a", "write /data/a x"],
    ),
    (
        "makes links that go up step by step",
        &[
            "folders /data/a/b",
            "symlink .. /data/a/b/up",
            "symlink b/up/.. /data/a/over",
            "read /data/a/over/../secret",
        ],
    ),
    ("makes a link with a trailing slash", &["symlink ../outside/ /data/a", "list /data/a/", "write /data/a/new x"]),
    ("follows links of others", &["read /data/relative", "read /data/absolute", "write /data/absolute x"]),
    (
        "follows folders of others",
        &["list /data/folder", "read /data/folder/file", "write /data/folder/new x", "remove-all /data/folder"],
    ),
    (
        "moves a link of others to where it fits",
        &["folder /data/a", "rename /data/relative /data/a/l", "read /data/a/l"],
    ),
    (
        "replaces through a link",
        &["write /data/a 1", "rename /data/a /data/folder/file", "rename /data/folder/file /data/b", "read /data/b"],
    ),
    ("links through a link", &["link /data/folder/file /data/a", "read /data/a", "write /data/a x"]),
    (
        "follows a link to the process",
        &["read /data/process/environ", "read /data/process/root/etc/passwd", "list /data/process/fd"],
    ),
    ("opens a FIFO", &["read /data/fifo", "append /data/fifo x", "open h /data/fifo"]),
    ("opens a device through a link", &["read /data/device", "append /data/device x"]),
    (
        "moves the folder that a path is in",
        &[
            "folders /data/a/b/c",
            "open h /data/a/b/c/f",
            "rename /data/a/b /data/b",
            "put h 10",
            "read /data/b/c/../../../secret",
        ],
    ),
    (
        "replaces a folder on the way by a link",
        &[
            "folder /data/a",
            "write /data/a/secret 1",
            "rename /data/a /data/b",
            "symlink .. /data/a",
            "read /data/a/secret",
            "write /data/a/secret x",
        ],
    ),
    (
        "uses backslashes and dots",
        &["read /data/..\\secret", "read /data/...", "read /data/..../secret", "read /data/%2e%2e/secret"],
    ),
    ("follows a link to itself", &["symlink a /data/a", "read /data/a", "write /data/a x", "list /data/a/a"]),
];

/// The outside as it must stay: `secret` and the folder `outside`.
fn outside(folder: &Folder) {
    fs::create_dir_all(folder.beside("outside/deep")).unwrap();
    fs::write(folder.beside("secret"), SECRET).unwrap();
    fs::write(folder.beside("outside/file"), SECRET).unwrap();
    fs::write(folder.beside("outside/deep/file"), SECRET).unwrap();
}

/// A new folder `data` with what others put there.
fn inside(folder: &Folder) {
    let data = folder.beside("data");
    if data.exists() {
        for entry in fs::read_dir(&data).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                fs::remove_dir_all(path).unwrap();
            } else {
                fs::remove_file(path).unwrap();
            }
        }
    }
    fs::create_dir_all(&data).unwrap();
    symlink("../secret", data.join("relative")).unwrap();
    symlink(folder.beside("secret"), data.join("absolute")).unwrap();
    symlink("../outside", data.join("folder")).unwrap();
    symlink("/proc/self", data.join("process")).unwrap();
    symlink("/dev/zero", data.join("device")).unwrap();
    assert!(Command::new("mkfifo").arg(data.join("fifo")).status().unwrap().success());
}

/// All that is outside of the mount, by path: with its content if it is a file.
fn everything(root: &Path, at: &Path, all: &mut Vec<String>) {
    for entry in fs::read_dir(at).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().display().to_string();
        if ["data", "home", "plugins"].contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() && !path.is_symlink() {
            all.push(name);
            everything(root, &path, all);
        } else {
            all.push(format!("{name}: {:?}", fs::read(&path).unwrap()));
        }
    }
    all.sort();
}

fn state(folder: &Folder) -> Vec<String> {
    let mut all = Vec::new();
    everything(folder.root(), folder.root(), &mut all);
    assert!(all.iter().any(|line| line.starts_with("secret: ")), "{all:?}");
    all
}

fn server(folder: &Folder, more: &str) -> Server {
    outside(folder);
    inside(folder);
    folder.put("hostile.wasm", hostile());
    folder.put("hostile.toml", format!("{MOUNT}{more}"));
    let mut server = Server::start(folder);
    server.wait_for_tool("file_steps");
    server
}

/// What the file system says when it is not entered.
fn is_refused(said: &str) -> bool {
    !said.contains(SECRET) && !said.contains("root:") && !said.contains("PATH=")
}

fn no_attempt_succeeds(more: &str) {
    let folder = Folder::new();
    let mut server = server(&folder, more);
    let before = state(&folder);
    for (what, attempt) in ATTEMPTS {
        let said = server.text("file_steps", steps(attempt));
        assert_eq!(said.lines().count(), attempt.len(), "a plugin that {what}: {said}");
        assert!(is_refused(&said), "a plugin that {what}: {said}");
        assert_eq!(state(&folder), before, "a plugin that {what}: {said}");
        inside(&folder);
    }
}

#[test]
fn no_attempt_to_leave_a_mounted_folder_succeeds() {
    const { assert!(ATTEMPTS.len() >= 25) };
    no_attempt_succeeds("");
}

#[test]
fn no_attempt_to_leave_a_mounted_folder_with_a_quota_succeeds() {
    no_attempt_succeeds("quota = \"1MiB\"");
}

#[test]
fn names_that_no_file_can_have_lead_nowhere() {
    let folder = Folder::new();
    let mut server = server(&folder, "quota = \"1MiB\"");
    let before = state(&folder);
    let (long, deep) = ("n".repeat(300), "d/".repeat(3000));
    for path in [
        "/data/\0/../../secret".to_owned(),
        "/data/../secret\0".to_owned(),
        format!("/data/{long}"),
        format!("/data/{deep}../secret"),
        format!("/data/{}secret", "../".repeat(2000)),
        String::new(),
        "/data/\u{202e}".to_owned(),
    ] {
        for step in ["read", "list", "remove", "folder"] {
            let said = server.text("file_steps", json!({"steps": [[step, path]]}));
            assert!(is_refused(&said), "{step} {path:?}: {said}");
        }
        let said = server.text("file_steps", json!({"steps": [["write", path, "x"], ["rename", path, "/data/a"]]}));
        assert!(is_refused(&said), "{path:?}: {said}");
        assert_eq!(state(&folder), before, "{path:?}");
    }
}

#[test]
fn a_link_that_takes_turns_with_a_folder_leads_nowhere() {
    let folder = Folder::new();
    let mut server = server(&folder, "");
    let before = state(&folder);
    assert_eq!(server.text("file_steps", steps(&["folder /data/a"])), "ok");
    // One call swaps what is on the way of the others.
    let swapping = server.begin("file_steps", steps(&["swap /data/a ../outside 300"]));
    let hammering: Vec<u64> = ["/data/a/file", "/data/a/new", "/data/a/deep/file"]
        .iter()
        .map(|path| server.begin("file_steps", steps(&[&format!("hammer {path} 300")])))
        .collect();
    for call in hammering {
        let said = text(&server.finish(call));
        assert!(said.starts_with("ok") && is_refused(&said), "{said}");
    }
    server.finish(swapping);
    assert_eq!(state(&folder), before);
}
