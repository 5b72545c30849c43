//! Failures of the compile cache: each costs one log line and nothing else.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Instant;

use serde_json::json;

use crate::hostile::nested_blocks;
use crate::support::{DEADLINE, Folder, StdioServer, TinyComponent, TinyTool, ToolbayCommand};

/// Toolbay's own folder inside the configured folder.
const CACHE_FOLDER: &str = "store/toolbay-compiled";

const CONFIG: &str = "log = \"toolbay=debug\"\n[compile]\ncache_folder = \"store\"";

fn folder() -> Folder {
    Folder::with("a.wasm", TinyComponent::new(&["a"]).build())
}

/// Starts a server and checks that it serves its plugin, whatever the state of its cache.
fn start_and_check(folder: &Folder) -> StdioServer {
    let mut server = StdioServer::start_with_config(folder, CONFIG);
    server.wait_until_listed(&["a"]);
    assert_eq!(server.text("a", json!({})), "fine");
    server
}

/// Returns the names of the files in the cache, without the index of the plugin folder; an empty
/// set if the cache does not exist yet.
fn cache_files(folder: &Folder) -> BTreeSet<String> {
    let entries = fs::read_dir(folder.sibling_path(CACHE_FOLDER))
        .into_iter()
        .flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| {
            Path::new(name)
                .extension()
                .is_none_or(|extension| extension != "files")
        })
        .collect()
}

/// Returns the files in the cache with this extension.
fn cache_files_with(folder: &Folder, extension: &str) -> Vec<PathBuf> {
    let names = cache_files(folder)
        .into_iter()
        .filter(|name| name.ends_with(extension));
    names
        .map(|name| folder.sibling_path(CACHE_FOLDER).join(name))
        .collect()
}

