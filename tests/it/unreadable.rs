//! Files and folders that the server cannot read. Root can read everything, so the servers here run
//! without that capability.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::json;

use crate::support::{Folder, StdioServer, TinyComponent, ToolbayCommand};

/// Runs a program for which file permissions apply, even if the user is root.
const BOUND: &str = "[ \"$(id -u)\" != 0 ] || set -- setpriv --bounding-set=-dac_override,-dac_read_search \"$@\"; exec \"$@\"";

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Returns the URIs of the listed resources.
fn uris(server: &mut StdioServer) -> Vec<String> {
    let listed = server.result("resources/list", json!({}));
    let uris = listed["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| resource["uri"].as_str().unwrap().to_owned());
    uris.collect()
}

#[test]
fn an_unreadable_folder_affects_only_its_plugin() {
    for mode in [0o444, 0o000, 0o111] {
        let folder = Folder::with("a.wasm", TinyComponent::new(&["a", "b"]).build());
        let files = folder.plugin_path("x.resources");
        fs::create_dir(&files).unwrap();
        fs::write(files.join("a.txt"), "text").unwrap();
        set_mode(&files, mode);
        let command = ToolbayCommand::new(&folder)
            .args(["serve"])
            .with_shell_wrapper(BOUND);
        let mut server = StdioServer::run(command).with_handshake("2025-11-25");
        server.wait_until_listed(&["a", "b"]);
        // Changes to other plugins still apply: a tool is disabled, and a file is deleted.
        folder.put("a.toml", "[tools.b]\ndisabled = true");
        server.wait_until_listed(&["a"]);
        folder.remove("a.wasm");
        folder.put("c.wasm", TinyComponent::new(&["c"]).build());
        server.wait_until_listed(&["c"]);
        assert!(uris(&mut server).is_empty());
        let listed = ToolbayCommand::new(&folder)
            .args(["list"])
            .with_shell_wrapper(BOUND)
            .run();
        assert!(
            listed.stdout.contains("x  ") && listed.stdout.contains("cannot be read"),
            "{mode:o}: {listed}"
        );
        set_mode(&files, 0o755);
        server.wait_until("the file is offered", |server| uris(server).len() == 1);
    }
}

#[test]
fn a_folder_that_becomes_unreadable_does_not_prevent_a_revocation() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a", "b"]).build());
    let files = folder.plugin_path("x.resources");
    fs::create_dir(&files).unwrap();
    fs::write(files.join("a.txt"), "text").unwrap();
    let command = ToolbayCommand::new(&folder)
        .args(["serve"])
        .with_shell_wrapper(BOUND);
    let mut server = StdioServer::run(command).with_handshake("2025-11-25");
    server.wait_until_listed(&["a", "b"]);
    server.wait_until("the file is offered", |server| uris(server).len() == 1);
    set_mode(&files, 0o444);
    folder.put("a.toml", "[tools.b]\ndisabled = true");
    server.wait_until_listed(&["a"]);
    folder.remove("a.wasm");
    server.wait_until_listed(&[]);
    set_mode(&files, 0o755);
}

#[test]
fn every_command_fails_if_the_plugin_folder_is_unreadable() {
    let folder = Folder::with("a.wasm", TinyComponent::new(&["a"]).build());
    let plugins = folder.plugin_path("a.wasm").parent().unwrap().to_owned();
    for mode in [0o000, 0o311, 0o444] {
        set_mode(&plugins, mode);
        for args in [&["serve"][..], &["list"], &["call", "a"], &["compile"]] {
            let ended = ToolbayCommand::new(&folder)
                .args(args)
                .with_shell_wrapper(BOUND)
                .run();
            let said = ended.stderr.contains("the plugin folder ")
                && ended.stderr.contains(" cannot be read as user ");
            assert!(ended.code == 64 && said, "{mode:o} {args:?}: {ended}");
        }
    }
    set_mode(&plugins, 0o755);
}
