use std::fs;

use toolbay_lock::PluginPin;

use super::*;
use crate::folder::approval_file::ApprovedVersion;

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

/// Returns a lock of a folder with the plugin `a`, and the place of its approvals.
fn lock_with_approvals(folder: &Path) -> (FolderLock, ApprovalFile) {
    fs::write(folder.join(LOCK_FILE_NAME), lock_with(&["a"])).unwrap();
    let file = ApprovalFile::new(folder.join("state"), "approved.json".to_owned());
    let lock = FolderLock::open(folder, LockMode::Hold, Some(file.clone())).unwrap();
    (lock, file)
}

fn version(about: &str) -> PluginPin {
    PluginPin {
        about: Some(about.to_owned()),
        grant: Some(Digest::new([7; 32])),
        ..PluginPin::default()
    }
}

fn approve(file: &ApprovalFile, id: &str, base: Option<&PluginPin>, version: &PluginPin) {
    let approval = ApprovedVersion {
        base: base.map(|base| LockFile::pin_digest(id, base)),
        version: LockFile::pin_digest(id, version),
        component: version.component,
        grant: version.grant,
        by: "console".to_owned(),
        at: 0,
    };
    file.add(id, approval, |_, _| true).unwrap();
}

#[test]
fn approval_counts_for_its_plugin_version_and_entry_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let (lock, file) = lock_with_approvals(path);
    let pinned = PluginPin::default();
    let accepts = |id: &str, pin: &PluginPin| lock.rules().unwrap().accepts(id, pin);
    assert!(accepts("a", &pinned) && !accepts("a", &version("new")));
    approve(&file, "a", Some(&pinned), &version("new"));
    assert!(!accepts("a", &version("new")), "it was not read yet");
    let change = lock.refresh(path).unwrap();
    assert_eq!(change.plugins, ["a".to_owned()].into());
    assert!(!change.has_new_pins && change.voided.is_empty());
    assert_eq!(lock.refresh(path), None);
    assert!(accepts("a", &version("new")) && accepts("a", &pinned));
    assert!(!accepts("a", &version("other")) && !accepts("b", &version("new")));
    let rules = lock.rules().unwrap();
    assert!(rules.accepts_grant("a", Some(Digest::new([7; 32]))));
    assert!(rules.accepts_grant("a", None) && !rules.accepts_grant("b", None));
    assert_eq!(rules.accepted_sources("a").len(), 2);
    // Another entry voids it, and the same entry restores it.
    let other = LockFile {
        plugins: [("a".to_owned(), version("pinned"))].into(),
    };
    fs::write(path.join(LOCK_FILE_NAME), other.render()).unwrap();
    let change = lock.refresh(path).unwrap();
    assert_eq!(change.voided, ["a".to_owned()].into());
    assert!(change.has_new_pins);
    assert!(!accepts("a", &version("new")) && accepts("a", &version("pinned")));
    fs::write(path.join(LOCK_FILE_NAME), lock_with(&["a"])).unwrap();
    lock.refresh(path).unwrap();
    assert!(accepts("a", &version("new")));
    // A plugin that the lock file does not have.
    approve(&file, "b", None, &version("new"));
    lock.refresh(path).unwrap();
    assert!(accepts("b", &version("new")));
    fs::write(path.join(LOCK_FILE_NAME), lock_with(&["a", "b"])).unwrap();
    assert_eq!(lock.refresh(path).unwrap().voided, ["b".to_owned()].into());
    assert!(!accepts("b", &version("new")));
}

#[test]
fn approvals_that_become_unreadable_are_void_until_they_are_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let (lock, file) = lock_with_approvals(path);
    approve(&file, "a", Some(&PluginPin::default()), &version("new"));
    lock.refresh(path).unwrap();
    let accepts = || lock.rules().unwrap().accepts("a", &version("new"));
    assert!(accepts());
    let text = fs::read_to_string(file.path()).unwrap();
    fs::write(file.path(), "{").unwrap();
    assert_eq!(lock.refresh(path).unwrap().voided, ["a".to_owned()].into());
    assert!(!accepts());
    assert_eq!(lock.problem(), None, "the lock file is valid");
    fs::write(file.path(), text).unwrap();
    lock.refresh(path).unwrap();
    assert!(accepts());
    fs::remove_file(file.path()).unwrap();
    assert_eq!(lock.refresh(path).unwrap().voided, ["a".to_owned()].into());
    assert!(!accepts());
}

#[test]
fn only_a_lock_that_holds_reads_approvals() {
    let folder = tempfile::tempdir().unwrap();
    let (_, file) = lock_with_approvals(folder.path());
    approve(&file, "a", Some(&PluginPin::default()), &version("new"));
    for mode in [LockMode::Off, LockMode::Warn] {
        let lock = FolderLock::open(folder.path(), mode, Some(file.clone())).unwrap();
        assert!(lock.approval_file().is_none());
        let accepted = lock
            .rules()
            .is_some_and(|rules| rules.accepts("a", &version("new")));
        assert!(!accepted, "{mode:?}");
    }
    let lock = FolderLock::open(folder.path(), LockMode::Hold, None).unwrap();
    assert!(!lock.rules().unwrap().accepts("a", &version("new")));
}