fn warnings(server: &StdioServer) -> Vec<String> {
    server
        .log
        .text()
        .lines()
        .filter(|line| line.contains("WARN"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn compiled_code_is_found_in_the_cache() {
    let folder = folder();
    drop(start_and_check(&folder));
    let code = cache_files_with(&folder, ".cwasm");
    let record = cache_files_with(&folder, ".json");
    assert_eq!((code.len(), record.len()), (1, 1));
    let written = fs::metadata(&code[0]).unwrap();
    assert_eq!(
        fs::metadata(folder.sibling_path(CACHE_FOLDER))
            .unwrap()
            .mode()
            & 0o777,
        0o700
    );
    let server = start_and_check(&folder);
    assert!(warnings(&server).is_empty(), "{:?}", warnings(&server));
    let now = fs::metadata(&code[0]).unwrap();
    assert_eq!(
        (written.ino(), written.mtime_nsec()),
        (now.ino(), now.mtime_nsec()),
        "it was not compiled again"
    );
}

/// A change to a file.
type Damage = fn(&Path);

#[test]
fn damaged_files_are_compiled_again() {
    let damages: [(&str, Damage, &str); 7] = [
        (
            ".cwasm",
            |code| fs::write(code, "nonsense").unwrap(),
            "its code is corrupt",
        ),
        (
            ".cwasm",
            |code| {
                File::options()
                    .write(true)
                    .open(code)
                    .unwrap()
                    .set_len(100)
                    .unwrap();
            },
            "its code is corrupt",
        ),
        (
            ".cwasm",
            |code| File::create(code).unwrap().set_len(0).unwrap(),
            "its code is corrupt",
        ),
        (".cwasm", flip_a_bit, "its code is corrupt"),
        (
            ".cwasm",
            |code| fs::remove_file(code).unwrap(),
            "cannot read its code: ",
        ),
        (
            ".json",
            |record| fs::write(record, "{\"code\":").unwrap(),
            "its record is corrupt: ",
        ),
        (
            ".json",
            |record| fs::write(record, "").unwrap(),
            "its record is corrupt: ",
        ),
    ];
    let folder = folder();
    for (extension, damage, why) in damages {
        drop(start_and_check(&folder));
        damage(&cache_files_with(&folder, extension)[0]);
        let server = start_and_check(&folder);
        let warnings = warnings(&server);
        let expected =
            format!("WARN compile cache: an entry was dropped and is compiled again: {why}");
        assert!(
            warnings.len() == 1 && warnings[0].contains(&expected),
            "{expected}: {warnings:?}"
        );
    }
    let server = start_and_check(&folder);
    assert!(
        warnings(&server).is_empty(),
        "it is whole again: {:?}",
        warnings(&server)
    );
}

/// Creates a folder with two plugins, each with a tool that returns the plugin's name.
fn folder_with_two_plugins() -> Folder {
    let folder = Folder::new();
    for name in ["one", "two"] {
        folder.put(
            &format!("{name}.wasm"),
            TinyComponent::new(&[name]).with_text(name).build(),
        );
    }
    drop(start_and_check_two(&folder));
    folder
}

/// Starts a server and checks that its plugins return their own names.
fn start_and_check_two(folder: &Folder) -> StdioServer {
    let mut server = StdioServer::start_with_config(folder, CONFIG);
    server.wait_until_listed(&["one", "two"]);
    for name in ["one", "two"] {
        assert_eq!(server.text(name, json!({})), name);
    }
    server
}

#[test]
fn exchanged_files_are_compiled_again() {
    // Exchanges the code; the records, which name their code; and both, after which the names match
    // again.
    for extensions in [&[".cwasm"][..], &[".json"], &[".cwasm", ".json"]] {
        let folder = folder_with_two_plugins();
        for extension in extensions {
            let files = cache_files_with(&folder, extension);
            let [one, two] = [&files[0], &files[1]];
            let aside = one.with_extension("aside");
            fs::rename(one, &aside).unwrap();
            fs::rename(two, one).unwrap();
            fs::rename(aside, two).unwrap();
        }
        let server = start_and_check_two(&folder);
        let warnings = warnings(&server);
        let expected = "an entry was dropped and is compiled again: its code is corrupt, or was not compiled for this \
            plugin by this user (wrong authentication code)";
        assert!(
            warnings.len() == 2 && warnings.iter().all(|line| line.contains(expected)),
            "{extensions:?}: {warnings:?}"
        );
        drop(server);
        let server = start_and_check_two(&folder);
        assert!(
            self::warnings(&server).is_empty(),
            "it is whole again: {:?}",
            self::warnings(&server)
        );
    }
}

#[test]
fn entries_made_with_another_key_are_compiled_again() {
    let changes: [(Damage, usize); 4] = [
        (|key| fs::write(key, [7; 32]).unwrap(), 1),
        (|key| fs::remove_file(key).unwrap(), 1),
        // These files are not valid keys, which one more line reports.
        (|key| fs::write(key, "").unwrap(), 2),
        (
            |key| fs::set_permissions(key, fs::Permissions::from_mode(0o644)).unwrap(),
            2,
        ),
    ];
    for (change, lines) in changes {
        let folder = folder();
        drop(start_and_check(&folder));
        let key = folder.sibling_path(CACHE_FOLDER).join("key");
        assert_eq!(fs::metadata(&key).unwrap().mode() & 0o777, 0o600);
        change(&key);
        let server = start_and_check(&folder);
        let warnings = warnings(&server);
        assert!(
            warnings.len() == lines && warnings[lines - 1].contains("(wrong authentication code)"),
            "{warnings:?}"
        );
        assert_eq!(fs::metadata(&key).unwrap().mode() & 0o777, 0o600);
        drop(server);
        assert!(self::warnings(&start_and_check(&folder)).is_empty());
    }
}

#[test]
fn orphaned_code_is_evicted_to_make_room_for_entries() {
    let folder = folder();
    let orphan = folder.sibling_path(CACHE_FOLDER).join(format!(
        "{}-{}-{}.cwasm",
        "a".repeat(64),
        "1".repeat(16),
        "2".repeat(16)
    ));
    let hours = std::time::Duration::from_hours(2);
    let put = || {
        fs::write(&orphan, vec![0; 3 << 20]).unwrap();
        File::options()
            .write(true)
            .open(&orphan)
            .unwrap()
            .set_modified(std::time::SystemTime::now() - hours)
            .unwrap();
    };
    drop(start_and_check(&folder));
    put();
    let server = start_and_check(&folder);
    wait_until("it is removed at the start", || !orphan.exists());
    drop(server);
    let mut server =
        StdioServer::start_with_config(&folder, &format!("{CONFIG}\ncache_size = \"3MiB\""));
    server.wait_until_listed(&["a"]);
    put();
    folder.put("b.wasm", TinyComponent::new(&["b"]).build());
    server.wait_until_listed(&["a", "b"]);
    wait_until("there is room again", || !orphan.exists());
    assert_eq!(cache_files_with(&folder, ".json").len(), 2);
}

fn flip_a_bit(code: &Path) {
    let mut bytes = fs::read(code).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(code, bytes).unwrap();
}

#[test]
fn a_missing_record_is_a_miss_and_not_an_error() {
    let folder = folder();
    drop(start_and_check(&folder));
    fs::remove_file(&cache_files_with(&folder, ".json")[0]).unwrap();
    let server = start_and_check(&folder);
    assert!(warnings(&server).is_empty(), "{:?}", warnings(&server));
    assert_eq!(cache_files_with(&folder, ".json").len(), 1);
}

#[test]
fn a_cache_that_cannot_be_written_causes_one_log_line() {
    // No user, not even root, can create a folder below a file.
    let folder = folder();
    fs::write(folder.sibling_path("store"), "a file").unwrap();
    for store in ["store", "store/below"] {
        let config = CONFIG.replace("\"store\"", &format!("{store:?}"));
        let mut server = StdioServer::start_with_config(&folder, &config);
        server.wait_until_listed(&["a"]);
        assert_eq!(server.text("a", json!({})), "fine");
        let warnings = warnings(&server);
        let expected =
            format!("WARN the compile cache is off: cannot use {store}/toolbay-compiled: ");
        assert!(
            warnings.len() == 1 && warnings[0].contains(&expected),
            "{warnings:?}"
        );
    }
}

#[test]
fn a_full_disk_causes_one_log_line() {
    let folder = folder();
    if !ToolbayCommand::new(&folder)
        .with_mount_namespace("mount -t tmpfs none plugins")
        .succeeds()
    {
        eprintln!("left out: nobody may mount a small file system here");
        return;
    }
    fs::create_dir(folder.sibling_path("store")).unwrap();
    fs::write(folder.sibling_path("toolbay.toml"), CONFIG).unwrap();
    let script = "mount -t tmpfs -o size=16k,mode=700 none store && exec \"$@\"";
    let mut server = StdioServer::run(
        ToolbayCommand::new(&folder)
            .args(["serve"])
            .with_mount_namespace(script),
    )
    .with_handshake("2025-11-25");
    server.wait_until_listed(&["a"]);
    assert_eq!(server.text("a", json!({})), "fine");
    let warnings = warnings(&server);
    assert!(
        warnings.len() == 1
            && warnings[0].contains("WARN cannot write to the compile cache: the disk is full, or"),
        "{warnings:?}"
    );
}

#[test]
fn a_cache_in_which_no_file_can_be_created_causes_one_log_line() {
    // Not even root can create one.
    let folder = folder();
    let mut server = StdioServer::start_with_config(
        &folder,
        &CONFIG.replace("\"store\"", "\"/proc/toolbay-store\""),
    );
    server.wait_until_listed(&["a"]);
    assert_eq!(server.text("a", json!({})), "fine");
    let warnings = warnings(&server);
    let expected =
        "WARN the compile cache is off: cannot use /proc/toolbay-store/toolbay-compiled: ";
    assert!(
        warnings.len() == 1 && warnings[0].contains(expected),
        "{warnings:?}"
    );
}

#[test]
fn a_cache_that_others_can_write_to_is_not_used() {
    let folder = folder();
    for mode in [0o770, 0o707, 0o777] {
        fs::create_dir_all(folder.sibling_path("store")).unwrap();
        fs::set_permissions(
            folder.sibling_path("store"),
            fs::Permissions::from_mode(mode),
        )
        .unwrap();
        let server = start_and_check(&folder);
        let warnings = warnings(&server);
        let store = fs::canonicalize(folder.sibling_path("store")).unwrap();
        let expected = format!(
            "the compile cache is off: {} is writable by other users (mode {mode:o}; to fix it, run chmod go-w)",
            store.display()
        );
        assert!(
            warnings.len() == 1 && warnings[0].contains(&expected),
            "{warnings:?}"
        );
        assert!(
            cache_files(&folder).is_empty(),
            "{:?}",
            cache_files(&folder)
        );
    }
}

#[test]
fn other_files_in_the_folder_are_left_alone() {
    let folder = folder();
    fs::create_dir(folder.sibling_path("store")).unwrap();
    let others = ["notes.json", ".tmp-draft", "0123456789abcdef.cwasm"];
    for name in others {
        let file = File::create(folder.sibling_path("store").join(name)).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_hours(1000))
            .unwrap();
    }
    let server = start_and_check(&folder);
    assert!(warnings(&server).is_empty(), "{:?}", warnings(&server));
    assert!(
        others
            .iter()
            .all(|name| folder.sibling_path("store").join(name).exists())
    );
    assert_eq!(
        fs::read_dir(folder.sibling_path("store")).unwrap().count(),
        others.len() + 1
    );
    assert_eq!(cache_files(&folder).len(), 3);
}

#[test]
fn compile_fails_if_it_cannot_write_to_the_cache() {
    let folder = folder();
    fs::write(folder.sibling_path("in-the-way"), "a file").unwrap();
    let mut said = String::new();
    for compile in [
        "cache_folder = \"\"",
        "cache_folder = \"in-the-way\"",
        "cache_folder = \"store\"\ncache_size = 1",
        "cache_folder = \"store\"",
    ] {
        fs::write(
            folder.sibling_path("toolbay.toml"),
            format!("[compile]\n{compile}"),
        )
        .unwrap();
        let outcome = ToolbayCommand::new(&folder).args(["compile"]).run();
        let _ = writeln!(said, "{compile}\n{outcome}");
    }
    insta::assert_snapshot!(said, @r#"
    cache_folder = ""
    exit code 1
    --- standard output
    --- standard error
    toolbay: the compile cache is off: compile.cache_folder is empty

    cache_folder = "in-the-way"
    exit code 1
    --- standard output
    --- standard error
    toolbay: the compile cache is off: cannot use in-the-way/toolbay-compiled: Not a directory (os error 20)

    cache_folder = "store"
    cache_size = 1
    exit code 1
    --- standard output
    --- standard error
    toolbay: a: compiled, but not in the compile cache: check free disk space and compile.cache_size

    cache_folder = "store"
    exit code 0
    --- standard output
    a  compiled
    --- standard error
    "#);
}

#[test]
fn code_of_another_engine_in_the_cache_is_left_alone() {
    let folder = folder();
    drop(start_and_check(&folder));
    for file in [
        cache_files_with(&folder, ".cwasm"),
        cache_files_with(&folder, ".json"),
    ]
    .concat()
    {
        let name = file
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .replacen('-', "-0", 1);
        fs::rename(&file, folder.sibling_path(CACHE_FOLDER).join(name)).unwrap();
    }
    let others = cache_files(&folder);
    let server = start_and_check(&folder);
    assert!(warnings(&server).is_empty(), "{:?}", warnings(&server));
    assert_eq!(cache_files(&folder).intersection(&others).count(), 3);
    assert_eq!(cache_files(&folder).len(), 5);
}

#[test]
fn servers_share_a_cache() {
    let folder = Folder::new();
    let names: Vec<String> = (0..20).map(|n| format!("t{n:02}")).collect();
    for name in &names {
        folder.put(&format!("{name}.wasm"), TinyComponent::new(&[name]).build());
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    // The cache is empty, and each server compiles everything.
    let mut servers = [(); 3].map(|()| StdioServer::start_with_config(&folder, CONFIG));
    for server in &mut servers {
        server.wait_until_listed(&names);
        for name in &names {
            assert_eq!(server.text(name, json!({})), "fine");
        }
        assert!(warnings(server).is_empty(), "{:?}", warnings(server));
    }
    drop(servers);
    // If two servers finish at the same moment, both may store their code, which is wasteful but
    // harmless.
    assert_eq!(cache_files_with(&folder, ".json").len(), 20);
    assert!(
        cache_files(&folder)
            .iter()
            .all(|name| !name.starts_with(".tmp-")),
        "{:?}",
        cache_files(&folder)
    );
    let mut server = StdioServer::start_with_config(&folder, CONFIG);
    server.wait_until_listed(&names);
    assert!(warnings(&server).is_empty(), "{:?}", warnings(&server));
}

#[test]
fn the_first_call_compiles_code_that_was_lost_before_it() {
    let damages: [fn(&Folder); 3] = [
        |folder| flip_a_bit(&cache_files_with(folder, ".cwasm")[0]),
        |folder| fs::remove_file(&cache_files_with(folder, ".cwasm")[0]).unwrap(),
        |folder| fs::remove_dir_all(folder.sibling_path(CACHE_FOLDER)).unwrap(),
    ];
    for damage in damages {
        let folder = folder();
        drop(start_and_check(&folder));
        let mut server = StdioServer::start_with_config(&folder, CONFIG);
        server.wait_until_listed(&["a"]);
        damage(&folder);
        assert_eq!(server.text("a", json!({})), "fine");
        let warnings = warnings(&server);
        assert!(
            warnings
                .iter()
                .any(|line| line.contains("an entry was dropped and is compiled again")),
            "{warnings:?}"
        );
        assert_eq!(server.text("a", json!({})), "fine");
        assert_eq!(self::warnings(&server).len(), warnings.len(), "once");
    }
}

#[test]
fn a_call_of_a_replaced_plugin_with_lost_code_fails_or_runs_the_new_version() {
    let folder = folder();
    drop(start_and_check(&folder));
    let mut server = StdioServer::start_with_config(&folder, CONFIG);
    server.wait_until_listed(&["a"]);
    flip_a_bit(&cache_files_with(&folder, ".cwasm")[0]);
    folder.put(
        "a.wasm",
        TinyComponent::new(&["a"]).with_text("other").build(),
    );
    // Each version returns its own result, or an error that it is gone.
    let answer = server.call("a", json!({})).to_string();
    assert!(
        answer.contains("other") || answer.contains("Call it again in a few seconds."),
        "{answer}"
    );
    server.log.wait_for_count("loaded plugin=", 2);
    while !server.call("a", json!({})).to_string().contains("other") {}
}

#[test]
fn a_plugin_that_changes_without_a_new_time_or_length_is_read_again() {
    let folder = folder();
    drop(start_and_check(&folder));
    let wasm = folder.plugin_path("a.wasm");
    let before = fs::metadata(&wasm).unwrap();
    let other = TinyComponent::new(&["a"]).with_text("five").build();
    assert_eq!(
        other.len() as u64,
        before.len(),
        "not even the length tells"
    );
    fs::write(&wasm, other).unwrap();
    File::options()
        .append(true)
        .open(&wasm)
        .unwrap()
        .set_modified(before.modified().unwrap())
        .unwrap();
    let mut server = StdioServer::start_with_config(&folder, CONFIG);
    server.wait_until_listed(&["a"]);
    assert_eq!(server.text("a", json!({})), "five");
    assert!(warnings(&server).is_empty(), "{:?}", warnings(&server));
}

/// Creates a folder with a plugin that has not changed for long, and an index that a server wrote.
/// Returns the index's path.
fn folder_with_index() -> (Folder, PathBuf) {
    let folder = Folder::new();
    let old = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/contract-0.1.0/calculator.wasm");
    std::os::unix::fs::symlink(old, folder.plugin_path("calculator.wasm")).unwrap();
    drop(start_calculator(&folder));
    let notes = || {
        let mut names = fs::read_dir(folder.sibling_path(CACHE_FOLDER))
            .unwrap()
            .map(|entry| entry.unwrap().path());
        names.find(|path| {
            path.extension()
                .is_some_and(|extension| extension == "files")
        })
    };
    let server = start_calculator(&folder);
    wait_until("it is noted", || notes().is_some());
    drop(server);
    let notes = notes().unwrap();
    (folder, notes)
}

/// Starts a server and checks that it serves that plugin.
fn start_calculator(folder: &Folder) -> StdioServer {
    let mut server = StdioServer::start_with_config(folder, CONFIG);
    server.wait_until_listed(&["calculate_statistics", "calculate_sum", "evaluate"]);
    assert!(
        server
            .text("evaluate", json!({"expression": "6 * 7"}))
            .contains("42")
    );
    server
}

#[test]
fn a_tampered_index_of_a_plugin_folder_is_not_trusted() {
    let damages: [fn(&str) -> String; 3] = [
        |text| text.replace("\"length\":", "\"length\":1"),
        |text| text[..text.len() / 2].to_owned(),
        |text| text.replacen("\"mac\":\"", "\"mac\":\"00", 1),
    ];
    let (folder, path) = folder_with_index();
    for damage in damages {
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, damage(&text)).unwrap();
        let server = start_calculator(&folder);
        // Excludes the warning about the old plugin, whose results are not bounded.
        let mut warnings = warnings(&server);
        warnings.retain(|line| !line.contains("2^53"));
        let expected = "the stored state of the plugin folder is corrupt";
        assert!(
            warnings.len() == 1 && warnings[0].contains(expected),
            "{warnings:?}"
        );
        wait_until("it is noted again", || {
            fs::read_to_string(&path).is_ok_and(|now| now == text)
        });
    }
}

#[test]
fn a_server_may_empty_the_cache_of_another() {
    let folder = folder();
    let mut server = start_and_check(&folder);
    fs::remove_dir_all(folder.sibling_path(CACHE_FOLDER)).unwrap();
    assert_eq!(
        server.text("a", json!({})),
        "fine",
        "what is open stays open"
    );
    folder.put("b.wasm", TinyComponent::new(&["b"]).build());
    server.wait_until_listed(&["a", "b"]);
    assert_eq!(server.text("b", json!({})), "fine");
}

#[test]
fn leftovers_do_no_harm() {
    let folder = folder();
    drop(start_and_check(&folder));
    let store = folder.sibling_path(CACHE_FOLDER);
    let hours = std::time::Duration::from_hours(2);
    for name in [".tmp-old", ".tmp-new", "nonsense.json", "nonsense.cwasm"] {
        fs::write(store.join(name), "half of someth").unwrap();
    }
    let old = File::options()
        .write(true)
        .open(store.join(".tmp-old"))
        .unwrap();
    old.set_modified(std::time::SystemTime::now() - hours)
        .unwrap();
    let server = start_and_check(&folder);
    assert!(warnings(&server).is_empty(), "{:?}", warnings(&server));
    wait_until(
        "what is old, and was left by a server that was killed, is removed",
        || !store.join(".tmp-old").exists(),
    );
    assert!(
        store.join(".tmp-new").exists(),
        "what is new may be another server's"
    );
}

#[test]
fn a_server_killed_while_it_compiles_leaves_nothing_harmful_behind() {
    let folder = folder();
    folder.put("bomb.wasm", nested_blocks(5000));
    fs::write(folder.sibling_path("toolbay.toml"), CONFIG).unwrap();
    let (mut command, _folder) = ToolbayCommand::new(&folder).args(["serve"]).into_parts();
    let mut server = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The small plugin is in the cache, and the large one is being compiled.
    let compilers = || {
        // Another child process starts the programs of secrets.
        let line = |id: u32| fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let compiles = |id: &u32| line(*id).contains("compile-worker");
        children(&server)
            .into_iter()
            .filter(compiles)
            .collect::<Vec<u32>>()
    };
    wait_until("one child compiles", || {
        cache_files_with(&folder, ".json").len() == 1 && compilers().len() == 1
    });
    let child = compilers()[0];
    server.kill().unwrap();
    server.wait().unwrap();
    wait_until("the child is gone", || !is_running(child));
    assert_eq!(cache_files_with(&folder, ".json").len(), 1);
    folder.remove("bomb.wasm");
    let server = start_and_check(&folder);
    assert!(warnings(&server).is_empty(), "{:?}", warnings(&server));
}

/// Puts plugins with different bytes, `a0` to `a9`, into the folder. Each has one tool of the same
/// name, which returns `edition`.
fn put_ten_plugins(folder: &Folder, edition: &str) -> Vec<String> {
    let names: Vec<String> = (0..10).map(|n| format!("a{n}")).collect();
    for name in &names {
        folder.put(
            &format!("{name}.wasm"),
            TinyComponent::with_tools(vec![TinyTool::new(name)])
                .with_text(edition)
                .build(),
        );
    }
    names
}

/// Starts a server, and checks that it serves this edition of all plugins and logs no problem with
/// its cache.
fn start_and_check_ten(folder: &Folder, names: &[String], edition: &str) {
    let mut server = StdioServer::start_with_config(folder, CONFIG);
    server.wait_until_listed(&names.iter().map(String::as_str).collect::<Vec<_>>());
    for name in names {
        assert_eq!(server.text(name, json!({})), edition);
    }
    assert!(warnings(&server).is_empty(), "{:?}", warnings(&server));
}

#[test]
fn a_server_killed_while_it_writes_to_the_cache_leaves_it_usable() {
    let folder = Folder::new();
    let names = put_ten_plugins(&folder, "fine");
    // Kills each run as soon as there is another file: a temporary file, code or a record.
    for _ in 0..12 {
        let before = cache_files(&folder).len();
        let server = StdioServer::start_with_config(&folder, CONFIG);
        wait_until("more is written, or all is kept", || {
            cache_files(&folder).len() > before
                || cache_files_with(&folder, ".json").len() == names.len()
        });
        server.kill();
    }
    start_and_check_ten(&folder, &names, "fine");
}

#[test]
fn a_server_killed_while_it_reloads_serves_the_current_files_after_a_restart() {
    let folder = Folder::new();
    let mut names = put_ten_plugins(&folder, "0");
    for edition in ["1", "2", "3"] {
        let mut server = StdioServer::start_with_config(&folder, CONFIG);
        server.wait_until_listed(&names.iter().map(String::as_str).collect::<Vec<_>>());
        names = put_ten_plugins(&folder, edition);
        // The first of the ten plugins is loaded, and the others are being loaded.
        server.log.wait_for_count("loaded plugin=", names.len() + 1);
        server.kill();
        start_and_check_ten(&folder, &names, edition);
    }
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(
            began.elapsed() < DEADLINE,
            "it did not come to this: {what}"
        );
        std::thread::yield_now();
    }
}

/// Returns the running child processes of a process.
fn children(parent: &Child) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| status(*id).is_some_and(|(state, of)| state != 'Z' && of == parent.id()))
        .collect()
}

fn is_running(id: u32) -> bool {
    status(id).is_some_and(|(state, _)| state != 'Z')
}

/// Returns the state of a process, and its parent.
fn status(id: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut words = text.rsplit_once(')')?.1.split_whitespace();
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}
