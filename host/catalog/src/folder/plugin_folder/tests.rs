//! Tests of `plugin_folder`.

use super::*;
use crate::folder::description_limits::tests::SMALL;

#[test]
fn a_misnamed_grant_is_reported() {
    let misnamed = |files: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        let listing = super::scan(dir.path(), &SMALL, None).unwrap().unwrap();
        listing.plugins["text"].misnamed_grant.clone()
    };
    for name in [
        "text.TOML",
        "text.Toml",
        "Text.toml",
        "TEXT.TOML",
        "text.tml",
        "text.tolm",
        "text.tomll",
        "text.toml.txt",
        "text.txt.toml.txt",
        "text .toml",
        "text.toml ",
        " text.toml",
        "text. toml",
        "text.wasm.toml",
        "text.toml.toml",
        "text.toml.TXT",
    ] {
        let expected = (name != "text.txt.toml.txt").then(|| name.to_owned());
        assert_eq!(misnamed(&["text.wasm", name]), expected, "{name:?}");
        assert_eq!(
            misnamed(&["text.wasm", "text.toml", name]),
            None,
            "{name:?} next to the grant"
        );
    }
    for name in [
        "text.toml~",
        "text.toml.bak",
        "text.toml.orig",
        ".text.toml",
        "text.html",
        "text.tar",
        "texts.toml",
    ] {
        assert_eq!(misnamed(&["text.wasm", name]), None, "{name:?}");
    }
    // Names may differ only in case: then each plugin has its own grant.
    assert_eq!(misnamed(&["text.wasm", "Text.wasm", "Text.toml"]), None);
}

fn scan(folder: &Path) -> io::Result<Option<FolderListing>> {
    super::scan(folder, &SMALL, None)
}

#[test]
fn which_names_are_plugins() {
    let cases = [
        ("weather.wasm", Some("weather")),
        ("two words.wasm", Some("two words")),
        ("a.b.wasm", Some("a.b")),
        (".weather.wasm", None),
        (".weather.wasm.swp", None),
        ("weather.wasm~", None),
        ("weather.wasm.tmp", None),
        ("weather.wasm.part", None),
        ("weather.toml", None),
        (".wasm", None),
        ("weather", None),
    ];
    for (name, id) in cases {
        let component =
            parse_file_name(OsStr::new(name)).filter(|(_, part)| *part == FileRole::Component);
        assert_eq!(component.map(|(id, _)| id), id, "{name}");
    }
    for (part, extension) in FileRole::ALL {
        assert_eq!(
            parse_file_name(OsStr::new(&format!("weather{extension}"))),
            Some(("weather", part))
        );
    }
}

#[test]
fn a_scan_follows_links_and_skips_everything_but_files() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("plugins");
    assert_eq!(scan(&folder).unwrap(), None);
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(dir.path().join("elsewhere"), "x").unwrap();
    std::fs::write(folder.join("a.wasm"), "x").unwrap();
    std::fs::write(folder.join("a.toml"), "").unwrap();
    std::fs::create_dir(folder.join("folder.wasm")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", folder.join("link.wasm")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.join("broken.wasm")).unwrap();
    let FolderListing { plugins, notes } = scan(&folder).unwrap().unwrap();
    assert_eq!(plugins.keys().collect::<Vec<_>>(), ["a", "link"]);
    assert!(plugins["a"].grant.is_some() && plugins["link"].grant.is_none());
    assert_eq!(notes["folder.wasm"], "it is a folder");
    assert_eq!(
        notes["broken.wasm"],
        "it is a link to nowhere, which does not exist"
    );
}

