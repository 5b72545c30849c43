use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use toolbay_model::ResourceContent;

use super::*;
use crate::folder::openat_beneath::open_root;
use crate::folder::plain_tree::{TreeError, TreeKind, scan};

const MANIFEST_TEXT: &str = "---\nname: pdf\ndescription: Reads PDFs.\n---\nRead it.\n";

/// A folder `pdf.skill`.
struct Folder {
    dir: tempfile::TempDir,
    shelf: ByteBudget,
}

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self {
            dir: tempfile::tempdir().unwrap(),
            shelf: ByteBudget::of_size(ByteSize::mib(40)),
        };
        fs::create_dir(folder.path("")).unwrap();
        for (path, text) in files {
            folder.write(path, text);
        }
        folder
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join("pdf.skill").join(path)
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
    }

    fn tree(&self) -> PlainTree {
        scan(&self.path(""), TreeKind::Skill, 512).unwrap()
    }

    fn load_as(
        &self,
        id: &str,
        tree: &PlainTree,
        former: Option<&SkillFolder>,
    ) -> Result<(SkillFolder, Vec<String>), String> {
        let root = open_root(&self.path("")).unwrap();
        let output = ByteSize::mib(4);
        let size = ByteSize::mib(1);
        let found = SkillSource {
            id,
            root: &root,
            tree,
            max_file_size: output,
            max_entries_size: size,
            memory: &self.shelf,
            previous: former,
        };
        SkillFolder::load(&found).map_err(|wrong| match wrong {
            PlainFileError::Refused(why) => why,
            PlainFileError::Transient(error) => panic!("{error:?}"),
        })
    }

    fn load(&self) -> Result<(SkillFolder, Vec<String>), String> {
        self.load_as("pdf", &self.tree(), None)
    }
}

fn bytes(folder: &SkillFolder, uri: &str) -> Vec<u8> {
    let file = folder
        .files
        .iter()
        .find(|file| file.entry.resource.uri == uri)
        .unwrap();
    match file
        .read(ByteSize::mib(16))
        .unwrap()
        .unwrap()
        .resource
        .content
    {
        ResourceContent::Text(text) => text.into_bytes(),
        ResourceContent::Blob(bytes) => bytes.to_vec(),
    }
}

fn entry(skill: &Skill) -> Value {
    serde_json::from_str(skill.entry.get()).unwrap()
}

#[test]
fn every_file_is_in_the_entry_once_with_the_digest_of_its_bytes() {
    let folder = Folder::new(&[
        ("SKILL.md", MANIFEST_TEXT),
        ("templates/regional/a b.md", "one\r\ntwo"),
        (
            "forms/SKILL.md",
            "---\nname: forms\ndescription: Fills forms.\n---\nFill.",
        ),
        ("forms/field.txt", "\u{1b}[31m"),
        (".git/config", "hidden"),
    ]);
    folder.write("logo.png", b"\x89PNG\0");
    let (loaded, remarks) = folder.load().unwrap();
    assert!(remarks.is_empty(), "{remarks:?}");
    let entries: Vec<Value> = loaded.skills.iter().map(|skill| entry(skill)).collect();
    insta::assert_snapshot!(serde_json::to_string_pretty(&entries).unwrap());
    for entry in &entries {
        for file in entry["resources"].as_array().unwrap() {
            let bytes = bytes(&loaded, file["uri"].as_str().unwrap());
            assert_eq!(
                file["digest"],
                format!("sha256:{}", Digest::new(Sha256::digest(&bytes).into()))
            );
            assert_eq!(file["size"], bytes.len());
        }
    }
    let manifests: Vec<_> = loaded
        .files
        .iter()
        .map(|file| &file.entry.resource)
        .collect();
    let described = |name: &str| {
        manifests
            .iter()
            .any(|listed| listed.name == name && listed.description.is_some())
    };
    assert!(described("pdf") && described("forms"));
    assert_eq!(
        manifests
            .iter()
            .filter(|listed| listed.description.is_some())
            .count(),
        2
    );
}

