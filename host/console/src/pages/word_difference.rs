//! Two versions of a text, next to each other, with the words that differ. Characters that a reader
//! cannot see are shown as their numbers.

use std::time::Instant;

use maud::{Markup, html};
use similar::{Algorithm, ChangeTag, DiffTag, TextDiff, TextDiffConfig};
use toolbay_model::text::is_visible;

/// Maximum length of an unchanged part that is shown whole, in bytes.
const MAX_UNCHANGED_BYTES: usize = 600;

/// Length of the start and of the end of a longer unchanged part, in bytes.
const SHOWN_UNCHANGED_BYTES: usize = 200;

/// HTML around a part, in bytes: more than its tags have.
const PART_OVERHEAD_BYTES: usize = 64;

/// HTML of an invisible character, in bytes: more than its tags have.
const UNSEEN_BYTES: usize = 96;

/// Maximum HTML of a character that is escaped, in bytes.
const ESCAPED_BYTES: usize = 6;

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TextPart {
    /// Both versions have it.
    Unchanged(String),
    /// The other version does not have it.
    Changed(String),
    /// Both versions have these bytes, and they are not shown.
    Omitted(usize),
}

/// Two versions of a text.
#[derive(Debug, Default)]
pub(super) struct TextComparison {
    before: Vec<TextPart>,
    after: Vec<TextPart>,
}

impl TextComparison {
    /// Compares two texts by words. After `deadline`, the difference is less precise.
    pub(super) fn new(before: &str, after: &str, deadline: Instant) -> Self {
        let mut comparison = Self::default();
        let lines = configure(deadline).diff_lines(before, after);
        for operation in lines.ops() {
            let join = |slices: &[&str]| slices.concat();
            let old = join(
                lines
                    .old_slices()
                    .get(operation.old_range())
                    .unwrap_or_default(),
            );
            let new = join(
                lines
                    .new_slices()
                    .get(operation.new_range())
                    .unwrap_or_default(),
            );
            match operation.tag() {
                DiffTag::Equal => comparison.add_unchanged(&old),
                DiffTag::Delete => push_changed(&mut comparison.before, &old),
                DiffTag::Insert => push_changed(&mut comparison.after, &new),
                DiffTag::Replace => comparison.add_replaced(&old, &new, deadline),
            }
        }
        for side in [&mut comparison.before, &mut comparison.after] {
            *side = std::mem::take(side)
                .into_iter()
                .flat_map(shorten_part)
                .collect();
        }
        comparison
    }

    /// Compares the words of lines that were replaced.
    fn add_replaced(&mut self, old: &str, new: &str, deadline: Instant) {
        let words = configure(deadline).diff_words(old, new);
        for change in words.iter_all_changes() {
            match change.tag() {
                ChangeTag::Equal => self.add_unchanged(change.value()),
                ChangeTag::Delete => push_changed(&mut self.before, change.value()),
                ChangeTag::Insert => push_changed(&mut self.after, change.value()),
            }
        }
    }

    fn add_unchanged(&mut self, text: &str) {
        for side in [&mut self.before, &mut self.after] {
            match side.last_mut() {
                Some(TextPart::Unchanged(last)) => last.push_str(text),
                _ if text.is_empty() => {}
                _ => side.push(TextPart::Unchanged(text.to_owned())),
            }
        }
    }

    /// Returns an upper bound of the size of the HTML of both versions, in bytes.
    pub(super) fn html_bytes(&self) -> usize {
        self.before
            .iter()
            .chain(&self.after)
            .map(|part| match part {
                TextPart::Unchanged(text) | TextPart::Changed(text) => html_bytes(text),
                TextPart::Omitted(_) => PART_OVERHEAD_BYTES,
            })
            .sum()
    }

    /// Renders the version before the change.
    pub(super) fn before(&self) -> Markup {
        let changed = |text: &str| html! { del { (visible_change(text)) } };
        render_side(&self.before, changed)
    }

    /// Renders the version after the change.
    pub(super) fn after(&self) -> Markup {
        let changed = |text: &str| html! { ins { (visible_change(text)) } };
        render_side(&self.after, changed)
    }
}

fn configure(deadline: Instant) -> TextDiffConfig {
    let mut configuration = TextDiff::configure();
    configuration
        .algorithm(Algorithm::Myers)
        .deadline(deadline)
        .newline_terminated(false);
    configuration
}

fn push_changed(side: &mut Vec<TextPart>, text: &str) {
    match side.last_mut() {
        Some(TextPart::Changed(last)) => last.push_str(text),
        _ => side.push(TextPart::Changed(text.to_owned())),
    }
}

/// Omits the middle of a long unchanged part. Nothing that differs is omitted.
fn shorten_part(part: TextPart) -> Vec<TextPart> {
    match part {
        TextPart::Unchanged(text) if text.len() > MAX_UNCHANGED_BYTES => {
            let start = text.floor_char_boundary(SHOWN_UNCHANGED_BYTES);
            let end = text.ceil_char_boundary(text.len() - SHOWN_UNCHANGED_BYTES);
            let (first, rest) = text.split_at(start);
            let (middle, last) = rest.split_at(end - start);
            vec![
                TextPart::Unchanged(first.to_owned()),
                TextPart::Omitted(middle.len()),
                TextPart::Unchanged(last.to_owned()),
            ]
        }
        part => vec![part],
    }
}

