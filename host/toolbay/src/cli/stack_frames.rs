//! Stack frames of plugins, with the author's files: the paths in a plugin are those of its build.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use toolbay_model::text::clean_line;

use super::source_map::{SourceMap, SourcePosition};

/// Maximum number of source maps that are read for one project. A plugin can name any path.
const MAX_MAPS: usize = 16;

/// Maximum size of a file from which source lines are shown, in bytes.
const MAX_SOURCE_BYTES: u64 = 4 << 20;

/// Maximum size of a shown source line, in bytes.
const MAX_SOURCE_LINE_BYTES: usize = 300;

/// Folders of a project that contain the files of a Python plugin. The empty path is the project.
const PYTHON_FOLDERS: [&str; 2] = ["src", ""];

/// Finds the author's files for stack frames.
#[derive(Default)]
pub(super) struct StackFrames {
    /// The folder of the project; `None` if it is unknown.
    project: Option<PathBuf>,
    /// The source maps by the path of their bundle; `None` for a bundle that has none.
    maps: Mutex<BTreeMap<PathBuf, Option<Arc<SourceMap>>>>,
}

impl StackFrames {
    /// Creates the frames of the plugin that this project builds.
    pub(super) fn of_project(folder: &Path) -> Self {
        Self {
            project: Some(folder.to_owned()),
            maps: Mutex::default(),
        }
    }

    /// Returns a line of a plugin's text with the author's file in place of that in the build. A
    /// line of a Python traceback is followed by the source line.
    pub(super) fn map_line(&self, line: &str) -> Vec<String> {
        let Some(project) = &self.project else {
            return vec![line.to_owned()];
        };
        if let Some(lines) = map_python_line(project, line) {
            return lines;
        }
        vec![
            self.map_script_line(project, line)
                .unwrap_or_else(|| line.to_owned()),
        ]
    }

    /// Replaces a position such as `/build/app.js:638:5`, if there is a source map next to the
    /// bundle. Returns `None` if the line has no such position.
    fn map_script_line(&self, project: &Path, line: &str) -> Option<String> {
        let is_delimiter = |c: char| c.is_whitespace() || matches!(c, '(' | ')');
        line.split(is_delimiter).find_map(|word| {
            let (rest, column) = word.rsplit_once(':')?;
            let (path, row) = rest.rsplit_once(':')?;
            let (row, column) = (row.parse().ok()?, column.parse().ok()?);
            let bundle = relative_path(path.strip_prefix("file://").unwrap_or(path))?;
            let map = self.source_map(project, &bundle)?;
            let SourcePosition {
                file,
                line: row,
                column,
            } = map.origin(row, column)?;
            Some(line.replacen(word, &format!("{file}:{row}:{column}"), 1))
        })
    }

    /// Returns the source map of a bundle, which is read once.
    fn source_map(&self, project: &Path, bundle: &Path) -> Option<Arc<SourceMap>> {
        let mut maps = self.maps.lock();
        if let Some(map) = maps.get(bundle) {
            return map.clone();
        }
        if maps.len() >= MAX_MAPS {
            return None;
        }
        let name = format!("{}.map", bundle.file_name()?.to_str()?);
        let folder = bundle.parent().unwrap_or(Path::new(""));
        let map = SourceMap::read(project, folder, &name).map(Arc::new);
        maps.insert(bundle.to_owned(), map.clone());
        map
    }
}

/// Returns whether a denial is that of an interpreter that looks for the source of its own files, to
/// show a stack.
pub(super) fn is_source_lookup(denial: &str) -> bool {
    denial.split_whitespace().any(|word| {
        let path = python_path(word.trim_end_matches(['.', ',', ':']));
        path.is_some_and(|path| Path::new(path).extension().is_some_and(|end| end == "py"))
    })
}

/// Returns a path of a plugin as a path within the project, if it has only normal parts.
fn relative_path(path: &str) -> Option<PathBuf> {
    let path = Path::new(path.trim_start_matches('/'));
    let is_normal = path
        .components()
        .all(|component| matches!(component, Component::Normal(_)));
    (is_normal && path.file_name().is_some()).then(|| path.to_owned())
}

/// Returns the path within a folder of Python's modules: componentize-py numbers these folders, as
/// in `/0/app.py`.
fn python_path(path: &str) -> Option<&str> {
    let (number, rest) = path.strip_prefix('/')?.split_once('/')?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(rest)
}

