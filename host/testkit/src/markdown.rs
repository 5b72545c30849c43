//! Extracts the code blocks of a Markdown page, so that tests can check the code that readers copy,
//! and replaces the generated parts of a page.

use anyhow::{Context, Result, ensure};

/// A fenced code block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeBlock {
    /// The line number of the opening fence, starting at 1.
    pub line: usize,
    /// The words after the opening fence, separated by commas and spaces: the language, then
    /// attributes such as `ignore`.
    pub labels: Vec<String>,
    /// The code, without the indentation of the fence.
    pub text: String,
}

impl CodeBlock {
    /// Returns the language, or an empty string if the block declares none.
    pub fn language(&self) -> &str {
        self.labels.first().map_or("", String::as_str)
    }
}

/// Returns all fenced code blocks of a page. As in Markdown, an unclosed block ends with the page.
pub fn code_blocks(page: &str) -> Vec<CodeBlock> {
    let mut blocks = Vec::new();
    let mut open: Option<(CodeFence, CodeBlock)> = None;
    for (index, line) in page.lines().enumerate() {
        match open.take() {
            Some((fence, block)) if fence.is_closed_by(line) => blocks.push(block),
            Some((fence, mut block)) => {
                block.text.push_str(fence.strip_indent(line));
                block.text.push('\n');
                open = Some((fence, block));
            }
            None => {
                open = CodeFence::parse_opening(line).map(|(fence, info)| {
                    let labels = info
                        .split([',', ' ', '\t'])
                        .filter(|label| !label.is_empty())
                        .map(str::to_owned);
                    (
                        fence,
                        CodeBlock {
                            line: index + 1,
                            labels: labels.collect(),
                            text: String::new(),
                        },
                    )
                });
            }
        }
    }
    blocks.extend(open.map(|(_, block)| block));
    blocks
}

/// The opening fence of a code block. The closing fence is at least as long.
struct CodeFence {
    mark: char,
    length: usize,
    indent: usize,
}

impl CodeFence {
    fn parse_opening(line: &str) -> Option<(Self, &str)> {
        let (indent, mark, length, info) = parse_fence(line)?;
        // Backticks in the rest of the line make it inline code.
        (!(mark == '`' && info.contains('`'))).then_some((
            Self {
                mark,
                length,
                indent,
            },
            info,
        ))
    }

    fn is_closed_by(&self, line: &str) -> bool {
        parse_fence(line).is_some_and(|(_, mark, length, info)| {
            mark == self.mark && length >= self.length && info.is_empty()
        })
    }

    fn strip_indent<'a>(&self, line: &'a str) -> &'a str {
        let spaces = line.len() - line.trim_start_matches(' ').len();
        line.get(spaces.min(self.indent)..).unwrap_or_default()
    }
}

/// Parses a fence. Returns the indentation, the fence character, the number of fence characters and
/// the rest of the line.
fn parse_fence(line: &str) -> Option<(usize, char, usize, &str)> {
    let bare = line.trim_start_matches(' ');
    let mark = bare
        .chars()
        .next()
        .filter(|mark| matches!(mark, '`' | '~'))?;
    let info = bare.trim_start_matches(mark);
    let length = bare.len() - info.len();
    (length >= 3).then_some((line.len() - bare.len(), mark, length, info.trim()))
}

/// Returns a page in which `text` replaces the text between the markers of `part`, which are
/// `<!-- part: begin -->` and `<!-- part: end -->`.
///
/// # Errors
///
/// Fails if the page lacks a marker or `text` has one.
pub fn replace_part(page: &str, part: &str, text: &str) -> Result<String> {
    let begin = format!("<!-- {part}: begin -->\n");
    let end = format!("<!-- {part}: end -->");
    let (before, rest) = page
        .split_once(&begin)
        .with_context(|| format!("no {}", begin.trim_end()))?;
    let (_, after) = rest.split_once(&end).with_context(|| format!("no {end}"))?;
    ensure!(!text.contains("<!--"), "a text with a marker");
    Ok(format!("{before}{begin}\n{}\n\n{end}{after}", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(page: &str) -> Vec<(usize, String, String)> {
        code_blocks(page)
            .into_iter()
            .map(|block| (block.line, block.labels.join("+"), block.text))
            .collect()
    }

    #[test]
    fn blocks_have_a_line_labels_and_text() {
        let page = "# A\n\n```toml\na = 1\n\nb = 2\n```\nText ```not a block``` here.\n\n~~~rust,ignore should_panic\nx\n~~~\n";
        let expected = [
            (3, "toml", "a = 1\n\nb = 2\n"),
            (10, "rust+ignore+should_panic", "x\n"),
        ];
        assert_eq!(
            found(page),
            expected.map(|(line, labels, text)| (line, labels.to_owned(), text.to_owned()))
        );
        assert_eq!(code_blocks(page)[1].language(), "rust");
    }

    #[test]
    fn a_block_ends_with_a_fence_of_its_kind_or_the_page() {
        assert_eq!(
            found("````md\n```\nx\n```\n````\n"),
            [(1, "md".to_owned(), "```\nx\n```\n".to_owned())]
        );
        assert_eq!(
            found("```\n~~~\n```toml\n"),
            [(1, String::new(), "~~~\n```toml\n".to_owned())]
        );
        assert_eq!(found("```x`y`\n"), []);
    }

    #[test]
    fn the_indentation_of_a_list_is_not_part_of_the_code() {
        assert_eq!(
            found("- a:\n\n  ```json\n  {\n    \"a\": 1\n }\n  ```\n"),
            [(3, "json".to_owned(), "{\n  \"a\": 1\n}\n".to_owned())]
        );
    }

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let page = "a\n<!-- x: begin -->\nold\n<!-- x: end -->\nb\n";
        let new = replace_part(page, "x", "new\n\n").unwrap();
        assert_eq!(new, "a\n<!-- x: begin -->\n\nnew\n\n<!-- x: end -->\nb\n");
        assert_eq!(
            replace_part(&new, "x", "new").unwrap(),
            new,
            "the same once more"
        );
        assert!(replace_part(page, "y", "").is_err());
        assert!(replace_part(page, "x", "<!-- x: end -->").is_err());
    }
}
