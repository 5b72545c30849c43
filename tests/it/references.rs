//! Plugins from registries: `add`, `remove`, `update`, `outdated`, `sync`, `serve --sync` and
//! `publish`, against a registry of the test.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolbay_testkit::revision::NEWEST_SESSION_REVISION;
use toolbay_testkit::{FakeAnswer, FakeRegistry};

use crate::support::{CommandOutput, Folder, StdioServer, TinyComponent, ToolbayCommand};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const PLUGINS_FILE: &str = "toolbay.plugins.toml";

fn run(folder: &Folder, args: &[&str]) -> CommandOutput {
    ToolbayCommand::new(folder).args(args).run()
}

/// Runs a command that must succeed.
fn done(folder: &Folder, args: &[&str]) -> CommandOutput {
    let outcome = run(folder, args);
    assert_eq!(outcome.code, 0, "{outcome}");
    outcome
}

fn component(text: &str) -> Vec<u8> {
    TinyComponent::new(&["forecast"]).with_text(text).build()
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// Puts a component into a registry, under a tag. Returns the digest of its manifest.
fn push(registry: &FakeRegistry, name: &str, tag: &str, component: &[u8]) -> String {
    let blob = digest(component);
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": "application/vnd.wasm.config.v0+json", "digest": digest(b"{}"), "size": 2},
        "layers": [{"mediaType": "application/wasm", "digest": blob, "size": component.len()}],
    })
    .to_string();
    let manifest_digest = digest(manifest.as_bytes());
    for reference in [tag, &manifest_digest] {
        let answer = FakeAnswer::ok(&manifest).with_header("Content-Type", MANIFEST);
        let path = format!("GET /v2/acme/{name}/manifests/{reference}");
        registry.answer(&path, vec![answer]);
    }
    let path = format!("GET /v2/acme/{name}/blobs/{blob}");
    registry.answer(&path, vec![FakeAnswer::ok(component)]);
    manifest_digest
}

fn reference(registry: &FakeRegistry, name: &str) -> String {
    format!("oci+http://{}/acme/{name}:1", registry.address())
}

fn plugins(folder: &Folder) -> PathBuf {
    folder.plugin_path("x").parent().unwrap().to_owned()
}

/// Returns the names and contents of the files in a folder.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap();
    entries
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap_or_default())
        })
        .collect()
}

fn plugins_file(folder: &Folder) -> String {
    fs::read_to_string(folder.plugin_path(PLUGINS_FILE)).unwrap()
}

/// Starts a server with arguments.
fn start(folder: &Folder, args: &[&str]) -> StdioServer {
    let command = ToolbayCommand::new(folder).args(["serve"]).args(args);
    StdioServer::run(command).with_handshake(NEWEST_SESSION_REVISION)
}

#[test]
fn a_plugin_of_a_registry_is_added_pinned_and_served_without_a_grant() {
    let registry = FakeRegistry::start().unwrap();
    let manifest = push(&registry, "weather", "1", &component("sun"));
    let folder = Folder::new();
    let reference = reference(&registry, "weather");
    let added = done(&folder, &["add", &reference, "--yes"]);
    for expected in [
        format!("{reference}\n    manifest  {manifest}\n    sha256    "),
        "    forecast\n".to_owned(),
        "added weather to ".to_owned(),
    ] {
        assert!(added.raw_stdout.contains(&expected), "{expected}: {added}");
    }
    let text = plugins_file(&folder);
    let table = format!(
        "[plugin.weather]\nreference = \"{reference}\"\nresolved = \"{reference}@{manifest}\"\nfiles = \"sha256:"
    );
    assert!(text.contains(&table), "{text}");
    let names: Vec<String> = contents(&plugins(&folder)).into_keys().collect();
    assert_eq!(names, [PLUGINS_FILE, "weather.wasm"]);
    // The file is no plugin and no grant.
    let listed = done(&folder, &["list"]);
    assert!(!listed.stdout.contains(PLUGINS_FILE), "{listed}");
    assert!(!listed.stderr.contains(PLUGINS_FILE), "{listed}");
    let called = done(&folder, &["call", "forecast"]);
    assert_eq!(called.stdout.trim(), "sun");
    // A plugin of a file has no entry, and replaces the one that had one.
    let file = folder.sibling_path("weather.wasm");
    fs::write(&file, component("rain")).unwrap();
    done(
        &folder,
        &["add", file.to_str().unwrap(), "--yes", "--replace"],
    );
    assert!(!plugins_file(&folder).contains("weather\""));
}