/// Replaces the file in a line of a Python traceback, such as `  File "/0/app.py", line 113, in
/// main`. The source line follows.
fn map_python_line(project: &Path, line: &str) -> Option<Vec<String>> {
    let indent = line.len() - line.trim_start().len();
    let quoted = line.trim_start().strip_prefix("File \"")?;
    let (path, rest) = quoted.split_once('"')?;
    let relative = relative_path(python_path(path)?)?;
    let file = PYTHON_FOLDERS
        .iter()
        .map(|folder| Path::new(folder).join(&relative))
        .find(|file| project.join(file).is_file())?;
    let indent = line.get(..indent)?;
    let mut lines = vec![format!("{indent}File \"{}\"{rest}", file.display())];
    let number = rest.strip_prefix(", line ").and_then(|rest| {
        rest.split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse::<usize>()
            .ok()
    });
    if let Some(source) = number.and_then(|number| source_line(&project.join(&file), number)) {
        lines.push(format!("{indent}  {source}"));
    }
    Some(lines)
}

/// Returns a line of a file, without its indentation. The first line has the number 1.
fn source_line(file: &Path, number: usize) -> Option<String> {
    if std::fs::metadata(file).ok()?.len() > MAX_SOURCE_BYTES {
        return None;
    }
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().nth(number.checked_sub(1)?)?.trim();
    (!line.is_empty()).then(|| clean_line(line, MAX_SOURCE_LINE_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a project with a bundle of two lines, and with Python modules.
    fn project() -> (tempfile::TempDir, StackFrames) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            (
                "build/app.js.map",
                r#"{"version": 3, "sources": ["../src/app.js"], "mappings": "AAAA;AACE"}"#,
            ),
            ("src/app.py", "import json\n\n  x = 1 / 0\u{1b}[2J\n"),
            ("toolbay/registry.py", "first\n"),
        ] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let frames = StackFrames::of_project(folder.path());
        (folder, frames)
    }

    #[test]
    fn frames_have_the_authors_files() {
        let (_folder, frames) = project();
        for (line, mapped) in [
            (
                "    at inner (/build/app.js:2:3)",
                &["    at inner (src/app.js:2:3)"][..],
            ),
            ("at file:///build/app.js:1:1", &["at src/app.js:1:1"]),
            (
                "  File \"/0/app.py\", line 3, in main",
                &["  File \"src/app.py\", line 3, in main", "    x = 1 / 0"],
            ),
            (
                "  File \"/1/toolbay/registry.py\", line 9, in call",
                &["  File \"toolbay/registry.py\", line 9, in call"],
            ),
        ] {
            assert_eq!(frames.map_line(line), mapped, "{line}");
        }
    }

    #[test]
    fn other_lines_stay_as_they_are() {
        let (folder, frames) = project();
        let outside = folder.path().join("secret.js.map");
        std::fs::write(&outside, "").unwrap();
        for line in [
            "",
            "no position",
            "at (/build/app.js:99:1)",
            "at (/build/other.js:1:1)",
            "at (/build/../build/app.js:1:1)",
            "at (/:1:1)",
            "12:30:45 started",
            "  File \"/0/missing.py\", line 3, in main",
            "  File \"/0/../src/app.py\", line 3, in main",
            "  File \"/usr/lib/app.py\", line 3, in main",
            "  File \"/0/app.py",
        ] {
            assert_eq!(frames.map_line(line), [line], "{line}");
        }
        assert_eq!(
            StackFrames::default().map_line("at (/build/app.js:2:3)"),
            ["at (/build/app.js:2:3)"]
        );
        // Many bundles are not all read.
        for number in 0..100 {
            frames.map_line(&format!("at (/build/{number}.js:1:1)"));
        }
        assert_eq!(frames.maps.lock().len(), MAX_MAPS);
    }

    #[test]
    fn the_lookup_of_a_source_line_is_recognized() {
        let denial = |path: &str| format!("No folder that this tool may use contains {path}.");
        assert!(is_source_lookup(&denial("/1/toolbay/registry.py")));
        for other in ["/notes/a.txt", "/1/notes.txt", "/etc/app.py", "/0x/a.py"] {
            assert!(!is_source_lookup(&denial(other)), "{other}");
        }
    }
}
