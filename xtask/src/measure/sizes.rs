//! Sizes of files.

use super::figure::Measure;
use super::source::SourceFile;

/// Measures the largest file, and the size that nine files of ten do not exceed, in lines.
pub(super) fn measure(files: &[SourceFile]) -> Vec<Measure> {
    let mut sizes: Vec<(usize, &str)> = files
        .iter()
        .map(|file| (file.lines.len(), file.path.as_str()))
        .collect();
    sizes.sort_unstable();
    let largest = sizes.last().map_or(0, |(lines, _)| *lines);
    let ninetieth = sizes
        .get(sizes.len() * 9 / 10)
        .map_or(0, |(lines, _)| *lines);
    let over = |limit: usize| {
        sizes
            .iter()
            .rev()
            .filter(|(lines, _)| *lines > limit)
            .map(|(lines, path)| format!("{path}: {lines}"))
            .collect()
    };
    vec![
        Measure::of_count("largest file, in lines", largest, 500, over(500)),
        Measure::of_count(
            "90th percentile of files, in lines",
            ninetieth,
            300,
            over(300),
        ),
    ]
}
