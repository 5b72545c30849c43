//! Wording of comments and messages.

use super::figure::Measure;
use super::literals::string_literals;
use super::source::SourceFile;

/// Phrases that mark a sentence as hard to read: an animate verb for code, a clause in place of a
/// noun, or an unusual word.
const MARKERS: &[&str] = &[
    "beside",
    "besides",
    "told",
    "tells",
    "nobody",
    "somebody",
    "whoever",
    "whatever it",
    "what is",
    "what was",
    "so many",
    "so much",
    "is no",
    "are no",
    "comes of",
    "came of",
    "goes on",
    "go on",
    "alone",
    "knows of",
    "knows better",
    "wants",
    "for good",
    "by itself",
    "at the least",
    "at the most",
    "of its own",
    "of your own",
    "begun",
];

/// Phrases that contain a marker and are usual.
const USUAL_PHRASES: &[&str] = &[
    "there is no",
    "there are no",
    "is no longer",
    "are no longer",
];

/// Minimum number of words of a string literal that is a message.
const MIN_MESSAGE_WORDS: usize = 3;

/// First words that turn a noun into a clause.
const CLAUSE_WORDS: &[&str] = &[
    "What", "Whether", "That", "Those", "Who", "Whom", "How", "Why", "Where",
];

/// Measures phrases, and documentation that begins with a clause.
pub(super) fn measure(files: &[SourceFile]) -> Vec<Measure> {
    let mut measures = measure_phrases(files);
    measures.extend(measure_beginnings(files));
    measures
}

/// Measures phrases in comments and messages.
pub(super) fn measure_phrases(files: &[SourceFile]) -> Vec<Measure> {
    vec![measure_comments(files), measure_messages(files)]
}

/// Measures phrases in comments.
fn measure_comments(files: &[SourceFile]) -> Measure {
    let mut words = 0_usize;
    let mut places = Vec::new();
    for file in files {
        for (index, line) in file.lines.iter().enumerate() {
            let Some((text, _)) = comment(line) else {
                continue;
            };
            words += text.split_whitespace().count();
            let place = |marker| format!("{}:{}: {marker:?} in {text}", file.path, index + 1);
            places.extend(markers_in(text).map(place));
        }
    }
    Measure::of_share(
        "marked phrases per 1,000 words of comment",
        words,
        1_000,
        15,
        places,
    )
}

/// Measures documentation that begins with a clause.
fn measure_beginnings(files: &[SourceFile]) -> [Measure; 2] {
    let mut what = Vec::new();
    let mut clauses = Vec::new();
    for file in files {
        let mut continues = false;
        for (index, line) in file.lines.iter().enumerate() {
            let Some((text, is_doc)) = comment(line) else {
                continues = false;
                continue;
            };
            let first = text
                .split_whitespace()
                .next()
                .unwrap_or_default()
                .trim_end_matches(',');
            if is_doc && !continues && CLAUSE_WORDS.contains(&first) {
                let place = format!("{}:{}: {text}", file.path, index + 1);
                if first == "What" {
                    what.push(place.clone());
                }
                clauses.push(place);
            }
            continues = is_doc;
        }
    }
    [
        Measure::of_count(
            "documentation that begins with \"What\"",
            what.len(),
            10,
            what,
        ),
        Measure::of_count(
            "documentation that begins with a clause",
            clauses.len(),
            40,
            clauses,
        ),
    ]
}

/// Measures phrases in the string literals that are messages.
fn measure_messages(files: &[SourceFile]) -> Measure {
    let mut places = Vec::new();
    for file in files {
        for literal in string_literals(&file.lines.join("\n")) {
            let text = &literal.text;
            if text.split_whitespace().count() >= MIN_MESSAGE_WORDS {
                let place =
                    |marker| format!("{}:{}: {marker:?} in {text}", file.path, literal.line);
                places.extend(markers_in(text).map(place));
            }
        }
    }
    Measure::of_count("marked phrases in messages", places.len(), 0, places)
}

/// Returns the markers that a text contains.
fn markers_in(text: &str) -> impl Iterator<Item = &'static str> {
    let text = USUAL_PHRASES
        .iter()
        .fold(text.to_lowercase(), |text, phrase| text.replace(phrase, ""));
    MARKERS
        .iter()
        .copied()
        .filter(move |marker| contains_phrase(&text, marker))
}

/// Returns the text of a line that is a comment, and whether it is documentation.
fn comment(line: &str) -> Option<(&str, bool)> {
    let line = line.trim_start();
    let doc = line
        .strip_prefix("///")
        .or_else(|| line.strip_prefix("//!"));
    doc.map(|text| (text.trim(), true))
        .or_else(|| line.strip_prefix("//").map(|text| (text.trim(), false)))
}

/// Returns whether `text`, in lower case, contains the phrase as whole words.
fn contains_phrase(text: &str, phrase: &str) -> bool {
    let is_end = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    text.match_indices(phrase).any(|(start, found)| {
        let (before, rest) = text.split_at(start);
        is_end(before.chars().next_back())
            && is_end(rest.get(found.len()..).and_then(|rest| rest.chars().next()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Vec<SourceFile> {
        vec![SourceFile {
            path: "a.rs".to_owned(),
            lines: text.lines().map(str::to_owned).collect(),
        }]
    }

    #[test]
    fn only_the_first_line_of_documentation_begins_it() {
        let measures = measure(&file(
            "/// What is kept.\n/// What else.\nstruct A;\n// What it does.\n",
        ));
        let counts: Vec<usize> = measures
            .iter()
            .map(|measure| measure.places.len())
            .collect();
        assert_eq!(counts, [1, 0, 1, 1]);
    }

    #[test]
    fn messages_are_measured_and_names_are_not() {
        let files = file("f(\"no file beside it\", \"beside\");\n// \"no file beside it\"\n");
        assert_eq!(
            measure_messages(&files).places,
            ["a.rs:1: \"beside\" in no file beside it"]
        );
    }

    #[test]
    fn phrases_are_whole_words() {
        let count = |text| markers_in(text).count();
        assert_eq!(count("It runs Beside others."), 1);
        assert_eq!(count("It is not, and `is_none`."), 0);
        assert_eq!(count("It is no file."), 1);
        assert_eq!(count("There is no file, and it is no longer needed."), 0);
    }
}