#[test]
fn loaded_content_stays_when_the_files_change() {
    let folder = Folder::new(&[
        ("SKILL.md", MANIFEST_TEXT),
        ("a.md", "one"),
        ("b.md", "one"),
        ("c.md", "one"),
    ]);
    let (loaded, _) = folder.load().unwrap();
    folder.write("a.md", "two, and longer");
    fs::remove_file(folder.path("b.md")).unwrap();
    fs::remove_file(folder.path("c.md")).unwrap();
    symlink("/etc/passwd", folder.path("c.md")).unwrap();
    for name in ["a", "b", "c"] {
        assert_eq!(bytes(&loaded, &format!("skill://pdf/{name}.md")), b"one");
    }
    let (next, remarks) = folder.load().unwrap();
    assert_eq!((next.files.len(), remarks.len()), (2, 0));
    assert_ne!(next, loaded);
    assert_eq!(folder.load().unwrap().0, next, "loaded again");
}

#[test]
fn a_skill_does_not_mix_files_of_two_versions() {
    let change: [fn(&Folder); 5] = [
        |folder| folder.write("a.md", "two"),
        |folder| folder.write("a.md", "one and more"),
        |folder| fs::remove_file(folder.path("a.md")).unwrap(),
        |folder| {
            fs::write(folder.path("new"), "one").unwrap();
            fs::rename(folder.path("new"), folder.path("a.md")).unwrap();
        },
        |folder| {
            fs::remove_file(folder.path("a.md")).unwrap();
            symlink("/etc/passwd", folder.path("a.md")).unwrap();
        },
    ];
    for (n, change) in change.iter().enumerate() {
        let folder = Folder::new(&[("SKILL.md", MANIFEST_TEXT), ("a.md", "one")]);
        let seen = folder.tree();
        change(&folder);
        assert_eq!(
            folder.load_as("pdf", &seen, None).unwrap_err(),
            "a.md changed while it was read",
            "{n}"
        );
        assert!(folder.load().is_ok());
    }
}

#[test]
fn links_are_followed_within_the_folder() {
    let folder = Folder::new(&[("SKILL.md", MANIFEST_TEXT), ("..data/a", "inside")]);
    fs::write(folder.dir.path().join("secret"), "outside").unwrap();
    symlink("..data/a", folder.path("a.txt")).unwrap();
    symlink("../secret", folder.path("out.txt")).unwrap();
    symlink("/proc/self/environ", folder.path("magic.txt")).unwrap();
    symlink(".", folder.path("self")).unwrap();
    let (loaded, _) = folder.load().unwrap();
    let uris: Vec<_> = loaded
        .files
        .iter()
        .map(|file| file.entry.resource.uri.as_str())
        .collect();
    assert_eq!(uris, ["skill://pdf/SKILL.md", "skill://pdf/a.txt"]);
    assert_eq!(bytes(&loaded, "skill://pdf/a.txt"), b"inside");
    assert_eq!(folder.tree().notes.len(), 3);
    // A manifest in another folder does not count.
    fs::remove_file(folder.path("SKILL.md")).unwrap();
    fs::write(folder.dir.path().join("SKILL.md"), MANIFEST_TEXT).unwrap();
    symlink("../SKILL.md", folder.path("SKILL.md")).unwrap();
    assert_eq!(folder.load().unwrap_err(), "it has no file SKILL.md");
}

#[test]
fn a_folder_that_is_not_a_skill_is_refused_with_the_reason() {
    let with = |files: &[(&str, &str)]| {
        let folder = Folder::new(files);
        folder.write("SKILL.md", MANIFEST_TEXT);
        folder
    };
    let large = with(&[]);
    fs::File::create(large.path("a"))
        .unwrap()
        .set_len((4 << 20) + 1)
        .unwrap();
    let heavy = with(&[]);
    (0..5).for_each(|n| {
        fs::File::create(heavy.path(&n.to_string()))
            .unwrap()
            .set_len(4 << 20)
            .unwrap();
    });
    let latin = Folder::new(&[]);
    latin.write("SKILL.md", b"---\nname: pdf\ndescription: \xfc\n---\n");
    let cases = [
        Folder::new(&[("skill.md", MANIFEST_TEXT)]),
        Folder::new(&[("pdf/SKILL.md", MANIFEST_TEXT)]),
        Folder::new(&[("SKILL.md", "# PDF")]),
        Folder::new(&[("SKILL.md", "---\nname: pdf-tools\ndescription: A.\n---\n")]),
        Folder::new(&[(
            "SKILL.md",
            "---\nname: pdf\ndescription: A.\n---\nGood.\nBad: \u{202e}.\n",
        )]),
        latin,
        large,
        heavy,
    ];
    let said: Vec<String> = cases
        .iter()
        .map(|folder| folder.load().unwrap_err())
        .collect();
    insta::assert_snapshot!(said.join("\n"));
    let folder = with(&[]);
    for id in ["PDF Tools", "pdf_tools", "-pdf", ""] {
        let why = folder.load_as(id, &folder.tree(), None).unwrap_err();
        assert!(
            why.ends_with("without a hyphen at its ends or two in a row: rename the folder"),
            "{why}"
        );
    }
}

