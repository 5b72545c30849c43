//! Tests of `plain_tree`.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

fn tree(kind: TreeKind, most: usize, make: impl Fn(&Path)) -> Option<PlainTree> {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    fs::write(dir.path().join("outside"), "").unwrap();
    fs::create_dir(&root).unwrap();
    make(&root);
    scan(&root, kind, most)
}

fn names(tree: &PlainTree) -> Vec<&str> {
    tree.files.keys().map(String::as_str).collect()
}

#[test]
fn everything_that_is_not_hidden_is_found() {
    let tree = tree(TreeKind::Resources, 10, |root| {
        fs::create_dir_all(root.join("b/c")).unwrap();
        fs::create_dir_all(root.join(".git/objects")).unwrap();
        for name in ["a.md", "b/c/d e.txt", ".hidden", ".git/objects/x", "a.md~"] {
            fs::write(root.join(name), "x").unwrap();
        }
    });
    let tree = tree.unwrap();
    assert_eq!(names(&tree), ["a.md", "b/c/d e.txt"]);
    assert_eq!(tree.folders.keys().collect::<Vec<_>>(), ["", "b", "b/c"]);
    assert_eq!((tree.notes.len(), tree.error), (0, None));
}

#[test]
fn links_are_followed_as_long_as_they_stay_in_the_folder() {
    let tree = tree(TreeKind::Resources, 10, |root| {
        fs::create_dir(root.join("..data")).unwrap();
        fs::write(root.join("..data/a"), "x").unwrap();
        // The layout in which Kubernetes mounts a ConfigMap.
        symlink("..data/a", root.join("a")).unwrap();
        symlink("../outside", root.join("out")).unwrap();
        symlink("/etc/passwd", root.join("absolute")).unwrap();
        symlink("nowhere", root.join("broken")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink(".", root.join("self")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("fifo"), 0o600.into()).unwrap();
    });
    let tree = tree.unwrap();
    assert_eq!(names(&tree), ["a"]);
    insta::assert_snapshot!(tree.notes.join("\n"), @r#"
        absolute is not offered: it is a link that leaves the folder
        broken is not offered: it is a link that leads nowhere
        fifo is not offered: it is not a regular file
        loop is not offered: it is a link that leads nowhere
        out is not offered: it is a link that leaves the folder
        self is not offered: only links to files are followed
        "#);
}

#[test]
fn prompts_are_markdown_files_of_the_folder_itself() {
    let tree = tree(TreeKind::Prompts, 10, |root| {
        fs::create_dir(root.join("sub.md")).unwrap();
        for name in [
            "a.md",
            "sub.md/b.md",
            "c.MD",
            "d.markdown",
            "notes.txt",
            "LICENSE",
        ] {
            fs::write(root.join(name), "x").unwrap();
        }
    });
    let tree = tree.unwrap();
    assert_eq!(names(&tree), ["a.md"]);
    assert_eq!(
        tree.notes,
        [
            "LICENSE is not offered: its name must end in .md",
            "c.MD is not offered: its name must end in .md",
            "d.markdown is not offered: its name must end in .md",
            "notes.txt is not offered: its name must end in .md",
            "sub.md is not offered: prompts must be directly in the folder"
        ]
    );
}

#[test]
fn the_contents_of_a_folder_are_bounded() {
    let files = |n: usize, prefix: &'static str| {
        move |root: &Path| {
            (0..n).for_each(|n| fs::write(root.join(format!("{prefix}{n}")), "").unwrap());
        }
    };
    assert_eq!(
        tree(TreeKind::Resources, 3, files(3, "a"))
            .unwrap()
            .files
            .len(),
        3
    );
    let too_many = tree(TreeKind::Resources, 3, files(4, "a")).unwrap();
    assert!(too_many.files.is_empty());
    assert_eq!(
            too_many.error.unwrap(),
            TreeError::Permanent(
                "it has too many files: at most 3 files are allowed (to allow more, raise describe.resources)".into()
            )
        );
    let hidden = tree(TreeKind::Prompts, 3, files(17, ".a")).unwrap();
    assert_eq!(
            hidden.error.unwrap(),
            TreeError::Permanent(
                "it has too many entries: at most 3 files are allowed (to allow more, raise describe.prompts)".into()
            )
        );
    let deep = tree(TreeKind::Resources, 100, |root| {
        let path: String = (0..20).map(|_| "d/").collect();
        fs::create_dir_all(root.join(&path)).unwrap();
        fs::write(root.join(path).join("a"), "").unwrap();
    });
    let deep = deep.unwrap();
    assert_eq!(
        (deep.files.len(), deep.folders.len(), deep.notes.len()),
        (0, MAX_DEPTH, 1)
    );
    let noted = tree(TreeKind::Resources, 100, |root| {
        (0..50).for_each(|n| symlink("nowhere", root.join(format!("{n:02}"))).unwrap());
    });
    let noted = noted.unwrap().notes;
    assert_eq!(
        (noted.len(), noted.last().unwrap().as_str()),
        (21, "30 more files are not offered")
    );
}

#[test]
fn a_file_that_changes_has_another_stamp() {
    let dir = tempfile::tempdir().unwrap();
    let look = || scan(dir.path(), TreeKind::Resources, 10).unwrap();
    fs::write(dir.path().join("a"), "x").unwrap();
    let before = look();
    assert_eq!(before, look());
    fs::write(dir.path().join("a"), "xy").unwrap();
    assert_ne!(before, look());
    assert_eq!(
        scan(&dir.path().join("none"), TreeKind::Resources, 10),
        None
    );
    assert_eq!(scan(&dir.path().join("a"), TreeKind::Resources, 10), None);
}
