use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

fn approval(byte: u8) -> ApprovedVersion {
    ApprovedVersion {
        base: (byte > 1).then(|| Digest::new([1; 32])),
        version: Digest::new([byte; 32]),
        component: Some(Digest::new([byte; 32])),
        grant: None,
        by: "token:ops".to_owned(),
        at: 7,
    }
}

fn file() -> (tempfile::TempDir, ApprovalFile) {
    let folder = tempfile::tempdir().unwrap();
    let file = ApprovalFile::new(folder.path().join("state/approved"), "a.json".to_owned());
    (folder, file)
}

#[test]
fn approvals_are_read_as_they_were_written() {
    let (_folder, file) = file();
    assert_eq!(file.read(), Ok(Approvals::new()));
    assert!(!file.folder.exists(), "reading creates nothing");
    assert_eq!(file.stamp(), None);
    file.add("a", approval(1), |_, _| true).unwrap();
    let stamp = file.stamp();
    file.add("b", approval(2), |_, _| true).unwrap();
    assert_ne!(file.stamp(), stamp);
    let both = [("a".to_owned(), approval(1)), ("b".to_owned(), approval(2))];
    assert_eq!(file.read(), Ok(both.into()));
    // One per plugin, and without those that are void.
    file.add("b", approval(3), |id, _| id != "a").unwrap();
    assert_eq!(file.read(), Ok([("b".to_owned(), approval(3))].into()));
    let mode = fs::metadata(file.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let names = fs::read_dir(&file.folder).unwrap().count();
    assert_eq!(names, 2, "no temporary file is left");
}

#[test]
fn damaged_file_approves_nothing_and_is_replaced() {
    let (_folder, file) = file();
    file.add("a", approval(1), |_, _| true).unwrap();
    let text = fs::read_to_string(file.path()).unwrap();
    let unknown_version = text.replace("\"version\": 1", "\"version\": 9");
    let unknown_key = text.replace("\"by\"", "\"bx\"");
    let short_digest = text.replacen("sha256:01", "sha256:0", 1);
    let other_digest = text.replacen("sha256:", "md5:", 1);
    let large = " ".repeat(usize::try_from(MAX_FILE_BYTES).unwrap() + 1);
    let half = &text[..text.len() / 2];
    for damaged in [
        "",
        "{}",
        half,
        &unknown_version,
        &unknown_key,
        &short_digest,
        &other_digest,
        &large,
    ] {
        fs::write(file.path(), damaged).unwrap();
        let error = file.read();
        assert!(
            matches!(error, Err(ApprovalFileError::Invalid(_))),
            "{error:?}"
        );
    }
    file.add("b", approval(2), |_, _| true).unwrap();
    assert_eq!(file.read(), Ok([("b".to_owned(), approval(2))].into()));
}

#[test]
fn file_that_others_can_change_approves_nothing() {
    let (folder, file) = file();
    file.add("a", approval(1), |_, _| true).unwrap();
    let is_invalid = || matches!(file.read(), Err(ApprovalFileError::Invalid(_)));
    let set_mode = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for path in [
        file.path(),
        file.folder.clone(),
        folder.path().join("state"),
    ] {
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        set_mode(&path, mode | 0o022);
        assert!(is_invalid(), "{}", path.display());
        set_mode(&path, mode);
        assert!(!is_invalid());
    }
    let target = folder.path().join("target.json");
    fs::rename(file.path(), &target).unwrap();
    symlink(&target, file.path()).unwrap();
    assert!(is_invalid(), "a link");
    fs::remove_file(file.path()).unwrap();
    fs::create_dir(file.path()).unwrap();
    assert!(is_invalid(), "a folder");
}

#[test]
fn number_of_approvals_is_bounded() {
    let (_folder, file) = file();
    let approvals: Approvals = (0..MAX_APPROVALS)
        .map(|number| (format!("plugin-{number}"), approval(2)))
        .collect();
    let document = ApprovalDocument {
        version: FORMAT_VERSION,
        approvals,
    };
    file.add("a", approval(1), |_, _| true).unwrap();
    let text = serde_json::to_string_pretty(&document).unwrap();
    assert!(text.len() as u64 * 2 < MAX_FILE_BYTES, "{}", text.len());
    fs::write(file.path(), text).unwrap();
    assert_eq!(file.read().map(|all| all.len()), Ok(MAX_APPROVALS));
    let why = file.add("a", approval(1), |_, _| true).unwrap_err();
    assert!(why.contains("toolbay lock"), "{why}");
    file.add("a", approval(1), |_, _| false).unwrap();
    assert_eq!(file.read().map(|all| all.len()), Ok(1));
}

#[test]
fn two_servers_do_not_write_at_the_same_time() {
    let (_folder, file) = file();
    file.add("a", approval(1), |_, _| true).unwrap();
    let lock = fs::File::open(file.folder.join("a.json.lock")).unwrap();
    flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    let why = file.add("b", approval(1), |_, _| true).unwrap_err();
    assert!(why.contains("another server"), "{why}");
    drop(lock);
    file.add("b", approval(1), |_, _| true).unwrap();
}

#[test]
fn name_of_an_operator_is_one_short_line() {
    let (_folder, file) = file();
    let long = ApprovedVersion {
        by: format!("a\nb{}", "x".repeat(10_000)),
        ..approval(1)
    };
    file.add("a", long, |_, _| true).unwrap();
    let by = file.read().unwrap()["a"].by.clone();
    assert!(by.len() <= MAX_NAME_BYTES && !by.contains('\n'), "{by}");
}
