//! Tests of `mount_roots`.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};

use super::*;

fn roots(base: &Path, host: &str) -> MountRoots {
    MountRoots::new(&[mount(base, host)])
}

fn mount(base: &Path, host: &str) -> MountPermission {
    MountPermission {
        host: base.join(host),
        base: base.to_owned(),
        guest: "/data".to_owned(),
        access: MountAccess::Read,
        scope: None,
        quota: None,
        entries: None,
        allows_control_files: false,
        host_as_written: host.into(),
        source_location: "a.toml:1".to_owned(),
    }
}

fn inode(roots: &MountRoots) -> Result<u64, String> {
    inode_of(roots, None)
}

fn inode_of(roots: &MountRoots, caller: Option<&str>) -> Result<u64, String> {
    let caller = caller.map(|name| CallerIdentity::from_name(name).unwrap());
    let mounted =
        roots.0[0].mount_for_call(caller.as_ref(), &LedgerRegistry::default(), &Arc::default())?;
    Ok(fstat(&*mounted.dir.dir).unwrap().st_ino)
}

fn is_at(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

/// Creates `real/plugins`, `real/data/deep`, and a link to each of them.
fn tree() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("real/plugins")).unwrap();
    fs::create_dir_all(root.path().join("real/data/deep")).unwrap();
    symlink("real", root.path().join("link")).unwrap();
    symlink("data", root.path().join("real/linked")).unwrap();
    root
}

#[test]
fn a_path_may_not_lead_through_a_link_below_the_plugin_folder() {
    let root = tree();
    // The path to the plugin folder is trusted.
    let base = root.path().join("link/plugins");
    let deep = is_at(&root.path().join("real/data/deep"));
    assert_eq!(inode(&roots(&base, "../data/deep")), Ok(deep));
    assert_eq!(inode(&roots(&base, "./..//data/deep/.")), Ok(deep));
    assert_eq!(
        inode(&roots(&base, ".")),
        Ok(is_at(&root.path().join("real/plugins")))
    );
    assert_eq!(
        inode(&roots(
            &base,
            root.path().join("real/data/deep").to_str().unwrap()
        )),
        Ok(deep)
    );
    let absolute = root.path().join("link/data/deep");
    for host in ["../linked", "../linked/deep", absolute.to_str().unwrap()] {
        let why = inode(&roots(&base, host)).unwrap_err();
        let expected = format!(
            "cannot mount the folder {host} at /data: it is reached through a symbolic link; write the path that the \
                 link leads to (a.toml:1)"
        );
        assert_eq!(why, expected);
        assert_eq!(roots(&base, host).open(), [expected]);
    }
}

#[test]
fn an_open_folder_stays_the_same_when_a_link_takes_its_place() {
    let root = tree();
    let roots = roots(&root.path().join("real/plugins"), "../data");
    assert!(roots.open().is_empty());
    let data = root.path().join("real/data");
    let first = is_at(&data);
    fs::rename(&data, root.path().join("real/moved")).unwrap();
    symlink("/", &data).unwrap();
    assert_eq!(inode(&roots), Ok(first));
}

#[test]
fn a_folder_is_opened_when_it_exists_and_again_when_it_was_deleted() {
    let root = tree();
    let roots = roots(&root.path().join("real/plugins"), "../later");
    let later = root.path().join("real/later");
    assert_eq!(roots.open(), [inode(&roots).unwrap_err()]);
    assert!(inode(&roots).unwrap_err().contains("it does not exist"));
    fs::write(&later, "").unwrap();
    assert!(inode(&roots).unwrap_err().contains("it is not a folder"));
    fs::remove_file(&later).unwrap();
    fs::create_dir(&later).unwrap();
    assert_eq!(inode(&roots), Ok(is_at(&later)));
    fs::remove_dir(&later).unwrap();
    symlink("/", &later).unwrap();
    assert!(
        inode(&roots)
            .unwrap_err()
            .contains("through a symbolic link")
    );
    fs::remove_file(&later).unwrap();
    fs::create_dir(&later).unwrap();
    assert_eq!(inode(&roots), Ok(is_at(&later)));
}

