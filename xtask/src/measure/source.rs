//! The source files that are measured.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use toolbay_testkit::command;
use toolbay_testkit::workspace::CargoWorkspace;

/// A source file of the host, without its tests.
pub(super) struct SourceFile {
    /// The path from the root of the repository.
    pub(super) path: String,
    /// The lines before the first inline test module.
    pub(super) lines: Vec<String>,
}

/// Reads the production code of every crate of the host. The test kit is not part of the host.
pub(super) fn host(workspace: &CargoWorkspace) -> Result<Vec<SourceFile>> {
    let mut git = Command::new("git");
    let listed = command::output(
        git.args(["ls-files", "--", "host/*/src/*.rs"])
            .current_dir(&workspace.root),
    )?;
    let mut files = Vec::new();
    for path in listed.lines().filter(|path| is_production(path)) {
        let text = fs::read_to_string(workspace.root.join(path))
            .with_context(|| format!("failed to read {path}"))?;
        files.push(SourceFile {
            path: path.to_owned(),
            lines: without_tests(&text),
        });
    }
    Ok(files)
}

fn is_production(path: &str) -> bool {
    let is_test = |part: &str| matches!(part, "tests" | "tests.rs");
    !path.starts_with("host/testkit/") && !path.split('/').any(is_test)
}

/// Returns the lines before the first inline module that is compiled only for tests.
fn without_tests(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let starts_tests = |index: usize| {
        lines
            .get(index)
            .is_some_and(|line| line.starts_with("#[cfg(test)]"))
            && lines
                .get(index + 1)
                .is_some_and(|next| is_module(next) && next.ends_with('{'))
    };
    let end = (0..lines.len())
        .find(|index| starts_tests(*index))
        .unwrap_or(lines.len());
    lines.into_iter().take(end).map(str::to_owned).collect()
}

/// Returns whether a line that is not indented begins a module.
fn is_module(line: &str) -> bool {
    let visibility = ["pub(crate) ", "pub(super) ", "pub "];
    let item = visibility
        .iter()
        .find_map(|visibility| line.strip_prefix(visibility));
    item.unwrap_or(line).starts_with("mod ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_inline_test_modules_are_left_out() {
        for module in ["mod checks {", "pub(crate) mod checks {"] {
            let text =
                format!("#[cfg(test)]\nmod tests;\n\nstruct A;\n\n#[cfg(test)]\n{module}\n}}\n");
            assert_eq!(
                without_tests(&text),
                ["#[cfg(test)]", "mod tests;", "", "struct A;", ""]
            );
        }
    }

    #[test]
    fn files_of_tests_are_left_out() {
        assert!(is_production("host/mcp/src/http/reply.rs"));
        for test in [
            "host/mcp/src/tests/a.rs",
            "host/mcp/src/retry/tests.rs",
            "host/testkit/src/lib.rs",
        ] {
            assert!(!is_production(test), "{test}");
        }
    }
}
