//! Finds and redacts the operator's secret values in the output of plugins.

mod text_reading;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use toolbay_model::text::clean;
use zeroize::Zeroizing;

use self::text_reading::TextReading;
use crate::value::SecretValue;

/// Maximum number of nested backslash escapes that are decoded: JSON in JSON in JSON.
const MAX_ESCAPE_LEVELS: u32 = 3;

/// Maximum number of nested percent-encodings that are decoded: a URL in the query of another URL.
const MAX_PERCENT_LEVELS: u32 = 2;

/// Minimum length of a line of a multi-line secret that is redacted separately, in bytes.
const MIN_LINE_BYTES: usize = 16;

/// Characters that percent-encoding leaves unchanged (RFC 3986, section 2.3).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Characters that JavaScript's `encodeURIComponent` leaves unchanged.
const COMPONENT_UNRESERVED: &AsciiSet = &UNRESERVED
    .remove(b'!')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

/// Maximum total size of patterns for which the search uses a DFA, in bytes. A DFA takes about 512
/// bytes for each pattern byte. The contiguous NFA is half as fast and takes about 12.
const MAX_DFA_PATTERN_BYTES: usize = 4 << 10;

/// Filter without secrets.
static NO_SECRETS: SecretFilter = SecretFilter {
    finders: Vec::new(),
};

/// Named secrets, and a search for all of them at once.
///
/// The filter finds values in plain text, in base64 at any offset, in hexadecimal, percent-encoded,
/// and escaped as in JSON. A plugin that can read a secret can encode it in other ways: redaction
/// prevents accidents, not attacks.
#[derive(Clone, Default)]
pub struct SecretFilter {
    /// Finder of shared secrets, and finder of a caller's secrets.
    finders: Vec<Arc<SecretFinder>>,
}

/// Search for some secrets. The states of the automaton are derived from the patterns and are not
/// overwritten when this is dropped.
pub(crate) struct SecretFinder {
    automaton: AhoCorasick,
    patterns: Vec<Zeroizing<Vec<u8>>>,
    /// Replacement text of each pattern.
    marks: Vec<String>,
}

/// Secret part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SecretMatch {
    range: Range<usize>,
    /// Index of the finder, and of the pattern in it.
    pattern: (usize, usize),
}

