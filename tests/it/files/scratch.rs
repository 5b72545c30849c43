//! Temporary folders of calls.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{FULL, run_steps, steps};
use crate::support::{Folder, StdioServer, hostile};

/// Returns a folder with the plugin, a temporary folder for its calls, and the server's folder for
/// these.
fn with_scratch(more: &str) -> Folder {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.write_config("[server]\nscratch = \"scratch\"");
    folder.put("hostile.toml", format!("[permissions.scratch]\n{more}\n"));
    folder
}

/// Returns the folders of running calls, and of calls that a server has left behind.
fn scratch_folders(folder: &Folder) -> Vec<PathBuf> {
    let within = |folder: &Path| {
        fs::read_dir(folder)
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
    };
    let user = within(&folder.sibling_path("scratch"));
    user.flat_map(|user| within(&user).collect::<Vec<_>>())
        .flat_map(|server| within(&server).collect::<Vec<_>>())
        .collect()
}

#[test]
fn there_is_no_temporary_folder_without_a_grant() {
    let folder = with_scratch("");
    folder.put("hostile.toml", "");
    let mut server = StdioServer::start(&folder);
    server.failure("write_file", json!({"path": "/tmp/a", "text": "x"}));
    // A confined server reserves a folder for later grants.
    let within = |folder: &Path| {
        fs::read_dir(folder)
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
    };
    let users: Vec<PathBuf> = within(&folder.sibling_path("scratch")).collect();
    assert!(
        users.len() <= 1 && users.iter().all(|user| within(user).count() == 0),
        "{users:?}"
    );
}

#[test]
fn a_temporary_folder_is_empty_at_the_start_and_removed_at_the_end() {
    let folder = with_scratch("");
    let mut server = StdioServer::start(&folder);
    for _ in 0..2 {
        run_steps(
            &mut server,
            &[
                ("list /tmp", ""),
                ("folders /tmp/a/b", "ok"),
                ("write /tmp/a/b/c 123", "ok"),
                ("read /tmp/a/b/c", "123"),
            ],
        );
        assert_eq!(scratch_folders(&folder), Vec::<PathBuf>::new());
    }
    // However the call ends.
    server.failure("panic", json!({}));
    assert_eq!(scratch_folders(&folder), Vec::<PathBuf>::new());
    // A tree that is deeper than the number of folders that a call can open.
    run_steps(&mut server, &[("nest /tmp/a 900", "ok")]);
    // The response does not wait indefinitely for the removal.
    server.wait_until("it is removed", |_| scratch_folders(&folder).is_empty());
}

#[test]
fn the_grant_sets_the_path_and_size_of_a_temporary_folder() {
    let mut server = StdioServer::start(&with_scratch(
        "guest = \"/work\"\nsize = \"10KiB\"\nentries = 2",
    ));
    run_steps(
        &mut server,
        &[
            ("fill /work/a 10240", "ok"),
            ("append /work/a x", FULL),
            ("folder /work/b", "ok"),
            ("folder /work/c", FULL),
            ("remove /work/a", "ok"),
            ("fill /work/c 10240", "ok"),
        ],
    );
    let text = "x".repeat(10241);
    let (kind, said) = server.failure("write_file", json!({"path": "/work/a", "text": text}));
    let expected = "The tool needed more than 10.0 KiB in its temporary folder (to allow more, raise \
        permissions.scratch.size).";
    assert_eq!((kind.as_str(), said.as_str()), ("limit", expected));
}

#[test]
fn a_temporary_folder_without_keys_has_the_defaults() {
    let mut server = StdioServer::start(&with_scratch(""));
    run_steps(
        &mut server,
        &[("size /tmp/a 67108864", "ok"), ("append /tmp/a x", FULL)],
    );
    let folders: Vec<String> = (0..=1000).map(|n| format!("folder /tmp/{n}")).collect();
    let expected: Vec<(&str, &str)> = folders
        .iter()
        .enumerate()
        .map(|(n, step)| (step.as_str(), if n < 1000 { "ok" } else { FULL }))
        .collect();
    run_steps(&mut server, &expected);
}

#[test]
fn a_call_does_not_see_the_temporary_folder_of_another() {
    let folder = with_scratch("");
    folder.put(
        "hostile.toml",
        format!("[permissions.scratch]\n{}", folder.create_gate()),
    );
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("wait_for_gate");
    let waiting = server.start_call_with_progress("wait_for_gate", json!({}));
    server.notification("notifications/progress");
    assert_eq!(scratch_folders(&folder).len(), 1);
    run_steps(&mut server, &[("list /tmp", ""), ("write /tmp/a 1", "ok")]);
    folder.open_gate();
    server.finish_call(waiting);
    assert_eq!(scratch_folders(&folder), Vec::<PathBuf>::new());
}

#[test]
fn temporary_folders_of_a_killed_server_are_removed_by_the_next() {
    let folder = with_scratch("");
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("sleep_hour");
    server.start_call_with_progress("sleep_hour", json!({}));
    server.notification("notifications/progress");
    let [call] = scratch_folders(&folder).try_into().unwrap();
    fs::write(call.join("file"), "x").unwrap();
    server.kill();
    assert!(call.join("file").exists());
    let mut server = StdioServer::start(&folder);
    server.wait_until("it is removed", |_| !call.exists());
    // A running server keeps its folders.
    server.start_call_with_progress("sleep_hour", json!({}));
    server.notification("notifications/progress");
    let running = scratch_folders(&folder);
    let mut other = StdioServer::start(&folder);
    assert_eq!(other.text("file_steps", steps(&["list /tmp"])), "");
    assert_eq!(scratch_folders(&folder), running);
    server.kill();
}

#[test]
fn no_mount_contains_temporary_folders() {
    let folder = with_scratch("");
    fs::create_dir(folder.sibling_path("scratch")).unwrap();
    let mount =
        "[[permissions.mounts]]\nhost = \"../scratch\"\nguest = \"/data\"\naccess = \"read\"";
    folder.put("hostile.toml", mount);
    let server = StdioServer::spawn(&folder).with_handshake("2025-11-25");
    server.log.wait_for("the mount of ../scratch contains the temporary folders of calls, so the plugin could read it");
}
