//! Tests of `cache`.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytesize::ByteSize;
use toolbay_model::{ComponentDescription, Digest, Limits, ToolDefinition};
use wasmtime::Engine;

use super::cache_file::{ABANDONED_AGE, REFUSAL_EXTENSION, REFUSAL_RETENTION, list_files};
use super::compile_cache::{
    DERIVATION_VERSION, MAX_REFUSALS, SignedNotes, TOUCH_INTERVAL, build_id,
};
use super::entry::CacheRecord;
use super::*;
use crate::compile::engine;
use crate::compile::source::CompileSource;
use crate::component::plugin_summary::PluginSummary;
use crate::prepare::component_summary::ComponentSummary;

const COMPONENT: &str = "(component (core module (func (export \"f\"))))";

fn engine() -> Engine {
    engine::build(16, ByteSize::kib(512), &Limits::CEILING)
        .unwrap()
        .0
}

/// Returns the notes of a component that offers this.
fn notes(description: ComponentDescription, tasked: Option<u32>) -> ComponentNotes {
    ComponentNotes {
        facts: ComponentSummary::default(),
        room: 0,
        description,
        about: PluginSummary::default(),
        tasked,
    }
}

/// Finds an ordinary component and opens its code.
fn found(store: &CompileCache, digest: Digest) -> Option<CachedComponent> {
    let found = store.find(digest)?;
    assert_eq!(found.notes.tasked, None);
    store.open_code(&engine(), &found.code).ok()?;
    Some(found)
}

fn digest_of(text: &str) -> Digest {
    CompileSource {
        file: text.into(),
        wit: String::new(),
    }
    .digest()
}

fn digest() -> Digest {
    digest_of(COMPONENT)
}

fn tools() -> ComponentDescription {
    let tool = ToolDefinition {
        name: "t".into(),
        ..ToolDefinition::default()
    };
    ComponentDescription {
        tools: vec![tool],
        ..ComponentDescription::default()
    }
}

/// A cache with one component.
fn filled(folder: &Path) -> CompileCache {
    let store = CompileCache::open(folder, &engine(), ByteSize::mib(10)).unwrap();
    let mut code = store.create_temporary().unwrap();
    let wasm = wat::parse_str(COMPONENT).unwrap();
    let compiled = engine::build_compiler(ByteSize::kib(512))
        .unwrap()
        .precompile_component(&wasm)
        .unwrap();
    code.write_all(&compiled).unwrap();
    store.insert(digest(), code, &notes(tools(), None));
    store
}

fn code_file(folder: &Path) -> PathBuf {
    let mut files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    files
        .find(|path| {
            path.extension()
                .is_some_and(|extension| extension == "cwasm")
        })
        .unwrap()
}

#[test]
fn the_server_opens_what_the_compiler_process_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    assert_eq!(found(&store, digest()).unwrap().notes.description, tools());
    assert!(found(&store, digest_of("another")).is_none());
}

#[test]
fn components_with_async_functions_are_opened_in_their_engine_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let stack = ByteSize::kib(512);
    let store = CompileCache::open(dir.path(), &engine(), ByteSize::mib(10)).unwrap();
    let keep = |tasked| {
        let mut code = store.create_temporary().unwrap();
        let wasm = wat::parse_str("(component (core func (canon waitable-set.new)))").unwrap();
        code.write_all(
            &engine::build_async_compiler(stack)
                .unwrap()
                .precompile_component(&wasm)
                .unwrap(),
        )
        .unwrap();
        store.insert(digest(), code, &notes(tools(), tasked));
    };
    keep(Some(2));
    let found = store.find(digest()).unwrap();
    assert_eq!(found.notes.tasked, Some(2));
    let concurrent = engine::build_async(Some(16), stack, &Limits::CEILING).unwrap();
    assert!(store.open_code(&concurrent, &found.code).is_ok());
    // Code of the other engine is not usable in this engine, whatever the entry says.
    fs::remove_file(store.record_path(digest())).unwrap();
    keep(None);
    assert!(self::found(&store, digest()).is_none());
}

#[test]
fn entries_of_an_older_toolbay_are_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let older = CompileCache {
        build_id: build_id(&engine(), DERIVATION_VERSION - 1),
        ..filled(dir.path())
    };
    assert!(found(&older, digest()).is_none());
    assert!(found(&filled(dir.path()), digest()).is_some());
}

