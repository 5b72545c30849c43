//! Failures of the compile cache: each costs one line in the log and nothing else.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Instant;

use serde_json::json;

use crate::hostile::nested_blocks;
use crate::support::{DEADLINE, Folder, Server, Tiny, Tool, Toolbay};

/// Toolbay's own folder within the one that the configuration names.
const OURS: &str = "store/toolbay-compiled";

const CONFIG: &str = "log = \"toolbay=debug\"\n[compile]\nstore = \"store\"";

fn folder() -> Folder {
    Folder::with("a.wasm", Tiny::new(&["a"]).build())
}

/// A server that serves its plugin, whatever the state of its cache.
fn serves(folder: &Folder) -> Server {
    let mut server = Server::configured(folder, CONFIG);
    server.wait_until_listed(&["a"]);
    assert_eq!(server.text("a", json!({})), "fine");
    server
}

/// The names of the files in the cache; empty if it does not exist yet.
fn in_store(folder: &Folder) -> BTreeSet<String> {
    let entries = fs::read_dir(folder.beside(OURS)).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The files in the cache with this extension.
fn kept(folder: &Folder, extension: &str) -> Vec<PathBuf> {
    let names = in_store(folder).into_iter().filter(|name| name.ends_with(extension));
    names.map(|name| folder.beside(OURS).join(name)).collect()
}

fn warnings(server: &Server) -> Vec<String> {
    server.log.text().lines().filter(|line| line.contains("WARN")).map(str::to_owned).collect()
}

#[test]
fn compiled_code_is_found_in_the_cache() {
    let folder = folder();
    drop(serves(&folder));
    let (code, record) = (kept(&folder, ".cwasm"), kept(&folder, ".json"));
    assert_eq!((code.len(), record.len(), in_store(&folder).len()), (1, 1, 2));
    let written = fs::metadata(&code[0]).unwrap();
    assert_eq!(fs::metadata(folder.beside(OURS)).unwrap().mode() & 0o777, 0o700);
    let server = serves(&folder);
    assert!(warnings(&server).is_empty(), "{:?}", warnings(&server));
    let now = fs::metadata(&code[0]).unwrap();
    assert_eq!((written.ino(), written.mtime_nsec()), (now.ino(), now.mtime_nsec()), "it was not compiled again");
}

/// What happens to a file.
type Damage = fn(&Path);

#[test]
fn damaged_files_are_compiled_again() {
    let damages: [(&str, Damage, &str); 7] = [
        (".cwasm", |code| fs::write(code, "nonsense").unwrap(), "its code is corrupt"),
        (".cwasm", |code| File::options().write(true).open(code).unwrap().set_len(100).unwrap(), "its code is corrupt"),
        (".cwasm", |code| File::create(code).unwrap().set_len(0).unwrap(), "its code is corrupt"),
        (".cwasm", flip_a_bit, "its code is corrupt"),
        (".cwasm", |code| fs::remove_file(code).unwrap(), "cannot read its code: "),
        (".json", |record| fs::write(record, "{\"code\":").unwrap(), "its record is corrupt: "),
        (".json", |record| fs::write(record, "").unwrap(), "its record is corrupt: "),
    ];
    let folder = folder();
    for (extension, damage, why) in damages {
        drop(serves(&folder));
        damage(&kept(&folder, extension)[0]);
        let server = serves(&folder);
        let warnings = warnings(&server);
        let expected = format!("WARN compile cache: an entry was dropped and will be compiled again: {why}");
        assert!(warnings.len() == 1 && warnings[0].contains(&expected), "{expected}: {warnings:?}");
    }
    let server = serves(&folder);
    assert!(warnings(&server).is_empty(), "it is whole again: {:?}", warnings(&server));
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
    drop(serves(&folder));
    fs::remove_file(&kept(&folder, ".json")[0]).unwrap();
    let server = serves(&folder);
    assert!(warnings(&server).is_empty(), "{:?}", warnings(&server));
    assert_eq!(kept(&folder, ".json").len(), 1);
}

#[test]
fn a_cache_that_cannot_be_written_causes_one_log_line() {
    // Nobody, not even root, can create a folder below a file.
    let folder = folder();
    fs::write(folder.beside("store"), "a file").unwrap();
    for store in ["store", "store/below"] {
        let config = CONFIG.replace("\"store\"", &format!("{store:?}"));
        let mut server = Server::configured(&folder, &config);
        server.wait_until_listed(&["a"]);
        assert_eq!(server.text("a", json!({})), "fine");
        let warnings = warnings(&server);
        let expected = format!("WARN the compile cache is off: cannot use {store}/toolbay-compiled: ");
        assert!(warnings.len() == 1 && warnings[0].contains(&expected), "{warnings:?}");
    }
}

#[test]
fn a_full_disk_causes_one_log_line() {
    let folder = folder();
    if !Toolbay::new(&folder).unshared("mount -t tmpfs none plugins").run_quietly() {
        eprintln!("left out: nobody may mount a small file system here");
        return;
    }
    fs::create_dir(folder.beside("store")).unwrap();
    fs::write(folder.beside("toolbay.toml"), CONFIG).unwrap();
    let script = "mount -t tmpfs -o size=16k,mode=700 none store && exec \"$@\"";
    let mut server = Server::run(Toolbay::new(&folder).args(["serve"]).unshared(script)).initialized("2025-11-25");
    server.wait_until_listed(&["a"]);
    assert_eq!(server.text("a", json!({})), "fine");
    let warnings = warnings(&server);
    assert!(
        warnings.len() == 1 && warnings[0].contains("WARN cannot write to the compile cache: the disk is full, or"),
        "{warnings:?}"
    );
}

#[test]
fn a_cache_in_which_no_file_can_be_created_causes_one_log_line() {
    // Not even root can.
    let folder = folder();
    let mut server = Server::configured(&folder, &CONFIG.replace("\"store\"", "\"/proc/toolbay-store\""));
    server.wait_until_listed(&["a"]);
    assert_eq!(server.text("a", json!({})), "fine");
    let warnings = warnings(&server);
    let expected = "WARN the compile cache is off: cannot use /proc/toolbay-store/toolbay-compiled: ";
    assert!(warnings.len() == 1 && warnings[0].contains(expected), "{warnings:?}");
}

#[test]
fn a_cache_that_others_can_write_to_is_not_used() {
    let folder = folder();
    for mode in [0o770, 0o707, 0o777] {
        fs::create_dir_all(folder.beside("store")).unwrap();
        fs::set_permissions(folder.beside("store"), fs::Permissions::from_mode(mode)).unwrap();
        let server = serves(&folder);
        let warnings = warnings(&server);
        let expected = format!(
            "the compile cache is off: store is writable by other users (mode {mode:o}; to fix it, run chmod go-w)"
        );
        assert!(warnings.len() == 1 && warnings[0].contains(&expected), "{warnings:?}");
        assert!(in_store(&folder).is_empty(), "{:?}", in_store(&folder));
    }
}

#[test]
fn other_files_in_the_folder_are_left_alone() {
    let folder = folder();
    fs::create_dir(folder.beside("store")).unwrap();
    let others = ["notes.json", ".tmp-draft", "0123456789abcdef.cwasm"];
    for name in others {
        let file = File::create(folder.beside("store").join(name)).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_hours(1000)).unwrap();
    }
    let server = serves(&folder);
    assert!(warnings(&server).is_empty(), "{:?}", warnings(&server));
    assert!(others.iter().all(|name| folder.beside("store").join(name).exists()));
    assert_eq!(fs::read_dir(folder.beside("store")).unwrap().count(), others.len() + 1);
    assert_eq!(in_store(&folder).len(), 2);
}

