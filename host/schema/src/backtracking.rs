//! Matches patterns with look-around or back-references by backtracking, within the budget of a
//! check.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use fancy_regex::{Input, Regex, RegexBuilder};

use super::budget;

/// Maximum number of backtracking steps of one match. This is enough for any honest pattern on a
/// text of kilobytes. A catastrophic pattern stops after milliseconds.
const BACKTRACKS: usize = 100_000;

/// Size limits for the compiled parts without look-around and back-references, in bytes. The
/// smallest sufficient limit is used. Such a part scans a text without interruption.
const PARTS: [usize; 4] = [32 << 10, 128 << 10, 512 << 10, 2 << 20];

/// Maximum product of the size of a text and the size limit of such a part, both in bytes. In the
/// worst case, a part takes one second for this.
const WORK: usize = 2 << 30;

/// Amount of that product for which one step must be left in the budget, because a part cannot be
/// interrupted while it scans.
const AT_ONCE: usize = 2 << 10;

/// Maximum product of the size of a text and the size of its pattern, both in bytes. The saved
/// backtracking state takes 16 times as many bytes.
const SAVED: usize = 4 << 20;

/// Number of steps after which the pattern is compiled again. Its automata grow while they match,
/// and only dropping them frees their memory.
const WEAR: u64 = 50_000;

/// A pattern that is matched by a backtracking engine.
pub(super) struct BacktrackingMatcher {
    /// The pattern in the syntax of the engine.
    source: String,
    /// Maximum size of each compiled part, in bytes.
    part: usize,
    /// The compiled pattern, unless it was dropped, and the steps that it has taken.
    compiled: Mutex<(Option<Arc<Regex>>, u64)>,
}

impl BacktrackingMatcher {
    /// Compiles a pattern, each part of which may have `size` bytes. Returns `None` if it is not a
    /// valid pattern, or is too large.
    pub(super) fn compile(source: &str, size: usize) -> Option<Self> {
        let mut parts = PARTS.into_iter().map(|part| part.min(size));
        let (part, regex) = parts.find_map(|part| Some((part, build(source, part)?)))?;
        Some(Self { source: source.to_owned(), part, compiled: Mutex::new((Some(Arc::new(regex)), 0)) })
    }

    /// Returns whether the pattern matches anywhere in `text`.
    pub(super) fn is_match(&self, text: &str) -> bool {
        if text.len().saturating_mul(self.part) > WORK || text.len().saturating_mul(self.source.len()) > SAVED {
            budget::spent();
        }
        budget::need((text.len() * self.part / AT_ONCE) as u64);
        let Some(regex) = self.regex() else { budget::spent() };
        let before = budget::left();
        let matched = catch_unwind(AssertUnwindSafe(|| regex.is_match(&CountedText(text))));
        self.wear(before.saturating_sub(budget::left()));
        match matched {
            Ok(Ok(matched)) => matched,
            Err(panic) if budget::is_spent(&*panic) => resume_unwind(panic),
            // The engine reached its backtracking limit, or it panicked. Some patterns make it
            // panic.
            Ok(Err(_)) | Err(_) => budget::spent(),
        }
    }

    fn regex(&self) -> Option<Arc<Regex>> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if compiled.0.is_none() {
            *compiled = (build(&self.source, self.part).map(Arc::new), 0);
        }
        compiled.0.clone()
    }

    fn wear(&self, steps: u64) {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        compiled.1 = compiled.1.saturating_add(steps);
        if compiled.1 > WEAR {
            compiled.0 = None;
        }
    }
}

fn build(source: &str, part: usize) -> Option<Regex> {
    RegexBuilder::new(source)
        .backtrack_limit(BACKTRACKS)
        .delegate_size_limit(part)
        .delegate_dfa_size_limit(part)
        .build()
        .ok()
}

impl fmt::Debug for BacktrackingMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BacktrackingMatcher").field(&self.source).finish()
    }
}

/// A text that charges steps for each access of the engine.
struct CountedText<'a>(&'a str);

impl CountedText<'_> {
    /// Charges one access. After each access, the engine may read the whole text.
    fn look(&self) {
        budget::take(1 + (self.0.len() / 64) as u64);
    }
}

impl Input for CountedText<'_> {
    /// The position of a match is not needed.
    type Match<'t>
        = ()
    where
        Self: 't;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn as_bytes(&self) -> &[u8] {
        self.look();
        self.0.as_bytes()
    }

    fn is_char_boundary(&self, ix: usize) -> bool {
        self.look();
        Input::is_char_boundary(self.0, ix)
    }

    fn is_ascii(&self) -> bool {
        self.look();
        Input::is_ascii(self.0.as_bytes())
    }

    fn prev_codepoint_ix(&self, i: usize) -> usize {
        self.look();
        Input::prev_codepoint_ix(self.0, i)
    }

    fn make_match(&self, _start: usize, _end: usize) {}

    fn advance_position(&self, i: usize) -> usize {
        self.look();
        Input::advance_position(self.0, i)
    }
}