#[test]
fn damaged_files_are_a_miss_and_are_removed() {
    let damages: [fn(&Path); 4] = [
        |code| fs::write(code, b"nonsense").unwrap(),
        |code| {
            File::options()
                .write(true)
                .open(code)
                .unwrap()
                .set_len(100)
                .unwrap();
        },
        |code| fs::remove_file(code).unwrap(),
        |code| {
            let mut bytes = fs::read(code).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(code, bytes).unwrap();
        },
    ];
    for damage in damages {
        let dir = tempfile::tempdir().unwrap();
        let store = filled(dir.path());
        damage(&code_file(dir.path()));
        assert!(found(&store, digest()).is_none());
        assert!(!store.record_path(digest()).exists());
        assert!(
            found(&filled(dir.path()), digest()).is_some(),
            "compiled anew, it is whole again"
        );
    }
}

#[test]
fn a_damaged_record_is_a_miss() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    fs::write(store.record_path(digest()), b"{\"code\":").unwrap();
    assert!(found(&store, digest()).is_none());
}

#[test]
fn a_record_cannot_lead_out_of_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    let mut record: CacheRecord =
        serde_json::from_slice(&fs::read(store.record_path(digest())).unwrap()).unwrap();
    record.code = "/etc/passwd".into();
    fs::write(
        store.record_path(digest()),
        serde_json::to_vec(&record).unwrap(),
    )
    .unwrap();
    assert!(found(&store, digest()).is_none());
}

/// A second component in the cache, with another tool.
fn another(store: &CompileCache) -> Digest {
    let mut code = store.create_temporary().unwrap();
    let wasm = wat::parse_str("(component (core module (func (export \"g\") (nop))))").unwrap();
    let compiled = engine::build_compiler(ByteSize::kib(512))
        .unwrap()
        .precompile_component(&wasm)
        .unwrap();
    code.write_all(&compiled).unwrap();
    let digest = digest_of("another");
    store.insert(digest, code, &notes(ComponentDescription::default(), None));
    digest
}

#[test]
fn exchanged_files_are_a_miss() {
    type Exchange = fn(&CompileCache, [Digest; 2]);
    let exchanges: [Exchange; 3] = [
        // The records, each of which names its own code.
        |store, [one, two]| {
            let one = store.record_path(one);
            let two = store.record_path(two);
            let texts = [fs::read(&one).unwrap(), fs::read(&two).unwrap()];
            fs::write(one, &texts[1]).unwrap();
            fs::write(two, &texts[0]).unwrap();
        },
        // The files with the code.
        |store, digests| {
            let [one, two] = digests.map(|digest| {
                let record: CacheRecord =
                    serde_json::from_slice(&fs::read(store.record_path(digest)).unwrap()).unwrap();
                store.folder.path.join(record.code)
            });
            let codes = [fs::read(&one).unwrap(), fs::read(&two).unwrap()];
            fs::write(one, &codes[1]).unwrap();
            fs::write(two, &codes[0]).unwrap();
        },
        // The names of the code, and the signatures over it.
        |store, [one, two]| {
            let read = |digest| -> CacheRecord {
                serde_json::from_slice(&fs::read(store.record_path(digest)).unwrap()).unwrap()
            };
            let a = read(one);
            let b = read(two);
            let first = CacheRecord {
                notes: a.notes.clone(),
                ..b
            };
            let second = CacheRecord {
                notes: read(two).notes,
                code: a.code,
                code_mac: a.code_mac,
                mac: a.mac,
            };
            fs::write(store.record_path(one), serde_json::to_vec(&first).unwrap()).unwrap();
            fs::write(store.record_path(two), serde_json::to_vec(&second).unwrap()).unwrap();
        },
    ];
    for exchange in exchanges {
        let dir = tempfile::tempdir().unwrap();
        let store = filled(dir.path());
        let digests = [digest(), another(&store)];
        assert!(
            digests
                .iter()
                .all(|digest| found(&store, *digest).is_some())
        );
        exchange(&store, digests);
        assert!(
            digests
                .iter()
                .all(|digest| found(&store, *digest).is_none())
        );
        assert!(
            digests
                .iter()
                .all(|digest| !store.record_path(digest).exists())
        );
    }
}

#[test]
fn with_another_key_everything_is_a_miss() {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()));
    fs::remove_file(dir.path().join(key::KEY_FILE_NAME)).unwrap();
    let store = CompileCache::open(dir.path(), &engine(), ByteSize::mib(10)).unwrap();
    assert!(found(&store, digest()).is_none());
    assert!(
        found(&filled(dir.path()), digest()).is_some(),
        "compiled anew, it is used"
    );
}

#[test]
fn a_record_that_is_a_link_or_that_others_can_write_is_a_miss() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    let record = store.record_path(digest());
    let moved = dir.path().join("moved");
    fs::set_permissions(&record, fs::Permissions::from_mode(0o620)).unwrap();
    assert!(found(&store, digest()).is_none());
    let store = filled(dir.path());
    fs::rename(&record, &moved).unwrap();
    symlink(&moved, &record).unwrap();
    assert!(found(&store, digest()).is_none());
    assert!(moved.exists() && !record.exists());
}

