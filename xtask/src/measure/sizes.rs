//! Sizes of files.

use super::Measure;
use super::source::SourceFile;

/// Measures the largest file, and the size that nine files of ten do not exceed, in lines.
pub(super) fn measure(files: &[SourceFile]) -> Vec<Measure> {
    let mut sizes: Vec<(usize, &str)> = files.iter().map(|file| (file.lines.len(), file.path.as_str())).collect();
    sizes.sort_unstable();
    let largest = sizes.last().map_or(0, |(lines, _)| *lines);
    let ninetieth = sizes.get(sizes.len() * 9 / 10).map_or(0, |(lines, _)| *lines);
    let over = |limit: usize| {
        sizes.iter().rev().filter(|(lines, _)| *lines > limit).map(|(lines, path)| format!("{path}: {lines}")).collect()
    };
    vec![
        Measure { name: "largest file, in lines", value: largest as f64, limit: 500.0, places: over(500) },
        Measure {
            name: "90th percentile of files, in lines",
            value: ninetieth as f64,
            limit: 300.0,
            places: over(300),
        },
    ]
}
