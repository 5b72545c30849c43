//! Attempts to leave a mounted folder: none reads or changes anything outside the folder.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::steps;
use crate::hostile::escapes;
use crate::support::{Folder, StdioServer, hostile, result_text};

/// The content of a file that no call may read.
const SECRET: &str = "hush-hush";

const MOUNT: &str =
    "[[permissions.mounts]]\nhost = \"../data\"\nguest = \"/data\"\naccess = \"read-write\"\n";

/// Creates the files outside the mount that must not change: `secret` and the folder `outside`.
pub(crate) fn outside(folder: &Folder) {
    fs::create_dir_all(folder.sibling_path("outside/deep")).unwrap();
    fs::write(folder.sibling_path("secret"), SECRET).unwrap();
    fs::write(folder.sibling_path("outside/file"), SECRET).unwrap();
    fs::write(folder.sibling_path("outside/deep/file"), SECRET).unwrap();
}

/// Creates a new folder `data` with links and files that others put there.
pub(crate) fn inside(folder: &Folder) {
    let data = folder.sibling_path("data");
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
    symlink(folder.sibling_path("secret"), data.join("absolute")).unwrap();
    symlink("../outside", data.join("folder")).unwrap();
    symlink("/proc/self", data.join("process")).unwrap();
    symlink("/dev/zero", data.join("device")).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(data.join("fifo"))
            .status()
            .unwrap()
            .success()
    );
}

/// Checks that the outside is unchanged since [`outside`].
pub(crate) fn unchanged(folder: &Folder) {
    let mut all = state(folder);
    all.retain(|line| !line.starts_with("toolbay.toml: "));
    let content = format!("{:?}", SECRET.as_bytes());
    let files =
        ["outside/deep/file", "outside/file", "secret"].map(|name| format!("{name}: {content}"));
    let [deep, file, secret] = files;
    assert_eq!(
        all,
        [
            "outside".to_owned(),
            "outside/deep".to_owned(),
            deep,
            file,
            secret
        ]
    );
}

/// Lists everything outside the mount by path, and files with their content.
fn list_outside(root: &Path, at: &Path, all: &mut Vec<String>) {
    for entry in fs::read_dir(at).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().display().to_string();
        if ["data", "home", "plugins"].contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() && !path.is_symlink() {
            all.push(name);
            list_outside(root, &path, all);
        } else {
            all.push(format!("{name}: {:?}", fs::read(&path).unwrap()));
        }
    }
    all.sort();
}

fn state(folder: &Folder) -> Vec<String> {
    let mut all = Vec::new();
    list_outside(folder.root(), folder.root(), &mut all);
    assert!(
        all.iter().any(|line| line.starts_with("secret: ")),
        "{all:?}"
    );
    all
}

fn server(folder: &Folder, more: &str) -> StdioServer {
    outside(folder);
    inside(folder);
    folder.put("hostile.wasm", hostile());
    folder.put("hostile.toml", format!("{MOUNT}{more}"));
    let mut server = StdioServer::start(folder);
    server.wait_for_tool("file_steps");
    server
}

/// Returns whether the output contains nothing from outside the mount.
pub(crate) fn is_refused(said: &str) -> bool {
    !said.contains(SECRET) && !said.contains("root:") && !said.contains("PATH=")
}

#[test]
fn no_attempt_to_leave_a_mounted_folder_with_a_quota_succeeds() {
    let attempts: Vec<_> = escapes().collect();
    assert!(attempts.len() >= 25);
    let folder = Folder::new();
    let mut server = server(&folder, "quota = \"1MiB\"");
    for (what, arguments) in attempts {
        let said = server.text("file_steps", serde_json::from_str(arguments).unwrap());
        assert!(is_refused(&said), "a plugin that {what}: {said}");
        unchanged(&folder);
        inside(&folder);
    }
}

#[test]
fn invalid_file_names_do_not_resolve() {
    let folder = Folder::new();
    let mut server = server(&folder, "quota = \"1MiB\"");
    let before = state(&folder);
    let long = "n".repeat(300);
    let deep = "d/".repeat(3000);
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
        let said = server.text(
            "file_steps",
            json!({"steps": [["write", path, "x"], ["rename", path, "/data/a"]]}),
        );
        assert!(is_refused(&said), "{path:?}: {said}");
        assert_eq!(state(&folder), before, "{path:?}");
    }
}

#[test]
fn a_link_that_alternates_with_a_folder_does_not_leave_the_mount() {
    let folder = Folder::new();
    let mut server = server(&folder, "");
    let before = state(&folder);
    assert_eq!(server.text("file_steps", steps(&["folder /data/a"])), "ok");
    // One call swaps a component of the path that the other calls use.
    let swapping = server.start_call("file_steps", steps(&["swap /data/a ../outside 300"]));
    let hammering: Vec<u64> = ["/data/a/file", "/data/a/new", "/data/a/deep/file"]
        .iter()
        .map(|path| server.start_call("file_steps", steps(&[&format!("hammer {path} 300")])))
        .collect();
    for call in hammering {
        let said = result_text(&server.finish_call(call));
        assert!(said.starts_with("ok") && is_refused(&said), "{said}");
    }
    server.finish_call(swapping);
    assert_eq!(state(&folder), before);
}