#[test]
fn roots_are_equal_if_they_reach_the_same_folder() {
    let root = tree();
    let base = root.path().join("real/plugins");
    let one = roots(&base, "../data");
    let two = roots(&base, "../data");
    assert_eq!(one, two);
    one.open();
    assert_ne!(one, two);
    two.open();
    assert_eq!(one, two);
    fs::rename(
        root.path().join("real/data"),
        root.path().join("real/moved"),
    )
    .unwrap();
    fs::create_dir(root.path().join("real/data")).unwrap();
    let three = roots(&base, "../data");
    three.open();
    assert_ne!(one, three);
}

#[test]
fn each_caller_has_a_folder_of_its_own() {
    let root = tree();
    let base = root.path().join("real/plugins");
    let mut mount = mount(&base, "../data");
    mount.scope = Some(MountScope::Caller);
    let roots = MountRoots::new(&[mount]);
    let ci = inode_of(&roots, Some("token:ci")).unwrap();
    let path = root.path().join("real/data/token/ci");
    assert_eq!(ci, is_at(&path));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
    assert_eq!(inode_of(&roots, Some("token:ci")), Ok(ci));
    assert_ne!(inode_of(&roots, Some("token:other")), Ok(ci));
    assert_ne!(inode_of(&roots, Some("stdio")), Ok(ci));
    assert_eq!(
        inode_of(&roots, Some("token:..")),
        Ok(is_at(&root.path().join("real/data/token/%2E.")))
    );
    let why = inode_of(&roots, None).unwrap_err();
    assert!(why.contains("this caller is not authenticated"), "{why}");
    let why = inode_of(&roots, Some(&format!("token:{}", "a".repeat(300)))).unwrap_err();
    assert!(why.contains("too long"), "{why}");
}

#[test]
fn the_folder_of_a_caller_is_not_reached_through_a_link() {
    let root = tree();
    let mut mount = mount(&root.path().join("real/plugins"), "../data");
    mount.scope = Some(MountScope::Caller);
    let roots = MountRoots::new(&[mount]);
    symlink("/", root.path().join("real/data/stdio")).unwrap();
    symlink("deep", root.path().join("real/data/token")).unwrap();
    fs::create_dir(root.path().join("real/data/oauth")).unwrap();
    fs::write(root.path().join("real/data/oauth/https%3A%2F%2Fa"), "").unwrap();
    for caller in ["stdio", "token:ci", "oauth:ada of https://a"] {
        let why = inode_of(&roots, Some(caller)).unwrap_err();
        assert!(
            why.contains("something other than a folder") && why.contains(caller),
            "{why}"
        );
    }
    assert_eq!(
        fs::read_dir(root.path().join("real/data/deep"))
            .unwrap()
            .count(),
        0
    );
}

#[test]
fn mounts_of_one_folder_share_a_ledger() {
    let root = tree();
    let base = root.path().join("real/plugins");
    let mut bounded = mount(&base, "../data");
    (bounded.access, bounded.quota) = (MountAccess::ReadWrite, Some(bytesize::ByteSize::kib(1)));
    let mut other = mount(&base, "../data/../data");
    (other.access, other.entries) = (MountAccess::ReadWrite, Some(3));
    let ledgers = LedgerRegistry::default();
    let quota = |mount: MountPermission| {
        let roots = MountRoots::new(&[mount]);
        roots.0[0]
            .mount_for_call(None, &ledgers, &Arc::default())
            .unwrap()
            .quota
    };
    assert!(
        quota(mount(&base, "../data")).is_none(),
        "nothing bounds it"
    );
    let bounded = quota(bounded).unwrap();
    let other = quota(other).unwrap();
    assert!(bounded.shares_ledger(&other));
    assert_eq!(
        bounded.bounds.bytes,
        Some((1024, Limit::MountQuota(bytesize::ByteSize::kib(1))))
    );
    assert_eq!(
        bounded.bounds.entries,
        Some((10_000, Limit::MountEntries(10_000)))
    );
    assert_eq!(
        (other.bounds.bytes, other.bounds.entries),
        (None, Some((3, Limit::MountEntries(3))))
    );
    // A mount without a quota counts with them.
    let free = quota(mount(&base, "../data")).unwrap();
    assert!(
        free.shares_ledger(&bounded)
            && free.bounds.bytes.is_none()
            && free.bounds.entries.is_none()
    );
    assert!(!quota(mount(&base, "../data/deep")).is_some_and(|deep| deep.shares_ledger(&bounded)));
}
