//! Mounted folders: they are the folders that the operator named when the plugin was loaded, and
//! none of them contains files that configure the server or other plugins.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Folder, StdioServer, TinyComponent, ToolbayCommand, hostile};

/// Returns a grant with a mount of `host` at `/data`, followed by `more`.
fn grant_with_mount(host: &str, access: &str, more: &str) -> String {
    format!(
        "[[permissions.mounts]]\nhost = {host:?}\nguest = \"/data\"\naccess = {access:?}\n{more}\n"
    )
}

/// Returns the status and problems of a plugin, from `toolbay list`.
fn plugin_status(folder: &Folder, id: &str) -> (String, Vec<String>) {
    let outcome = ToolbayCommand::new(folder).args(["list", "--json"]).run();
    let listed: Value = serde_json::from_str(&outcome.raw_stdout)
        .unwrap_or_else(|error| panic!("{error}: {outcome}"));
    let plugin = &listed["plugins"][id];
    let problems = plugin["problems"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let problems = problems
        .iter()
        .map(|problem| problem.as_str().unwrap().to_owned());
    (
        plugin["status"]
            .as_str()
            .unwrap_or_else(|| panic!("{listed}"))
            .to_owned(),
        problems.collect(),
    )
}

/// Checks that a plugin with a mount of `host` is refused because of `what`, and is served with a
/// warning if the mount is marked unsafe.
fn assert_refused_unless_unsafe(folder: &Folder, host: &str, access: &str, what: &str) {
    let verb = if access == "read" { "read" } else { "change" };
    folder.put("hostile.toml", grant_with_mount(host, access, ""));
    let (status, problems) = plugin_status(folder, "hostile");
    let expected = format!(
        "hostile.toml:2: the mount of {host} contains {what}, so the plugin could {verb} it; mount a smaller folder, or \
         add `unsafe = true` to the mount to allow that"
    );
    assert_eq!(
        (status.as_str(), problems.as_slice()),
        ("refused", [expected].as_slice())
    );
    folder.put(
        "hostile.toml",
        grant_with_mount(host, access, "unsafe = true"),
    );
    let (status, problems) = plugin_status(folder, "hostile");
    let expected = format!(
        "hostile.toml:2: the mount of {host} is unsafe: it contains {what}, so the plugin can {verb} it"
    );
    assert_eq!(status, "ready", "{problems:?}");
    assert!(problems.contains(&expected), "{expected}: {problems:?}");
}

#[test]
fn a_link_that_replaces_a_mounted_folder_is_not_followed() {
    let folder = Folder::with("hostile.wasm", hostile());
    for (name, content) in [("data", "hello"), ("elsewhere", "hush")] {
        fs::create_dir(folder.sibling_path(name)).unwrap();
        fs::write(folder.sibling_path(name).join("file"), content).unwrap();
    }
    folder.put("hostile.toml", grant_with_mount("../data", "read", ""));
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("read_file");
    fs::rename(folder.sibling_path("data"), folder.sibling_path("moved")).unwrap();
    symlink("elsewhere", folder.sibling_path("data")).unwrap();
    assert_eq!(
        server.text("read_file", json!({"path": "/data/file"})),
        "hello"
    );
    // A reload opens the folder again, and does not follow the link either.
    folder.put(
        "hostile.toml",
        grant_with_mount("../data", "read", "# again"),
    );
    server
        .log
        .wait_for("the folder ../data at /data: it is reached through a symbolic link");
    let until = "cannot mount the folder ../data at /data: it is reached through a symbolic link; write the path that the \
        link leads to (hostile.toml:2)";
    server.wait_until("the link is refused", |server| {
        let result = server.call("read_file", json!({"path": "/data/file"}));
        let text = result["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert!(!text.contains("hush"), "{text}");
        text == until
    });
}

#[test]
fn a_mounted_folder_that_is_replaced_is_used_after_a_reload() {
    let folder = Folder::with("hostile.wasm", hostile());
    let put = |name: &str, content: &str| {
        fs::create_dir(folder.sibling_path(name)).unwrap();
        fs::write(folder.sibling_path(name).join("file"), content).unwrap();
    };
    put("data", "old");
    folder.put("hostile.toml", grant_with_mount("../data", "read", ""));
    let mut server = StdioServer::start(&folder);
    let file = json!({"path": "/data/file"});
    assert_eq!(server.text("read_file", file.clone()), "old");
    fs::rename(folder.sibling_path("data"), folder.sibling_path("moved")).unwrap();
    put("data", "new");
    assert_eq!(server.text("read_file", file.clone()), "old");
    folder.put("hostile.toml", grant_with_mount("../data", "read", ""));
    server.wait_for_text_with_arguments("read_file", file.clone(), "new", &["old"]);
    // A deleted folder needs no reload.
    fs::remove_dir_all(folder.sibling_path("data")).unwrap();
    put("data", "newer");
    assert_eq!(server.text("read_file", file), "newer");
}

#[test]
fn a_writable_mount_does_not_contain_the_plugin_folder() {
    let folder = Folder::with("hostile.wasm", hostile());
    fs::create_dir(folder.plugin_path("data")).unwrap();
    symlink("plugins", folder.sibling_path("another-name")).unwrap();
    for host in [
        ".",
        "data/..",
        "../plugins",
        folder.plugin_folder().to_str().unwrap(),
    ] {
        assert_refused_unless_unsafe(&folder, host, "read-write", "the plugin folder");
    }
    // A link to the plugin folder is detected as well, although it could not be mounted.
    folder.put(
        "hostile.toml",
        grant_with_mount("../another-name", "read-write", ""),
    );
    assert_eq!(plugin_status(&folder, "hostile").0, "refused");
    for (host, access) in [("data", "read-write"), (".", "read"), ("..", "read")] {
        folder.put("hostile.toml", grant_with_mount(host, access, ""));
        assert_eq!(
            plugin_status(&folder, "hostile"),
            ("ready".to_owned(), vec![]),
            "{host}"
        );
    }
}

#[test]
fn no_mount_contains_the_audit_log() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.write_config("[audit]\nfolder = \"log/own\"\n");
    fs::create_dir_all(folder.sibling_path("log/own")).unwrap();
    for host in ["../log", "../log/own"] {
        assert_refused_unless_unsafe(&folder, host, "read", "the audit log");
        assert_refused_unless_unsafe(&folder, host, "read-write", "the audit log");
    }
}

#[test]
fn after_a_refused_grant_the_previous_version_stays_in_service() {
    let folder = Folder::with("hostile.wasm", hostile());
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("write_file");
    folder.put("hostile.toml", grant_with_mount("..", "read-write", ""));
    server.log.wait_for(
        "refused; the previous version stays in service: hostile.toml:2: the mount of .. contains",
    );
    server.failure(
        "write_file",
        json!({"path": "/data/plugins/hostile.toml", "text": "prefix = \"x\""}),
    );
    assert!(
        !fs::read_to_string(folder.plugin_path("hostile.toml"))
            .unwrap()
            .contains("prefix")
    );
}

#[test]
fn no_mount_contains_the_compile_cache() {
    let folder = Folder::with("hostile.wasm", hostile());
    fs::create_dir_all(folder.sibling_path("state/store")).unwrap();
    folder.write_config("[compile]\ncache_folder = \"state/store\"");
    for host in [
        "../state",
        "../state/store",
        "../state/store/toolbay-compiled",
    ] {
        assert_refused_unless_unsafe(&folder, host, "read-write", "the compile cache");
        assert_refused_unless_unsafe(&folder, host, "read", "the compile cache");
    }
}

#[test]
fn a_writable_mount_does_not_contain_the_program_that_is_notified() {
    let folder = Folder::with("hostile.wasm", hostile());
    for name in ["bin", "scripts"] {
        fs::create_dir(folder.sibling_path(name)).unwrap();
        fs::write(folder.sibling_path(name).join("notify"), "cat").unwrap();
    }
    let path = |name: &str| folder.sibling_path(name).display().to_string();
    for (host, command) in [
        ("../bin", vec![path("bin/notify")]),
        (
            "../scripts",
            vec!["/bin/sh".to_owned(), path("scripts/notify")],
        ),
    ] {
        folder.write_config(&format!(
            "approve = {{ notify = {{ command = {command:?} }} }}"
        ));
        let what = "the program of approve.notify";
        assert_refused_unless_unsafe(&folder, host, "read-write", what);
        folder.put("hostile.toml", grant_with_mount(host, "read", ""));
        assert_eq!(plugin_status(&folder, "hostile").0, "ready");
    }
}

#[test]
fn a_writable_mount_does_not_contain_the_configuration_or_keys() {
    let folder = Folder::with("hostile.wasm", hostile());
    for name in ["etc", "keys"] {
        fs::create_dir(folder.sibling_path(name)).unwrap();
    }
    fs::write(folder.sibling_path("keys/jwks.json"), r#"{"keys": []}"#).unwrap();
    let config = "[http.oauth]\nresource = \"https://example.com/mcp\"\n\
        authorization_servers = [\"https://example.com\"]\njwks = \"keys/jwks.json\"";
    fs::write(folder.sibling_path("etc/toolbay.toml"), config).unwrap();
    // The configuration in use, through a link in a folder that a plugin could write to.
    symlink("etc/toolbay.toml", folder.sibling_path("toolbay.toml")).unwrap();
    assert_refused_unless_unsafe(
        &folder,
        "../etc",
        "read-write",
        "the server's configuration",
    );
    fs::remove_file(folder.sibling_path("toolbay.toml")).unwrap();
    folder.write_config(config);
    assert_refused_unless_unsafe(&folder, "../keys", "read-write", "the keys of http.oauth");
    folder.put("hostile.toml", grant_with_mount("../etc", "read-write", ""));
    assert_eq!(plugin_status(&folder, "hostile").0, "ready");
}

#[test]
fn a_writable_mount_does_not_contain_the_folder_of_a_configuration() {
    // The next start would read a file that the plugin writes there. The plugin folder is
    // elsewhere.
    let folder = Folder::new();
    let elsewhere = Folder::with("hostile.wasm", hostile());
    elsewhere.put(
        "hostile.toml",
        grant_with_mount(folder.root().to_str().unwrap(), "read-write", ""),
    );
    folder.write_config(&format!("plugins = {:?}", elsewhere.plugin_path("")));
    let outcome = ToolbayCommand::new(&folder).args(["list"]).run();
    assert!(
        outcome
            .stdout
            .contains("contains the server's configuration"),
        "{outcome}"
    );
    // If the file does not exist, the next start looks for it around the plugin folder as the
    // operator names it.
    fs::remove_file(folder.sibling_path("toolbay.toml")).unwrap();
    std::os::unix::fs::symlink(elsewhere.plugin_path(""), folder.sibling_path("link")).unwrap();
    let outcome = ToolbayCommand::new(&folder)
        .args(["list", "--plugins", "link"])
        .run();
    assert!(
        outcome.stdout.contains("contains the plugin folder"),
        "{outcome}"
    );
}

#[test]
fn a_writable_mount_does_not_contain_the_folder_of_another_mount() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("other.wasm", TinyComponent::new(&["other"]).build());
    fs::create_dir_all(folder.sibling_path("data/deep")).unwrap();
    folder.put("other.toml", grant_with_mount("../data/deep", "read", ""));
    assert_refused_unless_unsafe(
        &folder,
        "../data",
        "read-write",
        "the mounted folder ../data/deep of plugin \"other\"",
    );
    // The other folder need not exist yet.
    folder.put(
        "other.toml",
        grant_with_mount("../data/not/yet", "read", ""),
    );
    assert_refused_unless_unsafe(
        &folder,
        "../data",
        "read-write",
        "the mounted folder ../data/not/yet of plugin \"other\"",
    );
    // A plugin cannot replace a folder that both plugins mount, or one that the other plugin can
    // only read.
    for (host, access) in [
        ("../data/not/yet", "read-write"),
        ("../data", "read"),
        ("../data/deep", "read-write"),
    ] {
        folder.put("hostile.toml", grant_with_mount(host, access, ""));
        assert_eq!(plugin_status(&folder, "hostile").0, "ready", "{host}");
    }
    let missing =
        "cannot mount the folder ../data/not/yet at /data: it does not exist (other.toml:2)"
            .to_owned();
    assert_eq!(
        plugin_status(&folder, "other"),
        ("ready".to_owned(), vec![missing])
    );
}

#[test]
fn the_writable_one_of_two_nested_mounts_is_refused_in_either_order() {
    let folder = Folder::with("hostile.wasm", hostile());
    folder.put("other.wasm", TinyComponent::new(&["other"]).build());
    fs::create_dir_all(folder.sibling_path("data/deep")).unwrap();
    folder.put(
        "hostile.toml",
        grant_with_mount("../data", "read-write", ""),
    );
    let mut server = StdioServer::start(&folder);
    server.wait_for_tool("write_file");
    server.wait_for_tool("other");
    folder.put("other.toml", grant_with_mount("../data/deep", "read", ""));
    server.wait_until_listed(&["other"]);
    server.log.wait_for("WARN hostile.toml:2: the mount of ../data contains the mounted folder ../data/deep of plugin");
    folder.remove("other.toml");
    server.wait_for_tool("write_file");
}

#[test]
fn a_writable_mount_does_not_contain_the_target_of_a_link_to_a_plugin_file() {
    let folder = Folder::with("hostile.wasm", hostile());
    fs::create_dir(folder.sibling_path("shared")).unwrap();
    fs::write(
        folder.sibling_path("shared/other.wasm"),
        TinyComponent::new(&["other"]).build(),
    )
    .unwrap();
    fs::write(folder.sibling_path("shared/grant"), "").unwrap();
    folder.link("other.wasm", folder.sibling_path("shared/other.wasm"));
    assert_refused_unless_unsafe(
        &folder,
        "../shared",
        "read-write",
        "the target of the link other.wasm",
    );
    folder.remove("other.wasm");
    folder.put("other.wasm", TinyComponent::new(&["other"]).build());
    folder.link("other.toml", Path::new("../shared/grant"));
    assert_refused_unless_unsafe(
        &folder,
        "../shared",
        "read-write",
        "the target of the link other.toml",
    );
}
