//! Tools that work on texts.

mod slug;

use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff};
use std::time::Duration;
use toolbay_plugin::prelude::*;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Text {
    /// The text.
    text: String,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct Count {
    /// Words, separated by white space.
    #[schemars(range(max = 4_294_967_295_u64))]
    words: usize,
    /// Lines. A line break at the end does not start another line.
    #[schemars(range(max = 4_294_967_295_u64))]
    lines: usize,
    /// Characters: Unicode code points, line breaks included.
    #[schemars(range(max = 4_294_967_295_u64))]
    characters: usize,
}

/// Counts the words, lines and characters of a text.
#[tool(title = "Word count", read_only, idempotent, open_world = false)]
fn count_words(args: Text) -> Json<Count> {
    Json(Count {
        words: args.text.split_whitespace().count(),
        lines: args.text.lines().count(),
        characters: args.text.chars().count(),
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Title {
    /// The text, such as the title of an article.
    text: String,
    /// The separator between words.
    #[serde(default)]
    separator: slug::Separator,
    /// The maximum number of characters. The slug is cut between words if possible.
    #[serde(default = "default_length")]
    #[schemars(range(min = 1, max = 1000))]
    max_length: usize,
}

fn default_length() -> usize {
    80
}

/// Turns a text into a slug for URLs and file names: lower-case letters and digits of any script,
/// with a separator between words. `Hello, World!` becomes `hello-world`.
#[tool(title = "Slug", read_only, idempotent, open_world = false)]
fn slugify(args: Title) -> Result<String> {
    let slug = slug::of(&args.text, args.separator, args.max_length);
    if slug.is_empty() {
        invalid!("`text` has no letter and no digit to make a name of");
    }
    Ok(slug)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Texts {
    /// The old text.
    old: String,
    /// The new text.
    new: String,
    /// The name of both in the header of the diff, such as a file name.
    #[serde(default = "default_name")]
    #[schemars(length(min = 1, max = 1000))]
    name: String,
    /// How many unchanged lines to show around a change.
    #[serde(default = "default_context")]
    #[schemars(range(max = 1000))]
    context: usize,
}

fn default_name() -> String {
    "text".to_owned()
}

fn default_context() -> usize {
    3
}

#[derive(Serialize, JsonSchema)]
struct Difference {
    /// Number of lines that only the new text has.
    #[schemars(range(max = 4_294_967_295_u64))]
    added: usize,
    /// Number of lines that only the old text has.
    #[schemars(range(max = 4_294_967_295_u64))]
    removed: usize,
    /// The unified diff; empty if the texts are equal.
    diff: String,
}

/// Time limit for the diff. After it, the diff is correct but longer than necessary: finding the
/// shortest one for two large texts that have nothing in common takes very long.
const PATIENCE: Duration = Duration::from_secs(2);

/// Compares two texts line by line and returns the changes as a unified diff, which `patch` and
/// `git apply` understand.
#[tool(title = "Diff", read_only, idempotent, open_world = false)]
fn diff_texts(args: Texts) -> Json<Difference> {
    let changes = TextDiff::configure()
        .timeout(PATIENCE)
        .diff_lines(&args.old, &args.new);
    let count = |tag| {
        changes
            .iter_all_changes()
            .filter(|change| change.tag() == tag)
            .count()
    };
    Json(Difference {
        added: count(ChangeTag::Insert),
        removed: count(ChangeTag::Delete),
        diff: changes
            .unified_diff()
            .context_radius(args.context)
            .header(&format!("a/{}", args.name), &format!("b/{}", args.name))
            .to_string(),
    })
}

export!(count_words, slugify, diff_texts);

#[cfg(test)]
mod tests {
    use super::*;
    use toolbay_plugin::{serde_json::json, test};

    #[test]
    fn counts() {
        let text = "one two\n  drei äöü\n".to_owned();
        let expected = Count {
            words: 4,
            lines: 2,
            characters: 19,
        };
        assert_eq!(count_words(Text { text }), Json(expected));
    }

    #[test]
    fn defaults_make_an_ordinary_slug() {
        let arguments = json!({"text": "Hello, World!"});
        let output = test::call::<slugify>(arguments, &Context::test()).unwrap();
        assert_eq!(output.text(), "hello-world");
    }

    #[test]
    fn no_letter_is_no_slug() {
        let error = test::call::<slugify>(json!({"text": "?!"}), &Context::test()).unwrap_err();
        assert!(error.is_invalid_arguments());
    }

    #[test]
    fn a_diff_can_be_applied() {
        let arguments = json!({"old": "a\nb\nc\n", "new": "a\nB\nc\nd\n", "context": 1});
        let output = test::call::<diff_texts>(arguments, &Context::test()).unwrap();
        assert_eq!(
            output.json().unwrap(),
            json!({
                "added": 2,
                "removed": 1,
                "diff": "--- a/text\n+++ b/text\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n c\n+d\n"
            })
        );
    }

    #[test]
    fn equal_texts_have_no_diff() {
        let arguments = json!({"old": "a", "new": "a"});
        let output = test::call::<diff_texts>(arguments, &Context::test()).unwrap();
        assert_eq!(output.json().unwrap()["diff"], "");
    }
}