impl SecretFilter {
    /// Returns a filter without secrets.
    pub fn empty() -> &'static Self {
        &NO_SECRETS
    }

    /// Creates a filter for secrets with these names and values.
    ///
    /// # Errors
    ///
    /// Returns an error if the values are too long.
    pub fn new<'a>(
        values: impl IntoIterator<Item = (&'a str, &'a SecretValue)>,
    ) -> Result<Self, String> {
        Ok(Self::from_finders(SecretFinder::new(values)?.map(Arc::new)))
    }

    /// Creates a filter from these finders.
    pub(crate) fn from_finders(finders: impl IntoIterator<Item = Arc<SecretFinder>>) -> Self {
        Self {
            finders: finders.into_iter().collect(),
        }
    }

    /// Prepares a guest's text for display: removes control characters first and secrets second,
    /// because control characters may split a secret. Callers must truncate the text only
    /// afterwards.
    pub fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match clean(text) {
            Cow::Borrowed(text) => self.redact(text),
            Cow::Owned(cleaned) => Cow::Owned(self.redact(&cleaned).into_owned()),
        }
    }

    /// Like [`scrub`](Self::scrub), for a text that was truncated. Also removes a partial secret at
    /// its end.
    pub fn scrub_truncated(&self, text: &str) -> String {
        let text = clean(text);
        if self.finders.is_empty() {
            return text.into_owned();
        }
        let end = self.partial_match_start(text.as_bytes());
        self.redact_matches(&text, &self.find_matches(text.as_bytes()), end)
    }

    /// Replaces each secret in `text` with `[secret:NAME]`. The text must already be [`clean`]; see
    /// [`scrub`](Self::scrub).
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.find_matches(text.as_bytes()).as_slice() {
            [] => Cow::Borrowed(text),
            matches => Cow::Owned(self.redact_matches(text, matches, text.len())),
        }
    }

    /// Returns whether the filter has no secrets.
    pub fn is_empty(&self) -> bool {
        self.finders.is_empty()
    }

    /// Returns whether `bytes` contains any of the secrets.
    pub fn contains_secret(&self, bytes: &[u8]) -> bool {
        !self.find_matches(bytes).is_empty()
    }

    /// Returns the secret parts of `text`, in order and without overlaps.
    fn find_matches(&self, text: &[u8]) -> Vec<SecretMatch> {
        if self.finders.is_empty() {
            return Vec::new();
        }
        let search = |text: &[u8]| {
            let mut all_matches = Vec::new();
            for (index, finder) in self.finders.iter().enumerate() {
                let mut matches = Vec::new();
                for pattern_match in finder.automaton.find_overlapping_iter(text) {
                    push_merged(
                        &mut matches,
                        SecretMatch {
                            range: pattern_match.range(),
                            pattern: (index, pattern_match.pattern().as_usize()),
                        },
                    );
                }
                all_matches.append(&mut matches);
            }
            merge_matches(all_matches)
        };
        find_in_readings(text, MAX_ESCAPE_LEVELS, MAX_PERCENT_LEVELS, &search)
    }

    /// Returns the start of a possible partial secret at the end of `text`; the length of `text` if
    /// there is none.
    fn partial_match_start(&self, text: &[u8]) -> usize {
        let complete_length = [TextReading::Unescaped, TextReading::PercentDecoded]
            .map(|reading| reading.complete_length(text))
            .into_iter()
            .min();
        let text = text
            .get(..complete_length.unwrap_or_default())
            .unwrap_or(text);
        let search = |text: &[u8]| {
            let patterns = self.finders.iter().enumerate().flat_map(|(index, finder)| {
                finder
                    .patterns
                    .iter()
                    .enumerate()
                    .map(move |(pattern, bytes)| ((index, pattern), bytes))
            });
            let starts = patterns.filter_map(|(pattern, bytes)| {
                let lengths = (1..=bytes.len().min(text.len())).rev();
                let length = lengths
                    .into_iter()
                    .find(|length| bytes.get(..*length).is_some_and(|b| text.ends_with(b)))?;
                Some(SecretMatch {
                    range: text.len() - length..text.len(),
                    pattern,
                })
            });
            starts
                .min_by_key(|partial| partial.range.start)
                .into_iter()
                .collect()
        };
        // All ranges end at the end of the text, so they are merged into one.
        find_in_readings(text, MAX_ESCAPE_LEVELS, MAX_PERCENT_LEVELS, &search)
            .first()
            .map_or(text.len(), |partial| partial.range.start)
    }

    /// Returns `text` up to `end`, with replacements for the matches.
    fn redact_matches(&self, text: &str, matches: &[SecretMatch], end: usize) -> String {
        let mut out = String::new();
        let mut copied_end = 0;
        for SecretMatch { range, pattern } in matches.iter().filter(|found| found.range.start < end)
        {
            // Extend the range to whole characters.
            let start = text.floor_char_boundary(range.start);
            out.push_str(text.get(copied_end..start).unwrap_or_default());
            let mark = self
                .finders
                .get(pattern.0)
                .and_then(|finder| finder.marks.get(pattern.1));
            out.push_str(mark.map_or("[secret]", String::as_str));
            copied_end = text.ceil_char_boundary(range.end);
        }
        out.push_str(
            text.get(copied_end..text.floor_char_boundary(end))
                .unwrap_or_default(),
        );
        out
    }
}

/// Returns the matches that `search` finds in `text` and in its decoded readings, in order and
/// without overlaps. Decodes at most `escape_levels` levels of escapes and `percent_levels` levels
/// of percent-encoding.
fn find_in_readings(
    text: &[u8],
    escape_levels: u32,
    percent_levels: u32,
    search: &dyn Fn(&[u8]) -> Vec<SecretMatch>,
) -> Vec<SecretMatch> {
    let mut all_matches = search(text);
    let mut search_reading = |reading: TextReading, inner_escapes: u32, inner_percents: u32| {
        if reading.is_applicable(text) {
            let mut matches =
                find_in_readings(&reading.decode(text), inner_escapes, inner_percents, search);
            reading.map_ranges(text, matches.iter_mut().map(|found| &mut found.range));
            all_matches.append(&mut matches);
        }
    };
    // Wrapping is the last encoding step, so undo it only at the outermost level. Content of a URL
    // is escaped as JSON at most once.
    if escape_levels == MAX_ESCAPE_LEVELS && percent_levels == MAX_PERCENT_LEVELS {
        search_reading(TextReading::Unwrapped, 0, 0);
    }
    if escape_levels > 0 {
        search_reading(
            TextReading::Unescaped,
            escape_levels - 1,
            percent_levels.min(1),
        );
    }
    if percent_levels > 0 {
        search_reading(
            TextReading::PercentDecoded,
            escape_levels.min(1),
            percent_levels - 1,
        );
    }
    merge_matches(all_matches)
}

/// Sorts the matches and merges those that overlap.
fn merge_matches(mut matches: Vec<SecretMatch>) -> Vec<SecretMatch> {
    matches.sort_by_key(|secret_match| secret_match.range.start);
    let mut merged = Vec::with_capacity(matches.len());
    for next in matches {
        push_merged(&mut merged, next);
    }
    merged
}