#[test]
fn only_files_that_were_probably_meant_as_plugins_are_noted() {
    use std::os::unix::ffi::OsStrExt as _;
    let dir = tempfile::tempdir().unwrap();
    for name in [
        "a.prompt",
        "b.Prompts",
        "c.skills",
        "d.resource",
        "e.resourceful",
        ".f.prompt",
        "LOUD.WASM",
        "lonely.toml",
        "toolbay.toml",
        "readme.md",
        ".hidden.WASM",
        "a.wasm~",
        "wasm",
    ] {
        std::fs::write(dir.path().join(name), "").unwrap();
    }
    std::fs::write(dir.path().join(OsStr::from_bytes(b"\xff.wasm")), "").unwrap();
    std::os::unix::fs::symlink("loop.wasm", dir.path().join("loop.wasm")).unwrap();
    let FolderListing { plugins, notes } = scan(dir.path()).unwrap().unwrap();
    assert!(plugins.is_empty(), "{plugins:?}");
    let notes: Vec<String> = notes
        .iter()
        .map(|(name, why)| format!("{name}: {why}"))
        .collect();
    insta::assert_snapshot!(notes.join("\n"), @r#"
        LOUD.WASM: its name must end in .wasm in lower case
        a.prompt: its name must end in .prompts in lower case
        b.Prompts: its name must end in .prompts in lower case
        c.skills: its name must end in .skill in lower case
        d.resource: its name must end in .resources in lower case
        lonely.toml: it is a grant, but there is no lonely.wasm, lonely.prompts, lonely.resources or lonely.skill
        loop.wasm: it cannot be read: filesystem loop or indirection limit (e.g. symlink loop)
        �.wasm: its name is not valid UTF-8
        "#);
}

#[test]
fn a_replaced_file_has_a_different_fingerprint() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.wasm");
    std::fs::write(&path, "x").unwrap();
    let before = scan(dir.path()).unwrap();
    std::fs::write(dir.path().join("new"), "y").unwrap();
    std::fs::rename(dir.path().join("new"), &path).unwrap();
    assert_ne!(scan(dir.path()).unwrap(), before);
}

#[test]
fn folders_of_plain_files_belong_to_a_plugin_with_and_without_code() {
    let dir = tempfile::tempdir().unwrap();
    let path = |path: &str| dir.path().join(path);
    std::fs::create_dir_all(path("a.prompts")).unwrap();
    std::fs::create_dir_all(path("b.resources/sub")).unwrap();
    std::fs::create_dir(path("elsewhere")).unwrap();
    for file in [
        "a.wasm",
        "b.toml",
        "a.prompts/p.md",
        "b.resources/sub/r.md",
        "c.prompts",
        "elsewhere/e.md",
    ] {
        std::fs::write(path(file), "x").unwrap();
    }
    std::os::unix::fs::symlink("elsewhere", path("d.resources")).unwrap();
    std::os::unix::fs::symlink("nowhere", path("e.resources")).unwrap();
    let FolderListing { plugins, notes } = scan(dir.path()).unwrap().unwrap();
    assert_eq!(plugins.keys().collect::<Vec<_>>(), ["a", "b", "d"]);
    assert!(plugins["a"].component.is_some() && plugins["a"].prompts.is_some());
    assert!(plugins["b"].component.is_none() && plugins["b"].grant.is_some());
    assert!(
        plugins["d"]
            .resources
            .as_ref()
            .unwrap()
            .files
            .contains_key("e.md"),
        "the folder itself can be a link"
    );
    let folders: Vec<_> = plugins["b"]
        .plain_folders(dir.path(), "b")
        .map(|(path, _)| path)
        .collect();
    assert_eq!(folders, [path("b.resources"), path("b.resources/sub")]);
    assert_eq!(notes["c.prompts"], "it must be a folder");
    let after = |change: &dyn Fn()| {
        change();
        scan(dir.path()).unwrap().unwrap().plugins["b"].is_same_except_plain_files(&plugins["b"])
    };
    assert!(after(
        &|| std::fs::write(path("b.resources/sub/r.md"), "y").unwrap()
    ));
    assert!(after(
        &|| std::fs::remove_dir_all(path("b.resources/sub")).unwrap()
    ));
    let replace = || {
        std::fs::rename(path("b.resources"), path("old")).unwrap();
        std::os::unix::fs::symlink("elsewhere", path("b.resources")).unwrap();
    };
    assert!(!after(&replace), "another folder");
    assert_eq!(
        notes["e.resources"],
        "it is a link to nowhere, which does not exist"
    );
    assert_eq!(notes.len(), 2);
}