#[test]
fn orphans_are_removed_first_when_the_cache_is_full_and_old_orphans_at_startup() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = filled(dir.path());
    let name = |digest: &str, maker: &str, rest: &str| {
        format!("{}-{}{rest}", digest.repeat(64), maker.repeat(16))
    };
    let put = |name: &str, old: bool| {
        let path = dir.path().join(name);
        fs::write(&path, vec![b'x'; 5000]).unwrap();
        if old {
            let file = File::options().append(true).open(&path).unwrap();
            file.set_modified(SystemTime::now() - 2 * ABANDONED_AGE)
                .unwrap();
        }
        path
    };
    // Code without a record, a record without code, and a whole entry of another engine.
    let code = || put(&name("a", "1", "-2222222222222222.cwasm"), true);
    let record = || put(&name("b", "1", ".json"), true);
    let new = put(&name("c", "1", "-2222222222222222.cwasm"), false);
    let code_of_other = put(&name("d", "3", "-4444444444444444.cwasm"), true);
    let record_of_other = put(&name("d", "3", ".json"), true);
    store.max_bytes = 100 << 20;
    for path in [code(), record()] {
        store.evict();
        assert!(path.exists(), "there is room");
        store.max_bytes = list_files(&store.folder.path)
            .iter()
            .map(|file| file.length)
            .sum::<u64>()
            - 1;
        store.evict();
        assert!(
            !path.exists() && record_of_other.exists() && code_of_other.exists(),
            "{}",
            path.display()
        );
        store.max_bytes = 100 << 20;
    }
    let code = code();
    let record = record();
    store.sweep();
    assert!(
        !code.exists() && !record.exists(),
        "nobody will ever use them"
    );
    assert!(new.exists() && record_of_other.exists() && code_of_other.exists());
    // The entry of the other engine goes before one that is used.
    store.max_bytes = list_files(&store.folder.path)
        .iter()
        .map(|file| file.length)
        .sum::<u64>()
        - 1;
    store.evict();
    store.evict();
    assert!(!record_of_other.exists());
    assert!(found(&store, digest()).is_some());
}

#[test]
fn code_of_another_engine_is_ignored() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let mut other = CompileCache::open(dir.path(), &engine(), ByteSize::mib(10)).unwrap();
    other.build_id ^= 1;
    assert!(found(&other, digest()).is_none());
    assert!(code_file(dir.path()).exists(), "it is another's, and stays");
}

#[test]
fn a_folder_that_others_can_write_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o770)).unwrap();
    for folder in [dir.path().to_owned(), dir.path().join("below")] {
        let error = CompileCache::open(&folder, &engine(), ByteSize::mib(1)).unwrap_err();
        assert!(
            error.ends_with("is writable by other users (mode 770; to fix it, run chmod go-w)"),
            "{error}"
        );
    }
    // The directory can be in one that every user can write to but where users cannot move each
    // other's files.
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    CompileCache::open(&dir.path().join("below"), &engine(), ByteSize::mib(1)).unwrap();
}

#[test]
fn the_least_recently_used_is_removed_when_the_cache_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = filled(dir.path());
    let record = store.record_path(digest());
    let long_ago = SystemTime::now() - 2 * TOUCH_INTERVAL;
    File::options()
        .append(true)
        .open(&record)
        .unwrap()
        .set_modified(long_ago)
        .unwrap();
    store.max_bytes = fs::metadata(code_file(dir.path())).unwrap().len() + 2000;
    let mut code = store.create_temporary().unwrap();
    code.write_all(&fs::read(code_file(dir.path())).unwrap())
        .unwrap();
    fs::write(dir.path().join("notes.json"), vec![b'x'; 5000]).unwrap();
    store.insert(digest_of("newer"), code, &notes(tools(), None));
    assert!(!record.exists());
    assert!(
        dir.path().join("notes.json").exists(),
        "what is not ours stays"
    );
    assert!(store.record_path(digest_of("newer")).exists());
}

fn refusal(reason: &str) -> StoredRefusal {
    StoredRefusal {
        reason: reason.to_owned(),
        is_final: true,
    }
}