/// Appends a match and merges it with overlapping ones. The merged match has the pattern of the
/// longest one, or of the first if they are equally long.
fn push_merged(merged: &mut Vec<SecretMatch>, mut next: SecretMatch) {
    while let Some(last) = merged.pop_if(|last| next.range.start < last.range.end) {
        if last.range.len() >= next.range.len() {
            next.pattern = last.pattern;
        }
        next.range = next.range.start.min(last.range.start)..next.range.end.max(last.range.end);
    }
    merged.push(next);
}

impl SecretFinder {
    /// Creates a search for secrets with these names and values; `None` if there are none.
    ///
    /// # Errors
    ///
    /// Returns an error if the values are too long.
    pub(crate) fn new<'a>(
        values: impl IntoIterator<Item = (&'a str, &'a SecretValue)>,
    ) -> Result<Option<Self>, String> {
        let mut patterns = Vec::new();
        let mut marks = Vec::new();
        for (name, value) in values {
            for pattern in search_patterns(value.as_str()) {
                patterns.push(pattern);
                marks.push(format!("[secret:{name}]"));
            }
        }
        if patterns.is_empty() {
            return Ok(None);
        }
        let size: usize = patterns.iter().map(|pattern| pattern.len()).sum();
        let kind = (size > MAX_DFA_PATTERN_BYTES).then_some(AhoCorasickKind::ContiguousNFA);
        let automaton = AhoCorasick::builder().kind(kind).build(&patterns);
        let search = automaton.map_err(|_| "the secrets are too long to redact".to_owned())?;
        Ok(Some(Self {
            automaton: search,
            patterns,
            marks,
        }))
    }

    /// Returns the memory use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.automaton.memory_usage()
            + self
                .patterns
                .iter()
                .map(|pattern| pattern.capacity())
                .sum::<usize>()
    }
}

/// Writes only the replacement texts.
impl fmt::Debug for SecretFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let marks: BTreeSet<&String> = self
            .finders
            .iter()
            .flat_map(|finder| &finder.marks)
            .collect();
        f.debug_set().entries(marks).finish()
    }
}

/// Returns the patterns for a value. Each is overwritten when it is dropped.
fn search_patterns(value: &str) -> Vec<Zeroizing<Vec<u8>>> {
    let lines = value
        .lines()
        .map(str::trim)
        .filter(|line| line.len() >= MIN_LINE_BYTES);
    let mut forms: Vec<Zeroizing<Vec<u8>>> = Vec::new();
    for text in lines.chain([value]) {
        let bytes = text.as_bytes();
        // The escaped form also matches where a preceding backslash or percent sign changes how its
        // escapes are decoded.
        let json = Zeroizing::new(serde_json::to_string(text).unwrap_or_default());
        let json = json
            .strip_prefix('"')
            .and_then(|json| json.strip_suffix('"'))
            .unwrap_or(text);
        let hexadecimal = Zeroizing::new(hex::encode(bytes));
        // HTML forms write a space as a plus sign, even if other characters are percent-encoded.
        let form_encoded = Zeroizing::new(text.replace(' ', "+"));
        let upper = Zeroizing::new(hexadecimal.to_ascii_uppercase());
        let percent = [UNRESERVED, COMPONENT_UNRESERVED]
            .map(|encode_set| Zeroizing::new(utf8_percent_encode(text, encode_set).to_string()));
        let plain = [text, json, &hexadecimal, &upper, &form_encoded]
            .into_iter()
            .chain(percent.iter().map(|text| text.as_str()));
        forms.extend(plain.map(|text| Zeroizing::new(text.as_bytes().to_vec())));
        for pad in [&[][..], &[0], &[0, 0]] {
            let prefix_len = pad.len();
            let padded = Zeroizing::new([pad, bytes].concat());
            for base64 in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                let encoded = Zeroizing::new(base64.encode(&*padded));
                forms.push(Zeroizing::new(stable_base64(&encoded, prefix_len, &padded)));
            }
        }
    }
    forms.sort_unstable_by(|one, two| one.as_slice().cmp(two));
    forms.dedup();
    forms
}

/// Returns the base64 digits of `padded` that depend neither on its first `prefix_len` bytes nor on
/// bytes that may follow.
fn stable_base64(base64: &str, prefix_len: usize, padded: &[u8]) -> Vec<u8> {
    let start = (prefix_len * 8).div_ceil(6);
    let end = padded.len() * 8 / 6;
    base64.get(start..end).unwrap_or(base64).as_bytes().to_vec()
}

#[cfg(test)]
mod tests;