#[test]
fn an_error_of_the_registry_leaves_the_folder_as_it_was() {
    let registry = FakeRegistry::start().unwrap();
    let manifest = push(&registry, "weather", "1", &component("sun"));
    let folder = Folder::new();
    folder.put("other.wasm", component("other"));
    let before = contents(&plugins(&folder));
    let zeros = "0".repeat(64);
    for (name, expected) in [
        ("missing:1".to_owned(), "does not exist in the registry"),
        (
            format!("weather@sha256:{zeros}"),
            "does not exist in the registry",
        ),
        ("Weather".to_owned(), "is not a reference such as oci://"),
    ] {
        let reference = format!("oci+http://{}/acme/{name}", registry.address());
        let refused = run(&folder, &["add", &reference, "--yes"]);
        assert!(refused.code != 0, "{refused}");
        assert!(refused.stderr.contains(expected), "{expected}: {refused}");
        assert_eq!(contents(&plugins(&folder)), before);
    }
    // What the registry calls a component is not one.
    push(&registry, "text", "1", b"\0asm text");
    let refused = run(&folder, &["add", &reference(&registry, "text"), "--yes"]);
    assert!(
        refused.stderr.contains("is not a valid plugin"),
        "{refused}"
    );
    push(&registry, "tar", "1", b"text");
    let refused = run(&folder, &["add", &reference(&registry, "tar"), "--yes"]);
    assert!(refused.stderr.contains("was not added"), "{refused}");
    assert_eq!(contents(&plugins(&folder)), before);
    // By digest, it is fixed.
    let pinned = format!("oci+http://{}/acme/weather@{manifest}", registry.address());
    done(&folder, &["add", &pinned, "--yes"]);
    let outdated = done(&folder, &["outdated"]);
    assert!(outdated.stdout.contains("states its digest"), "{outdated}");
}

#[test]
fn a_moved_tag_is_shown_and_changes_nothing_until_an_update() {
    let registry = FakeRegistry::start().unwrap();
    let first = push(&registry, "weather", "1", &component("sun"));
    let folder = Folder::new();
    let reference = reference(&registry, "weather");
    done(&folder, &["add", &reference, "--yes"]);
    folder.put("weather.toml", "permissions.environment = [\"HOME\"]");
    let current = done(&folder, &["outdated"]);
    assert!(current.stdout.ends_with(" is up to date\n"), "{current}");
    let second = push(&registry, "weather", "1", &component("rain"));
    let before = contents(&plugins(&folder));
    let outdated = run(&folder, &["outdated"]);
    let expected = format!(
        "weather: {reference} names another version\n    pinned    {first}\n    now       {second}\n"
    );
    assert_eq!(
        (outdated.code, &outdated.raw_stdout),
        (1, &expected),
        "{outdated}"
    );
    let outdated = run(&folder, &["outdated", "--json"]);
    let shown: Value = serde_json::from_str(&outdated.raw_stdout).unwrap();
    assert_eq!(
        shown["plugins"]["weather"],
        json!({"reference": reference, "pinned": first, "state": "moved", "now": second})
    );
    let shown = done(&folder, &["update", "--dry-run"]);
    assert!(shown.raw_stdout.starts_with(&expected), "{shown}");
    assert!(shown.stdout.contains("Replaces weather.wasm: "), "{shown}");
    // A sync keeps the pin, too.
    done(&folder, &["sync"]);
    let nobody = run(&folder, &["update"]);
    assert!(nobody.stderr.contains("add --yes"), "{nobody}");
    assert_eq!(contents(&plugins(&folder)), before);
    let updated = done(&folder, &["update", "weather", "--yes"]);
    assert!(updated.stdout.ends_with("updated weather\n"), "{updated}");
    assert!(plugins_file(&folder).contains(&second));
    let after = contents(&plugins(&folder));
    assert_eq!(after["weather.toml"], before["weather.toml"]);
    assert_eq!(after["weather.wasm"], component("rain"));
    let unknown = run(&folder, &["update", "wether", "--yes"]);
    assert!(unknown.stderr.contains("weather"), "{unknown}");
}

