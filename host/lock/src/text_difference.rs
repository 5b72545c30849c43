//! The changed lines of a text.

use similar::{ChangeTag, TextDiff};

/// Maximum number of unchanged lines that are shown before and after a changed one.
const CONTEXT_LINES: usize = 1;

/// Maximum length of a shown line, in characters. A longer one is split, so that nothing in it is
/// hidden.
const MAX_LINE_CHARS: usize = 160;

/// Returns the changed lines of a text, with `- ` or `+ ` before each and a little context.
pub(crate) fn changed_lines(before: &str, after: &str) -> Vec<String> {
    let (before, after) = (wrap_lines(before), wrap_lines(after));
    let difference = TextDiff::from_lines(before.as_str(), after.as_str());
    let mut lines = Vec::new();
    for (number, group) in difference.grouped_ops(CONTEXT_LINES).iter().enumerate() {
        if number > 0 {
            lines.push("  …".to_owned());
        }
        let changes = group.iter().flat_map(|op| difference.iter_changes(op));
        for change in changes {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            lines.push(format!("{sign} {}", change.value().trim_end_matches('\n')));
        }
    }
    lines
}

/// Returns all lines of a text with `sign` before each.
pub(crate) fn signed_lines(sign: char, text: &str) -> Vec<String> {
    wrap_lines(text)
        .lines()
        .map(|line| format!("{sign} {line}"))
        .collect()
}

/// Returns the text with long lines split, and each line ended.
fn wrap_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    for line in text.split('\n') {
        let mut width = 0;
        for word in line.split_inclusive(' ') {
            let chars = word.chars().count();
            if width > 0 && width + chars > MAX_LINE_CHARS {
                out.push('\n');
                width = 0;
            }
            for c in word.chars() {
                if width == MAX_LINE_CHARS {
                    out.push('\n');
                    width = 0;
                }
                out.push(c);
                width += 1;
            }
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_have_signs_and_little_context() {
        let before = "one\ntwo\nthree\nfour\nfive\nsix\nseven";
        let after = "one\nTWO\nthree\nfour\nfive\nsix\nseven\neight";
        insta::assert_snapshot!(changed_lines(before, after).join("\n"), @r"
          one
        - two
        + TWO
          three
          …
          seven
        + eight
        ");
    }

    #[test]
    fn long_line_is_split_instead_of_cut() {
        let hidden = format!("Adds.{}Hidden text.", " ".repeat(5_000));
        let lines = changed_lines("Adds.", &hidden);
        assert!(lines.iter().any(|line| line.contains("Hidden text.")));
        assert!(
            lines
                .iter()
                .all(|line| line.chars().count() <= MAX_LINE_CHARS + 2)
        );
        let unbroken = "x".repeat(1_000);
        assert_eq!(signed_lines('+', &unbroken).len(), 7);
    }

    #[test]
    fn equal_texts_have_no_changed_lines() {
        assert!(changed_lines("a\nb", "a\nb").is_empty());
    }
}
