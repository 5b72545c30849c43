//! Tests of `scratch_directories`.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::atomic::AtomicBool;

use super::*;
use crate::context::usage_ledger::{DirectoryUsage, ScanResult, scan_directory};

fn names(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

#[tokio::test]
async fn a_folder_is_private_and_gone_after_its_call() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("scratch");
    let scratches = Arc::new(TemporaryFolders::new(root.clone(), 2));
    assert!(
        !root.exists(),
        "no directory is created before it is needed"
    );
    let one = scratches.create().await.unwrap();
    let two = scratches.create().await.unwrap();
    let own = names(&root).pop().unwrap();
    let folders = names(&own);
    assert_eq!(folders.len(), 2);
    for folder in folders.iter().chain([&root, &own]) {
        assert_eq!(
            fs::metadata(folder).unwrap().permissions().mode() & 0o777,
            0o700,
            "{}",
            folder.display()
        );
    }
    fs::create_dir_all(folders[0].join("a/b")).unwrap();
    fs::write(folders[0].join("a/b/file"), "x").unwrap();
    one.remove().await;
    two.remove().await;
    assert_eq!(names(&own), Vec::<PathBuf>::new());
    drop(scratches);
    assert_eq!(
        names(&root),
        Vec::<PathBuf>::new(),
        "a server that ends removes its directory"
    );
}

#[tokio::test]
async fn there_are_never_more_folders_than_calls() {
    let dir = tempfile::tempdir().unwrap();
    let scratches = Arc::new(TemporaryFolders::new(dir.path().join("scratch"), 1));
    let first = scratches.create().await.unwrap();
    let mut next = std::pin::pin!(scratches.create());
    assert!(futures_pending(next.as_mut()).await);
    // Dropped, as when the call is cancelled.
    drop(first);
    next.await.unwrap();
}

async fn futures_pending<F: Future>(mut future: std::pin::Pin<&mut F>) -> bool {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(future.as_mut().poll(context).is_pending())
    })
    .await
}

#[test]
fn directories_of_a_killed_server_are_removed_and_those_of_a_running_one_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("scratch");
    let running = ServerFolder::create(&root).unwrap();
    mkdirat(&running.directory, "0", Mode::RWXU).unwrap();
    let left = root.join("server-1-0/0/deep");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("file"), "x").unwrap();
    fs::create_dir(dir.path().join("precious")).unwrap();
    fs::write(dir.path().join("precious/file"), "x").unwrap();
    symlink(dir.path().join("precious"), root.join("server-1-0/link")).unwrap();
    symlink(dir.path().join("precious"), root.join("server-link")).unwrap();
    fs::create_dir(root.join("of-the-operator")).unwrap();
    let scratches = TemporaryFolders::new(root.clone(), 1);
    scratches.remove_leftovers();
    assert!(!root.join("server-1-0").exists());
    assert!(root.join(&running.name).join("0").exists());
    assert!(root.join("of-the-operator").exists());
    assert!(dir.path().join("precious/file").exists());
    drop(running);
    assert_eq!(
        names(&root).len(),
        2,
        "the link, and a directory of no server"
    );
}

#[test]
fn a_folder_that_is_deeper_than_there_are_descriptors_and_longer_than_a_path_is_counted_and_removed()
 {
    let root = tempfile::tempdir().unwrap();
    let top = File::open(root.path()).unwrap();
    let mut here = openat(&top, ".", DIRECTORY_FLAGS, Mode::empty()).unwrap();
    let name = "n".repeat(200);
    let depth = 3000;
    for _ in 0..depth {
        mkdirat(&here, &name, Mode::RWXU).unwrap();
        here = openat(&here, &name, DIRECTORY_FLAGS, Mode::empty()).unwrap();
    }
    let counted =
        || scan_directory(&top, DirectoryUsage::default(), &AtomicBool::new(false)).unwrap();
    assert_eq!(
        counted(),
        ScanResult::All(DirectoryUsage {
            bytes: 0,
            entries: depth
        })
    );
    remove(&top).unwrap();
    assert_eq!(counted(), ScanResult::All(DirectoryUsage::default()));
}

#[test]
fn a_folder_of_folders_is_removed_whatever_their_names() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["1/.1/.1/.2", ".1/.1", ".2/.3/.1", "a/b/c"] {
        fs::create_dir_all(dir.path().join(name)).unwrap();
        fs::write(dir.path().join(name).join("file"), "x").unwrap();
    }
    remove(&File::open(dir.path()).unwrap()).unwrap();
    assert_eq!(names(dir.path()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_folder_of_another_user_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("scratch");
    fs::create_dir(&root).unwrap();
    fs::set_permissions(&root, fs::Permissions::from_mode(0o777)).unwrap();
    let why = Arc::new(TemporaryFolders::new(root, 1))
        .create()
        .await
        .err()
        .unwrap();
    assert!(
        why.contains("is writable by other users") && why.ends_with("(server.scratch)"),
        "{why}"
    );
}
