//! Source maps (ECMA-426): the positions of an author's files in a bundle.

use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

/// Maximum size of a source map, in bytes.
const MAX_MAP_BYTES: u64 = 64 << 20;

/// The source map of one bundle.
#[derive(Debug)]
pub(super) struct SourceMap {
    /// The paths of the sources, relative to the folder of the project.
    sources: Vec<String>,
    /// The segments of each line of the bundle, by column.
    lines: Vec<Vec<MapSegment>>,
}

/// The beginning of a part of a line, with its origin. All numbers begin at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MapSegment {
    column: u32,
    origin: Option<MapOrigin>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MapOrigin {
    source: u32,
    line: u32,
    column: u32,
}

/// A position in a file of the author. The line and the column begin at 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SourcePosition<'a> {
    pub(super) file: &'a str,
    pub(super) line: u32,
    pub(super) column: u32,
}

#[derive(Deserialize)]
struct MapFile {
    version: u32,
    #[serde(rename = "sourceRoot", default)]
    source_root: Option<String>,
    sources: Vec<Option<String>>,
    mappings: String,
}

impl SourceMap {
    /// Reads a source map. `folder` is its folder, relative to the project. Returns `None` if the
    /// file does not exist or is not a source map.
    pub(super) fn read(project: &Path, folder: &Path, name: &str) -> Option<Self> {
        let path = project.join(folder).join(name);
        let size = std::fs::metadata(&path).ok()?.len();
        if size > MAX_MAP_BYTES {
            return None;
        }
        Self::parse(&std::fs::read(path).ok()?, folder)
    }

    fn parse(bytes: &[u8], folder: &Path) -> Option<Self> {
        let file: MapFile = serde_json::from_slice(bytes).ok()?;
        if file.version != 3 {
            return None;
        }
        let root = file.source_root.unwrap_or_default();
        let sources = file.sources.into_iter().map(|source| {
            let source = source.unwrap_or_default();
            normalize(&folder.join(&root).join(source))
        });
        Some(Self {
            sources: sources.collect(),
            lines: parse_mappings(&file.mappings)?,
        })
    }

    /// Returns the origin of a position in the bundle, whose line and column begin at 1.
    pub(super) fn origin(&self, line: u32, column: u32) -> Option<SourcePosition<'_>> {
        let segments = self
            .lines
            .get(usize::try_from(line.checked_sub(1)?).ok()?)?;
        let column = column.checked_sub(1)?;
        let count = segments.partition_point(|segment| segment.column <= column);
        let origin = segments.get(count.checked_sub(1)?)?.origin?;
        Some(SourcePosition {
            file: self.sources.get(usize::try_from(origin.source).ok()?)?,
            line: origin.line.checked_add(1)?,
            column: origin.column.checked_add(1)?,
        })
    }
}

/// Resolves `.` and `..` in a path without reading it.
fn normalize(path: &Path) -> String {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if out.file_name().is_some() => {
                out.pop();
            }
            component => out.push(component),
        }
    }
    out.to_string_lossy().into_owned()
}

/// Parses `mappings`: lines, which `;` ends, of segments, which `,` separates.
fn parse_mappings(text: &str) -> Option<Vec<Vec<MapSegment>>> {
    // Each number is relative to the one before it. Only that of the column begins anew in a line.
    let [mut source, mut line, mut column] = [0_u32; 3];
    let mut lines = Vec::new();
    for line_text in text.split(';') {
        let mut bundle_column = 0;
        let mut segments = Vec::new();
        for segment in line_text.split(',').filter(|segment| !segment.is_empty()) {
            let numbers = parse_numbers(segment)?;
            let mut numbers = numbers.into_iter();
            let mut add = |value: &mut u32| {
                let number = numbers.next()?;
                *value = u32::try_from(i64::from(*value) + number).ok()?;
                Some(*value)
            };
            let at = add(&mut bundle_column)?;
            let origin = if let Some(source) = add(&mut source) {
                Some(MapOrigin {
                    source,
                    line: add(&mut line)?,
                    column: add(&mut column)?,
                })
            } else {
                None
            };
            segments.push(MapSegment { column: at, origin });
        }
        segments.sort_by_key(|segment| segment.column);
        lines.push(segments);
    }
    Some(lines)
}

/// Parses the base64 VLQ numbers of a segment.
fn parse_numbers(segment: &str) -> Option<Vec<i64>> {
    let mut numbers = Vec::new();
    let (mut value, mut shift) = (0_i64, 0_u32);
    for byte in segment.bytes() {
        let digit = i64::from(match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        });
        // No number of a source map has more than 32 bits.
        if shift > 30 {
            return None;
        }
        value |= (digit & 31) << shift;
        shift += 5;
        if digit & 32 == 0 {
            let magnitude = value >> 1;
            numbers.push(if value & 1 == 1 {
                -magnitude
            } else {
                magnitude
            });
            (value, shift) = (0, 0);
        }
    }
    (shift == 0).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From esbuild, for a bundle of two files.
    const MAP: &str = r#"{"version": 3, "sources": ["../src/b.js", "../src/a.js"], "names": [],
        "mappings": ";AAAO,SAAS,EAAE,GAAG;AACnB,SAAO,EAAE;AACX;;;ACAA,EAAE,CAAC,CAAC;"}"#;

    fn map() -> SourceMap {
        SourceMap::parse(MAP.as_bytes(), Path::new("build")).unwrap()
    }

    #[test]
    fn positions_are_found_in_the_authors_files() {
        let map = map();
        let at = |line, column| {
            map.origin(line, column)
                .map(|SourcePosition { file, line, column }| format!("{file}:{line}:{column}"))
        };
        assert_eq!(at(2, 1).as_deref(), Some("src/b.js:1:8"));
        assert_eq!(at(3, 3).as_deref(), Some("src/b.js:2:3"));
        // Within a segment, the origin is its beginning.
        assert_eq!(at(3, 6).as_deref(), Some("src/b.js:2:3"));
        assert_eq!(at(3, 10).as_deref(), Some("src/b.js:2:10"));
        assert_eq!(at(7, 1).as_deref(), Some("src/a.js:3:1"));
        for (line, column) in [(0, 1), (1, 1), (2, 0), (99, 1), (u32::MAX, u32::MAX)] {
            assert_eq!(at(line, column), None, "{line}:{column}");
        }
    }

    #[test]
    fn what_is_not_a_source_map_is_ignored() {
        for text in [
            "",
            "{}",
            "[]",
            r#"{"version": 2, "sources": [], "mappings": ""}"#,
            r#"{"version": 3, "sources": [], "mappings": "A!"}"#,
            r#"{"version": 3, "sources": [], "mappings": "g"}"#,
            r#"{"version": 3, "sources": [], "mappings": "D"}"#,
            r#"{"version": 3, "sources": [], "mappings": "gggggggggggggggggggggA"}"#,
        ] {
            assert!(
                SourceMap::parse(text.as_bytes(), Path::new("build")).is_none(),
                "{text}"
            );
        }
        // A source that the map does not list has no position.
        let lacking = r#"{"version": 3, "sources": [null], "mappings": "AACA,CCAA"}"#;
        let map = SourceMap::parse(lacking.as_bytes(), Path::new("build")).unwrap();
        assert_eq!(map.origin(1, 2), None);
    }
}
