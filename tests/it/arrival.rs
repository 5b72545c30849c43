//! How files are added, changed and deleted in practice. In every case, no tool is half visible,
//! and no working tool is lost.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Folder, LIST_CHANGED, StdioServer, TinyComponent};

fn tiny(answer: &str) -> Vec<u8> {
    TinyComponent::new(&["a"]).with_text(answer).build()
}

/// Starts a server that logs when it finds an incomplete file.
fn start_with_debug_log(folder: &Folder) -> StdioServer {
    StdioServer::start_with_config(folder, "log = \"toolbay=debug\"")
}

/// Returns the pieces of a file that is copied slowly. None of them is a complete component.
fn pieces(component: &[u8]) -> Vec<&[u8]> {
    component.chunks(component.len() / 7 + 1).collect()
}

const INCOMPLETE: &str = "incomplete; probably still being written";

#[test]
fn a_file_that_is_copied_slowly_is_listed_when_it_is_complete() {
    let folder = Folder::new();
    let mut server = start_with_debug_log(&folder);
    server.wait_until_listed(&[]);
    let component = tiny("whole");
    let pieces = pieces(&component);
    let mut file = File::create(folder.plugin_path("a.wasm")).unwrap();
    for (n, piece) in pieces.iter().enumerate() {
        file.write_all(piece).unwrap();
        if n + 1 < pieces.len() {
            // The server has read the file and found it incomplete.
            server.log.wait_for_count(INCOMPLETE, n + 1);
            assert!(server.tool_names().is_empty(), "after piece {n}");
        }
    }
    drop(file);
    assert_eq!(server.wait_until_listed(&["a"]), 1);
    assert_eq!(server.text("a", json!({})), "whole");
    let log = server.log.text();
    assert!(!log.contains("refused"), "{log}");
}

#[test]
fn a_file_that_is_overwritten_slowly_keeps_the_previous_version_until_it_is_complete() {
    let folder = Folder::with("a.wasm", tiny("one"));
    let mut server = start_with_debug_log(&folder);
    server.wait_until_listed(&["a"]);
    let component = tiny("two");
    let pieces = pieces(&component);
    let mut file = OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(folder.plugin_path("a.wasm"))
        .unwrap();
    for (n, piece) in pieces.iter().enumerate() {
        file.write_all(piece).unwrap();
        if n + 1 < pieces.len() {
            server.log.wait_for_count(INCOMPLETE, n + 1);
            assert_eq!(server.text("a", json!({})), "one", "after piece {n}");
        }
    }
    drop(file);
    server.wait_for_text("a", "two", &["one"]);
    folder.put("b.wasm", TinyComponent::new(&["b"]).build());
    assert_eq!(
        server.wait_until_listed(&["a", "b"]),
        1,
        "the list changed by b alone"
    );
}

#[test]
fn a_file_that_is_renamed_into_the_folder_is_listed() {
    let folder = Folder::new();
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&[]);
    // In the same folder, as rsync does, and with a name that is not a plugin's.
    fs::write(folder.plugin_path(".a.wasm.Xy12"), tiny("renamed")).unwrap();
    fs::rename(
        folder.plugin_path(".a.wasm.Xy12"),
        folder.plugin_path("a.wasm"),
    )
    .unwrap();
    assert_eq!(server.wait_until_listed(&["a"]), 1);
    assert_eq!(server.text("a", json!({})), "renamed");
}

#[test]
fn a_new_version_is_loaded_however_it_arrives() {
    let folder = Folder::with("a.wasm", tiny("0"));
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["a"]);

    // `cp` over the file.
    folder.overwrite("a.wasm", tiny("1"));
    server.wait_for_text("a", "1", &["0"]);
    // `mv` over the file.
    let staged = folder.stage("new", tiny("2"));
    fs::rename(staged, folder.plugin_path("a.wasm")).unwrap();
    server.wait_for_text("a", "2", &["1"]);
    // Deleted and immediately recreated.
    folder.remove("a.wasm");
    folder.put("a.wasm", tiny("3"));
    server.wait_for_text("a", "3", &["2"]);
    // With the same modification time and length as before.
    let before = fs::metadata(folder.plugin_path("a.wasm")).unwrap();
    let staged = folder.stage("new", tiny("4"));
    File::options()
        .write(true)
        .open(&staged)
        .unwrap()
        .set_modified(before.modified().unwrap())
        .unwrap();
    assert_eq!(fs::metadata(&staged).unwrap().len(), before.len());
    fs::rename(staged, folder.plugin_path("a.wasm")).unwrap();
    server.wait_for_text("a", "4", &["3"]);
    // As some editors do: move the old file aside and write a new one.
    fs::rename(folder.plugin_path("a.wasm"), folder.plugin_path("a.wasm~")).unwrap();
    folder.overwrite("a.wasm", tiny("5"));
    server.wait_for_text("a", "5", &["4"]);

    folder.put("b.wasm", TinyComponent::new(&["b"]).build());
    assert_eq!(
        server.wait_until_listed(&["a", "b"]),
        1,
        "the list changed by b alone"
    );
}

