//! Skills that change while they are served.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::{Peer, bytes, manifest, matches_digest, skills, uris, write};
use crate::support::{Folder, HttpServer, MODERN, StdioServer};

const CHANGED: &str = "notifications/resources/list_changed";

/// Returns the entry of a skill, if it is served.
fn entry(server: &mut StdioServer, name: &str) -> Option<Value> {
    let answer = server.request_and_wait(
        "skills/get",
        json!({"uri": format!("skill://{name}/SKILL.md")}),
    );
    answer.get("result").map(|result| result["skill"].clone())
}

fn read(server: &mut StdioServer, uri: &str) -> Vec<u8> {
    bytes(&server.result("resources/read", json!({"uri": uri})))
}

/// Returns a file of an entry.
fn file<'a>(entry: &'a Value, uri: &str) -> &'a Value {
    entry["resources"]
        .as_array()
        .unwrap()
        .iter()
        .find(|file| file["uri"] == uri)
        .unwrap()
}

#[test]
fn a_change_is_notified_and_visible_in_the_entry_and_in_the_file() {
    let folder = skills();
    let mut server = StdioServer::start(&folder);
    server.wait_until("the skill is served", |server| {
        entry(server, "pdf").is_some()
    });
    server.result("skills/list", json!({}));
    server.result("resources/list", json!({}));
    server.result("resources/templates/list", json!({}));
    let uri = "skill://pdf/templates/invoice.md";
    server.result("resources/subscribe", json!({"uri": uri}));
    assert_eq!(read(&mut server, uri), b"# Invoice\n");
    let before = entry(&mut server, "pdf").unwrap();
    write(&folder, "pdf.skill/templates/invoice.md", "# Bill\n");
    server.notification(CHANGED);
    assert_eq!(
        server.notification("notifications/resources/updated"),
        json!({"uri": uri})
    );
    let after = entry(&mut server, "pdf").unwrap();
    assert_ne!(before, after);
    let content = read(&mut server, uri);
    assert_eq!(content, b"# Bill\n");
    assert!(matches_digest(file(&after, uri), &content));

    // A file is added, and a file is removed.
    write(&folder, "pdf.skill/new.md", "new");
    let new = json!({"uri": "skill://pdf/new.md"});
    server.wait_until("the file is there", |server| {
        server
            .request_and_wait("resources/read", new.clone())
            .get("result")
            .is_some()
    });
    assert_eq!(read(&mut server, "skill://pdf/new.md"), b"new");
    fs::remove_file(folder.plugin_path("pdf.skill/new.md")).unwrap();
    server.wait_until("the file is gone", |server| {
        server
            .request_and_wait("resources/read", new.clone())
            .get("error")
            .is_some()
    });
    assert_eq!(server.error("resources/read", new)["code"], -32002);

    // The whole skill is removed.
    fs::remove_dir_all(folder.plugin_path("pdf.skill")).unwrap();
    server.wait_until("the skill is gone", |server| entry(server, "pdf").is_none());
    assert_eq!(
        uris(&server.result("skills/list", json!({}))["skills"]),
        ["skill://zip/SKILL.md"]
    );
}

#[test]
fn a_skill_that_becomes_invalid_stays_in_its_last_valid_version() {
    let folder = skills();
    let mut server = StdioServer::start(&folder);
    server.wait_until("the skill is served", |server| {
        entry(server, "pdf").is_some()
    });
    let before = entry(&mut server, "pdf").unwrap();
    write(
        &folder,
        "pdf.skill/templates/invoice.md",
        "# Of the new version\n",
    );
    write(
        &folder,
        "pdf.skill/SKILL.md",
        "---\nname: pdf\ndescription: [\n---\n",
    );
    server.log.wait_for("pdf.skill: SKILL.md:");
    // The new file may have been served for a moment before the manifest was invalid.
    let stays = entry(&mut server, "pdf").unwrap();
    assert_eq!(
        file(&stays, "skill://pdf/SKILL.md"),
        file(&before, "skill://pdf/SKILL.md")
    );
    for file in stays["resources"].as_array().unwrap() {
        let content = read(&mut server, file["uri"].as_str().unwrap());
        assert!(matches_digest(file, &content), "{file}");
    }
    assert!(
        server
            .log
            .text()
            .contains("; its previous version stays in service"),
        "{}",
        server.log.text()
    );
    // Other skills are not affected, and the repaired skill is served.
    assert!(entry(&mut server, "zip").is_some());
    write(&folder, "pdf.skill/SKILL.md", manifest("pdf", "Is mended."));
    let mended = |server: &mut StdioServer| {
        entry(server, "pdf").unwrap()["frontmatter"]["description"] == "Is mended."
    };
    server.wait_until("it is mended", mended);
    assert_eq!(
        read(&mut server, "skill://pdf/templates/invoice.md"),
        b"# Of the new version\n"
    );
}

