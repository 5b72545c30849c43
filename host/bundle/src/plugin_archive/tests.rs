use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::*;
use crate::component_sections::write_manifest;

const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
const MANIFEST: &str = "format = 1\nname = \"a\"\n";

const LIMITS: ArchiveLimits = ArchiveLimits {
    packed: 8 << 20,
    unpacked: 8 << 20,
};

fn archive() -> PluginArchive {
    let proposal: toml::Table =
        toml::from_str("permissions.tcp = [\"a.example:1\"]\nreasons.tcp = \"x\"").unwrap();
    let manifest = PluginManifest {
        version: Some("1.2.0".to_owned()),
        summary: Some("Forecasts".to_owned()),
        proposed_grant: Some(crate::ProposedGrant::from_table(proposal).unwrap()),
        ..PluginManifest::default()
    };
    let files = [
        ("a.wasm", write_manifest(COMPONENT, &manifest).unwrap()),
        ("a.prompts/review.md", b"Review it".to_vec()),
        ("README.md", b"# a".to_vec()),
    ];
    PluginArchive {
        id: "a".to_owned(),
        manifest,
        files: files
            .into_iter()
            .map(|(path, content)| (path.to_owned(), content))
            .collect(),
    }
}

fn gzip(tar: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(tar).unwrap();
    encoder.finish().unwrap()
}

/// Returns a header whose path is not checked.
fn header(path: &[u8], kind: EntryType, size: usize) -> Header {
    let mut header = Header::new_ustar();
    header.as_mut_bytes()[..path.len()].copy_from_slice(path);
    header.set_entry_type(kind);
    header.set_size(size as u64);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

fn tar_of(files: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    for (path, content) in files {
        tar.append(&header(path, EntryType::Regular, content.len()), *content)
            .unwrap();
    }
    tar.into_inner().unwrap()
}

fn why(bytes: &[u8]) -> String {
    PluginArchive::read(bytes, LIMITS).unwrap_err().to_string()
}

#[test]
fn an_archive_has_the_same_bytes_each_time_and_is_read_again() {
    let packed = archive().write().unwrap();
    assert_eq!(packed, archive().write().unwrap());
    assert_eq!(PluginArchive::read(&packed, LIMITS), Ok(archive()));
    assert_eq!(archive().file_name(), "a-1.2.0.bay");
    // Writing what was read gives the same bytes.
    let again = PluginArchive::read(&packed, LIMITS).unwrap();
    assert_eq!(again.write().unwrap(), packed);
}

#[test]
fn paths_that_a_plugin_does_not_have_are_refused() {
    let paths: [&[u8]; 18] = [
        b"/etc/passwd",
        b"../a.wasm",
        b"a.prompts/../../b.toml",
        b"a.toml",
        b"b.toml",
        b"toolbay.toml",
        b"b.wasm",
        b".bashrc",
        b"a.resources/.env",
        b"a.resources/",
        b"a.resources/x\\y",
        b"a.resources/\xff\xfe",
        b"a.resources/\xe2\x80\xae",
        b"a.resources/nul",
        b"a.toml.proposed",
        b"inner.bay",
        b"",
        b"a.wasm/x",
    ];
    for path in paths {
        let tar = tar_of(&[
            (b"plugin.toml", MANIFEST.as_bytes()),
            (b"a.wit", b""),
            (path, b"x"),
        ]);
        let why = why(&gzip(&tar));
        assert!(why.contains("is refused"), "{path:?}: {why}");
    }
    let long = [b"a.resources/".as_slice(), &[b'x'; 88]].concat();
    let tar = tar_of(&[(b"plugin.toml", MANIFEST.as_bytes()), (&long, b"x")]);
    assert!(PluginArchive::read(&gzip(&tar), LIMITS).is_ok());
}

#[test]
fn names_that_collide_are_refused() {
    let collisions: [[&[u8]; 2]; 6] = [
        [b"a.wit", b"a.wit"],
        [b"a.resources/x", b"a.resources/X"],
        [b"a.resources/x/1", b"a.resources/X/2"],
        [b"a.resources/x", b"a.resources/x/1"],
        [b"a.resources/\xc3\xa9", b"a.resources/e\xcc\x81"],
        [b"README.md", b"readme.md"],
    ];
    for [one, two] in collisions {
        let tar = tar_of(&[
            (b"plugin.toml", MANIFEST.as_bytes()),
            (one, b"1"),
            (two, b"2"),
        ]);
        let why = why(&gzip(&tar));
        assert!(why.contains("is refused"), "{one:?} {two:?}: {why}");
    }
}

#[test]
fn entries_that_are_not_regular_files_are_refused() {
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
        EntryType::Directory,
        EntryType::Continuous,
        EntryType::GNULongName,
        EntryType::GNULongLink,
        EntryType::GNUSparse,
        EntryType::XHeader,
        EntryType::XGlobalHeader,
    ] {
        let mut tar = Builder::new(Vec::new());
        let mut link = header(b"a.resources/x", kind, 0);
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            link.set_link_name("/etc/passwd").unwrap();
            link.set_cksum();
        }
        tar.append(&link, std::io::empty()).unwrap();
        let manifest = header(b"plugin.toml", EntryType::Regular, MANIFEST.len());
        tar.append(&manifest, MANIFEST.as_bytes()).unwrap();
        let why = why(&gzip(&tar.into_inner().unwrap()));
        assert!(why.contains("only regular files"), "{kind:?}: {why}");
    }
    // A regular file with the target of a link.
    let mut link = header(b"a.wit", EntryType::Regular, 0);
    link.set_link_name("/etc/passwd").unwrap();
    link.set_cksum();
    let mut tar = Builder::new(Vec::new());
    tar.append(&link, std::io::empty()).unwrap();
    assert!(why(&gzip(&tar.into_inner().unwrap())).contains("only regular files"));
}