#[test]
fn a_link_that_is_swapped_like_a_kubernetes_volume_is_followed() {
    let folder = Folder::new();
    for (version, answer) in [("..v1", "one"), ("..v2", "two")] {
        fs::create_dir(folder.plugin_path(version)).unwrap();
        fs::write(folder.plugin_path(version).join("a.wasm"), tiny(answer)).unwrap();
    }
    folder.link("..data", "..v1");
    folder.link("a.wasm", "..data/a.wasm");
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["a"]);
    assert_eq!(server.text("a", json!({})), "one");
    folder.link("..data", "..v2");
    server.wait_for_text("a", "two", &["one"]);
    folder.put("b.wasm", TinyComponent::new(&["b"]).build());
    assert_eq!(
        server.wait_until_listed(&["a", "b"]),
        1,
        "the list changed by b alone"
    );
}

#[test]
fn a_link_to_a_file_outside_the_folder_follows_its_changes() {
    let folder = Folder::new();
    fs::write(folder.sibling_path("elsewhere"), tiny("one")).unwrap();
    folder.link("a.wasm", folder.sibling_path("elsewhere"));
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["a"]);
    // This change causes no event: the server scans the folder periodically.
    fs::write(folder.sibling_path("elsewhere"), tiny("two")).unwrap();
    server.wait_for_text("a", "two", &["one"]);
    fs::remove_file(folder.sibling_path("elsewhere")).unwrap();
    server.wait_until_listed(&[]);
}

#[test]
fn deleting_a_file_removes_its_tools() {
    let folder = Folder::with("a.wasm", tiny("a"));
    folder.put("b.wasm", TinyComponent::new(&["b"]).build());
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["a", "b"]);
    folder.remove("a.wasm");
    assert_eq!(server.wait_until_listed(&["b"]), 1);
    assert_eq!(
        server.error("tools/call", json!({"name": "a"}))["message"],
        "Unknown tool: a"
    );
    folder.put("a.wasm", tiny("again"));
    assert_eq!(server.wait_until_listed(&["a", "b"]), 1);
    assert_eq!(server.text("a", json!({})), "again");
}

#[test]
fn a_renamed_file_keeps_its_tools() {
    let folder = Folder::with("a.wasm", tiny("same"));
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["a"]);
    fs::rename(folder.plugin_path("a.wasm"), folder.plugin_path("z.wasm")).unwrap();
    folder.put("z.toml", "prefix = \"z\"");
    server.wait_until_listed(&["z_a"]);
    assert_eq!(server.text("z_a", json!({})), "same");
}

#[test]
fn the_folder_can_be_removed_and_recreated() {
    let folder = Folder::with("a.wasm", tiny("one"));
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["a"]);
    for _ in 0..2 {
        fs::rename(folder.plugin_folder(), folder.sibling_path("away")).unwrap();
        server.wait_until_listed(&[]);
        fs::rename(folder.sibling_path("away"), folder.plugin_folder()).unwrap();
        server.wait_until_listed(&["a"]);
    }
    for said in [
        "WARN the plugin folder plugins no longer exists",
        "INFO the plugin folder plugins is back",
    ] {
        server.log.wait_for_count(said, 2);
        let log = server.log.text();
        assert_eq!(log.matches(said).count(), 2, "{said}: {log}");
    }
    assert_eq!(server.text("a", json!({})), "one");
    // The new folder is watched as before.
    folder.put("b.wasm", TinyComponent::new(&["b"]).build());
    assert_eq!(server.wait_until_listed(&["a", "b"]), 1);
}

#[test]
fn the_folder_can_be_replaced() {
    let folder = Folder::with("a.wasm", tiny("one"));
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["a"]);
    fs::create_dir(folder.sibling_path("other")).unwrap();
    fs::write(
        folder.sibling_path("other/b.wasm"),
        TinyComponent::new(&["b"]).build(),
    )
    .unwrap();
    fs::rename(folder.plugin_folder(), folder.sibling_path("old")).unwrap();
    fs::rename(folder.sibling_path("other"), folder.plugin_folder()).unwrap();
    server.wait_until_listed(&["b"]);
    folder.put("c.wasm", TinyComponent::new(&["c"]).build());
    server.wait_until_listed(&["b", "c"]);
}