#[test]
fn compile_fails_if_it_cannot_write_to_the_cache() {
    let folder = folder();
    fs::write(folder.beside("in-the-way"), "a file").unwrap();
    let mut said = String::new();
    for compile in ["store = \"\"", "store = \"in-the-way\"", "store = \"store\"\nstore_size = 1", "store = \"store\""]
    {
        fs::write(folder.beside("toolbay.toml"), format!("[compile]\n{compile}")).unwrap();
        let outcome = Toolbay::new(&folder).args(["compile"]).run();
        let _ = writeln!(said, "{compile}\n{outcome}");
    }
    insta::assert_snapshot!(said, @r#"
    store = ""
    exit code 1
    --- standard output
    --- standard error
    toolbay: the compile cache is off: compile.store is empty

    store = "in-the-way"
    exit code 1
    --- standard output
    --- standard error
    toolbay: the compile cache is off: cannot use in-the-way/toolbay-compiled: Not a directory (os error 20)

    store = "store"
    store_size = 1
    exit code 1
    --- standard output
    --- standard error
    toolbay: a: compiled, but not in the compile cache: check free disk space and compile.store_size

    store = "store"
    exit code 0
    --- standard output
    a  compiled
    --- standard error
    "#);
}

#[test]
fn code_of_another_engine_in_the_cache_is_left_alone() {
    let folder = folder();
    drop(serves(&folder));
    for file in [kept(&folder, ".cwasm"), kept(&folder, ".json")].concat() {
        let name = file.file_name().unwrap().to_str().unwrap().replacen('-', "-0", 1);
        fs::rename(&file, folder.beside(OURS).join(name)).unwrap();
    }
    let others = in_store(&folder);
    let server = serves(&folder);
    assert!(warnings(&server).is_empty(), "{:?}", warnings(&server));
    assert_eq!(in_store(&folder).intersection(&others).count(), 2);
    assert_eq!(in_store(&folder).len(), 4);
}

#[test]
fn servers_share_a_cache() {
    let folder = Folder::new();
    let names: Vec<String> = (0..20).map(|n| format!("t{n:02}")).collect();
    for name in &names {
        folder.put(&format!("{name}.wasm"), Tiny::new(&[name]).build());
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    // Both find nothing and compile everything.
    let mut servers = [(); 3].map(|()| Server::configured(&folder, CONFIG));
    for server in &mut servers {
        server.wait_until_listed(&names);
        for name in &names {
            assert_eq!(server.text(name, json!({})), "fine");
        }
        assert!(warnings(server).is_empty(), "{:?}", warnings(server));
    }
    drop(servers);
    // If two end at the same moment, both may keep their code, which is wasteful but harmless.
    assert_eq!(kept(&folder, ".json").len(), 20);
    assert!(in_store(&folder).iter().all(|name| !name.starts_with(".tmp-")), "{:?}", in_store(&folder));
    let mut server = Server::configured(&folder, CONFIG);
    server.wait_until_listed(&names);
    assert!(warnings(&server).is_empty(), "{:?}", warnings(&server));
}

#[test]
fn a_server_may_empty_the_cache_of_another() {
    let folder = folder();
    let mut server = serves(&folder);
    fs::remove_dir_all(folder.beside(OURS)).unwrap();
    assert_eq!(server.text("a", json!({})), "fine", "what is open stays open");
    folder.put("b.wasm", Tiny::new(&["b"]).build());
    server.wait_until_listed(&["a", "b"]);
    assert_eq!(server.text("b", json!({})), "fine");
}

#[test]
fn leftovers_do_no_harm() {
    let folder = folder();
    drop(serves(&folder));
    let (store, hours) = (folder.beside(OURS), std::time::Duration::from_hours(2));
    for name in [".tmp-old", ".tmp-new", "nonsense.json", "nonsense.cwasm"] {
        fs::write(store.join(name), "half of someth").unwrap();
    }
    let old = File::options().write(true).open(store.join(".tmp-old")).unwrap();
    old.set_modified(std::time::SystemTime::now() - hours).unwrap();
    let server = serves(&folder);
    assert!(warnings(&server).is_empty(), "{:?}", warnings(&server));
    assert!(!store.join(".tmp-old").exists(), "what is old was left by a server that was killed");
    assert!(store.join(".tmp-new").exists(), "what is new may be another server's");
}

#[test]
fn a_server_killed_while_it_compiles_leaves_nothing_harmful_behind() {
    let folder = folder();
    folder.put("bomb.wasm", nested_blocks(5000));
    fs::write(folder.beside("toolbay.toml"), CONFIG).unwrap();
    let (mut command, _folder) = Toolbay::new(&folder).args(["serve"]).into_parts();
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // The small plugin is in the cache, and the bomb is being compiled.
    until("one child compiles", || kept(&folder, ".json").len() == 1 && children(&server).len() == 1);
    let child = children(&server)[0];
    server.kill().unwrap();
    server.wait().unwrap();
    until("the child is gone", || !runs(child));
    assert_eq!(kept(&folder, ".json").len(), 1);
    folder.remove("bomb.wasm");
    let server = serves(&folder);
    assert!(warnings(&server).is_empty(), "{:?}", warnings(&server));
}

/// Plugins with different bytes, `a0` to `a9`. Each has one tool of the same name, which returns `edition`.
fn ten(folder: &Folder, edition: &str) -> Vec<String> {
    let names: Vec<String> = (0..10).map(|n| format!("a{n}")).collect();
    for name in &names {
        folder.put(&format!("{name}.wasm"), Tiny::of(vec![Tool::new(name)]).answer(edition).build());
    }
    names
}

/// A new server serves this edition of all of them, and logs no problem with its cache.
fn serves_ten(folder: &Folder, names: &[String], edition: &str) {
    let mut server = Server::configured(folder, CONFIG);
    server.wait_until_listed(&names.iter().map(String::as_str).collect::<Vec<_>>());
    for name in names {
        assert_eq!(server.text(name, json!({})), edition);
    }
    assert!(warnings(&server).is_empty(), "{:?}", warnings(&server));
}

#[test]
fn a_server_killed_while_it_writes_to_the_cache_leaves_it_usable() {
    let folder = Folder::new();
    let names = ten(&folder, "fine");
    // Kills each run as soon as there is another file: a temporary file, code or a record.
    for _ in 0..12 {
        let before = in_store(&folder).len();
        let server = Server::configured(&folder, CONFIG);
        until("more is written, or all is kept", || {
            in_store(&folder).len() > before || kept(&folder, ".json").len() == names.len()
        });
        server.kill();
    }
    serves_ten(&folder, &names, "fine");
}

#[test]
fn a_server_killed_while_it_reloads_serves_the_current_files_after_a_restart() {
    let folder = Folder::new();
    let mut names = ten(&folder, "0");
    for edition in ["1", "2", "3"] {
        let mut server = Server::configured(&folder, CONFIG);
        server.wait_until_listed(&names.iter().map(String::as_str).collect::<Vec<_>>());
        names = ten(&folder, edition);
        // The first of ten is loaded, the others are being loaded.
        server.log.wait_for_count("loaded plugin=", names.len() + 1);
        server.kill();
        serves_ten(&folder, &names, edition);
    }
}

fn until(what: &str, done: impl Fn() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < DEADLINE, "it did not come to this: {what}");
        std::thread::yield_now();
    }
}

/// The processes that this process started and that are still running.
fn children(parent: &Child) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id| status(*id).is_some_and(|(state, of)| state != 'Z' && of == parent.id())).collect()
}

fn runs(id: u32) -> bool {
    status(id).is_some_and(|(state, _)| state != 'Z')
}

/// The state of a process, and its parent.
fn status(id: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut words = text.rsplit_once(')')?.1.split_whitespace();
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}