#[test]
fn bombs_end_at_a_limit() {
    let zeros = vec![0; 7 << 20];
    let tar = tar_of(&[(b"plugin.toml", MANIFEST.as_bytes()), (b"a.wasm", &zeros)]);
    assert!(why(&gzip(&tar)).contains("200 times as large"));
    let small = ArchiveLimits {
        unpacked: 1 << 10,
        ..LIMITS
    };
    let packed = archive().write().unwrap();
    let why_small = PluginArchive::read(&packed, small).unwrap_err().to_string();
    assert!(why_small.contains("larger than 1024 bytes"), "{why_small}");
    let tiny = ArchiveLimits {
        packed: 10,
        ..LIMITS
    };
    let why_tiny = PluginArchive::read(&packed, tiny).unwrap_err().to_string();
    assert!(why_tiny.contains("larger than 10 bytes"), "{why_tiny}");
    let paths: Vec<String> = (0..2_001).map(|n| format!("a.resources/{n}")).collect();
    let files: Vec<(&[u8], &[u8])> = paths
        .iter()
        .map(|path| (path.as_bytes(), b"".as_slice()))
        .collect();
    let mut random: Vec<u8> = Vec::new();
    // Random content, so that the ratio is not reached.
    for n in 0..40_000_u32 {
        random.extend(n.wrapping_mul(2_654_435_761).to_le_bytes());
    }
    let mut tar = tar_of(&[(b"plugin.toml", &random)]);
    tar.truncate(tar.len() - 1024);
    tar.extend(tar_of(&files));
    assert!(why(&gzip(&tar)).contains("more than 2000 files"));
}

#[test]
fn truncated_and_appended_archives_are_refused() {
    let packed = archive().write().unwrap();
    for end in [0, 1, 10, packed.len() / 2, packed.len() - 1] {
        assert!(
            PluginArchive::read(&packed[..end], LIMITS).is_err(),
            "{end}"
        );
    }
    assert!(why(&[packed.as_slice(), b"x"].concat()).contains("continues after its end"));
    assert!(why(&[packed.as_slice(), &packed].concat()).contains("continues after its end"));
    let mut tar = tar_of(&[(b"plugin.toml", MANIFEST.as_bytes()), (b"a.wit", b"")]);
    tar.extend(tar_of(&[(b"b.toml", b"x")]));
    assert!(why(&gzip(&tar)).contains("continues after its end"));
    let mut size = header(b"plugin.toml", EntryType::Regular, 1 << 40);
    size.set_cksum();
    assert!(PluginArchive::read(&gzip(size.as_bytes()), LIMITS).is_err());
    for bytes in [b"".as_slice(), b"PK\x03\x04", b"\x1f\x8b", b"\0asm"] {
        assert!(PluginArchive::read(bytes, LIMITS).is_err());
    }
}

#[test]
fn a_manifest_must_match_the_component() {
    let forged = |manifest: &str, component: &[u8]| {
        why(&gzip(&tar_of(&[
            (b"plugin.toml", manifest.as_bytes()),
            (b"a.wasm", component),
        ])))
    };
    let packed = archive();
    let component = packed.component().unwrap();
    assert!(forged(MANIFEST, component).contains("states other metadata"));
    let proposal = format!(
        "{MANIFEST}version = \"1.2.0\"\nsummary = \"Forecasts\"\n[proposed_grant.permissions]\nenvironment = [\"A\"]\n\
         [proposed_grant.reasons]\nenvironment = \"x\"\n"
    );
    assert!(forged(&proposal, component).contains("states other metadata"));
    for (manifest, expected) in [
        ("", "it is not that of an archive"),
        ("format = 2\nname = \"a\"", "format 2"),
        ("format = 1", "name is missing"),
        ("format = 1\nname = \"../a\"", "is not the name of a plugin"),
        ("format = 1\nname = \"toolbay\"", "cannot be named"),
        ("format = 1\nname = \"b\"", "is refused"),
        ("format = 1\nname = \"a\"\ngrant = 1", "grant: "),
        (
            "format = 1\nname = \"a\"\nversion = \"../../x\"",
            "is not a version",
        ),
        ("format = 1\nname = \"a\"\n[permissions]", "permissions: "),
        ("\u{feff}{", "plugin.toml: "),
    ] {
        let why = forged(manifest, COMPONENT);
        assert!(why.contains(expected), "{manifest}: {why}");
    }
    assert!(why(&gzip(&tar_of(&[(b"a.wasm", COMPONENT)]))).contains("has no plugin.toml"));
    let alone = format!("{MANIFEST}[proposed_grant.permissions]\n");
    let without_component = tar_of(&[(b"plugin.toml", alone.as_bytes()), (b"a.wit", b"")]);
    assert!(why(&gzip(&without_component)).contains("no component"));
}