#[test]
fn a_plugin_is_removed_and_its_grant_only_on_request() {
    let registry = FakeRegistry::start().unwrap();
    push(&registry, "weather", "1", &component("sun"));
    let folder = Folder::new();
    let reference = reference(&registry, "weather");
    done(&folder, &["add", &reference, "--yes"]);
    folder.put("weather.toml", "permissions.environment = [\"HOME\"]");
    folder.put("other.wasm", component("other"));
    let nobody = run(&folder, &["remove", "weather"]);
    assert!(nobody.stderr.contains("nothing was removed"), "{nobody}");
    assert!(folder.plugin_path("weather.wasm").exists());
    let removed = done(&folder, &["remove", "weather", "--yes"]);
    assert_eq!(
        removed.stdout,
        "! removes weather.wasm\n! removes its entry in toolbay.plugins.toml\nremoved weather\nweather.toml stays: it applies to the next plugin of this name. To remove it, too, use --grant\n"
    );
    let names: Vec<String> = contents(&plugins(&folder)).into_keys().collect();
    assert_eq!(names, ["other.wasm", PLUGINS_FILE, "weather.toml"]);
    let gone = run(&folder, &["remove", "weather", "--yes"]);
    assert!(gone.stderr.contains("there is no plugin weather"), "{gone}");
    done(&folder, &["remove", "weather", "--yes", "--grant"]);
    assert!(!folder.plugin_path("weather.toml").exists());
    for name in ["../other", "toolbay", "other.wasm"] {
        let refused = run(&folder, &["remove", name, "--yes", "--grant"]);
        assert_eq!(refused.code, 1, "{refused}");
    }
    assert!(folder.plugin_path("other.wasm").exists());
}

/// Writes a file with the references of plugins, without pins.
fn write_references(folder: &Folder, registry: &FakeRegistry, names: &[String]) {
    let mut text = "version = 1\n".to_owned();
    for name in names {
        let _ = writeln!(
            text,
            "[plugin.{name}]\nreference = \"{}\"",
            reference(registry, name)
        );
    }
    folder.put(PLUGINS_FILE, text);
}

#[test]
fn twenty_plugins_are_synced_and_served_again_without_a_network() {
    let registry = FakeRegistry::start().unwrap();
    let names: Vec<String> = (10..30).map(|number| format!("p{number}")).collect();
    for name in &names {
        let tools = TinyComponent::new(&[&format!("tool-{name}")]);
        push(&registry, name, "1", &tools.build());
    }
    let folder = Folder::new();
    write_references(&folder, &registry, &names);
    let tools: Vec<String> = names.iter().map(|name| format!("tool-{name}")).collect();
    let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
    let mut server = start(&folder, &["--sync"]);
    server.wait_until_listed(&tools);
    drop(server);
    let pinned = plugins_file(&folder);
    assert_eq!(pinned.matches("resolved = ").count(), 20, "{pinned}");
    // The registry has nothing any more.
    for name in &names {
        let path = format!("GET /v2/acme/{name}/manifests/1");
        registry.answer(&path, vec![FakeAnswer::silence()]);
    }
    registry.take_requests();
    let mut server = start(&folder, &["--sync", "--log", "info"]);
    server.wait_until_listed(&tools);
    assert!(registry.take_requests().is_empty());
    let unchanged = done(&folder, &["sync", "--locked"]);
    assert_eq!(
        unchanged.stdout,
        "20 plugins in toolbay.plugins.toml: 20 unchanged, 0 changed, 0 failed\n"
    );
    assert_eq!(plugins_file(&folder), pinned);
}

#[test]
fn one_failure_does_not_stop_a_sync_and_removes_nothing() {
    let registry = FakeRegistry::start().unwrap();
    push(&registry, "good", "1", &component("good"));
    let changed = push(&registry, "changed", "1", &component("first"));
    let folder = Folder::new();
    let names = ["changed", "good", "missing"].map(str::to_owned);
    write_references(&folder, &registry, &names);
    folder.put("missing.wasm", component("mine"));
    let synced = run(&folder, &["sync"]);
    assert_eq!(synced.code, 1, "{synced}");
    assert!(
        synced.stderr.contains("missing: ") && synced.stderr.contains("does not exist"),
        "{synced}"
    );
    assert!(
        synced
            .stdout
            .ends_with("3 plugins in toolbay.plugins.toml: 0 unchanged, 2 changed, 1 failed\n"),
        "{synced}"
    );
    assert_eq!(
        fs::read(folder.plugin_path("missing.wasm")).unwrap(),
        component("mine")
    );
    // A person changes a file, and the registry loses the pinned version.
    folder.put("changed.wasm", component("edited"));
    folder.put("good.wasm", component("edited"));
    let path = format!("GET /v2/acme/changed/manifests/{changed}");
    registry.answer(&path, vec![FakeAnswer::new("404 Not Found", "")]);
    let synced = run(&folder, &["sync"]);
    assert_eq!(synced.code, 1, "{synced}");
    assert!(synced.stdout.contains("good: replaced, "), "{synced}");
    assert_eq!(
        fs::read(folder.plugin_path("good.wasm")).unwrap(),
        component("good")
    );
    assert_eq!(
        fs::read(folder.plugin_path("changed.wasm")).unwrap(),
        component("edited")
    );
    // A server starts with what is there.
    let mut server = start(&folder, &["--sync"]);
    assert!(!server.tools().is_empty());
    // An unpinned reference is not followed if everything must be pinned.
    let locked = run(&folder, &["sync", "--locked"]);
    assert!(
        locked
            .stderr
            .contains("missing: toolbay.plugins.toml does not pin oci+http://"),
        "{locked}"
    );
}