#[test]
fn two_hundred_files_at_once_cause_one_notification() {
    let folder = Folder::new();
    let names: Vec<String> = (0..200).map(|n| format!("tool-{n:03}")).collect();
    for name in &names {
        folder.stage(&format!("{name}.wasm"), TinyComponent::new(&[name]).build());
    }
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&[]);
    for name in &names {
        fs::rename(
            folder.sibling_path(&format!("staged-{name}.wasm")),
            folder.plugin_path(&format!("{name}.wasm")),
        )
        .unwrap();
    }
    server.notification(LIST_CHANGED);
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    server.wait_until_listed(&names);
    folder.put("z.wasm", TinyComponent::new(&["z"]).build());
    names.push("z");
    assert_eq!(
        server.wait_until_listed(&names),
        1,
        "z alone is news after the two hundred"
    );
    assert_eq!(server.text("tool-150", json!({})), "fine");
}

#[test]
fn files_that_are_not_plugins_are_ignored() {
    let folder = Folder::new();
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&[]);
    for name in [
        ".a.wasm",
        "a.wasm~",
        "a.wasm.tmp",
        "a.wasm.part",
        ".a.wasm.swp",
        "4913",
        "a.toml",
        "README.md",
    ] {
        folder.put(name, tiny("none"));
    }
    fs::create_dir(folder.plugin_path("folder.wasm")).unwrap();
    folder.link("broken.wasm", "nowhere");
    folder.put("b.wasm", TinyComponent::new(&["b"]).build());
    assert_eq!(server.wait_until_listed(&["b"]), 1);
    let noted = [
        "WARN not a plugin: a.toml: it is a grant, but there is no a.wasm",
        "WARN not a plugin: folder.wasm: it is a folder",
        "WARN not a plugin: broken.wasm: it is a link to nowhere, which does not exist",
    ];
    for note in noted {
        server.log.wait_for(note);
    }
    let log = server.log.text();
    assert!(!log.contains("refused"), "{log}");
    for note in noted {
        assert_eq!(log.matches(note).count(), 1, "{note}: {log}");
    }
    assert_eq!(
        log.matches("WARN not a plugin: ").count(),
        noted.len(),
        "{log}"
    );
}

#[test]
fn identical_files_are_separate_plugins() {
    let folder = Folder::with("a.wasm", tiny("same"));
    folder.put("b.wasm", tiny("same"));
    folder.put("b.toml", "prefix = \"b\"");
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["a", "b_a"]);
    folder.remove("a.wasm");
    server.wait_until_listed(&["b_a"]);
    assert_eq!(server.text("b_a", json!({})), "same");
}

#[test]
fn many_saves_cause_one_notification_at_once_and_then_one_per_second() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["t"]).build());
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["t"]);
    let began = Instant::now();
    for n in 0..20 {
        let name = format!("t{n}");
        folder.put("a.wasm", TinyComponent::new(&[&name]).build());
        // Each version is served as soon as its file exists.
        while server.tool_names() != [name.as_str()] {}
    }
    let told = server.take_notifications(LIST_CHANGED).len() as u64;
    let seconds = began.elapsed().as_secs();
    assert!(
        (1..=seconds + 2).contains(&told),
        "{told} notifications in {seconds} seconds"
    );
    folder.put("a.wasm", TinyComponent::new(&["last"]).build());
    while server.tool_names() != ["last"] {}
    server.notification(LIST_CHANGED);
}

#[test]
fn a_file_that_is_written_in_place_with_an_older_time_is_read() {
    let folder = Folder::with("a.wasm", tiny("one"));
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["a"]);
    assert_eq!(server.text("a", json!({})), "one");
    let hour = Duration::from_hours(1);
    let first = fs::metadata(folder.plugin_path("a.wasm"))
        .unwrap()
        .modified()
        .unwrap();
    // As `rsync --inplace` does it, then with a clock that was set back, and then with the
    // modification time of the previous version.
    for (answer, modified) in [
        ("two", first - hour),
        ("six", first - 2 * hour),
        ("ten", first - 2 * hour),
    ] {
        let component = tiny(answer);
        let mut file = OpenOptions::new()
            .write(true)
            .open(folder.plugin_path("a.wasm"))
            .unwrap();
        for piece in pieces(&component) {
            file.write_all(piece).unwrap();
        }
        file.set_len(component.len() as u64).unwrap();
        file.set_modified(modified).unwrap();
        drop(file);
        while server.text("a", json!({})) != answer {}
    }
}

#[test]
fn the_last_of_two_quick_edits_of_a_grant_applies() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a", "b"]).build());
    folder.put("a.toml", "[tools.b]\ndisabled = false\n");
    let mut server = StdioServer::start(&folder);
    server.wait_until_listed(&["a", "b"]);
    let sed = |script: &str| {
        let status = Command::new("sed")
            .arg("-i")
            .arg(script)
            .arg(folder.plugin_path("a.toml"))
            .status()
            .unwrap();
        assert!(status.success());
    };
    for (first, second, listed) in [
        ("s/false/true/", "s/true/true/", &["a"][..]),
        ("s/true/maybe/", "s/maybe/false/", &["a", "b"]),
    ] {
        sed(first);
        sed(second);
        server.wait_until_listed(listed);
    }
    assert_eq!(server.text("b", json!({})), "fine");
}
