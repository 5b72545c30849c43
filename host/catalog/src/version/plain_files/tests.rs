//! Tests of `plain_files`.

use std::fs;

use super::*;
use crate::folder::description_limits::tests::SMALL;
use crate::folder::plugin_folder::scan;

const LARGE: DescribeLimits = DescribeLimits {
    size: ByteSize::mib(1),
    ..SMALL
};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("docs.prompts")).unwrap();
        fs::create_dir(dir.path().join("docs.resources")).unwrap();
        Self(dir)
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.0.path().join(path), text).unwrap();
    }

    fn load(
        &self,
        bounds: &DescribeLimits,
        previous: &PlainFiles,
    ) -> Result<PlainFiles, LoadError> {
        let found = scan(self.0.path(), bounds, None).unwrap().unwrap();
        let files = &found.plugins["docs"];
        PlainFiles::load(
            "docs",
            self.0.path(),
            files,
            bounds,
            ByteSize::kib(1),
            &ByteBudget::of_size(bounds.skills),
            previous,
        )
    }
}

fn names(files: &PlainFiles) -> Vec<&str> {
    files
        .prompts
        .iter()
        .map(|prompt| prompt.entry.prompt.name.as_str())
        .collect()
}

#[test]
fn an_invalid_file_keeps_its_previous_version() {
    let folder = Folder::new();
    folder.write("docs.prompts/good.md", "Good");
    folder.write("docs.prompts/bad.md", "---\ntitle: [\n---\nBad");
    let first = folder.load(&LARGE, &PlainFiles::default()).unwrap();
    assert_eq!(names(&first), ["good"]);
    assert!(
        first.remarks[0].starts_with("docs.prompts/bad.md:2: "),
        "{:?}",
        first.remarks
    );
    assert!(
        first.remarks[0].ends_with("; it is not offered"),
        "{:?}",
        first.remarks
    );
    folder.write("docs.prompts/bad.md", "Better");
    let second = folder.load(&LARGE, &first).unwrap();
    assert_eq!(
        (names(&second), second.remarks.len()),
        (vec!["bad", "good"], 0)
    );
    folder.write("docs.prompts/bad.md", &"x".repeat(300_000));
    let third = folder.load(&LARGE, &second).unwrap();
    assert_eq!(
        third.remarks,
        ["docs.prompts/bad.md: it is larger than 256.0 KiB; its previous version stays in service"]
    );
    assert_eq!(third.prompts, second.prompts);
    assert_ne!(third, second, "the warning is new");
    fs::remove_file(folder.0.path().join("docs.prompts/bad.md")).unwrap();
    assert_eq!(
        names(&folder.load(&LARGE, &third).unwrap()),
        ["good"],
        "what is deleted is gone"
    );
}

#[test]
fn a_name_that_no_prompt_can_have_is_reported() {
    let folder = Folder::new();
    folder.write("docs.prompts/two words.md", "Text");
    let files = folder.load(&LARGE, &PlainFiles::default()).unwrap();
    assert_eq!(
        files.remarks,
        [
            "docs.prompts/two words.md: prompt \"two words\": a name must have 1 to 128 characters of A-Z a-z 0-9 _ - .; it is \
              not offered"
        ]
    );
}

#[test]
fn resources_are_listed_as_far_as_they_can_be_read() {
    let folder = Folder::new();
    folder.write("docs.resources/a.md", "# A");
    folder.write("docs.resources/large.md", &"x".repeat(2000));
    let files = folder.load(&LARGE, &PlainFiles::default()).unwrap();
    let uris: Vec<_> = files
        .resources
        .iter()
        .map(|file| file.entry.resource.uri.as_str())
        .collect();
    assert_eq!(uris, ["toolbay://docs/a.md"]);
    assert_eq!(
        files.remarks,
        [
            "docs.resources/large.md is not offered: it is larger than 1.0 KiB (to allow more, raise limits.output in \
              docs.toml)"
        ]
    );
    assert_eq!(folder.load(&LARGE, &files).unwrap(), files);
    folder.write("docs.resources/a.md", "# B");
    assert_ne!(folder.load(&LARGE, &files).unwrap(), files);
}

#[test]
fn the_stored_data_is_bounded() {
    let folder = Folder::new();
    folder.write("docs.prompts/a.md", "x");
    folder.write("docs.resources/a.md", "x");
    let good = folder.load(&SMALL, &PlainFiles::default()).unwrap();
    for name in ["b", "c"] {
        folder.write(&format!("docs.prompts/{name}.md"), &"x".repeat(500));
    }
    for large in ["docs.prompts", "docs.resources"] {
        let files = folder.load(&SMALL, &good).unwrap();
        assert_eq!((&files.prompts, files.resources.len()), (&good.prompts, 1));
        assert_eq!(
            files.remarks[0],
            "docs.prompts: the stored data of its files is larger than 1.0 KiB in total (to allow more, raise describe.size); \
                 its previous version stays in service"
        );
        assert_eq!(
            files.remarks.len(),
            if large == "docs.prompts" { 1 } else { 2 }
        );
        (0..3).for_each(|n| folder.write(&format!("docs.resources/{n}.md"), "x"));
    }
    let files = folder.load(&SMALL, &PlainFiles::default()).unwrap();
    assert_eq!((files.prompts.len(), files.resources.len()), (0, 0));
    assert_eq!(
        files.remarks[1],
        "docs.resources: it has too many files: at most 3 files are allowed (to allow more, raise describe.resources); \
             nothing in it is offered"
    );
}