#[test]
fn a_mistake_in_the_file_stops_everything_before_a_change() {
    let registry = FakeRegistry::start().unwrap();
    push(&registry, "good", "1", &component("good"));
    let folder = Folder::new();
    write_references(&folder, &registry, &["good".to_owned()]);
    let text = plugins_file(&folder) + "[plugin.bad]\nrefrence = \"oci://example.com/x\"\n";
    folder.put(PLUGINS_FILE, &text);
    let reference = reference(&registry, "good");
    for args in [
        &["sync"][..],
        &["update", "--yes"],
        &["outdated"],
        &["add", &reference, "--yes"],
        &["remove", "good", "--yes"],
        &["serve", "--sync"],
    ] {
        let refused = run(&folder, args);
        assert_eq!(refused.code, 64, "{args:?}: {refused}");
        assert!(
            refused.stderr.contains("toolbay.plugins.toml:5:1: ")
                && refused.stderr.contains("refrence"),
            "{args:?}: {refused}"
        );
    }
    assert!(registry.take_requests().is_empty());
    assert_eq!(contents(&plugins(&folder)).len(), 1);
    assert_eq!(plugins_file(&folder), text);
}

#[test]
fn a_changed_reference_voids_its_pin() {
    let registry = FakeRegistry::start().unwrap();
    push(&registry, "weather", "1", &component("sun"));
    push(&registry, "weather", "2", &component("rain"));
    let folder = Folder::new();
    done(&folder, &["add", &reference(&registry, "weather"), "--yes"]);
    let first = plugins_file(&folder);
    folder.put(
        PLUGINS_FILE,
        first.replacen("weather:1\"", "weather:2\"", 1),
    );
    let locked = run(&folder, &["sync", "--locked"]);
    assert!(locked.stderr.contains("does not pin"), "{locked}");
    let synced = done(&folder, &["sync"]);
    assert!(
        synced.stdout.contains("weather: replaced and pinned, "),
        "{synced}"
    );
    assert_eq!(
        fs::read(folder.plugin_path("weather.wasm")).unwrap(),
        component("rain")
    );
    // Another digest of the files than the registry delivers.
    let text = plugins_file(&folder);
    let (before, digits) = text.trim_end().rsplit_once("sha256:").unwrap();
    let wrong = format!("{before}sha256:{}\"\n", "0".repeat(digits.len() - 1));
    folder.put(PLUGINS_FILE, &wrong);
    let refused = run(&folder, &["sync"]);
    assert!(
        refused
            .stderr
            .contains("weather: the files have the digest"),
        "{refused}"
    );
    assert_eq!(
        fs::read(folder.plugin_path("weather.wasm")).unwrap(),
        component("rain")
    );
}

#[test]
fn a_package_is_added_by_its_name_and_synced_without_the_configuration() {
    let registry = FakeRegistry::start().unwrap();
    let manifest = push(&registry, "weather", "1.0.0", &component("sun"));
    let folder = Folder::new();
    let settings = folder.sibling_path("settings");
    fs::create_dir_all(settings.join("wasm-pkg")).unwrap();
    let address = registry.address();
    let text = format!(
        "namespace_registries.acme = \"{address}\"\n[registry.\"{address}\".oci]\nprotocol = \"http\"\n"
    );
    fs::write(settings.join("wasm-pkg/config.toml"), text).unwrap();
    let package = "acme:weather@1.0.0";
    let add = ToolbayCommand::new(&folder).args(["add", package, "--yes"]);
    let added = add.env("XDG_CONFIG_HOME", settings.to_str().unwrap()).run();
    assert_eq!(added.code, 0, "{added}");
    let text = plugins_file(&folder);
    let table = format!(
        "[plugin.weather]\nreference = \"{package}\"\nresolved = \"oci+http://{address}/acme/weather:1.0.0@{manifest}\"\n"
    );
    assert!(text.contains(&table), "{text}");
    fs::remove_file(folder.plugin_path("weather.wasm")).unwrap();
    done(&folder, &["sync", "--locked"]);
    assert_eq!(done(&folder, &["call", "forecast"]).stdout.trim(), "sun");
    for (name, expected) in [
        (
            "acme:weather@1.0.0",
            "no registry is configured for acme:weather",
        ),
        ("acme:weather", "it has no version"),
    ] {
        let refused = run(&folder, &["add", name, "--yes", "--replace"]);
        assert!(refused.stderr.contains(expected), "{expected}: {refused}");
    }
}