#[test]
fn a_skill_has_at_most_512_files() {
    let folder = Folder::new(&[("SKILL.md", MANIFEST_TEXT)]);
    (0..511).for_each(|n| folder.write(&format!("{n}.md"), "x"));
    assert_eq!(folder.load().unwrap().0.files.len(), 512);
    folder.write("more.md", "x");
    let excess =
        TreeError::Permanent("it has too many files: at most 512 files are allowed".to_owned());
    assert_eq!(folder.tree().error, Some(excess));
}

#[test]
fn the_version_in_service_stays_complete() {
    let nested = |name: &str| format!("---\nname: {name}\ndescription: A.\n---\n");
    let folder = Folder::new(&[
        ("SKILL.md", MANIFEST_TEXT),
        ("a/SKILL.md", "# No skill"),
        ("b/SKILL.md", &nested("b")),
    ]);
    let (first, remarks) = folder.load().unwrap();
    assert_eq!((first.skills.len(), first.files.len()), (2, 3));
    assert_eq!(
        remarks,
        [
            "pdf.skill/a/SKILL.md:1: it must begin with a line \"---\", the name and the description of the skill; it is a \
             file, and not a skill"
        ]
    );
    folder.write("b/SKILL.md", nested("c"));
    let why = folder
        .load_as("pdf", &folder.tree(), Some(&first))
        .unwrap_err();
    assert_eq!(
        why,
        "b/SKILL.md: its name is \"c\", but its folder is called \"b\": rename one of them"
    );
    assert_eq!(
        folder.load().unwrap().0.skills.len(),
        1,
        "without a version before it"
    );
}

#[test]
fn the_total_size_of_all_skills_is_bounded() {
    let folder = Folder::new(&[
        ("SKILL.md", MANIFEST_TEXT),
        ("a", &"x".repeat(3 << 20)),
        ("b", &"x".repeat(3 << 20)),
    ]);
    let mut kept: Vec<SkillFolder> = (0..6).map(|_| folder.load().unwrap().0).collect();
    let expected = "the files of all skills are larger than 40.0 MiB in total (to allow more, raise describe.skills)";
    assert_eq!(folder.load().unwrap_err(), expected);
    // A new version replaces the old one.
    assert!(folder.load_as("pdf", &folder.tree(), kept.first()).is_ok());
    kept.pop();
    assert!(folder.load().is_ok());
}

#[test]
fn the_entries_are_bounded() {
    let folder = Folder::new(&[("SKILL.md", MANIFEST_TEXT)]);
    let long = "ü".repeat(120);
    (0..500).for_each(|n| folder.write(&format!("{long}/{long}/{n}"), "x"));
    let root = open_root(&folder.path("")).unwrap();
    let tree = folder.tree();
    let output = ByteSize::mib(1);
    let load = |size| {
        SkillFolder::load(&SkillSource {
            id: "pdf",
            root: &root,
            tree: &tree,
            max_file_size: output,
            max_entries_size: size,
            memory: &folder.shelf,
            previous: None,
        })
    };
    assert!(load(ByteSize::mib(1)).is_ok());
    let Err(PlainFileError::Refused(why)) = load(ByteSize::kib(500)) else {
        panic!("it is too large")
    };
    assert_eq!(
        why,
        "the description of its files for clients is larger than 500.0 KiB (to allow more, raise describe.size)"
    );
}
