//! Tests of `file_resource`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;
use crate::folder::openat_beneath::open_root;
use crate::folder::plain_tree::{TreeKind, scan};

fn resource(folder: &Path, path: &str) -> FileResource {
    let tree = scan(folder, TreeKind::Resources, 100).unwrap();
    let root = Arc::new(open_root(folder).unwrap());
    FileResource::new("docs", &root, path, tree.files[path].clone()).unwrap()
}

#[test]
fn a_file_is_text_or_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let cases: [(&str, &[u8], Option<&str>); 7] = [
        ("a.md", b"# A\x1b[31m", Some("# A")),
        ("b.png", b"text", None),
        ("c.txt", b"\xff\xfe", None),
        ("d.json", b"a\0b", None),
        ("e", b"plain \xc3\xbc", Some("plain ü")),
        ("f", b"\xff", None),
        ("g.svg", b"<svg/>", Some("<svg/>")),
    ];
    for (name, bytes, text) in cases {
        fs::write(dir.path().join(name), bytes).unwrap();
        let item = resource(dir.path(), name)
            .read(ByteSize::kib(1))
            .unwrap()
            .unwrap();
        let expected = match text {
            Some(text) => ResourceContent::Text(text.into()),
            None => ResourceContent::Blob(bytes::Bytes::copy_from_slice(bytes)),
        };
        assert_eq!(
            (item.resource.content, item.resource.mime_type.as_deref()),
            (expected, media_type::from_file_name(name))
        );
        assert_eq!(item.resource.uri, format!("toolbay://docs/{name}"));
    }
}

#[test]
fn a_file_is_read_as_it_is_and_within_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::write(dir.path().join("outside"), "").unwrap();
    let path = root.join("sub/a.txt");
    fs::write(&path, "x".repeat(10)).unwrap();
    let file = resource(&root, "sub/a.txt");
    assert!(file.read(ByteSize::b(10)).unwrap().is_some());
    let limit = CallError::Limit {
        limit: Limit::Output(ByteSize::b(9)),
        tool: None,
    };
    assert_eq!(file.read(ByteSize::b(9)).unwrap_err(), limit);
    fs::write(&path, "later").unwrap();
    let item = file.read(ByteSize::b(9)).unwrap().unwrap();
    assert_eq!(item.resource.content, ResourceContent::Text("later".into()));
    fs::remove_file(&path).unwrap();
    assert_eq!(file.read(ByteSize::b(9)), Ok(None));
    // A replacement is not read.
    for target in ["/etc/passwd", "../../outside", "..", "nowhere"] {
        symlink(target, &path).unwrap();
        assert_eq!(file.read(ByteSize::mib(1)), Ok(None), "{target}");
        fs::remove_file(&path).unwrap();
    }
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).unwrap();
    assert_eq!(
        file.read(ByteSize::mib(1)),
        Ok(None),
        "nobody waits for a writer"
    );
}

#[test]
fn a_page_in_the_folder_of_views_is_a_view() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("ui/sub")).unwrap();
    fs::create_dir_all(dir.path().join("sub/ui")).unwrap();
    for (path, uri) in [
        ("ui/a b.html", "ui://docs/a%20b.html"),
        ("ui/sub/b.HTML", "ui://docs/sub/b.HTML"),
        ("ui/c.css", "toolbay://docs/ui/c.css"),
        ("sub/ui/d.html", "toolbay://docs/sub/ui/d.html"),
        ("e.html", "toolbay://docs/e.html"),
        ("ui/html", "toolbay://docs/ui/html"),
    ] {
        fs::write(dir.path().join(path), "<!doctype html>").unwrap();
        let file = resource(dir.path(), path);
        let listed = &file.entry.resource;
        assert_eq!(listed.uri, uri);
        let expected = if uri.starts_with("ui:") {
            Some(view::MIME_TYPE)
        } else {
            media_type::from_file_name(path)
        };
        assert_eq!(listed.mime_type.as_deref(), expected);
        let item = file.read(ByteSize::kib(1)).unwrap().unwrap();
        assert_eq!(
            item.resource.content,
            ResourceContent::Text("<!doctype html>".into())
        );
    }
}

#[test]
fn a_path_becomes_a_uri_and_a_name() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a b\n?.md"), "").unwrap();
    let listed = resource(dir.path(), "a b\n?.md").entry.resource.clone();
    assert_eq!(
        (listed.uri.as_str(), listed.name.as_str()),
        ("toolbay://docs/a%20b%0A%3F.md", "a b ?.md")
    );
    let root = Arc::new(open_root(dir.path()).unwrap());
    let FileSource::File { stamp, .. } = resource(dir.path(), "a b\n?.md").source else {
        panic!("it is a file")
    };
    let deep: Vec<String> = (0..10).map(|_| "ü".repeat(100)).collect();
    assert!(FileResource::new("docs", &root, &deep.join("/"), stamp).is_err());
}

#[test]
fn a_file_of_a_skill_matches_its_digest() {
    let kept = |path: &str, bytes: &[u8]| {
        let uri = format!("skill://pdf/{path}");
        let file =
            FileResource::from_skill(uri, path, path, None, Digest::new([7; 32]), bytes.to_vec());
        let identity = file.skill_identity();
        assert_eq!(identity, Some((Digest::new([7; 32]), bytes.len() as u64)));
        file.read(ByteSize::b(bytes.len() as u64))
            .unwrap()
            .unwrap()
            .resource
            .content
    };
    for text in [
        "# A\n\ttab\n",
        "one\r\ntwo\r\n",
        "\u{feff}# A",
        "",
        "\u{1f469}\u{200d}\u{1f467} ü",
    ] {
        assert_eq!(
            kept("a.md", text.as_bytes()),
            ResourceContent::Text(text.into()),
            "{text:?}"
        );
    }
    // Cleaning would change these.
    for text in [
        "\u{1b}[31m",
        "one\rtwo",
        "a\0b",
        "a\u{202e}b",
        "\u{e0041}",
        "a\u{feff}",
        "\r",
        "\u{200d}\u{1f469}",
        "a\u{e0100}",
    ] {
        let expected = ResourceContent::Blob(bytes::Bytes::copy_from_slice(text.as_bytes()));
        assert_eq!(kept("a.md", text.as_bytes()), expected, "{text:?}");
    }
    assert!(matches!(kept("a.md", b"\xff"), ResourceContent::Blob(_)));
    assert!(matches!(kept("a.png", b"text"), ResourceContent::Blob(_)));
    let file = FileResource::from_skill(
        "skill://pdf/a".into(),
        "a",
        "a",
        None,
        Digest::new([7; 32]),
        vec![0; 10],
    );
    let limit = CallError::Limit {
        limit: Limit::Output(ByteSize::b(9)),
        tool: None,
    };
    assert_eq!(file.read(ByteSize::b(9)).unwrap_err(), limit);
}