/// Writes a program that acts as a credential helper, and a `config.json` that names it. Returns the
/// folder of both.
fn credential_helper(folder: &Folder, registry: &FakeRegistry, script: &str) -> String {
    let at = folder.sibling_path("docker");
    fs::create_dir_all(&at).unwrap();
    let program = at.join("docker-credential-test");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let config = json!({"credHelpers": {registry.address(): "test"}});
    fs::write(at.join("config.json"), config.to_string()).unwrap();
    at.to_str().unwrap().to_owned()
}

#[test]
fn a_credential_helper_is_asked_within_bounds() {
    let registry = FakeRegistry::start().unwrap();
    push(&registry, "weather", "1", &component("sun"));
    let path = "GET /v2/acme/weather/manifests/1";
    let refusal = FakeAnswer::new("401 Unauthorized", "").with_header("WWW-Authenticate", "Basic");
    registry.answer(path, vec![refusal]);
    let folder = Folder::new();
    let add = |script: &str| {
        let at = credential_helper(&folder, &registry, script);
        ToolbayCommand::new(&folder)
            .env("DOCKER_CONFIG", &at)
            .env("PATH", &format!("{at}:/usr/bin:/bin"))
            .args(["add", &reference(&registry, "weather"), "--yes"])
            .run()
    };
    for (script, expected) in [
        (
            "read host; echo '{\"ServerURL\": \"'$host'\", \"Username\": \"ada\", \"Secret\": \"hidden\"}'",
            "are wrong, or have expired",
        ),
        (
            "echo 'credentials not found in native keychain'; exit 1",
            "there are none for it",
        ),
        (
            "echo 'the keyring is locked'; exit 1",
            "docker-credential-test, which has the credentials: the keyring is locked",
        ),
        ("echo hidden", "did not print a JSON object"),
        ("exec yes hidden", "printed too much"),
    ] {
        let refused = add(script);
        assert_eq!(refused.code, 1, "{refused}");
        assert!(refused.stderr.contains(expected), "{expected}: {refused}");
        assert!(!refused.stderr.contains("hidden"), "{refused}");
    }
    let requests = registry.take_requests().join("");
    // ada:hidden
    assert!(requests.contains("Basic YWRhOmhpZGRlbg=="), "{requests}");
}

#[test]
fn publish_refuses_to_move_a_tag_and_shows_what_it_would_publish() {
    let registry = FakeRegistry::start().unwrap();
    let folder = Folder::new();
    let file = folder.sibling_path("weather.wasm");
    fs::write(&file, component("sun")).unwrap();
    let file = file.to_str().unwrap();
    let reference = reference(&registry, "weather");
    let shown = done(&folder, &["publish", file, &reference, "--dry-run"]);
    for expected in [
        "    file      weather.wasm\n",
        "    dev.toolbay.tools = forecast\n",
        "    org.opencontainers.image.title = weather\n",
        "nothing was published\n",
    ] {
        assert!(shown.stdout.contains(expected), "{expected}: {shown}");
    }
    assert!(registry.take_requests().is_empty());
    let path = "HEAD /v2/acme/weather/manifests/1";
    let other = FakeAnswer::ok("").with_header("Docker-Content-Digest", &digest(b"other"));
    registry.answer(path, vec![other]);
    let refused = run(&folder, &["publish", file, &reference]);
    assert!(
        refused.code == 1 && refused.stderr.contains("exists already, with sha256:"),
        "{refused}"
    );
    let sent = registry.take_requests();
    assert!(
        sent.iter().all(|head| head.starts_with("HEAD ")),
        "{sent:?}"
    );
    for (what, expected) in [
        (format!("{reference}@{}", digest(b"x")), "states a digest"),
        ("weather".to_owned(), "it must begin with oci://"),
    ] {
        let refused = run(&folder, &["publish", file, &what]);
        assert!(refused.stderr.contains(expected), "{expected}: {refused}");
    }
    let text = folder.sibling_path("text.wasm");
    fs::write(&text, "text").unwrap();
    let refused = run(&folder, &["publish", text.to_str().unwrap(), &reference]);
    assert!(
        refused.stderr.contains("is not a valid plugin"),
        "{refused}"
    );
}