#[test]
fn a_refusal_is_found_for_the_same_component_under_the_same_conditions() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = CompileCache::open(dir.path(), &engine(), ByteSize::mib(10)).unwrap();
    let passing = StoredRefusal {
        is_final: false,
        ..refusal("it took too long")
    };
    for stored in [refusal("no tools"), passing] {
        store.insert_refusal(digest(), "one", &stored);
        assert_eq!(store.find_refusal(digest(), "one"), Some(stored));
    }
    assert_eq!(store.find_refusal(digest(), "another"), None);
    assert_eq!(store.find_refusal(digest_of("another"), "one"), None);
    assert!(
        store.refusal_path(digest()).exists(),
        "a server with other settings can still use it"
    );
    store.build_id ^= 1;
    assert_eq!(store.find_refusal(digest(), "one"), None);
    store.build_id ^= 1;
    assert_eq!(store.clear().unwrap().0, 0, "it is no component");
    assert!(!store.refusal_path(digest()).exists());
}

#[test]
fn compiled_code_replaces_a_refusal() {
    let dir = tempfile::tempdir().unwrap();
    let store = CompileCache::open(dir.path(), &engine(), ByteSize::mib(10)).unwrap();
    store.insert_refusal(digest(), "one", &refusal("no tools"));
    assert!(found(&filled(dir.path()), digest()).is_some());
    assert_eq!(store.find_refusal(digest(), "one"), None);
}

#[test]
fn a_refusal_that_is_damaged_or_another_components_is_removed() {
    type Damage = fn(&CompileCache);
    let damages: [Damage; 4] = [
        |store| fs::write(store.refusal_path(digest()), "{\"mac\":").unwrap(),
        |store| {
            let path = store.refusal_path(digest());
            let text = fs::read_to_string(&path).unwrap();
            fs::write(path, text.replace("no tools", "no fools")).unwrap();
        },
        |store| {
            store.insert_refusal(digest_of("another"), "one", &refusal("no tools"));
            fs::rename(
                store.refusal_path(digest_of("another")),
                store.refusal_path(digest()),
            )
            .unwrap();
        },
        // Notes about a plugin folder are signed with the same key.
        |store| {
            let path = store.refusal_path(digest());
            let record: SignedNotes = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            store.write_folder_notes(Path::new("/plugins"), record.notes);
            fs::rename(
                store
                    .folder
                    .path
                    .join(store.folder_name(Path::new("/plugins"))),
                path,
            )
            .unwrap();
        },
    ];
    for damage in damages {
        let dir = tempfile::tempdir().unwrap();
        let store = CompileCache::open(dir.path(), &engine(), ByteSize::mib(10)).unwrap();
        store.insert_refusal(digest(), "one", &refusal("no tools"));
        damage(&store);
        assert_eq!(store.find_refusal(digest(), "one"), None);
        assert!(!store.refusal_path(digest()).exists());
    }
}

#[test]
fn refusals_are_bounded_in_number_size_and_age() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = filled(dir.path());
    let age = |path: &Path, age: Duration| {
        let file = File::options().append(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    };
    store.insert_refusal(digest(), "one", &refusal(&"x".repeat(100_000)));
    assert_eq!(store.find_refusal(digest(), "one"), None, "it is too large");
    let old = store.refusal_path(digest_of("old"));
    store.insert_refusal(digest_of("old"), "one", &refusal("no tools"));
    age(&old, Duration::from_hours(1));
    let others =
        (0..MAX_REFUSALS).map(|n| format!("{n:064x}-{:016x}.{REFUSAL_EXTENSION}", store.build_id));
    let others: Vec<PathBuf> = others.map(|name| dir.path().join(name)).collect();
    for other in &others {
        fs::write(other, "").unwrap();
    }
    store.evict();
    assert!(
        !old.exists() && others.iter().all(|other| other.exists()),
        "the oldest goes first"
    );
    assert!(found(&store, digest()).is_some());
    for other in others {
        fs::remove_file(other).unwrap();
    }
    store.insert_refusal(digest_of("old"), "one", &refusal("no tools"));
    age(&old, 2 * REFUSAL_RETENTION);
    assert_eq!(store.find_refusal(digest_of("old"), "one"), None);
    store.sweep();
    assert!(!old.exists());
    // A full cache loses what is used least, whatever it is.
    store.insert_refusal(digest_of("old"), "one", &refusal("no tools"));
    age(&old, Duration::from_hours(1));
    store.max_bytes = list_files(&store.folder.path)
        .iter()
        .map(|file| file.length)
        .sum::<u64>()
        - 1;
    store.evict();
    assert!(!old.exists() && found(&store, digest()).is_some());
}

#[test]
fn a_use_renews_the_time_of_last_use() {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    let record = store.record_path(digest());
    let long_ago = SystemTime::now() - 2 * TOUCH_INTERVAL;
    File::options()
        .append(true)
        .open(&record)
        .unwrap()
        .set_modified(long_ago)
        .unwrap();
    found(&store, digest()).unwrap();
    assert!(
        fs::metadata(&record)
            .unwrap()
            .modified()
            .unwrap()
            .elapsed()
            .unwrap()
            < TOUCH_INTERVAL
    );
}