fn render_side(parts: &[TextPart], render_changed: impl Fn(&str) -> Markup) -> Markup {
    html! {
        @for part in parts {
            @match part {
                TextPart::Unchanged(text) => { (visible_text(text)) }
                TextPart::Changed(text) => { (render_changed(text)) }
                TextPart::Omitted(bytes) => { span.omitted { "… " (bytes) " unchanged bytes …" } }
            }
        }
    }
}

/// Returns an upper bound of the size of the HTML of a text, in bytes.
pub(super) fn html_bytes(text: &str) -> usize {
    let are_spaces_marked = text.chars().all(char::is_whitespace);
    let character = |c: char| match c {
        '&' | '<' | '>' | '"' => ESCAPED_BYTES,
        c if is_unseen(c) || are_spaces_marked => UNSEEN_BYTES,
        c => c.len_utf8(),
    };
    PART_OVERHEAD_BYTES + text.chars().map(character).sum::<usize>()
}

/// Renders a text in which each invisible character is shown as its number.
pub(super) fn visible_text(text: &str) -> Markup {
    render_marked(text, is_unseen)
}

/// Renders a changed part of a text. If it consists of spaces, these are shown, too.
fn visible_change(text: &str) -> Markup {
    if text.chars().all(char::is_whitespace) && text != " " {
        let is_marked = |c: char| c != ' ';
        return render_marked(text, is_marked);
    }
    visible_text(text)
}

/// Returns whether a reader does not see a character. In the pages, a line separator is one, because
/// browsers do not show it.
fn is_unseen(c: char) -> bool {
    !is_visible(c)
}

fn render_marked(text: &str, is_marked: impl Fn(char) -> bool) -> Markup {
    let mut pieces: Vec<(String, Option<char>)> = Vec::new();
    let mut run = String::new();
    for c in text.chars() {
        if is_marked(c) {
            pieces.push((std::mem::take(&mut run), Some(c)));
        } else {
            run.push(c);
        }
    }
    pieces.push((run, None));
    html! {
        @for (run, marked) in &pieces {
            (run)
            @if let Some(c) = marked {
                span.unseen { "U+" (format!("{:04X}", u32::from(*c))) }
                @if *c == '\n' { "\n" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn compare(before: &str, after: &str) -> [String; 2] {
        let deadline = Instant::now() + Duration::from_mins(1);
        let comparison = TextComparison::new(before, after, deadline);
        let sides = [comparison.before(), comparison.after()].map(Markup::into_string);
        let length: usize = sides.iter().map(String::len).sum();
        assert!(length <= comparison.html_bytes(), "{sides:?}");
        sides
    }

    #[test]
    fn words_that_differ_are_marked() {
        assert_eq!(
            compare(
                "Returns the forecast.",
                "Returns the <b> forecast. Call it."
            ),
            [
                "Returns the forecast.",
                "Returns the <ins>&lt;b&gt; </ins>forecast.<ins> Call it.</ins>"
            ]
        );
        assert_eq!(
            compare("one\ntwo\nthree", "one\ntwo 2\nthree"),
            ["one\ntwo\nthree", "one\ntwo<ins> 2</ins>\nthree"]
        );
        assert_eq!(compare("", "new"), ["", "<ins>new</ins>"]);
        assert_eq!(compare("old", ""), ["<del>old</del>", ""]);
        assert_eq!(compare("same", "same"), ["same", "same"]);
    }

    #[test]
    fn invisible_characters_and_changed_spaces_are_shown() {
        let [_, after] = compare("Adds.", "Adds.\u{200b}\u{202e}");
        assert_eq!(
            after,
            "<ins>Adds.<span class=\"unseen\">U+200B</span><span class=\"unseen\">U+202E</span></ins>"
        );
        let [_, after] = compare("a b", "a\u{a0}\u{a0}b");
        assert!(after.contains("U+00A0"), "{after}");
        let [_, after] = compare("a\nb", "a\n\nb");
        assert!(after.contains("U+000A"), "{after}");
        let [before, after] = compare("a\rb", "a\rc");
        assert!(
            before.contains("U+000D") && after.contains("U+000D"),
            "{before} {after}"
        );
    }

    #[test]
    fn long_text_is_shown_around_its_changes() {
        let long = "word ".repeat(200_000);
        let [before, after] = compare(&format!("{long}old"), &format!("{long}new"));
        assert!(before.ends_with("<del>old</del>"), "{}", before.len());
        assert!(after.ends_with("<ins>new</ins>"), "{}", after.len());
        assert!(before.len() + after.len() < 2_000);
        assert!(after.contains("unchanged bytes"), "{after}");
        let inserted = "x ".repeat(100_000);
        let [_, after] = compare("", &inserted);
        assert!(
            after.contains(&inserted),
            "nothing that differs is left out"
        );
    }
}
