use std::fs;

use toolbay_lock::PluginPin;

use super::*;

fn lock_with(ids: &[&str]) -> String {
    let plugins = ids
        .iter()
        .map(|id| ((*id).to_owned(), PluginPin::default()));
    LockFile {
        plugins: plugins.collect(),
    }
    .render()
}

fn ids(lock: &FolderLock) -> Vec<String> {
    let rules = lock.rules().unwrap();
    rules.file.plugins.keys().cloned().collect()
}

#[test]
fn folder_without_a_lock_file_checks_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let lock = FolderLock::open(folder.path(), LockMode::Hold, None).unwrap();
    assert!(lock.rules().is_none());
    assert_eq!(lock.refresh(folder.path()), None);
    assert_eq!(lock.problem(), None);
}

#[test]
fn new_lock_file_applies_to_every_plugin_and_later_ones_to_what_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(LOCK_FILE_NAME);
    let lock = FolderLock::open(folder.path(), LockMode::Hold, None).unwrap();
    fs::write(&path, lock_with(&["a", "b"])).unwrap();
    assert!(lock.refresh(folder.path()).unwrap().is_first);
    assert_eq!(lock.refresh(folder.path()), None);
    fs::write(&path, lock_with(&["a", "c"])).unwrap();
    let change = lock.refresh(folder.path()).unwrap();
    assert_eq!(change.plugins, ["b".to_owned(), "c".to_owned()].into());
    assert_eq!(ids(&lock), ["a", "c"]);
}

#[test]
fn damaged_or_deleted_lock_file_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(LOCK_FILE_NAME);
    fs::write(&path, lock_with(&["a"])).unwrap();
    let lock = FolderLock::open(folder.path(), LockMode::Hold, None).unwrap();
    for damaged in ["", "version = 1\n", "no TOML\n# End of toolbay.lock\n"] {
        fs::write(&path, damaged).unwrap();
        assert_eq!(lock.refresh(folder.path()), None);
        assert!(lock.problem().is_some(), "{damaged:?}");
        assert_eq!(ids(&lock), ["a"]);
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(lock.refresh(folder.path()), None);
    assert!(lock.problem().unwrap().contains("deleted"));
    assert_eq!(ids(&lock), ["a"]);
    fs::write(&path, lock_with(&["a"])).unwrap();
    assert_eq!(lock.refresh(folder.path()), None);
    assert_eq!(lock.problem(), None);
}

#[test]
fn invalid_or_misnamed_lock_file_is_an_error_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(LOCK_FILE_NAME);
    fs::write(&path, "version = 1\n").unwrap();
    let error = FolderLock::open(folder.path(), LockMode::Hold, None).unwrap_err();
    assert!(error.starts_with("toolbay.lock: its last line"), "{error}");
    assert!(FolderLock::open(folder.path(), LockMode::Off, None).is_ok());
    fs::remove_file(&path).unwrap();
    for name in ["Toolbay.lock", "toolbay.lock.txt", "toolbay.lock.toml"] {
        let misnamed = folder.path().join(name);
        fs::write(&misnamed, "").unwrap();
        let error = FolderLock::open(folder.path(), LockMode::Warn, None).unwrap_err();
        assert!(error.contains("looks like the lock file"), "{error}");
        fs::remove_file(&misnamed).unwrap();
    }
    std::os::unix::fs::symlink("missing", &path).unwrap();
    assert!(FolderLock::open(folder.path(), LockMode::Hold, None).is_err());
}