#[test]
fn a_file_that_is_replaced_by_a_link_is_not_followed() {
    let folder = skills();
    fs::write(folder.sibling_path("secret"), "hush").unwrap();
    let mut server = StdioServer::start(&folder);
    server.wait_until("the skill is served", |server| {
        entry(server, "pdf").is_some()
    });
    let uri = "skill://pdf/templates/invoice.md";
    fs::remove_file(folder.plugin_path("pdf.skill/templates/invoice.md")).unwrap();
    symlink(
        "../../../secret",
        folder.plugin_path("pdf.skill/templates/invoice.md"),
    )
    .unwrap();
    server.wait_until("the file is gone", |server| {
        let answer = server.request_and_wait("resources/read", json!({"uri": uri}));
        if let Some(result) = answer.get("result") {
            assert_eq!(bytes(result), b"# Invoice\n");
        }
        answer.get("error").is_some()
    });
    server.log.wait_for("it is a link that leaves the folder");
    assert_eq!(
        uris(&entry(&mut server, "pdf").unwrap()["resources"]).len(),
        4
    );
}

/// Writes a version of a skill. All of its files contain the version.
fn write_version(folder: &Folder, n: usize) {
    let text = |file: usize| format!("version {n} of file {file}\n");
    for file in 0..20 {
        let path = folder.sibling_path(&format!("next/{file}.md"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text(file)).unwrap();
    }
    fs::write(
        folder.sibling_path("next/SKILL.md"),
        manifest("swap", &format!("Version {n}.")),
    )
    .unwrap();
    if folder.plugin_path("swap.skill").exists() {
        fs::rename(
            folder.plugin_path("swap.skill"),
            folder.sibling_path("last"),
        )
        .unwrap();
    }
    fs::rename(
        folder.sibling_path("next"),
        folder.plugin_path("swap.skill"),
    )
    .unwrap();
    if folder.sibling_path("last").exists() {
        fs::remove_dir_all(folder.sibling_path("last")).unwrap();
    }
}

#[test]
fn entries_and_files_of_different_versions_are_never_mixed() {
    let folder = Folder::new();
    write_version(&folder, 0);
    let server = HttpServer::start_with_config(
        &folder,
        "[rate_limit]\ncalls = 1_000_000\nper = \"1m\"\n[caller_rate_limit]\ncalls = 1_000_000\nper = \"1m\"",
    )
    .wait_until_ready();
    let (over, uri) = (AtomicBool::new(false), "skill://swap/SKILL.md");
    let versions = std::thread::scope(|threads| {
        let swapping = threads.spawn(|| {
            for n in 1.. {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                write_version(&folder, n);
                // Runs as long as a client reads.
                std::thread::yield_now();
            }
        });
        let peer = Peer::new(&server, MODERN);
        let entry = || {
            peer.ask("skills/get", json!({"uri": uri}))
                .response_message()["result"]["skill"]
                .clone()
        };
        let mut seen = Vec::new();
        while seen.len() < 5 {
            let before = entry();
            let Some(files) = before["resources"].as_array() else {
                continue;
            };
            let description = before["frontmatter"]["description"]
                .as_str()
                .unwrap()
                .to_owned();
            let n = description
                .trim_start_matches("Version ")
                .trim_end_matches('.');
            assert_eq!(files.len(), 21);
            for (place, file) in files.iter().enumerate() {
                let read = peer
                    .ask("resources/read", json!({"uri": file["uri"]}))
                    .response_message();
                let name = file["uri"]
                    .as_str()
                    .unwrap()
                    .trim_start_matches("skill://swap/")
                    .trim_end_matches(".md");
                if name != "SKILL" {
                    // The digest belongs to this version, whatever version is served by now.
                    assert!(
                        matches_digest(file, format!("version {n} of file {name}\n").as_bytes()),
                        "{place}: {before}"
                    );
                }
                let fitting = read
                    .get("result")
                    .is_some_and(|result| matches_digest(file, &bytes(result)));
                assert!(fitting || entry() != before, "{file} {read}");
            }
            if seen.last() != Some(&description) {
                seen.push(description);
            }
        }
        over.store(true, Ordering::Relaxed);
        swapping.join().unwrap();
        seen
    });
    assert_eq!(versions.len(), 5);
}
